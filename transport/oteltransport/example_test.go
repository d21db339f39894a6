package oteltransport_test

import (
	"log"
	"net/http"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/oteltransport"
)

// A span of each call, with its waits, around what instruments each transmission.
func Example() {
	rt, err := transport.New(transport.Config{
		Base:             http.DefaultTransport, // otelhttp.NewTransport belongs here
		TracedBase:       true,
		AttemptInContext: true,
		OnEvent:          oteltransport.Observe,
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: oteltransport.New(rt, oteltransport.Options{})}
	_ = client
}

package promtransport_test

import (
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/promtransport"
)

func Example() {
	metrics := promtransport.New(promtransport.Options{})
	rt, err := transport.New(transport.Config{OnEvent: metrics.Observe})
	if err != nil {
		log.Fatal(err)
	}
	metrics.Watch(rt)
	prometheus.NewRegistry().MustRegister(metrics) // or the registry that you scrape
}

package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/gateway"
)

// One that sends half a request to the operators' address keeps no connection.
func TestAdminDoesNotWaitForABody(t *testing.T) {
	defer func(d time.Duration) { adminRead = d }(adminRead)
	adminRead = 50 * time.Millisecond
	var address string
	p := &program{
		file: &gateway.File{Admin: gateway.Admin{Address: "127.0.0.1:0"}}, broken: make(chan error, 1),
		admin: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }),
	}
	p.log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "address" {
			address = a.Value.String()
		}
		return a
	}}))
	require.NoError(t, p.listen())
	defer func() { _ = p.servers[0].Close(); p.served.Wait() }()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
	require.NoError(t, err)
	_, err = io.ReadAll(c)
	assert.NoError(t, err, "it is still open")
	assert.Positive(t, p.servers[0].IdleTimeout)
}

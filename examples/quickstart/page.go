package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/promtransport"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// watcher serves the status page and the metrics while the work goes on.
type watcher struct {
	page    *statuspage.Page
	metrics *promtransport.Metrics
	server  *http.Server
	done    chan error // Serve has returned
}

func newWatcher() *watcher {
	return &watcher{
		page:    statuspage.New(statuspage.Options{Title: "outlay quick start"}),
		metrics: promtransport.New(promtransport.Options{}),
	}
}

// observe is the hook for what happens.
func (w *watcher) observe(ctx context.Context, e transport.Event) {
	w.metrics.Observe(ctx, e)
	w.page.Observe(ctx, e)
}

// serve begins to answer at the address, which must be one of this machine: the page
// answers nobody else.
func (w *watcher) serve(ctx context.Context, address string, rt *transport.Transport, out io.Writer) error {
	w.page.Watch(rt)
	w.metrics.Watch(rt)
	registry := prometheus.NewRegistry()
	if err := registry.Register(w.metrics); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", w.page)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	w.done = make(chan error, 1)
	go func() { w.done <- w.server.Serve(l) }() // ends with close
	fmt.Fprintf(out, "status page: http://%v/   metrics: http://%v/metrics\n", l.Addr(), l.Addr())
	return nil
}

// close ends the answering.
func (w *watcher) close() error {
	if w.server == nil {
		return nil
	}
	err := w.server.Close()
	if serve := <-w.done; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	return err
}

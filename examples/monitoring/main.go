// Monitoring shows how logs, metrics, traces and the status page are wired to one
// transport: each is a hook, and [transport.Tee] joins them.
//
//	go run ./examples/monitoring
//
// It sends a message now and then to a fake vendor, and prints the addresses of the page
// and of the metrics. Rules for Prometheus and a dashboard for Grafana are beside
// transport/promtransport.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/oteltransport"
	"github.com/outlay-go/outlay/transport/promtransport"
	"github.com/outlay-go/outlay/transport/statuspage"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// monitor makes a transport of c that is watched in every way, and what shows it.
// Authorize decides who may change it over HTTP.
func monitor(c transport.Config, logger *slog.Logger, authorize func(*http.Request, statuspage.Action) (string, error)) (*http.Client, http.Handler, error) {
	metrics := promtransport.New(promtransport.Options{})
	page := statuspage.New(statuspage.Options{}) // answers this machine only; see Options.Allow
	registry := prometheus.NewRegistry()
	sent := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "transmission_seconds", Help: "Time of a transmission."}, []string{"code"})
	if err := errors.Join(registry.Register(metrics), registry.Register(sent)); err != nil {
		return nil, nil, err
	}

	// Below outlay is what looks at each transmission: promhttp, and otelhttp with
	// otelhttp.WithClientTrace(oteltransport.ClientTrace).
	c.Base = promhttp.InstrumentRoundTripperDuration(sent, c.Base)
	c.TracedBase = true       // they only wrap
	c.AttemptInContext = true // for ClientTrace
	c.OnEvent = transport.Tee(
		transport.LogTo(logger, transport.LogOptions{Calls: slog.LevelInfo}),
		metrics.Observe,
		page.Observe,
		oteltransport.Observe,
	)
	rt, err := transport.New(c)
	if err != nil {
		return nil, nil, err
	}
	metrics.Watch(rt)
	page.Watch(rt)

	admin, err := statuspage.Admin(rt, statuspage.AdminOptions{Authorize: authorize})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /debug/outlay/{$}", page)
	mux.Handle("/debug/outlay/admin/", http.StripPrefix("/debug/outlay/admin", admin))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &http.Client{Transport: oteltransport.New(rt, oteltransport.Options{})}, mux, nil // above it is the span of the whole call
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)), func(address string) {
		fmt.Printf("page: http://%s/debug/outlay/   metrics: http://%s/metrics\n", address, address)
	}); err != nil {
		log.Fatal(err)
	}
}

// run sends messages until ctx ends.
func run(ctx context.Context, logger *slog.Logger, serving func(address string)) error {
	sms := vendortest.NewSMS(vendortest.Options{Faults: vendortest.Faults{Seed: 1, Throttle429Hint: 5, ResetAfterRead: 5}})
	defer sms.Close()
	client, handler, err := monitor(transport.Config{
		Base:   vendortest.Base(sms),
		Ledger: new(budget.Memory),
		Providers: []transport.Provider{{
			Name:    "twilio-sms",
			Match:   []string{"api.twilio.com"},
			Rates:   []throttle.Rate{throttle.PerSecond(2)},
			Price:   price.SMS{Segment: budget.MustParse("0.0083")},
			Budgets: []budget.Budget{budget.PerDay(budget.Unit)},
		}},
	}, logger, nobody)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Close
	serving(listener.Addr().String())

	work(ctx, client)
	err = server.Close()
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// nobody may change anything here: a real program looks at a token or a session.
func nobody(*http.Request, statuspage.Action) (string, error) { return "", statuspage.ErrForbidden }

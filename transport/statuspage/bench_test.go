package statuspage_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

func BenchmarkPage(b *testing.B) {
	var w *world
	var providers []transport.Provider
	for i := range 50 {
		providers = append(providers, provider(fmt.Sprint("provider-", i), "9"))
	}
	w = newWorld(b, new(budget.Memory), providers...)
	for i := range 50 {
		for range 24 {
			_ = w.send(b.Context(), fmt.Sprint("provider-", i))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		rec := answerTo(w.page, ask(http.MethodGet, "/"))
		_, _ = io.Copy(io.Discard, rec.Body)
	}
}

func BenchmarkObserve(b *testing.B) {
	w := newWorld(b, new(budget.Memory), provider("maps", "1000000000"))
	events := []transport.Event{
		{Kind: transport.KindStarted, Provider: "maps"}, {Kind: transport.KindAnswered, Provider: "maps", Status: 200},
		{Kind: transport.KindResolved, Provider: "maps", Outcome: "settled", Cost: 1, Unit: "USD"}, {Kind: transport.KindFinished, Provider: "maps", Outcome: "answered"},
	}
	b.ReportAllocs()
	for b.Loop() { // one op is one call
		now := time.Now()
		for _, e := range events {
			e.Time = now
			w.page.Observe(b.Context(), e)
		}
	}
}

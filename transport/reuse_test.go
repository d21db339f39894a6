package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

// named answers with a body that repeats the request's path, a byte at a time.
type named struct{}

func (named) RoundTrip(req *http.Request) (*http.Response, error) {
	body := iotest.OneByteReader(strings.NewReader(strings.Repeat(req.URL.Path, 20)))
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, Request: req}, nil
}

// watching is a price that checks whose bytes it is given.
type watching struct {
	price.Fixed
	t *testing.T
}

func (w watching) Meter(resp *http.Response) (io.Writer, func() (budget.Amount, bool)) {
	want, got := strings.Repeat(resp.Request.URL.Path, 20), new(bytes.Buffer)
	return got, func() (budget.Amount, bool) {
		assert.True(w.t, strings.HasPrefix(want, got.String()), "the meter saw another call's body")
		return 1, got.Len() == len(want)
	}
}

// The memory of a call is used again when its body has ended, which its context may
// do while somebody still reads.
func TestBodiesThatEndEarlyMixNothingUp(t *testing.T) {
	ledger := new(budget.Memory)
	rt, err := transport.New(transport.Config{Base: named{}, Ledger: ledger, Providers: []transport.Provider{{
		Name: "api", Match: []string{"api.example.com"}, MaxInFlight: 100,
		Price: watching{price.PerCall(2000), t}, Budgets: []budget.Budget{budget.PerDay(budget.Unit)},
	}}})
	require.NoError(t, err)
	const callers, calls = 8, 200
	start := make(chan struct{})
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			<-start
			for i := range calls {
				ctx, cancel := context.WithCancel(t.Context())
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://api.example.com/%d-%d", caller, i), nil)
				assert.NoError(t, err)
				resp, err := rt.RoundTrip(req)
				if !assert.NoError(t, err) {
					cancel()
					return
				}
				_, _ = io.CopyN(io.Discard, resp.Body, int64(i%50))
				if i%2 == 0 {
					go cancel() // while the rest is read
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				cancel()
			}
		})
	}
	close(start)
	all.Wait()
	b := budget.PerDay(budget.Unit)
	b.Name = "api-day"
	require.Eventually(t, func() bool { // ends that the context brought may still be on their way
		totals, err := ledger.Totals(context.Background(), time.Now(), b)
		return err == nil && totals[0].OpenHolds == 0 && totals[0].Settled+totals[0].Presumed >= callers*calls
	}, 10*time.Second, time.Millisecond)
}

package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xrate "golang.org/x/time/rate"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// bare answers at once with a copy of one response.
type bare struct{ resp http.Response }

func (b *bare) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := b.resp
	resp.Request = req
	return &resp, nil
}

func newBare() *bare {
	return &bare{http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Header: http.Header{
			"Date": {"Sat, 01 Jan 2000 00:00:00 GMT"}, "Content-Type": {"application/json"},
			"X-Ratelimit-Limit": {"100000000"}, "X-Ratelimit-Remaining": {"90000000"}, "X-Ratelimit-Reset": {"30"},
		},
	}}
}

// tenLines is what everybody writes first: x/time before the base.
type tenLines struct {
	lim  *xrate.Limiter
	base http.RoundTripper
}

func (t tenLines) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.lim.Wait(req.Context()); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(req)
}

func fullConfig() transport.Config {
	p := transport.Provider{
		Name: "api", Match: []string{"GET api.example.com/v1/lookup", "POST api.example.com/v1/messages"},
		Rates: []throttle.Rate{{N: 1_000_000_000, Per: time.Second, Burst: 1_000_000}}, MaxInFlight: 1000,
		Price: price.PerCall(1000), Budgets: []budget.Budget{budget.PerDay(9_000_000_000 * budget.Unit)},
	}
	return transport.Config{Base: newBare(), Providers: []transport.Provider{p}, Ledger: new(budget.Memory), OnEvent: func(context.Context, transport.Event) {}}
}

func fullProvider(tb testing.TB) *transport.Transport {
	rt, err := transport.New(fullConfig())
	require.NoError(tb, err)
	return rt
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name string
		rt   http.RoundTripper
	}{
		{"bare", newBare()},
		{"xtime", tenLines{xrate.NewLimiter(1e9, 1e6), newBare()}},
		{"outlay", fullProvider(b)},
	} {
		req, err := http.NewRequest("GET", "https://api.example.com/v1/lookup", nil)
		require.NoError(b, err)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}

func BenchmarkPost4KiB(b *testing.B) {
	text := strings.Repeat("x", 4096)
	for _, c := range []struct {
		name string
		rt   http.RoundTripper
	}{{"bare", newBare()}, {"outlay", fullProvider(b)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest("POST", "https://api.example.com/v1/messages", strings.NewReader(text))
				resp, err := c.rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

func BenchmarkRefusal(b *testing.B) {
	p := transport.Provider{Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit), Budgets: []budget.Budget{budget.PerDay(1)}}
	rt, err := transport.New(transport.Config{Base: newBare(), Providers: []transport.Provider{p}, Ledger: new(budget.Memory)})
	require.NoError(b, err)
	req, _ := http.NewRequest("GET", apiURL, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rt.RoundTrip(req); err == nil {
			b.Fatal("no refusal")
		}
	}
}

// What a call allocates beyond the bare base, as the README has it.
func TestCallsAllocateLittle(t *testing.T) {
	text := strings.Repeat("x", 4096)
	get, err := http.NewRequest("GET", "https://api.example.com/v1/lookup", nil)
	require.NoError(t, err)
	count := func(rt http.RoundTripper, request func() *http.Request) float64 {
		return testing.AllocsPerRun(1000, func() {
			if resp, err := rt.RoundTrip(request()); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	full, poor := fullProvider(t), fullConfig()
	poor.OnEvent, poor.Providers[0].Price, poor.Providers[0].Budgets = nil, price.PerCall(budget.Unit), []budget.Budget{budget.PerDay(1)}
	refusing, err := transport.New(poor)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		rt      http.RoundTripper
		bare    http.RoundTripper
		request func() *http.Request
	}{
		"call": {full, newBare(), func() *http.Request { return get }},
		"post": {full, newBare(), func() *http.Request {
			req, _ := http.NewRequest("POST", "https://api.example.com/v1/messages", strings.NewReader(text))
			return req
		}},
		"refusal": {refusing, nothing{}, func() *http.Request { return get }},
	} {
		with, bare := count(c.rt, c.request), count(c.bare, c.request)
		t.Logf("%s: bare %v, outlay %v", name, bare, with)
		require.Equal(t, bare+1, with, name)
	}
}

// nothing refuses for nothing.
type nothing struct{}

func (nothing) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.EOF }

// withBody answers with a body of its own, as servers do.
type withBody struct{ bare *bare }

func (w withBody) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.bare.RoundTrip(req)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("0123456789")), 10
	return resp, err
}

func BenchmarkWithBody(b *testing.B) {
	base := withBody{newBare()}
	c := fullConfig()
	c.Base = base
	rt, err := transport.New(c)
	require.NoError(b, err)
	req, err := http.NewRequest("GET", "https://api.example.com/v1/lookup", nil)
	require.NoError(b, err)
	for name, rt := range map[string]http.RoundTripper{"bare": base, "outlay": rt} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

// A body keeps what the call needs until it ends, and then gives it back.
func TestCallWithBodyAllocatesLittle(t *testing.T) {
	base := withBody{newBare()}
	req, err := http.NewRequest("GET", "https://api.example.com/v1/lookup", nil)
	require.NoError(t, err)
	count := func(rt http.RoundTripper) float64 {
		return testing.AllocsPerRun(1000, func() {
			resp, _ := rt.RoundTrip(req)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	c := fullConfig()
	c.Base = base
	rt, err := transport.New(c)
	require.NoError(t, err)
	t.Logf("bare %v, outlay %v", count(base), count(rt))
	require.LessOrEqual(t, count(rt), count(base)+8)
}

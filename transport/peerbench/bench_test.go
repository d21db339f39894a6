package peerbench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

const (
	lookup   = "https://api.example.com/v1/lookup"
	messages = "https://api.example.com/v1/messages"
)

// bare answers at once with a copy of one response. It reads and closes what it is sent,
// as a RoundTripper must.
type bare struct{ resp http.Response }

func (b *bare) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	resp := b.resp
	resp.Request = req
	return &resp, nil
}

func newBare() *bare {
	return &bare{http.Response{
		StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		Header: http.Header{
			"Date": {time.Now().UTC().Format(http.TimeFormat)}, "Content-Type": {"application/json"},
			"X-Ratelimit-Limit": {"100000000"}, "X-Ratelimit-Remaining": {"90000000"}, "X-Ratelimit-Reset": {"30"},
		},
	}}
}

// calls is one peer as a benchmark calls it.
type calls struct {
	name string
	do   func(*http.Request) (*http.Response, error)
}

// happy are all peers over a bare base, with limits that are never reached. The clients
// stand beside http.Client, because they bring one of their own.
func happy(b *testing.B, base http.RoundTripper) []calls {
	return []calls{
		{"bare", base.RoundTrip},
		{"bare_client", (&http.Client{Transport: base}).Do},
		{"outlay", newOutlay(b, base, fullProvider(free)).RoundTrip},
		{"outlay_traced", newOutlay(b, base, fullProvider(free), traced).RoundTrip},
		{"xtime", newXtime(base, free).RoundTrip},
		{"uber", newUber(base, free).RoundTrip},
		{"gofri", newGofri(base, free).RoundTrip},
		{"retryablehttp", newRetryable(base, free).RoundTrip},
		{"failsafe_all", newFailsafe(base, free).RoundTrip},
		{"resty", restyAs(newResty(base, free))},
	}
}

// finish reads an answer to its end and closes it.
func finish(b *testing.B, resp *http.Response, err error) {
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

func get(b *testing.B, ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, lookup, nil)
	if err != nil {
		b.Fatal(err)
	}
	return req
}

// BenchmarkGET is one call of the happy path. The answer has no body.
func BenchmarkGET(b *testing.B) {
	for _, c := range happy(b, newBare()) {
		b.Run(c.name, func(b *testing.B) { getAll(b, c, lookup) })
	}
}

// BenchmarkPOST4KiB sends a body that can be had again by GetBody, and makes the request
// each time, as a RoundTripper takes its body.
func BenchmarkPOST4KiB(b *testing.B) {
	text := strings.Repeat("x", 4096)
	for _, c := range happy(b, newBare()) {
		b.Run(c.name, func(b *testing.B) {
			measure(b, func() {
				req, err := http.NewRequest(http.MethodPost, messages, strings.NewReader(text))
				if err != nil {
					b.Fatal(err)
				}
				resp, err := c.do(req)
				finish(b, resp, err)
			})
		})
	}
}

// refuse measures calls that nobody lets out.
func refuse(b *testing.B, req *http.Request, do func(*http.Request) (*http.Response, error)) {
	measure(b, func() {
		if _, err := do(req); err == nil {
			b.Fatal("no refusal")
		}
	})
}

// measure reports, beside the time, the time of the processor (cpu-ns/op): on a quiet
// machine they are the same, on any other only the second is worth comparing.
func measure(b *testing.B, f func()) {
	b.ReportAllocs()
	began := processor()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(processor()-began)/float64(b.N), "cpu-ns/op")
}

// exhausted answers as GitHub does when its primary limit is used up.
func exhausted() *bare {
	base := newBare()
	base.resp.StatusCode = http.StatusForbidden
	base.resp.Header = http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"4000000000"}, "X-Ratelimit-Resource": {"core"}}
	return base
}

// BenchmarkRefusal refuses a call whose turn would come in an hour, each in its own way:
// outlay and failsafe-go are told not to wait, resty never waits, x/time sees that the
// deadline comes first, gofri knows that GitHub's limit is used up. uber's limiter cannot
// refuse. Budgets are outlay's alone.
func BenchmarkRefusal(b *testing.B) {
	hourly := pace{1, time.Hour, 1}
	soon, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	noWait := func(c *transport.Config) { c.MaxWait = transport.NoWait }
	dear := fullProvider(free)
	dear.Price, dear.Budgets = price.PerCall(budget.Unit), []budget.Budget{budget.PerDay(1)}
	for _, c := range []calls{
		{"rate/outlay", newOutlay(b, newBare(), fullProvider(hourly), noWait).RoundTrip},
		{"rate/xtime", newXtime(newBare(), hourly).RoundTrip},
		{"rate/failsafe", failsafehttp.NewRoundTripper(newBare(), failsafeLimiter(hourly, 0)).RoundTrip},
		{"rate/resty", restyAs(restyLimited(newBare(), hourly))},
		{"rate/gofri", newGofri(exhausted(), hourly).RoundTrip},
		{"budget/outlay", newOutlay(b, newBare(), dear).RoundTrip},
	} {
		b.Run(c.name, func(b *testing.B) {
			req := get(b, soon)
			if resp, err := c.do(req); err == nil { // takes the only turn
				finish(b, resp, err)
			}
			refuse(b, req, c.do)
		})
	}
}

// waiting are the limiters, at a pace of 2,000 a second.
func waiting(b *testing.B, p pace) []calls {
	outlay := fullProvider(p)
	return []calls{
		{"outlay", newOutlay(b, newBare(), outlay).RoundTrip},
		{"xtime", newXtime(newBare(), p).RoundTrip},
		{"uber", newUber(newBare(), p).RoundTrip},
		{"failsafe", failsafehttp.NewRoundTripper(newBare(), failsafeLimiter(p, time.Minute)).RoundTrip},
	}
}

// BenchmarkWait has 64 callers wait for turns. ns/op is the pace; what a wait costs is
// the time of the processor (cpu-ns/op), the bytes and the allocations.
func BenchmarkWait(b *testing.B) {
	for _, c := range waiting(b, pace{2000, time.Second, 1}) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			began := processor()
			crowd(b, c, nil)
			b.ReportMetric(float64(processor()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkPacing has 64 callers send at 200 a second and reports the share of the rate
// that was reached, and the most calls in 100 ms, where 20 are right.
func BenchmarkPacing(b *testing.B) {
	for _, c := range waiting(b, pace{200, time.Second, 1}) {
		b.Run(c.name, func(b *testing.B) {
			at := make(chan time.Time, b.N)
			crowd(b, c, func() { at <- time.Now() })
			close(at)
			var times []time.Time
			for t := range at {
				times = append(times, t)
			}
			report(b, times)
		})
	}
}

// crowd makes b.N calls from 64 goroutines.
func crowd(b *testing.B, c calls, sent func()) {
	b.SetParallelism(64)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := c.do(get(b, context.Background()))
			if err != nil {
				b.Error(err)
				return
			}
			_ = resp.Body.Close()
			if sent != nil {
				sent()
			}
		}
	})
	b.StopTimer()
}

func report(b *testing.B, times []time.Time) {
	if len(times) < 20 {
		return
	}
	took := times[len(times)-1].Sub(times[0]).Seconds()
	b.ReportMetric(float64(len(times)-1)/200/took, "of-rate")
	most := 0
	for i, first := 0, 0; i < len(times); i++ {
		for times[i].Sub(times[first]) >= 100*time.Millisecond {
			first++
		}
		most = max(most, i-first+1)
	}
	b.ReportMetric(float64(most), "most/100ms")
}

// processor is the time that this process has had on processors.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRead is the happy path with an answer of 512 bytes that is read to its end.
func BenchmarkRead(b *testing.B) {
	base := &bodied{newBare(), bytes.Repeat([]byte("x"), 512)}
	for _, c := range happy(b, base) {
		b.Run(c.name, func(b *testing.B) { getAll(b, c, lookup) })
	}
}

// BenchmarkLoopback is the same over a real connection to a server in this process: what
// a call costs beside what the layers above it add.
func BenchmarkLoopback(b *testing.B) {
	text := bytes.Repeat([]byte("x"), 512)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	defer server.Close()
	p := fullProvider(free)
	p.Match = []string{"127.0.0.1"}
	for _, c := range []calls{
		{"bare", server.Client().Transport.RoundTrip},
		{"outlay", newOutlay(b, server.Client().Transport, p).RoundTrip},
		{"xtime", newXtime(server.Client().Transport, free).RoundTrip},
		{"retryablehttp", newRetryable(server.Client().Transport, free).RoundTrip},
		{"failsafe_all", newFailsafe(server.Client().Transport, free).RoundTrip},
		{"resty", restyAs(newResty(server.Client().Transport, free))},
	} {
		b.Run(c.name, func(b *testing.B) { getAll(b, c, server.URL) })
	}
}

func getAll(b *testing.B, c calls, url string) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	measure(b, func() {
		resp, err := c.do(req)
		finish(b, resp, err)
	})
}

// bodied gives each answer a body.
type bodied struct {
	*bare
	text []byte
}

func (b *bodied) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.bare.RoundTrip(req)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(b.text)), int64(len(b.text))
	return resp, err
}

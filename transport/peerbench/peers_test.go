package peerbench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-resty/resty/v2"
	"github.com/gofri/go-github-ratelimit/v2/github_ratelimit"
	"github.com/hashicorp/go-retryablehttp"
	"go.uber.org/ratelimit"
	xrate "golang.org/x/time/rate"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// pace is a limit that every limiter can be given: n turns per period, never two at once
// unless burst says so.
type pace struct {
	n     int
	per   time.Duration
	burst int
}

// free is a pace that no benchmark uses up: what the limiter costs, not what it waits.
var free = pace{1_000_000_000, time.Second, 1_000_000}

func (p pace) xrate() *xrate.Limiter {
	return xrate.NewLimiter(xrate.Limit(float64(p.n)/p.per.Seconds()), p.burst)
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

func newXtime(base http.RoundTripper, p pace) http.RoundTripper { return tenLines{p.xrate(), base} }

// taking is the same over uber's limiter.
type taking struct {
	lim  ratelimit.Limiter
	base http.RoundTripper
}

func (t taking) RoundTrip(req *http.Request) (*http.Response, error) {
	t.lim.Take()
	return t.base.RoundTrip(req)
}

func newUber(base http.RoundTripper, p pace) http.RoundTripper {
	return taking{ratelimit.New(p.n, ratelimit.Per(p.per), ratelimit.WithSlack(p.burst-1)), base}
}

// newFailsafe composes what its documentation shows for HTTP clients (the retry policy of
// failsafehttp around a circuit breaker, with the values used there) around a limiter
// that waits.
func newFailsafe(base http.RoundTripper, p pace) http.RoundTripper {
	retry := failsafehttp.NewRetryPolicyBuilder().WithBackoff(time.Second, 30*time.Second).WithMaxRetries(3).Build()
	breaker := circuitbreaker.NewBuilder[*http.Response]().WithFailureThreshold(5).WithDelay(time.Minute).WithSuccessThreshold(2).Build()
	return failsafehttp.NewRoundTripper(base, retry, breaker, failsafeLimiter(p, time.Minute))
}

func failsafeLimiter(p pace, maxWait time.Duration) failsafe.Policy[*http.Response] {
	b := ratelimiter.NewSmoothBuilder[*http.Response](uint(p.n), p.per)
	if p.burst > 1 {
		b = ratelimiter.NewBurstyBuilder[*http.Response](uint(p.n), p.per)
	}
	return b.WithMaxWaitTime(maxWait).Build()
}

// newRetryable is its NewClient with nothing changed but the base and the log to stderr,
// behind the RoundTripper that its StandardClient uses.
func newRetryable(base http.RoundTripper, _ pace) http.RoundTripper {
	c := retryablehttp.NewClient()
	c.HTTPClient.Transport = base
	c.Logger = nil
	return &retryablehttp.RoundTripper{Client: c}
}

func newGofri(base http.RoundTripper, _ pace) http.RoundTripper { return github_ratelimit.New(base) }

// newResty has the retries and the condition of its README, and x/time as its limiter.
func newResty(base http.RoundTripper, p pace) *resty.Client {
	return resty.New().SetTransport(base).SetRateLimiter(p.xrate()).SetRetryCount(3).SetLogger(quiet{}).
		AddRetryCondition(func(r *resty.Response, err error) bool {
			return err != nil || r.StatusCode() == http.StatusTooManyRequests
		})
}

// restyLimited is resty with its limiter alone: the condition of its README would have it
// repeat its own refusals.
func restyLimited(base http.RoundTripper, p pace) *resty.Client {
	return resty.New().SetTransport(base).SetRateLimiter(p.xrate()).SetLogger(quiet{})
}

type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}

// restyAs sends a request by resty's own calls, which read the whole answer.
func restyAs(c *resty.Client) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		r := c.R().SetContext(req.Context())
		r.Header = req.Header
		if req.GetBody != nil {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			r.SetBody(body)
		} else if req.Body != nil {
			r.SetBody(req.Body)
		}
		resp, err := r.Execute(req.Method, req.URL.String())
		if err != nil {
			return nil, err
		}
		raw := *resp.RawResponse
		raw.Body = io.NopCloser(bytes.NewReader(resp.Body()))
		return &raw, nil
	}
}

// fullProvider uses all of outlay that a call can meet: two patterns with a path, a rate, slots, a
// price and a budget. Its hook does nothing.
func fullProvider(p pace) transport.Provider {
	return transport.Provider{
		Name: "api", Match: []string{"GET api.example.com/v1/lookup", "POST api.example.com/v1/messages"},
		Rates: []throttle.Rate{{N: p.n, Per: p.per, Burst: p.burst}}, MaxInFlight: 1000,
		Price: price.PerCall(1000), Budgets: []budget.Budget{budget.PerDay(9_000_000_000 * budget.Unit)},
	}
}

func newOutlay(tb testing.TB, base http.RoundTripper, p transport.Provider, change ...func(*transport.Config)) *transport.Transport {
	tb.Helper()
	c := transport.Config{
		Base: base, Providers: []transport.Provider{p}, Ledger: new(budget.Memory),
		OnEvent: func(context.Context, transport.Event) {},
	}
	for _, f := range change {
		f(&c)
	}
	rt, err := transport.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return rt
}

func traced(c *transport.Config) { c.TracedBase = true }

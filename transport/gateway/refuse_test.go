package gateway_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/provider"
)

// brokenLedger does not answer.
type brokenLedger struct{ budget.Memory }

func (*brokenLedger) Hold(context.Context, budget.Hold) (budget.Report, error) {
	return budget.Report{}, budget.ErrUnavailable
}

// brokenLimiter does not answer.
type brokenLimiter struct{ throttle.Bucket }

func (*brokenLimiter) Wait(context.Context, throttle.Ask) (throttle.Turn, error) {
	return throttle.Turn{}, throttle.ErrUnavailable
}

// refusalCase is a row of the table of refusals.
type refusalCase struct {
	name  string
	edit  func(*gateway.Provider)
	parts gateway.Parts
	// before is done first, through the same gateway.
	before  func(*rig)
	header  []string
	path    string // empty: /api/x
	body    string
	status  int
	reason  string
	after   string // Retry-After
	again   bool   // a repeat is not discouraged
	proxy   string // error type
	members map[string]any
}

func perCall(p *gateway.Provider) { p.Price = price.PerCall(cent) }

func withBudget(limit budget.Amount, edit func(*budget.Budget)) func(*gateway.Provider) {
	return func(p *gateway.Provider) {
		perCall(p)
		b := budget.Budget{Name: "api-day", Limit: limit, Every: budget.Rolling(time.Hour)}
		if edit != nil {
			edit(&b)
		}
		p.Budgets = []budget.Budget{b}
	}
}

// once makes one call.
func once(r *rig) { r.do(http.MethodGet, "/api/first", "") }

var refusalCases = []refusalCase{
	{
		name: "rate, soon",
		edit: func(p *gateway.Provider) {
			p.Rates = []throttle.Rate{throttle.PerMinute(2)}
			p.MaxWait = transport.NoWait
		},
		before: once, status: 429, reason: "rate", after: "30", again: true, proxy: "http_request_denied",
	},
	{
		name: "rate, late",
		edit: func(p *gateway.Provider) {
			p.Rates = []throttle.Rate{throttle.PerHour(2)}
			p.MaxWait = transport.NoWait
		},
		before: once, status: 429, reason: "rate", proxy: "http_request_denied",
	},
	{
		name: "paused by the vendor, soon", edit: func(p *gateway.Provider) { p.MaxWait = transport.NoWait },
		before: func(r *rig) { r.do(http.MethodGet, "/api/throttle?15", "") }, status: 429, reason: "gate", after: "15", again: true, proxy: "http_request_denied",
	},
	{
		name: "paused by the vendor, late", before: func(r *rig) { r.do(http.MethodGet, "/api/throttle?7200", "") },
		status: 429, reason: "gate", proxy: "http_request_denied",
	},
	{
		name: "never", edit: func(p *gateway.Provider) {
			p.Rates = []throttle.Rate{throttle.PerMinute(2)}
			p.Weight = func(*http.Request) int { return 5 }
		}, status: 422, reason: "never", proxy: "http_request_denied",
	},
	{
		name: "exhausted", edit: withBudget(cent, nil), before: once, status: 402, reason: "exhausted", after: "*", proxy: "http_request_denied",
		members: map[string]any{"budget": "api-day", "limit": "0.01", "spent": "0.01", "held": "0", "need": "0.01", "unit": "USD"},
	},
	{
		name: "exhausted, where a shop would read a declined card", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.Refusal = provider.StripeRefusal },
		before: once, status: 429, reason: "exhausted", proxy: "http_request_denied",
	},
	{
		name: "exhausted, where the owner wants another status", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.MoneyStatus = 429 },
		before: once, status: 429, reason: "exhausted", proxy: "http_request_denied",
	},
	{
		name: "exhausted, at GitHub", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.Refusal = provider.GitHubRefusal },
		before: once, status: 403, reason: "exhausted", proxy: "http_request_denied",
	},
	{
		name: "exhausted, at Slack", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.Refusal = provider.SlackRefusal },
		before: once, status: 429, reason: "exhausted", proxy: "http_request_denied",
	},
	{
		name: "exhausted, where the vendor says errors in a 200", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.Refusal = provider.VonageRefusal },
		before: once, status: 402, reason: "exhausted", after: "*", proxy: "http_request_denied",
	},
	{
		name: "more than the budget has", edit: withBudget(cent/2, nil), status: 402, reason: "exhausted", proxy: "http_request_denied",
	},
	{
		name: "kept for critical calls", edit: withBudget(cent, func(b *budget.Budget) { b.Keep = cent / 2 }),
		status: 402, reason: "floor", proxy: "http_request_denied",
	},
	{
		name: "unpriced", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.Price = price.SMS{} },
		status: 402, reason: "unpriced", proxy: "http_request_denied",
	},
	{
		name: "the same call too often", edit: func(p *gateway.Provider) { p.Repeat = transport.Repeat{Max: 1, Per: 30 * time.Second} },
		before: func(r *rig) { r.do(http.MethodGet, "/api/x", "") }, status: 429, reason: "repeated", after: "30", again: true, proxy: "http_request_denied",
	},
	{
		name: "stopped by the configuration", edit: func(p *gateway.Provider) { p.Stopped = true }, status: 503, reason: "frozen", proxy: "http_request_denied",
	},
	{
		name: "stopped by an operator", before: func(r *rig) {
			require.NoError(r.t, r.gw.Transport().Freeze(context.Background(), "api", budget.By{Who: "ops", Why: "runaway loop"}))
		}, status: 503, reason: "frozen", proxy: "http_request_denied",
	},
	{
		name: "the ledger is away", edit: withBudget(cent, nil), parts: gateway.Parts{Ledger: new(brokenLedger)},
		status: 503, reason: "ledger", after: "2", again: true, proxy: "proxy_internal_response",
	},
	{
		name: "the ledger has another budget of this name", edit: withBudget(cent, nil), before: func(r *rig) {
			b := budget.PerWeek(cent)
			b.Name = "api-day"
			require.NoError(r.t, r.ledger.Configure(context.Background(), b))
		}, status: 503, reason: "ledger", proxy: "proxy_internal_response", members: map[string]any{"title": "The configuration contradicts the ledger"},
	},
	{
		name: "the limiter is away", parts: gateway.Parts{Limiter: new(brokenLimiter)},
		status: 503, reason: "limiter", after: "2", again: true, proxy: "proxy_internal_response",
	},
	{
		name: "nobody there", edit: func(p *gateway.Provider) { perCall(p); p.Retry.Attempts = 1; p.Upstream = closedPort() },
		status: 502, reason: "upstream_unreachable", after: "1", again: true, proxy: "destination_unavailable",
	},
	{
		name: "no such name", edit: func(p *gateway.Provider) { p.Retry.Attempts = 1; p.Upstream.Host = "nobody.invalid" },
		status: 502, reason: "upstream_unreachable", after: "1", again: true, proxy: "dns_error",
	},
	{
		name: "the answer is lost", path: "/api/drop", edit: withBudget(cent, nil), status: 504, reason: "outcome_unknown", proxy: "connection_terminated",
		members: map[string]any{"sent": "unknown", "charged": "presumed"},
	},
	{
		name: "no answer in time", path: "/api/hang", edit: func(p *gateway.Provider) { withBudget(cent, nil)(p); p.Timeouts.Response = 50 * time.Millisecond },
		status: 504, reason: "outcome_unknown", proxy: "http_response_timeout", members: map[string]any{"sent": "unknown", "charged": "presumed"},
	},
	{
		name: "the answer to a call with a key is lost", path: "/api/drop", header: []string{"Idempotency-Key", "k1"},
		edit:   func(p *gateway.Provider) { p.IdempotencyHeader = "Idempotency-Key"; p.Retry.Attempts = 1 },
		status: 504, reason: "outcome_unknown", again: true, proxy: "connection_terminated", members: map[string]any{"sent": "unknown", "charged": "presumed"},
	},
	{
		name: "body too large", edit: func(p *gateway.Provider) { p.Body.Max = 10 }, body: "a=12345678901", status: 413, reason: "body_too_large", proxy: "http_request_denied",
	},
	{
		name: "body too large to be priced", edit: func(p *gateway.Provider) {
			withBudget(cent, nil)(p)
			p.Price = price.SMS{Segment: 1000}
			p.Body.Buffer = 10
		},
		body: "a=12345678901", status: 413, reason: "body_too_large", proxy: "http_request_denied",
	},
	{name: "browser", header: []string{"Origin", "http://127.0.0.1"}, status: 403, reason: "browser_request", proxy: "http_request_denied"},
	{name: "browser without Origin", header: []string{"Sec-Fetch-Site", "same-origin"}, status: 403, reason: "browser_request", proxy: "http_request_denied"},
	{name: "rebound name", header: []string{"Host", "rebound.example"}, status: 421, reason: "unknown_host", proxy: "http_request_denied"},
	{name: "websocket", header: []string{"Connection", "Upgrade", "Upgrade", "websocket"}, status: 402, reason: "upgrade_refused", proxy: "http_request_denied"},
	{name: "no such provider", path: "/apj/x", status: 404, reason: "no_such_provider", proxy: "destination_not_found"},
	{name: "dots", path: "/api/a/%2e%2e/b", status: 400, reason: "bad_path", proxy: "http_request_denied"},
	{name: "tenant without leave", header: []string{"Outlay-Tenant", "acme"}, status: 403, reason: "caller_forbidden", proxy: "http_request_denied"},
	{name: "token of nobody", header: []string{"Outlay-Token", "nobody-0123456789"}, status: 401, reason: "caller_unknown", proxy: "http_request_denied"},
}

// TestRefusals is the table of what a program sees in place of a provider's answer.
func TestRefusals(t *testing.T) {
	for _, tt := range refusalCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, moods)
			p := behind(t, "api", v.URL)
			if tt.edit != nil {
				tt.edit(&p)
			}
			r := startWith(t, config(p), gateway.Listener{}, tt.parts)
			if tt.before != nil {
				tt.before(r)
			}
			before := len(v.requests())
			method, path := http.MethodGet, "/api/x"
			if tt.path != "" {
				path = tt.path
			}
			if tt.body != "" || len(tt.header) > 1 && tt.header[0] == "Idempotency-Key" {
				method = http.MethodPost
			}
			got := r.do(method, path, tt.body, tt.header...)
			checkRefusal(t, tt, got)
			if tt.status != 504 {
				require.Len(t, v.requests(), before, "nothing was sent")
			}
			require.Contains(t, r.log.String(), "reason="+tt.reason)
		})
	}
}

func checkRefusal(t *testing.T, tt refusalCase, got reply) {
	t.Helper()
	require.Equal(t, tt.status, got.status, got.body)
	h := got.header
	if tt.after == "*" {
		require.NotEmpty(t, h.Get("Retry-After"))
	} else {
		require.Equal(t, tt.after, h.Get("Retry-After"))
	}
	want := "false"
	if tt.again {
		want = ""
	}
	require.Equal(t, want, h.Get("X-Should-Retry"))
	require.Equal(t, want, h.Get("Stripe-Should-Retry"))
	require.Equal(t, "outlay; error="+tt.proxy+`; details="`+tt.reason+`"`, h.Get("Proxy-Status"))
	require.Equal(t, "no-store", h.Get("Cache-Control"))
	require.NotEmpty(t, h.Get("Outlay-Call"))
	v := got.json(t)
	require.Equal(t, tt.reason, v["reason"])
	require.Equal(t, h.Get("Outlay-Call"), v["call"])
	require.True(t, strings.HasPrefix(got.body, `{"detail":"`), "clients cut the text after 120 bytes: %s", got.body)
	if tt.members == nil || tt.members["sent"] == nil {
		require.Equal(t, false, v["sent"])
		require.Equal(t, false, v["charged"])
	}
	for name, value := range tt.members {
		require.Equal(t, value, v[name], name)
	}
}

// moods is a vendor that does what the path says.
func moods(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/throttle":
		w.Header().Set("Retry-After", r.URL.RawQuery)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte("slow down"))
	case "/drop":
		panic(http.ErrAbortHandler)
	case "/hang":
		<-r.Context().Done()
	case "/cut":
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// TestVendorsOwnRefusalPasses: what the provider says last is told as it is, and marked so
// that it can be told from ours.
func TestVendorsOwnRefusalPasses(t *testing.T) {
	v := newVendor(t, moods)
	p := behind(t, "api", v.URL)
	p.MaxWait = transport.NoWait
	r := start(t, config(p), gateway.Listener{})
	got := r.do(http.MethodGet, "/api/throttle?7200", "")
	require.Equal(t, http.StatusTooManyRequests, got.status)
	require.Equal(t, "slow down", got.body)
	require.Equal(t, "7200", got.header.Get("Retry-After"))
	require.Equal(t, "outlay; received-status=429", got.header.Get("Proxy-Status"))
	require.Empty(t, got.header.Get("X-Should-Retry"))
}

// TestRateIsTold: only where it is known which rate it is.
func TestRateIsTold(t *testing.T) {
	v := newVendor(t, nil)
	one := behind(t, "one", v.URL)
	one.Rates, one.MaxWait = []throttle.Rate{throttle.PerMinute(2)}, transport.NoWait
	two := behind(t, "two", v.URL)
	two.Rates, two.MaxWait = []throttle.Rate{throttle.PerMinute(2), throttle.PerHour(100)}, transport.NoWait
	r := start(t, config(one, two), gateway.Listener{})
	for _, name := range []string{"one", "two"} {
		r.do(http.MethodGet, "/"+name+"/", "")
		got := r.do(http.MethodGet, "/"+name+"/", "")
		require.Equal(t, http.StatusTooManyRequests, got.status)
		if name == "one" {
			require.Equal(t, `"one";q=2;w=60`, got.header.Get("RateLimit-Policy"))
			require.Equal(t, `"one";r=0;t=30`, got.header.Get("RateLimit"))
			continue
		}
		require.Empty(t, got.header.Get("RateLimit"))
		require.Empty(t, got.header.Get("RateLimit-Policy"))
	}
}

// TestMonitorTellsWhatItWouldRefuse: the call passes, and its answer says so.
func TestMonitorTellsWhatItWouldRefuse(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(cent/2, nil)(&p)
	p.Monitor = true
	r := start(t, config(p), gateway.Listener{})
	got := r.do(http.MethodGet, "/api/x", "")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, `exhausted; budget="api-day"`, got.header.Get("Outlay-Would-Refuse"))
}

// TestBrokenAnswersBreakTheConnection: what was cut never looks whole.
func TestBrokenAnswersBreakTheConnection(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunked" {
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		moods(w, r)
	})
	p := behind(t, "api", v.URL)
	r := start(t, config(p), gateway.Listener{})
	for _, path := range []string{"/api/cut", "/api/chunked"} {
		got := raw(t, r.url, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.Contains(t, got, "half")
		require.NotContains(t, got, "\r\n0\r\n", "the last chunk would be a clean end")
	}
}

// TestWaitersOfOneSlot: a slot that is taken is worth a second.
func TestWaitersOfOneSlot(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	v := newVendor(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	p := behind(t, "api", v.URL)
	p.MaxInFlight, p.MaxWait = 1, transport.NoWait
	r := start(t, config(p), gateway.Listener{})
	done := make(chan reply)
	go func() { done <- r.do(http.MethodGet, "/api/x", "") }()
	<-entered
	got := r.do(http.MethodGet, "/api/x", "")
	checkRefusal(t, refusalCase{status: 429, reason: "slots", after: "1", again: true, proxy: "connection_limit_reached"}, got)
	close(leave)
	require.Equal(t, http.StatusOK, (<-done).status)
}

// TestMoneyHeldByOthers: calls in flight hold the rest, so that a second may help.
func TestMoneyHeldByOthers(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	v := newVendor(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	p := behind(t, "api", v.URL)
	withBudget(cent, nil)(&p)
	r := start(t, config(p), gateway.Listener{})
	done := make(chan reply)
	go func() { done <- r.do(http.MethodGet, "/api/x", "") }()
	<-entered
	got := r.do(http.MethodGet, "/api/x", "")
	require.Equal(t, http.StatusTooManyRequests, got.status)
	require.Equal(t, "busy", got.json(t)["reason"])
	require.Equal(t, "0.01", got.json(t)["held"])
	require.Equal(t, "1", got.header.Get("Retry-After"))
	close(leave)
	require.Equal(t, http.StatusOK, (<-done).status)
}

// TestQueueIsBounded: more than that are told at once.
func TestQueueIsBounded(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Rates = []throttle.Rate{{N: 1, Per: 10 * time.Second}}
	bucket := throttle.NewBucket()
	bucket.MaxQueue = 1
	r := startWith(t, config(p), gateway.Listener{}, gateway.Parts{Limiter: bucket})
	once(r)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/api/x", nil)
		_, err := r.client.Do(req)
		done <- err
	}()
	require.Eventually(t, func() bool { return r.count(transport.KindWaiting) == 1 }, 5*time.Second, time.Millisecond)
	got := r.do(http.MethodGet, "/api/x", "")
	checkRefusal(t, refusalCase{status: 429, reason: "queue_full", after: "*", again: true, proxy: "connection_limit_reached"}, got)
	cancel()
	require.True(t, errors.Is(<-done, context.Canceled))
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "reason=caller_left") }, 5*time.Second, time.Millisecond)
	require.Len(t, v.requests(), 1)
}

// closedPort is a URL where nobody listens.
func closedPort() (u *url.URL) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil
	}
	defer ln.Close()
	return &url.URL{Scheme: "http", Host: ln.Addr().String()}
}

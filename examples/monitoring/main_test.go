package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/statuspage"
)

func TestEverythingIsServed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var logs bytes.Buffer
	pages := map[string]string{}
	err := run(ctx, slog.New(slog.NewTextHandler(&logs, nil)), func(address string) {
		for _, path := range []string{"/debug/outlay/", "/metrics"} {
			resp, err := http.Get("http://" + address + path)
			if err != nil {
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			pages[path] = string(body)
		}
		stop()
	})
	require.NoError(t, err)
	require.True(t, strings.Contains(pages["/debug/outlay/"], "twilio-sms"))
	require.True(t, strings.Contains(pages["/metrics"], `outlay_calls_total{outcome="answered",provider="twilio-sms"} 0`))
}

// The secrets are where programs and vendors have them: nothing of outlay may tell them on.
var secrets = map[string]string{
	"query key":       "AIzaSyPlanted+/=Query",
	"path":            "ACPlantedAccountPath",
	"header":          "Bearer sk-planted/header+key",
	"password":        "planted:user@password",
	"phone number":    "+4917012345678",
	"tenant":          "planted tenant <Meier & Söhne>",
	"request body":    "planted message text",
	"answer body":     "planted answer text",
	"answer header":   "planted-answer-header",
	"idempotency key": "planted-idempotency-key-1",
	"store password":  "redis://:planted-redis-pw@10.1.2.3:6379",
	"base error":      "planted error of the base",
	"price error":     "planted error of the price",
	"budget name":     "planted budget of a customer",
}

// spellings are the ways in which a secret may come out.
func spellings(s string) []string {
	all := []string{s, url.QueryEscape(s), url.PathEscape(s), strings.ReplaceAll(s, "+", "%2B")}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding} {
		all = append(all, e.EncodeToString([]byte(s)))
	}
	quoted := fmt.Sprintf("%q", s)
	return append(all, quoted[1:len(quoted)-1])
}

// spans writes every attribute and status of every span down.
type spans struct {
	noop.TracerProvider
	out *locked
}

type spanTracer struct {
	noop.Tracer
	out *locked
}

type spanOut struct {
	noop.Span
	out *locked
}

func (s spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return spanTracer{out: s.out} }

func (s spanTracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	c := trace.NewSpanStartConfig(o...)
	fmt.Fprintln(s.out, "span", name, c.Attributes())
	span := spanOut{out: s.out}
	return trace.ContextWithSpan(ctx, span), span
}

func (spanOut) IsRecording() bool                     { return true }
func (s spanOut) SetStatus(c codes.Code, text string) { fmt.Fprintln(s.out, "status", c, text) }
func (s spanOut) SetAttributes(a ...attribute.KeyValue) {
	for _, kv := range a {
		fmt.Fprintln(s.out, kv.Key, kv.Value.Emit())
	}
}

// locked is what left, from many goroutines.
type locked struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// leaky is a vendor that answers as its header asks it to, with secrets in everything.
func leaky(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", secrets["answer header"])
	switch how := req.Header.Get("How"); how {
	case "reset":
		return nil, errors.New(secrets["base error"] + " to " + req.URL.String())
	case "429":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = io.WriteString(w, secrets["answer body"])
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(req *http.Request) (*http.Response, error) { return b(req) }

// brittle is a ledger whose errors tell where it is.
type brittle struct {
	budget.Memory
	mu   sync.Mutex
	down bool
}

func (b *brittle) fails() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return fmt.Errorf("%w: dial %s", budget.ErrUnavailable, secrets["store password"])
	}
	return nil
}

func (b *brittle) set(down bool) { b.mu.Lock(); b.down = down; b.mu.Unlock() }

func (b *brittle) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	if err := b.fails(); err != nil {
		return budget.Report{}, err
	}
	return b.Memory.Hold(ctx, h)
}

func (b *brittle) Totals(ctx context.Context, at time.Time, list ...budget.Budget) ([]budget.Totals, error) {
	if err := b.fails(); err != nil {
		return nil, err
	}
	return b.Memory.Totals(ctx, at, list...)
}

// pricer fails with a secret if the request asks for it.
type pricer struct{}

func (pricer) Quote(req *http.Request) (budget.Quote, error) {
	if req.Header.Get("How") == "unpriced" {
		return budget.Quote{}, errors.New(secrets["price error"])
	}
	return price.PerCall(budget.Unit / 100).Quote(req)
}

func secretProvider() transport.Provider {
	header := func(name string) func(*http.Request) string {
		return func(r *http.Request) string { return r.Header.Get(name) }
	}
	return transport.Provider{
		Name: "api", Match: []string{"api.example.com"}, Price: pricer{}, IdempotencyHeader: "Idempotency-Key",
		Rates: []throttle.Rate{{N: 200, Per: time.Second, Burst: 20}}, MaxInFlight: 8, Tenant: header("Tenant"),
		Scopes:  []transport.Scope{{Name: "to", Key: header("To"), Rates: []throttle.Rate{{N: 1, Per: time.Hour, Burst: 4}}}},
		Budgets: []budget.Budget{budget.PerDay(budget.Unit / 4)},
		BudgetsFor: func(*http.Request, budget.Quote) []budget.Budget {
			b := budget.PerDay(budget.Unit)
			b.Name = secrets["budget name"]
			return []budget.Budget{b}
		},
		Retry: transport.Retry{Attempts: 2, Backoff: 20 * time.Millisecond, Unknown: transport.ReplayAll},
	}
}

// secretRequest has a secret wherever a request can have one.
func secretRequest(t *testing.T, how string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"https://api.example.com/v1/"+secrets["path"]+"?key="+url.QueryEscape(secrets["query key"])+"&to="+url.QueryEscape(secrets["phone number"]),
		strings.NewReader(secrets["request body"]))
	require.NoError(t, err)
	req.Header.Set("Authorization", secrets["header"])
	req.Header.Set("X-Password", secrets["password"])
	req.Header.Set("Tenant", secrets["tenant"])
	req.Header.Set("Idempotency-Key", secrets["idempotency key"]+how)
	req.Header.Set("How", how)
	if how == "scope" {
		req.Header.Set("To", secrets["phone number"])
	}
	return req
}

func TestPlantedSecretsAreNowhere(t *testing.T) {
	left := new(locked)
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(spans{out: left})
	defer otel.SetTracerProvider(before)

	ledger := new(brittle)
	logger := slog.New(slog.NewJSONHandler(left, &slog.HandlerOptions{Level: slog.LevelDebug}))
	text := slog.New(slog.NewTextHandler(left, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, handler, err := monitor(transport.Config{
		Base: base(leaky), Ledger: ledger, Providers: []transport.Provider{secretProvider()}, MaxWait: 2 * time.Second,
	}, slog.New(slog.NewMultiHandler(logger.Handler(), text.Handler())), func(r *http.Request, _ statuspage.Action) (string, error) {
		if token := r.Header.Get("Authorization"); strings.HasPrefix(token, "Bearer") {
			return "", errors.New("nobody has the token " + token)
		}
		return "maria", nil
	})
	require.NoError(t, err)

	look := func() {
		for _, target := range []string{"/debug/outlay/", "/debug/outlay/?provider=api", "/debug/outlay/?format=json", "/debug/outlay/?view=bill",
			"/debug/outlay/?format=csv", "/metrics", "/debug/outlay/admin/holds", "/debug/outlay/admin/audit?after=0"} {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, r)
			require.NotEqual(t, http.StatusNotFound, rec.Code, target)
			_, _ = left.Write(rec.Body.Bytes())
		}
	}
	reasons := map[transport.Reason]bool{}
	send := func(how string) {
		resp, err := client.Transport.RoundTrip(secretRequest(t, how))
		if err != nil {
			reason := transport.ReasonOf(err)
			reasons[reason] = true
			if reason != "" { // ours; Base speaks for itself
				fmt.Fprintln(left, err)
			}
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	for _, how := range []string{"ok", "429", "500", "reset", "unpriced", "scope", "scope", "scope", "scope", "scope"} {
		send(how)
		look()
	}
	ledger.set(true)
	send("ok")
	look()
	ledger.set(false)
	for range 30 {
		send("ok")
	}
	look()
	act := func(path, body, token string) {
		r := httptest.NewRequest(http.MethodPost, "/debug/outlay/admin"+path, strings.NewReader(body))
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", token)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, r)
		fmt.Fprintln(left, rec.Code, rec.Header(), rec.Body)
	}
	open, err := ledger.Unresolved(t.Context(), "", 1)
	require.NoError(t, err)
	act("/holds/"+open[0].ID.String()+"/correct", "reason=not+on+the+invoice&amount=0.001", "maria")
	act("/providers/api/freeze", "reason=none+at+all", secrets["header"]) // its error has the token
	ledger.set(true)
	act("/providers/api/freeze", "reason=duplicate+charges", "maria")
	ledger.set(false)
	look()
	for _, r := range []transport.Reason{"unpriced", "rate", "ledger", "exhausted"} {
		require.True(t, reasons[r], "no call was refused for %s: %v", r, reasons)
	}

	out := left.all.String()
	for _, must := range []string{"outlay_calls_total", "call finished", "hold presumed", "span outlay.call", "outlay.status/1", "<svg", "where the money went", "corrected_up", "not on the invoice", "denied", "redis://***@"} {
		require.True(t, strings.Contains(out, must), "not driven: %s", must)
	}
	for name, secret := range secrets {
		for _, s := range spellings(secret) {
			i := strings.Index(out, s)
			require.True(t, i < 0, "the %s comes out: %s", name, out[max(0, i-200):max(0, min(len(out), i+100))])
		}
	}
}

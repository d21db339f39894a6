package oteltransport_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/oteltransport"
)

// recorder is a small SDK: it keeps the spans that have ended.
type recorder struct {
	noop.TracerProvider
	mu    sync.Mutex
	spans []*span
	ids   byte
}

type tracer struct {
	noop.Tracer
	r *recorder
}

// span is what was recorded.
type span struct {
	noop.Span
	r          *recorder
	name       string
	kind       trace.SpanKind
	id         trace.SpanContext
	parent     trace.SpanID
	attrs      map[attribute.Key]attribute.Value
	status     codes.Code
	start, end time.Time
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{r: r} }

func (t tracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	c := trace.NewSpanStartConfig(o...)
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.r.ids++
	s := &span{
		r: t.r, name: name, kind: c.SpanKind(), parent: trace.SpanContextFromContext(ctx).SpanID(), start: c.Timestamp(),
		attrs: map[attribute.Key]attribute.Value{},
		id:    trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{t.r.ids}}),
	}
	if s.start.IsZero() {
		s.start = time.Now()
	}
	for _, a := range c.Attributes() {
		s.attrs[a.Key] = a.Value
	}
	return trace.ContextWithSpan(ctx, s), s
}

func (s *span) IsRecording() bool                { return true }
func (s *span) SpanContext() trace.SpanContext   { return s.id }
func (s *span) SetStatus(c codes.Code, _ string) { s.status = c }
func (s *span) SetAttributes(a ...attribute.KeyValue) {
	for _, kv := range a {
		s.attrs[kv.Key] = kv.Value
	}
}

func (s *span) End(o ...trace.SpanEndOption) {
	c := trace.NewSpanEndConfig(o...)
	s.end = c.Timestamp()
	if s.end.IsZero() {
		s.end = time.Now()
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.spans = append(s.r.spans, s)
}

func (r *recorder) named(name string) (out []*span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.name == name {
			out = append(out, s)
		}
	}
	return out
}

// inside does what otelhttp does below outlay: a CLIENT span per transmission, and the
// hooks that ClientTrace gives.
type inside struct {
	tracer trace.Tracer
	next   http.RoundTripper
}

func (i inside) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, s := i.tracer.Start(req.Context(), "HTTP "+req.Method, trace.WithSpanKind(trace.SpanKindClient))
	defer s.End()
	ctx = httptrace.WithClientTrace(ctx, oteltransport.ClientTrace(ctx))
	return i.next.RoundTrip(req.WithContext(ctx))
}

type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

func statuses(list ...int) answer {
	n := 0
	return func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(list[min(n, len(list)-1)])
		n++
		resp := w.Result()
		resp.Request = req
		return resp, nil
	}
}

func newTransport(t *testing.T, r *recorder, base http.RoundTripper, limit budget.Amount) *oteltransport.Transport {
	t.Helper()
	rt, err := transport.New(transport.Config{
		Base: inside{r.Tracer(""), base}, AttemptInContext: true, OnEvent: oteltransport.Observe, Ledger: new(budget.Memory),
		Providers: []transport.Provider{{
			Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit / 2),
			Rates: []throttle.Rate{throttle.PerMinute(6)}, Budgets: []budget.Budget{budget.PerDay(limit)},
			Retry: transport.Retry{Unknown: transport.ReplayAll},
		}},
	})
	require.NoError(t, err)
	return oteltransport.New(rt, oteltransport.Options{TracerProvider: r})
}

func get(ctx context.Context, rt http.RoundTripper) (*http.Request, *http.Response, error) {
	req := httptest.NewRequest(http.MethodGet, "https://api.example.com/v1?key=planted-secret", nil).WithContext(ctx)
	resp, err := rt.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return req, resp, err
}

func TestSpansOfARepeatedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		rt := newTransport(t, r, statuses(500, 200), 10*budget.Unit)
		req, resp, err := get(t.Context(), rt)
		require.NoError(t, err)
		require.Same(t, req, resp.Request)

		calls := r.named("outlay.call")
		require.Len(t, calls, 1)
		c := calls[0]
		require.Equal(t, trace.SpanKindInternal, c.kind)
		require.Equal(t, codes.Unset, c.status, "an error that a repeat healed is none")
		require.Equal(t, "answered", c.attrs["outlay.outcome"].AsString())
		require.EqualValues(t, 2, c.attrs["outlay.attempts"].AsInt64())
		require.EqualValues(t, 200, c.attrs["http.response.status_code"].AsInt64())
		require.Equal(t, "1", c.attrs["outlay.cost"].AsString())

		attempts := r.named("HTTP GET")
		require.Len(t, attempts, 2)
		for _, a := range attempts {
			require.Equal(t, c.id.SpanID(), a.parent)
			require.Equal(t, "api", a.attrs["outlay.provider"].AsString())
		}
		require.NotContains(t, attempts[0].attrs, attribute.Key("http.request.resend_count"))
		require.EqualValues(t, 1, attempts[1].attrs["http.request.resend_count"].AsInt64())

		waits := r.named("outlay.wait")
		require.Len(t, waits, 1, "the second attempt waited for its turn")
		require.Equal(t, c.id.SpanID(), waits[0].parent)
		require.EqualValues(t, 2, waits[0].attrs["outlay.attempt"].AsInt64())
		require.True(t, attempts[1].start.Equal(waits[0].end))
		require.Greater(t, waits[0].end.Sub(waits[0].start), 8*time.Second)
		require.Less(t, waits[0].end.Sub(waits[0].start), 10*time.Second)
	})
}

func TestOnlyRefusalsAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		rt := newTransport(t, r, statuses(200, 200), budget.Unit)
		_, _, err := get(t.Context(), rt)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _, err = get(ctx, rt)
		require.ErrorIs(t, err, context.Canceled)
		_, _, err = get(t.Context(), rt)
		require.NoError(t, err)
		_, _, err = get(t.Context(), rt)
		_, exceeded := errors.AsType[*budget.ExceededError](err)
		require.True(t, exceeded)

		calls := r.named("outlay.call")
		require.Len(t, calls, 4)
		for _, c := range calls[:3] {
			require.Equal(t, codes.Unset, c.status)
		}
		require.Equal(t, codes.Error, calls[3].status)
		require.Equal(t, "exhausted", calls[3].attrs["error.type"].AsString())
		require.Len(t, r.named("HTTP GET"), 2, "a refusal is no request to the provider")
		require.NotEmpty(t, r.named("outlay.wait"), "who left has waited too")
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.spans {
			for _, v := range s.attrs {
				require.False(t, strings.Contains(v.Emit(), "planted"), "a secret in %s", s.name)
			}
		}
	})
}

func TestWithoutSDK(t *testing.T) {
	rt, err := transport.New(transport.Config{Base: statuses(200), OnEvent: oteltransport.Observe, Unmatched: transport.PassAll})
	require.NoError(t, err)
	_, resp, err := get(t.Context(), oteltransport.New(rt, oteltransport.Options{}))
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	oteltransport.New(rt, oteltransport.Options{}).CloseIdleConnections()
	require.NotNil(t, oteltransport.ClientTrace(t.Context()))
}

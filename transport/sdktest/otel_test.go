package sdktest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/oteltransport"
)

// observed is a transport with the real otelhttp and promhttp below it and the span of
// the call above it, in the documented order.
type observed struct {
	client       *http.Client
	rt           *transport.Transport
	spans        *tracetest.SpanRecorder
	sent         *prometheus.CounterVec
	took         *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	mu           sync.Mutex
	traceparents []string
	fakeDown     *httptest.Server
}

func observe(t *testing.T, limit budget.Amount, statuses ...int) *observed {
	t.Helper()
	o := &observed{
		spans:    tracetest.NewSpanRecorder(),
		sent:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sent_total"}, []string{"code", "method"}),
		took:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took_seconds"}, []string{"code"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "in_flight"}),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		o.mu.Lock()
		n := len(o.traceparents)
		o.traceparents = append(o.traceparents, r.Header.Get("Traceparent"))
		o.mu.Unlock()
		if code := statuses[min(n, len(statuses)-1)]; code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(code)
		}
		_, _ = io.WriteString(w, strings.Repeat("planted answer ", 1000))
	}))
	t.Cleanup(server.Close)
	o.fakeDown = server
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))
	plain := server.Client().Transport.(*http.Transport) // sends example.com to the server
	counted := promhttp.InstrumentRoundTripperInFlight(o.inFlight,
		promhttp.InstrumentRoundTripperCounter(o.sent, promhttp.InstrumentRoundTripperDuration(o.took, plain)))
	rt, err := transport.New(transport.Config{
		Base: otelhttp.NewTransport(counted, otelhttp.WithTracerProvider(provider), otelhttp.WithClientTrace(oteltransport.ClientTrace),
			otelhttp.WithPropagators(propagation.TraceContext{})),
		TracedBase: true, AttemptInContext: true, OnEvent: oteltransport.Observe, Ledger: new(budget.Memory),
		Providers: []transport.Provider{{
			Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit / 2),
			Budgets: []budget.Budget{budget.PerDay(limit)}, Retry: transport.Retry{Attempts: 2},
		}},
	})
	require.NoError(t, err)
	o.rt = rt
	o.client = &http.Client{Transport: oteltransport.New(rt, oteltransport.Options{TracerProvider: provider})}
	return o
}

func (o *observed) get(t *testing.T) error {
	t.Helper()
	resp, err := o.client.Get("http://api.example.com/v1?key=planted-key")
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Len(t, body, 15_000)
	return resp.Body.Close()
}

func (o *observed) kind(k trace.SpanKind) (out []sdktrace.ReadOnlySpan) {
	for _, s := range o.spans.Ended() {
		if s.SpanKind() == k {
			out = append(out, s)
		}
	}
	return out
}

func attrsOf(s sdktrace.ReadOnlySpan) map[attribute.Key]attribute.Value {
	m := map[attribute.Key]attribute.Value{}
	for _, a := range s.Attributes() {
		m[a.Key] = a.Value
	}
	return m
}

func TestSpansOfOtelhttpBelowOutlay(t *testing.T) {
	o := observe(t, 10*budget.Unit, 429, 200)
	require.NoError(t, o.get(t))
	var call, wait sdktrace.ReadOnlySpan
	for _, s := range o.kind(trace.SpanKindInternal) {
		switch s.Name() {
		case "outlay.call":
			call = s
		case "outlay.wait":
			wait = s
		}
	}
	require.NotNil(t, call)
	require.Equal(t, codes.Unset, call.Status().Code)
	require.EqualValues(t, 2, attrsOf(call)["outlay.attempts"].AsInt64())
	require.NotNil(t, wait, "the pause that the provider asked for")
	require.Equal(t, call.SpanContext().SpanID(), wait.Parent().SpanID())
	require.InDelta(t, time.Second, wait.EndTime().Sub(wait.StartTime()), float64(500*time.Millisecond))

	attempts := o.kind(trace.SpanKindClient)
	require.Len(t, attempts, 2, "one span for each transmission")
	for i, s := range attempts {
		require.Equal(t, call.SpanContext().SpanID(), s.Parent().SpanID())
		require.Equal(t, "api", attrsOf(s)["outlay.provider"].AsString())
		require.Contains(t, o.traceparents[i], s.SpanContext().SpanID().String(), "a traceparent of its own")
		require.Less(t, s.EndTime().Sub(s.StartTime()), 900*time.Millisecond, "the provider's time, not the queue's")
	}
	require.NotContains(t, attrsOf(attempts[0]), attribute.Key("http.request.resend_count"))
	require.EqualValues(t, 1, attrsOf(attempts[1])["http.request.resend_count"].AsInt64())
	require.InDelta(t, 1, testutil.ToFloat64(o.sent.WithLabelValues("429", "get")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(o.sent.WithLabelValues("200", "get")), 0)
	require.Equal(t, 2, testutil.CollectAndCount(o.took))
	require.InDelta(t, 0, testutil.ToFloat64(o.inFlight), 0)

	for _, s := range o.kind(trace.SpanKindInternal) { // otelhttp's own have url.full, as documented
		for k, v := range attrsOf(s) {
			require.NotContains(t, v.String(), "planted", k)
		}
	}
}

// A refusal of ours is no failed request to the provider, for nobody who looks below.
func TestARefusalAboveOtelhttp(t *testing.T) {
	o := observe(t, budget.Unit/2, 200)
	require.NoError(t, o.get(t))
	require.Error(t, o.get(t), "the budget is used up")
	require.Len(t, o.kind(trace.SpanKindClient), 1)
	calls := o.kind(trace.SpanKindInternal)
	require.Len(t, calls, 2)
	require.Equal(t, codes.Error, calls[1].Status().Code)
	require.Equal(t, "exhausted", attrsOf(calls[1])["error.type"].AsString())
	require.Equal(t, 1, testutil.CollectAndCount(o.sent))
}

// The wrappers pass on what tells that nothing was sent: a connection that was refused
// costs nothing, with TracedBase, and is a failed span of the attempt.
func TestAFailedDialBelowOtelhttpIsNotCharged(t *testing.T) {
	o := observe(t, 10*budget.Unit, 200)
	require.NoError(t, o.get(t))
	o.fakeDown.Close()
	require.Error(t, o.get(t))
	s, err := o.rt.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []budget.Amount{budget.Unit / 2, 0}, []budget.Amount{s.Budgets[0].Settled, s.Budgets[0].Presumed})
	attempts := o.kind(trace.SpanKindClient)
	require.GreaterOrEqual(t, len(attempts), 2)
	require.Equal(t, codes.Error, attempts[len(attempts)-1].Status().Code)
	for _, s := range o.kind(trace.SpanKindInternal) {
		require.Equal(t, codes.Unset, s.Status().Code, "ours is an error only when we refuse")
	}
}

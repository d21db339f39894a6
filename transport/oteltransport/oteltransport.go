// Package oteltransport shows the calls of a [transport.Transport] to OpenTelemetry, as
// spans. It uses the API alone: the program chooses the SDK.
//
//	rt, err := transport.New(transport.Config{
//		Base:             otelhttp.NewTransport(http.DefaultTransport, otelhttp.WithClientTrace(oteltransport.ClientTrace)),
//		TracedBase:       true, // otelhttp only wraps; a Base that does not report its connections proves less
//		AttemptInContext: true, // for ClientTrace
//		OnEvent:          oteltransport.Observe,
//		...
//	})
//	client := &http.Client{Transport: oteltransport.New(rt, oteltransport.Options{})}
//
// # Order
//
// outlay outside, otelhttp inside: each transmission gets a CLIENT span and a traceparent
// of its own, whose time is the provider's and not our queue, and a refusal of ours is no
// failed request to the provider. Around them is one INTERNAL span per call, outlay.call,
// with what the call went through; a wait of 10 ms or more is a span in it, outlay.wait.
//
// Only refusals make outlay.call an error, with the reason as error.type. An error that a
// repeat healed is none, and neither is a caller who left.
//
// # What is not here
//
// Metrics are in package promtransport. Events are log records: [transport.LogTo] with a
// slog handler that knows the trace context, such as otelslog's.
//
// Two things that otelhttp does should be known: it writes url.full with the query, in
// which some vendors take the API key, and with a baggage propagator it sends the caller's
// baggage to the vendor. Send keys in a header, and give it propagation.TraceContext alone.
package oteltransport

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/outlay-go/outlay/transport"
)

// scope names this instrumentation.
const scope = "github.com/outlay-go/outlay/transport/oteltransport"

// shortest is the shortest wait that is worth a span.
const shortest = 10 * time.Millisecond

// Options sets where spans go. The zero value is usable.
type Options struct {
	// TracerProvider makes the spans. Nil: the global one.
	TracerProvider trace.TracerProvider
}

// Transport is an [http.RoundTripper] that makes a span per call; [New] makes one. It is
// safe for concurrent use.
type Transport struct {
	next   http.RoundTripper
	tracer trace.Tracer
}

// New wraps next, which is a [transport.Transport] or a view of one, whose hook is
// [Observe].
func New(next http.RoundTripper, o Options) *Transport {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	return &Transport{next, o.TracerProvider.Tracer(scope)}
}

type callKey struct{}

// recorded is the span of a call, on its way to Observe.
type recorded struct {
	span   trace.Span
	tracer trace.Tracer
}

// RoundTrip sends one call inside a span, which ends when the answer begins.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := t.tracer.Start(req.Context(), "outlay.call", trace.WithSpanKind(trace.SpanKindInternal))
	defer span.End()
	if span.IsRecording() {
		ctx = context.WithValue(ctx, callKey{}, recorded{span, t.tracer})
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// CloseIdleConnections closes those of the wrapped transport, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Observe is a hook for [transport.Config.OnEvent]. It does nothing for calls that did not
// come through [Transport].
func Observe(ctx context.Context, e transport.Event) {
	if e.Kind != transport.KindStarted && e.Kind != transport.KindFinished {
		return
	}
	r, ok := ctx.Value(callKey{}).(recorded)
	if !ok {
		return
	}
	if e.Kind == transport.KindStarted {
		r.waited(ctx, e, e.Attempt, e.Time.Add(-e.Took), e.Wait)
		return
	}
	r.waited(ctx, e, e.Attempt+1, e.Time, e.Left)
	r.finished(e)
}

// waited makes the span of a wait that is over.
func (r recorded) waited(ctx context.Context, e transport.Event, attempt int, end time.Time, d time.Duration) {
	if d < shortest {
		return
	}
	_, span := r.tracer.Start(ctx, "outlay.wait", trace.WithTimestamp(end.Add(-d)), trace.WithAttributes(
		attribute.String("outlay.provider", e.Provider),
		attribute.String("outlay.priority", e.Priority.String()),
		attribute.Int("outlay.attempt", attempt),
	))
	span.End(trace.WithTimestamp(end))
}

// finished writes what the call went through.
func (r recorded) finished(e transport.Event) {
	attrs := []attribute.KeyValue{
		attribute.String("outlay.call", e.Call.String()),
		attribute.String("outlay.outcome", e.Outcome),
		attribute.Int("outlay.attempts", e.Attempts),
		attribute.Float64("outlay.wait_s", e.Wait.Seconds()),
		attribute.Float64("outlay.delay_s", e.Delay.Seconds()),
	}
	if e.Provider != "" {
		attrs = append(attrs, attribute.String("outlay.provider", e.Provider))
	}
	if e.Cost != 0 {
		attrs = append(attrs, attribute.String("outlay.cost", e.Cost.String()), attribute.String("outlay.unit", e.Unit))
	}
	if e.Pending > 0 {
		attrs = append(attrs, attribute.Int("outlay.pending", e.Pending))
	}
	if e.Status != 0 {
		attrs = append(attrs, attribute.Int("http.response.status_code", e.Status))
	}
	if e.Outcome == "refused" {
		attrs = append(attrs, attribute.String("error.type", string(e.Reason)))
		r.span.SetStatus(codes.Error, "refused: "+string(e.Reason))
	}
	r.span.SetAttributes(attrs...)
}

// ClientTrace is for otelhttp.WithClientTrace: it writes the provider and the number of the
// repeat on the span of the attempt. It needs [transport.Config.AttemptInContext], and is
// never nil.
func ClientTrace(ctx context.Context) *httptrace.ClientTrace {
	if provider, attempt, ok := transport.AttemptFrom(ctx); ok {
		span := trace.SpanFromContext(ctx)
		span.SetAttributes(attribute.String("outlay.provider", provider))
		if attempt > 1 {
			span.SetAttributes(attribute.Int("http.request.resend_count", attempt-1))
		}
	}
	return new(httptrace.ClientTrace)
}

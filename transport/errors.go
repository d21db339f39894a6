package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// Reason says why a call was refused. It is the one vocabulary of errors, events,
// metrics, JSON and the gateway.
type Reason string

// The reasons of a refusal: nothing was sent and nothing was charged.
const (
	ReasonGate      Reason = "gate"       // the provider said: not before an instant
	ReasonRate      Reason = "rate"       // no turn in time at the configured rate
	ReasonSlots     Reason = "slots"      // too many calls in flight
	ReasonDeadline  Reason = "deadline"   // the context's deadline comes before the turn
	ReasonQueueFull Reason = "queue_full" // too many wait already
	ReasonNever     Reason = "never"      // heavier than the burst: it can never start
	ReasonExhausted Reason = "exhausted"  // the window's money is spent
	ReasonBusy      Reason = "busy"       // calls in flight hold the rest of the money
	ReasonFloor     Reason = "floor"      // the rest of the money is kept for critical calls
	ReasonRepeated  Reason = "repeated"   // the same call too often
	ReasonUnpriced  Reason = "unpriced"   // nobody can say what it costs
	ReasonFrozen    Reason = "frozen"     // an operator stopped it
	ReasonLedger    Reason = "ledger"     // the ledger did not answer
	ReasonLimiter   Reason = "limiter"    // the shared limiter did not answer
	ReasonUnmatched Reason = "unmatched"  // it belongs to no provider
)

// ErrUnmatched refuses a request that belongs to no provider. Nothing was sent.
var ErrUnmatched = errors.New("transport: request matches no provider")

// Refused describes a refusal to [Provider.Refusal].
type Refused struct {
	Provider string
	Reason   Reason
	// RetryAt is when the call could pass; zero if it is not known.
	RetryAt time.Time
	Err     error
	// Call is the id of the call; zero: not told.
	Call CallID
	// Status is the status that says the Reason, for reasons that are not of this package.
	// Zero: the usual one.
	Status int
	// OutcomeUnknown: it is no refusal. The call was sent, and may have been billed.
	OutcomeUnknown bool
}

// refusalResponse is the vendor's own error shape, if the provider is configured so.
func (c *call) refusalResponse(err error, reason Reason) *http.Response {
	if c.p.Refusal == nil {
		return nil
	}
	at, _ := RetryAt(err)
	status, h, body := c.p.Refusal(Refused{Provider: c.p.Name, Reason: reason, RetryAt: at, Err: err, Call: c.id})
	if status == 0 {
		return nil
	}
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: c.req,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// ReasonOf returns the reason of a refusal, or "" if err is none of ours.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*throttle.WaitError](err); ok {
		return Reason(e.Reason)
	}
	if e, ok := errors.AsType[*budget.ExceededError](err); ok {
		return Reason(e.Reason)
	}
	if _, ok := errors.AsType[*budget.FrozenError](err); ok {
		return ReasonFrozen
	}
	if _, ok := errors.AsType[*RepeatedError](err); ok {
		return ReasonRepeated
	}
	for _, s := range []struct {
		err    error
		reason Reason
	}{
		{budget.ErrUnpriced, ReasonUnpriced},
		{ErrUnmatched, ReasonUnmatched},
		{throttle.ErrUnavailable, ReasonLimiter},
		{budget.ErrUnavailable, ReasonLedger},
		{budget.ErrConflict, ReasonLedger},
	} {
		if errors.Is(err, s.err) {
			return s.reason
		}
	}
	return ""
}

// CallError is an error after which something may have been sent: what Base failed with,
// or the end of the caller's context, in which case NotSent tells whether that came
// before the first attempt. Its text holds no URL and nothing of
// an answer; Err is as Base returned it.
type CallError struct {
	// Provider is whose call it was, Attempts how many were made.
	Provider string
	Attempts int
	// Status is that of the last answer, zero if there was none.
	Status int
	// NotSent: no byte of any attempt was written.
	NotSent bool
	// OutcomeUnknown: an attempt may have been billed; it is presumed spent.
	OutcomeUnknown bool
	// Refusal is why the attempt was not repeated, if a refusal of ours kept it from that.
	// It is not unwrapped: something was sent.
	Refusal error
	// Err is the cause.
	Err error
}

// Error begins with the provider, keeps the cause's own text but for what it quotes and for
// URLs, and says whether the call may have been billed.
func (e *CallError) Error() string {
	s := e.Provider + ": "
	if e.Status != 0 {
		s += fmt.Sprintf("after status %d: ", e.Status)
	}
	s += unquoted(e.Err.Error())
	if e.OutcomeUnknown {
		s += " (it may have been done and billed)"
	}
	return s
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// Timeout forwards the cause's, so that [net/url.Error] reports it.
func (e *CallError) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && t.Timeout()
}

// Temporary forwards the cause's.
func (e *CallError) Temporary() bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](e.Err)
	return ok && t.Temporary()
}

// NotSent reports whether err proves that no attempt of the call was written to the
// provider, so that nothing was charged and the call may be made again. Refusals and
// failed dials are such errors.
func NotSent(err error) bool {
	if e, ok := errors.AsType[*CallError](err); ok {
		return e.NotSent
	}
	return ReasonOf(err) != ""
}

// OutcomeUnknown reports whether an attempt of the call may have been billed although
// no answer says so. Its hold is presumed spent.
//
// The Timeout of an [http.Client] replaces our error by its own, which tells nothing of what
// was sent; such an error counts as unknown. After a deadline of the context our error
// stays, and tells it.
func OutcomeUnknown(err error) bool {
	if e, ok := errors.AsType[*CallError](err); ok {
		return e.OutcomeUnknown
	}
	e, ok := errors.AsType[*url.Error](err)
	return ok && e.Timeout() && ReasonOf(err) == ""
}

// RetryAt returns when a refused call could pass, if that is known.
func RetryAt(err error) (time.Time, bool) {
	if e, ok := errors.AsType[*throttle.WaitError](err); ok {
		return e.RetryAt, !e.RetryAt.IsZero()
	}
	if e, ok := errors.AsType[*budget.ExceededError](err); ok {
		return e.RetryAt, !e.RetryAt.IsZero()
	}
	if e, ok := errors.AsType[*RepeatedError](err); ok {
		return e.RetryAt, true
	}
	return time.Time{}, false
}

// isContextEnd reports whether err is how a context ends.
func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

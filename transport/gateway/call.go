package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// call is one request on its way through the gateway.
type call struct {
	g        *Gateway
	snap     *snapshot
	up       *upstream
	listener Listener
	w        *writer
	in       *http.Request // as it came
	req      *http.Request // as it is handed to the proxy
	start    time.Time
	// escaped and rawQuery are the path below the provider and the query, byte for byte.
	escaped, rawQuery string
	// route is the pattern of Routes that allows the path.
	route    string
	who      identity
	caller   *Caller
	priority throttle.Priority
	// token is the one by which the caller was known.
	token string
	body  *bufferedBody
	// wait is how long the call may wait. streamed: its body is passed on as it comes.
	wait     time.Duration
	streamed bool
	// bodyRead: the body was read to its end.
	bodyRead bool
	// refused is what the gateway itself answered.
	refused *refusal

	ctx    context.Context
	cancel context.CancelCauseFunc
	stops  [2]func() bool

	mu  sync.Mutex // guards what follows
	saw seen
	// unwanted is why nobody waits for the call any more.
	unwanted error
	// flying: an attempt was sent, and is not to be repeated. answered: its header is there.
	flying, answered, stream bool
	// left: the caller had left before the answer was whole.
	left     bool
	patience *time.Timer
	// failed is why the body of the request could not be passed on.
	failed error
}

// seen is what the events of a call told.
type seen struct {
	id            transport.CallID
	started       bool // an attempt
	attempts      int
	waited, below time.Duration // in the queue; in the attempts
	hold, cost    budget.Amount
	unit          string
	resolved      string
	reason        transport.Reason
	outcome       string
	would         transport.Reason
	wouldBudget   string
}

// Why a call ends before its time.
var (
	errCallerLeft   = errors.New("the caller has left")
	errShuttingDown = errors.New("the gateway is shutting down")
	errStopped      = errors.New("stopped by the configuration")
	errRemoved      = errors.New("the provider was removed from the configuration")
	errAborted      = errors.New("the gateway was stopped while the call was under way")
	errIdle         = errors.New("the provider sent nothing for too long")
	errSlowReader   = errors.New("the caller was too slow to take the answer")
)

type callKey struct{}

// callOf returns the call to which a context belongs, or nil.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// callContext has the values of the request's context, but does not end with it: a caller
// who leaves must not cut off what the provider bills.
type callContext struct {
	context.Context // ends when the gateway is stopped
	values          context.Context
	call            *call
}

func (c *callContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		return c.call
	case identityKey:
		return c.call.who
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// newCall begins a call. w is nil for one that is only planned.
func (g *Gateway) newCall(l Listener, w http.ResponseWriter, r *http.Request) *call {
	c := &call{g: g, snap: g.snap.Load(), listener: l, in: r, start: time.Now()}
	c.ctx, c.cancel = context.WithCancelCause(&callContext{g.hard, r.Context(), c})
	c.req = r.WithContext(c.ctx)
	if w != nil {
		c.w = newWriter(w)
	}
	return c
}

// watch lets the call leave the queue when its caller does, or when there is no queue any
// more.
func (c *call) watch() {
	c.stops[0] = context.AfterFunc(c.in.Context(), func() { c.unwant(errCallerLeft) })
	c.stops[1] = context.AfterFunc(c.up.live.queue, func() { c.unwant(context.Cause(c.up.live.queue)) })
}

// stop ends all that was begun for the call.
func (c *call) stop() {
	for _, f := range c.stops {
		if f != nil {
			f()
		}
	}
	c.mu.Lock()
	if c.patience != nil {
		c.patience.Stop()
	}
	c.mu.Unlock()
	c.cancel(nil)
	c.releaseBody()
}

// unwant says that nobody waits for the call any more. It ends at once unless it was sent.
func (c *call) unwant(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unwanted == nil {
		c.unwanted = why
	}
	switch {
	case !c.flying:
		c.cancel(c.unwanted)
	case errors.Is(why, errCallerLeft):
		c.abandoned()
	}
}

// finishFor is how long a call is finished whose caller has left.
const finishFor = 30 * time.Second

// abandoned decides what becomes of a call that was sent and whose caller has left. c.mu is
// held.
func (c *call) abandoned() {
	if c.cancelsOnDisconnect() {
		c.cancel(errCallerLeft)
		return
	}
	if c.patience == nil {
		c.patience = time.AfterFunc(finishFor, func() { c.cancel(errCallerLeft) })
	}
}

// cancelsOnDisconnect reports whether the answer is of no use without its caller.
func (c *call) cancelsOnDisconnect() bool {
	switch c.up.OnDisconnect {
	case CancelOnDisconnect:
		return true
	case FinishOnDisconnect:
		return false
	}
	return c.stream
}

// answer takes note of the header of the answer.
func (c *call) answer(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered, c.left = true, c.hasLeft()
	c.stream = strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream")
	if c.left {
		c.abandoned()
	}
}

// noteLeft takes note, when the answer has ended, whether somebody still waits for it.
func (c *call) noteLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = c.hasLeft()
}

// hasLeft also sees a caller of whose leaving the call was not told yet. c.mu is held.
func (c *call) hasLeft() bool {
	return errors.Is(c.unwanted, errCallerLeft) || c.in.Context().Err() != nil
}

// onEvent is the hook of the Transport. It runs on the goroutine of the call, before the
// attempt leaves: an attempt of an unwanted call is stopped here.
func (g *Gateway) onEvent(ctx context.Context, e transport.Event) {
	if c := callOf(ctx); c != nil {
		c.note(&e)
	}
	if g.parts.OnEvent != nil {
		g.parts.OnEvent(ctx, e)
	}
}

func (c *call) note(e *transport.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.saw
	s.id = e.Call
	switch e.Kind {
	case transport.KindStarted:
		c.flying, s.started = c.unwanted == nil, true
		s.hold, s.unit = s.hold+e.Hold, e.Unit
	case transport.KindRetrying:
		c.flying = false
		if c.unwanted != nil {
			c.cancel(c.unwanted)
		}
	case transport.KindAnswered:
		s.below += e.Took
	case transport.KindResolved:
		s.cost, s.resolved = s.cost+e.Cost, e.Outcome
	case transport.KindWouldRefuse:
		s.would, s.wouldBudget = e.Reason, e.Budget
	case transport.KindFinished:
		s.attempts, s.waited, s.reason, s.outcome = e.Attempts, e.Wait, e.Reason, e.Outcome
	}
}

// seen returns what the events told so far.
func (c *call) seen() seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saw
}

// id is the call's, in the terms of the Transport if it saw the call.
func (c *call) id() transport.CallID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.saw.id == (transport.CallID{}) {
		c.saw.id = c.g.newID()
	}
	return c.saw.id
}

// priorityOf is the Priority of providers that have none of their own.
func priorityOf(r *http.Request) throttle.Priority {
	if c := callOf(r.Context()); c != nil {
		return c.priority
	}
	return throttle.Normal
}

package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// call is one RoundTrip on its way.
type call struct {
	t   *Transport
	p   *provider
	req *http.Request
	ctx context.Context
	id  CallID
	rec *recorder

	start, now time.Time // begin of the call, last reading of the clock
	priority   throttle.Priority
	tenant     string
	maxWait    time.Duration
	waited     time.Duration // in the queue and at gates
	turnWait   time.Duration // ... of the attempt under way
	left       time.Duration // ... without getting a turn
	holdBegan  time.Time     // only read if somebody is told
	delayed    time.Duration // between attempts
	waitedFor  throttle.Reason

	legs    []throttle.Leg
	quote   budget.Quote
	budgets []budget.Leg
	legBuf  [2]budget.Leg

	attempt  int // of the attempt under way, from 1
	attempts int // allowed in all
	nested   bool
	key      string      // idempotency key of all attempts
	keySeen  bool        // it is the caller's, and counted
	print    *[16]byte   // counted by the guard against repeats
	header   http.Header // replaces the request's if we add to it
	turn     throttle.Turn
	holdID   budget.HoldID
	holding  bool     // the hold is open
	turning  bool     // the turn is open
	sent     bool     // the attempt under way was handed to Base
	sentAny  bool     // some attempt may have been written
	unknown  bool     // some attempt's outcome is unknown
	done     bool     // finished or refused
	bodyOurs bool     // nobody took the request's body yet
	queuedUp bool     // the attempt had to wait for its turn
	ending   *bodyEnd // needs the call until the body has ended

	cost    budget.Amount // of the attempts resolved so far
	current *attempt      // the one under way
	first   attempt
	scratch *scratch
	after   context.Context // see books
	lastErr error           // of an attempt that is repeated
	last    *http.Response  // the provider's last answer, its body in memory
	// lastOutcome is what that answer was, in the words of events.
	lastOutcome string
	back        *ownBackoff // waits between attempts without a gate
	stale       bool        // what may have taken long was done since now was read
}

// lap reads the clock after what rarely takes long. Only the steady one, which costs half
// of both, unless so much time is gone that the wall clock may have been set.
func (c *call) lap() time.Time {
	if d := time.Since(c.now); d < time.Second {
		c.now = c.now.Add(d)
	} else {
		c.now = time.Now()
	}
	c.stale = false
	return c.now
}

// freshen reads the clock if it was read too long ago to be told.
func (c *call) freshen() {
	if c.stale {
		c.lap()
	}
}

func (t *Transport) newCall(p *provider, req *http.Request) *call {
	s := t.scratches.Get().(*scratch)
	c := &s.call
	c.t, c.p, c.req, c.ctx, c.scratch = t, p, req, req.Context(), s
	c.start = time.Now()
	c.now, c.bodyOurs = c.start, true
	c.id = CallID{t.boot, t.calls.Add(1)}
	return c
}

// scratch is the memory of one call, used again when nothing needs it any more: Base,
// the ledger and net/http's goroutines are never given a pointer into it, and a body that
// still needs the call gives it back when it ends. The limiter has queue and
// still only while it is asked.
type scratch struct {
	call  call
	queue func(throttle.Forecast)
	still func() error
}

func newScratch() any {
	s := new(scratch)
	s.queue = func(f throttle.Forecast) { s.call.queued(f) }
	s.still = func() error { return s.call.unpaid() }
	return s
}

// books is the context of what closes the books: a caller who leaves must not stop it.
func (c *call) books() context.Context {
	if c.ctx.Done() == nil {
		return c.ctx // nothing ends it
	}
	if c.after == nil {
		c.after = context.WithoutCancel(c.ctx)
	}
	return c.after
}

// callerGone reports that nobody waits for an answer. Request.Cancel, which has no context,
// is looked at before each attempt: net/http may look too late.
func (c *call) callerGone() error {
	select {
	case <-c.req.Cancel: //lint:ignore SA1019 callers may still use it
		return context.Canceled
	default:
		return c.ctx.Err()
	}
}

// monitored lets a refusal of a provider that is only monitored pass.
func (c *call) monitored(err error) error {
	if err == nil || !c.p.Monitor {
		return err
	}
	c.wouldRefuse(err)
	return nil
}

// leave ends every call. If it ends by a panic, of Base or of a hook, its books are
// closed here.
func (c *call) leave() {
	if !c.done {
		c.abandon()
	}
	if c.ending != nil {
		c.ending.left()
		return
	}
	c.recycle()
}

// recycle gives the memory of the call back.
func (c *call) recycle() {
	s, t := c.scratch, c.t
	s.call = call{}
	t.scratches.Put(s)
}

// giveTurnBack cancels a turn with which nothing was sent.
func (c *call) giveTurnBack() {
	if c.turning {
		c.turning = false
		c.turn.Cancel()
	}
}

// endTurn ends a turn whose attempt is over.
func (c *call) endTurn() {
	if c.turning {
		c.turning = false
		c.turn.Done()
	}
}

// closeBody closes the request's body if Base never got it.
func (c *call) closeBody() {
	ours := c.bodyOurs
	c.bodyOurs = false
	if ours && c.req.Body != nil {
		_ = c.req.Body.Close()
	}
}

// forget takes back what was counted of a call of which nothing was sent: the next try is
// no repeat. Failed dials still count as attempts that a layer above may multiply.
func (c *call) forget() {
	if !c.sentAny {
		c.p.state.repeats.forget(c)
	}
	if c.attempt == 0 {
		c.p.state.keys.forget(c)
	}
}

func (c *call) abandon() {
	if c.holding {
		o := budget.Voided("not_sent")
		if c.sent {
			o = budget.Outcome{Why: "panic"}
		}
		c.holding = false
		_, _ = c.t.ledger.Resolve(c.books(), c.holdID, o)
	}
	if c.sent {
		c.endTurn()
	}
	c.giveTurnBack()
	c.closeBody()
	if c.current != nil {
		c.current.release()
		if c.current.resp != nil && c.current.resp.Body != nil {
			_ = c.current.resp.Body.Close()
		}
	}
}

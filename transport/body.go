package transport

import (
	"context"
	"io"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// watchBody arranges that the turn ends, and a metered cost is booked, when the body
// ends. A body is wrapped only if there is something to wait for.
func (c *call) watchBody(a *attempt) *http.Response {
	resp := a.resp
	// A turn is kept for its slot, or until its real weight is known.
	keep := c.turning && resp.Body != http.NoBody && (c.p.slots || a.pending)
	if !keep {
		c.endTurn()
	}
	if !a.pending && !keep && a.cancel == nil {
		return resp
	}
	e := &bodyEnd{c: c, a: a, meter: a.meter, turn: keep, raw: resp.Body}
	c.turning, c.ending = false, e
	// What waits for the end must not keep the response alive.
	a.resp, c.current = nil, nil
	if resp.Body == http.NoBody {
		e.end(true)
		return resp
	}
	b := &body{r: resp.Body, e: e}
	// The response may be dropped without a Close.
	runtime.AddCleanup(b, func(e *bodyEnd) { e.unclosed() }, e)
	if rw, ok := b.r.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &upgraded{b, rw}
		return resp // which outlives the context
	}
	e.until(c.ctx)
	resp.Body = b
	return resp
}

// body passes a response body through and notices its end.
type body struct {
	r io.ReadCloser
	e *bodyEnd
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 {
		b.e.feed(p[:n])
	}
	if err != nil {
		b.e.end(err == io.EOF)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.e.end(false)
	return b.r.Close()
}

// upgraded is the body of a 101: a connection.
type upgraded struct {
	*body
	rw io.ReadWriteCloser
}

func (u *upgraded) Write(p []byte) (int, error) { return u.rw.Write(p) }

// bodyEnd is what happens once, at the first of: end of the body, error, Close, end of
// the context, collection of the response. When it has happened, and RoundTrip has
// returned, the memory of the call is used again: reads that come later find no meter.
type bodyEnd struct {
	c     *call
	a     *attempt
	raw   io.Closer
	turn  bool
	lost  bool // nobody closed the body
	once  atomic.Bool
	leave atomic.Int32 // of RoundTrip and the end of the body, how many are done with c
	mu    sync.Mutex   // guards what follows: the context may end during a Read
	meter io.Writer
	stop  func() bool
}

func (e *bodyEnd) feed(p []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.meter != nil {
		_, _ = e.meter.Write(p)
	}
}

// left is called once by RoundTrip and once by the end of the body.
func (e *bodyEnd) left() {
	if e.leave.Add(1) == 2 {
		e.c.recycle()
	}
}

func (e *bodyEnd) end(whole bool) {
	if !e.once.Swap(true) {
		e.finish(whole)
	}
}

func (e *bodyEnd) finish(whole bool) {
	o := budget.Outcome{Why: "panic"} // unless the meter comes back
	defer func() {
		if e.turn {
			e.c.turn.Done()
		}
		e.a.release()
		if e.a.pending {
			e.c.close(o)
		}
		if e.lost { // told last: a hook that panics, or takes its time, keeps no slot
			e.c.emit(&Event{Kind: KindUnclosed, Took: time.Since(e.c.start)})
		}
		e.left()
	}()
	o = e.outcome(whole)
	if e.turn {
		e.c.reweigh(e.a)
	}
}

// outcome is what the meter saw. Without a known cost the hold is presumed spent: a
// stream that was cut may have been billed in full.
func (e *bodyEnd) outcome(whole bool) budget.Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.c.now, e.meter = time.Now(), nil
	if e.stop != nil {
		e.stop()
	}
	if !e.a.pending {
		return budget.Outcome{}
	}
	amount, known := e.a.cost()
	o := budget.Presumed(max(0, amount))
	o.Why = "body_cut"
	switch {
	case known && amount >= 0:
		o = settled(amount, "usage")
	case whole:
		o.Why = "usage_missing"
	}
	o.Ref, o.Seen = e.a.reading.Ref, e.a.date
	return o
}

// until ends the body with the context.
func (e *bodyEnd) until(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop = context.AfterFunc(ctx, func() { e.end(false) })
}

func (e *bodyEnd) unclosed() {
	if e.once.Swap(true) {
		return
	}
	e.lost = true
	defer e.raw.Close()
	e.finish(false)
}

// reweigh corrects what the turn took from scopes that count units.
func (c *call) reweigh(a *attempt) {
	u, ok := a.meter.(interface{ Units() (int64, bool) })
	if !ok {
		return
	}
	t, ok := c.t.limiter.(throttle.Tuner)
	if !ok {
		return
	}
	n, known := u.Units()
	if !known || n < 0 {
		return
	}
	for i := range c.p.Scopes {
		if s := &c.p.Scopes[i]; s.Units {
			if key, ok := c.p.keyOfScope(c.legs, s.Name); ok {
				t.Adjust(c.turn, key, int(min(n, math.MaxInt32)))
			}
		}
	}
}

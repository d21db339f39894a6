package transport

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport/dialect"
)

// learn turns what the answer says about limits into gates and caps for everybody. It
// may ask a shared store, and comes after the books are closed: whatever becomes of the
// process meanwhile, a known cost is not presumed. It comes before the call's own retry.
func (c *call) learn(a *attempt) {
	if a.resp == nil {
		return
	}
	r := &a.reading
	key, known := c.scopeKey(r.Scope)
	switch {
	case r.Wall:
		c.emit(&Event{Kind: KindThrottled, Status: a.resp.StatusCode, Source: r.Source, RetryAt: hintedAt(r, a.doneAt)})
		if until := c.wallEnd(a); known && !until.IsZero() {
			c.cap(throttle.Cap{Key: key, Until: until, Cause: throttle.CauseThrottled})
		}
	case r.Throttled:
		c.emit(&Event{Kind: KindThrottled, Status: a.resp.StatusCode, Source: r.Source, RetryAt: hintedAt(r, a.doneAt)})
		if known { // else the limit is that of something we know nothing about: it concerns this call
			c.throttled(a, key)
		}
	default:
		c.p.state.backoffs.answered(key, a.sentAt)
		c.learnWindows(a, key)
	}
}

// wallProbe is how long a used-up quota whose end nobody told is left alone.
const wallProbe = 10 * time.Minute

// wallEnd is until when the calls after a wall are held back. An empty balance has no
// end that time brings; a used-up quota of a day ends with the vendor's day.
func (c *call) wallEnd(a *attempt) time.Time {
	r := &a.reading
	if at := hintedAt(r, a.doneAt); !at.IsZero() {
		return at
	}
	if at := resetAt(r.Window, a.doneAt); !at.IsZero() && !hasLeft(r.Window) {
		return at
	}
	switch {
	case !r.Throttled:
		return time.Time{}
	case c.p.QuotaZone != nil:
		return budget.Day.Window(a.doneAt, c.p.QuotaZone).End
	}
	return a.doneAt.Add(wallProbe)
}

// throttled closes the gate of the scope until the instant that the answer names, or
// else until a backoff that all calls of the scope share. A 503 that names no usable
// instant concerns its own call only.
func (c *call) throttled(a *attempt, key string) {
	r := &a.reading
	slow := false
	until := hintedAt(r, a.doneAt)
	if until.IsZero() && !hasLeft(r.Window) {
		until = resetAt(r.Window, a.doneAt)
	}
	if !until.IsZero() {
		a.asked = until.Sub(a.doneAt)
	} else {
		if a.resp.StatusCode == 503 {
			return
		}
		until = c.p.state.backoffs.throttled(key, a.sentAt, a.doneAt, c.p.Retry.Backoff)
		slow = !c.p.FixedRate
	}
	a.gate = until
	c.cap(throttle.Cap{Key: key, Until: until, Cause: throttle.CauseThrottled, Slow: slow})
}

// hintedAt is when the explicit hint of a reading ends; zero, past and absent hints
// are none.
func hintedAt(r *dialect.Reading, now time.Time) time.Time {
	if !r.Hinted || r.RetryAfter <= 0 {
		return time.Time{}
	}
	return now.Add(r.RetryAfter)
}

// resetAt is when a window begins anew, if the answer tells.
func resetAt(w dialect.Window, now time.Time) time.Time {
	if w.Known&dialect.HasReset == 0 || w.Reset <= 0 {
		return time.Time{}
	}
	return now.Add(w.Reset)
}

// hasLeft reports whether the answer says that something is left of the window: then it
// is not the window that refused the call.
func hasLeft(w dialect.Window) bool { return w.Known&dialect.HasRemaining != 0 && w.Remaining > 0 }

// learnWindows caps the scope by what a good answer says is left.
func (c *call) learnWindows(a *attempt, key string) {
	if len(a.reading.Windows) == 0 {
		c.learnWindow(a, key, a.reading.Window)
		return
	}
	for _, w := range a.reading.Windows {
		c.learnWindow(a, key, w)
	}
}

func (c *call) learnWindow(a *attempt, key string, w dialect.Window) {
	if w.Known&(dialect.HasRemaining|dialect.HasReset) != dialect.HasRemaining|dialect.HasReset || w.Reset <= 0 {
		return
	}
	if w.Endpoint {
		known := false
		if key, known = c.scopeKey("endpoint"); !known {
			return
		}
	}
	until := a.doneAt.Add(w.Reset)
	if w.Exhausted() {
		c.cap(throttle.Cap{Key: key, Until: until, Cause: throttle.CauseRemaining, Turn: c.turn})
		return
	}
	// A window of tokens or bytes caps no number of turns, and one with more left than
	// anyone can use in it is not worth a lock.
	if w.Unit != "" || w.Remaining > 1_000_000 {
		return
	}
	c.cap(throttle.Cap{Key: key, N: int(w.Remaining), Until: until, Cause: throttle.CauseRemaining, Turn: c.turn})
}

// cap tells the limiter and reports it.
func (c *call) cap(k throttle.Cap) {
	err := c.t.limiter.Cap(c.books(), k)
	c.t.limiterHealth.note(c, "cap", err)
	if c.t.onEvent == nil {
		return
	}
	if k.N == 0 {
		c.emit(&Event{Kind: KindGate, Until: k.Until, Cause: string(k.Cause)})
		return
	}
	c.emit(&Event{Kind: KindLearned, Until: k.Until, Remaining: int64(k.N)})
}

// scopeKey is the key of the scope that a dialect names: the provider itself, one of
// its scopes, or, where the answer does not tell, the last scope that the call uses.
// It is not known if the dialect names one that the provider does not have.
func (c *call) scopeKey(name string) (key string, known bool) {
	switch name {
	case dialect.Whole:
		return c.legs[0].Key, true
	case "":
		return c.legs[len(c.legs)-1].Key, true
	}
	if key, ok := c.p.keyOfScope(c.legs, name); ok {
		return key, true
	}
	return c.legs[0].Key, false
}

// maxBackoffScopes bounds the scopes whose shared backoff is remembered.
const maxBackoffScopes = 10_000

// scopeBackoffs counts the throttles without a hint of each scope, so that all its calls
// share one growing backoff.
type scopeBackoffs struct {
	n  atomic.Int32 // len(of), so that good answers need no lock
	mu sync.Mutex   // guards of
	of map[string]*scopeBackoff
}

type scopeBackoff struct {
	own   *ownBackoff
	since time.Time // of the last throttle counted
	until time.Time
}

// throttled returns when the scope may go on. Answers to attempts that were sent before
// the last one was counted belong to the same round and do not count again.
func (s *scopeBackoffs) throttled(key string, sentAt, now time.Time, first time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.of[key]
	if b == nil {
		if s.of == nil || len(s.of) >= maxBackoffScopes {
			s.of = map[string]*scopeBackoff{}
		}
		b = &scopeBackoff{own: newBackoff(first)}
		s.of[key] = b
		s.n.Store(int32(len(s.of)))
	} else if sentAt.Before(b.since) && now.Before(b.until) {
		return b.until
	}
	b.since = now
	b.until = now.Add(b.own.next())
	return b.until
}

// answered forgets the backoff of a scope whose attempt was sent after the last throttle
// and was answered well.
func (s *scopeBackoffs) answered(key string, sentAt time.Time) {
	if s.n.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.of[key]; b != nil && !sentAt.Before(b.since) {
		delete(s.of, key)
		s.n.Store(int32(len(s.of)))
	}
}

// forget drops the backoff of a scope.
func (s *scopeBackoffs) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
	s.n.Store(int32(len(s.of)))
}

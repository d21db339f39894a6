package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// backoffFloor is the shortest wait of our own between two attempts.
	backoffFloor = 100 * time.Millisecond
	// backoffCeiling is where doubling ends.
	backoffCeiling = time.Minute
	// drainLimit bounds what is read of an answer that is not returned at once.
	drainLimit = 64 << 10
)

// decide says whether the attempt is repeated, and after which wait of our own. A wait
// that the provider asked for is spent in the limiter's queue, where its gate is.
func (c *call) decide(a *attempt) (delay time.Duration, again bool) {
	cause := c.repeatable(a)
	if cause == "" || c.attempt >= c.attempts || c.ctx.Err() != nil || !c.bodyAgain() {
		return 0, false
	}
	wait := a.gate.Sub(c.now)
	if a.gate.IsZero() {
		if c.back == nil {
			c.back = newBackoff(c.p.Retry.Backoff)
		}
		delay = c.back.next()
		if a.reading.Hinted {
			delay = max(delay, a.reading.RetryAfter) // a lower bound, also beside other errors
			a.asked = a.reading.RetryAfter
		}
		wait = delay
	}
	if !c.mayWaitFor(wait) || a.asked > c.p.maxRetryAfter() {
		return 0, false
	}
	if !c.p.state.share.retry(c.now, c.p.Retry.Share) {
		return 0, false
	}
	e := Event{Kind: KindRetrying, Cause: cause, Delay: delay, RetryAt: c.now.Add(wait)}
	c.emit(&e)
	return delay, true
}

// repeatable names the reason for which the attempt may be repeated, or "".
func (c *call) repeatable(a *attempt) string {
	switch {
	case a.reading.Wall, a.reading.Partial, a.reading.Final:
		return ""
	case a.reading.Throttled:
		return "throttled"
	case a.notTaken:
		return "unavailable"
	case a.err != nil && a.notSent:
		if !c.sent {
			return "" // our own trouble with the body
		}
		return "not_sent"
	case a.err == nil && a.resp.StatusCode == http.StatusServiceUnavailable && isSafe(c.req.Method):
		return "unavailable"
	case a.unknown() && (c.key != "" || c.p.Retry.Unknown == ReplayAll || c.p.Retry.Unknown == ReplaySafe && isSafe(c.req.Method)):
		return "opted_in"
	}
	return ""
}

// unknown reports whether the provider may or may not have done, and billed, the work.
func (a *attempt) unknown() bool {
	if a.err != nil {
		return !a.notSent && !isContextEnd(a.err)
	}
	switch a.resp.StatusCode {
	case 500, 502, 503, 504:
		return true
	}
	return false
}

func isSafe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// bodyAgain reports whether the request can be sent once more with all of its body.
func (c *call) bodyAgain() bool { return !hasBody(c.req) || c.req.GetBody != nil }

// mayWait is what is left of the call's MaxWait, in the limiter's terms.
func (c *call) mayWait() time.Duration {
	if c.maxWait == NoWait || c.p.Monitor {
		return 0
	}
	return max(0, c.maxWait-c.waited-c.delayed)
}

// mayWaitFor reports whether the call may wait for d: within MaxWait, and with its
// deadline still ahead afterwards.
func (c *call) mayWaitFor(d time.Duration) bool {
	if d > c.mayWait() {
		return false
	}
	deadline, ok := c.ctx.Deadline()
	return !ok || c.now.Add(d).Before(deadline)
}

// backOff ends the attempt that will be repeated and sleeps our own part of the wait.
func (c *call) backOff(a *attempt, delay time.Duration) error {
	c.last = nil
	if a.resp != nil {
		c.keepLast(a)
	}
	a.release()
	c.endTurn()
	if delay <= 0 {
		return nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-c.ctx.Done():
	case <-t.C:
	}
	now := time.Now() // not lap: the machine may have slept
	c.delayed += now.Sub(c.now)
	c.now = now
	return c.ctx.Err()
}

// keepLast reads the answer into memory, as far as that is small and comes in time, and
// frees its connection before the wait. If the next attempt is refused, it is what the
// caller gets. A cost that the answer tells is booked now.
func (c *call) keepLast(a *attempt) {
	p := prefetch(a.resp.Body, drainLimit+1)
	end, stop := context.WithTimeout(c.ctx, peekTime)
	text, whole := p.wait(end)
	stop()
	_ = p.Close()
	if a.pending {
		e := &bodyEnd{c: c, a: a, meter: a.meter}
		e.feed(text)
		e.end(whole)
		a.pending = false
	}
	a.resp.Body = nil // too long to keep, or cut: it cannot be returned whole
	if whole {
		a.resp.Body = io.NopCloser(bytes.NewReader(text))
	}
	c.last, c.lastOutcome = a.resp, a.word()
}

// lastAnswer is the provider's last answer, if it could be kept whole.
func (c *call) lastAnswer() *http.Response {
	if c.last == nil || c.last.Body == nil {
		return nil
	}
	return c.last
}

// callError wraps what ended the call after (or before) an attempt.
func (c *call) callError(err error) *CallError {
	e := &CallError{Provider: c.p.Name, Attempts: c.attempt, NotSent: !c.sentAny, OutcomeUnknown: c.unknown, Err: err}
	if c.last != nil {
		e.Status = c.last.StatusCode
	}
	return e
}

// ownBackoff draws our own waits: doubling ceilings with full jitter above a floor, and
// never shorter than the wait before.
type ownBackoff struct {
	b    *backoff.ExponentialBackOff
	last time.Duration
}

func newBackoff(first time.Duration) *ownBackoff {
	// A factor of 1 around half the ceiling draws from zero to the ceiling.
	return &ownBackoff{b: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first/2),
		backoff.WithRandomizationFactor(1),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(backoffCeiling/2),
		backoff.WithMaxElapsedTime(0), // the attempts are counted; a clock of its own would end them after idle time
	)}
}

func (o *ownBackoff) next() time.Duration {
	// A gate without a rate lets its waiters go within a fifth of its length: with a fifth
	// more each time, no gap between attempts is shorter than the one before.
	o.last = min(max(o.b.NextBackOff(), o.last*6/5, backoffFloor), backoffCeiling)
	return o.last
}

// retryShare bounds the retries of a provider to a share of the last minute's calls.
type retryShare struct {
	mu      sync.Mutex // guards all fields
	slots   [6]struct{ calls, retries int }
	current int64     // number of the newest slot
	began   time.Time // of slot 0; time is counted from here so that no step of the wall clock matters
}

const (
	shareSlot  = 10 * time.Second
	shareFloor = 10 // retries a minute that are always allowed
)

// advance forgets slots that are older than a minute.
func (s *retryShare) advance(now time.Time) int {
	n := int64(len(s.slots))
	if s.began.IsZero() {
		s.began = now
	}
	slot := max(0, int64(now.Sub(s.began)/shareSlot))
	for i := max(s.current+1, slot-n+1); i <= slot; i++ {
		s.slots[i%n] = struct{ calls, retries int }{}
	}
	s.current = max(s.current, slot)
	return int(s.current % n)
}

func (s *retryShare) call(now time.Time) {
	s.mu.Lock()
	s.slots[s.advance(now)].calls++
	s.mu.Unlock()
}

// retry takes one retry if the share allows it.
func (s *retryShare) retry(now time.Time, percent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.advance(now)
	calls, retries := 0, 0
	for _, slot := range s.slots {
		calls += slot.calls
		retries += slot.retries
	}
	if retries >= max(shareFloor, calls*percent/100) {
		return false
	}
	s.slots[i].retries++
	return true
}

// seenKeys remembers idempotency keys for ten minutes: one that comes again is a retry
// by the layer above.
type seenKeys struct {
	mu       sync.Mutex // guards both
	now, old map[string]int
	turned   time.Time
}

const (
	seenFor = 10 * time.Minute
	maxSeen = 50_000
)

// forget takes back one sight of the call's key.
func (s *seenKeys) forget(c *call) {
	if !c.keySeen {
		return
	}
	c.keySeen = false
	key := shortKey(c.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now[key] > 0 {
		s.now[key]--
	}
}

// seen counts a key and returns how often it was there before.
func (s *seenKeys) seen(key string, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || now.Sub(s.turned) > seenFor || len(s.now) >= maxSeen {
		if s.old = s.now; now.Sub(s.turned) > 2*seenFor {
			s.old = nil
		}
		s.now, s.turned = map[string]int{}, now
	}
	before := s.now[key]
	if before == 0 {
		before = s.old[key]
	}
	s.now[key] = before + 1
	return before
}

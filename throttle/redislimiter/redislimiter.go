package redislimiter

import (
	"context"
	"errors"
	"time"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

const (
	ahead = time.Second           // how far in the future a turn may lie that is taken already
	lead  = 50 * time.Millisecond // how long before that the next in the queue asks, at most
)

// wait is one call on its way to a turn.
type wait struct {
	ask    *throttle.Ask
	set    *set
	latest time.Time // when it wants to start at the latest
	byCtx  bool      // the context's deadline says so
	queued bool      // OnQueue was called
	asked  time.Time // when it looked for a turn last
	still  bool      // Still was asked
}

// Wait implements [throttle.Limiter]. The call queues in this process first, by priority,
// tenant and slots; then it asks Redis. If Redis does not answer in time the error wraps
// [throttle.ErrUnavailable].
func (l *Limiter) Wait(ctx context.Context, a throttle.Ask) (throttle.Turn, error) {
	if err := ctx.Err(); err != nil {
		return throttle.Turn{}, err
	}
	now := time.Now()
	if l.store.Refuses(now) {
		return throttle.Turn{}, l.store.Unavailable(redisstore.ErrDown)
	}
	if err := a.Validate(); err != nil {
		return throttle.Turn{}, err
	}
	s, f, early := l.prepare(a.Legs)
	for _, c := range early {
		if err := l.sendCap(ctx, c, ""); err != nil {
			return throttle.Turn{}, err
		}
	}
	w := &wait{ask: &a, set: s, latest: now.Add(a.MaxWait)}
	if d, ok := ctx.Deadline(); ok && d.Before(w.latest) {
		w.latest, w.byCtx = d, true
	}
	mine := a
	mine.Legs = f.local
	mine.OnQueue = w.tell
	if a.Still != nil {
		mine.Still = w.stays
	}
	turn, err := l.local.Wait(ctx, mine)
	if err != nil {
		return throttle.Turn{}, l.reason(err, s, a.Legs)
	}
	passed := false
	defer func() { // also if a hook does not come back
		if !passed {
			turn.Cancel()
		}
	}()
	t, err := l.shared(ctx, w)
	if err != nil {
		return throttle.Turn{}, err
	}
	passed = true
	t.local = turn
	return throttle.NewTurn(l, l.remember(t)), nil
}

// tell calls OnQueue, once.
func (w *wait) tell(f throttle.Forecast) {
	if w.queued {
		return
	}
	w.queued = true
	if w.ask.OnQueue != nil {
		w.ask.OnQueue(f)
	}
}

// stays asks Still, once. It may be asked here although OnQueue was called elsewhere.
func (w *wait) stays() error {
	if w.still || w.ask.Still == nil {
		return nil
	}
	w.still = true
	return w.ask.Still()
}

// reason puts right why a call was refused: what looks like a gate may be turns that
// other processes took.
func (l *Limiter) reason(err error, s *set, legs []throttle.Leg) error {
	e, ok := errors.AsType[*throttle.WaitError](err)
	if ok && e.Reason == throttle.ReasonGate && l.held(s) && !l.shut(legs) {
		e.Reason = throttle.ReasonRate
	}
	return err
}

// held reports whether those behind are kept in the queue of this process.
func (l *Limiter) held(s *set) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s != nil && s.heldTo.After(time.Now())
}

// shared takes a turn from Redis, or one of a batch that was taken before.
func (l *Limiter) shared(ctx context.Context, w *wait) (*taken, error) {
	for {
		t, err := l.next(ctx, w)
		if err != nil {
			return nil, err
		}
		if t == nil { // it came too early
			continue
		}
		if !t.begin.After(w.asked) || time.Until(t.begin) <= 0 {
			return t, nil
		}
		passed, err := l.await(ctx, w, t)
		if passed {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// await waits for the start of a turn, and gives it back if it cannot be used.
func (l *Limiter) await(ctx context.Context, w *wait, t *taken) (passed bool, err error) {
	defer func() { // also if a hook does not come back
		if !passed {
			l.giveBack(t, 1)
		}
	}()
	err = l.sleep(ctx, w, t.begin, throttle.ReasonRate, nil)
	return err == nil && !l.shut(w.ask.Legs), err
}

// next asks for a turn. Of those who need the same scopes one asks at a time, the others
// wait behind it, and mostly find turns that it took for them.
func (l *Limiter) next(ctx context.Context, w *wait) (*taken, error) {
	if err := l.line(ctx, w); err != nil {
		return nil, err
	}
	changed := l.changes()
	t, until, why, err := l.ask(ctx, w)
	if err != nil || t != nil {
		return t, err
	}
	// A gate that it was let wait for opens a little later by Redis than by this process: no
	// reason to refuse it after all that time.
	late := until.Sub(w.latest)
	if late > lead || late > 0 && (why != throttle.ReasonGate || !w.queued || w.byCtx) {
		return nil, w.refusal(why, until)
	}
	return nil, l.sleep(ctx, w, until, why, changed)
}

// line waits until nobody else asks for the same scopes.
func (l *Limiter) line(ctx context.Context, w *wait) error {
	select {
	case w.set.asking <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(max(0, time.Until(w.latest)) + l.store.Timeout) // the line moves as fast as Redis answers
	defer timer.Stop()
	select {
	case w.set.asking <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return w.refusal(throttle.ReasonRate, time.Time{})
	}
}

func (w *wait) refusal(why throttle.Reason, at time.Time) error {
	if w.byCtx {
		why = throttle.ReasonDeadline
	}
	return &throttle.WaitError{Provider: w.ask.Legs[0].Key, Reason: why, RetryAt: at}
}

// sleep waits, and keeps those behind in the queue of this process meanwhile.
func (l *Limiter) sleep(ctx context.Context, w *wait, until time.Time, why throttle.Reason, changed <-chan struct{}) error {
	w.tell(throttle.Forecast{Start: until, Wait: max(0, time.Until(until)), Cause: why})
	if err := w.stays(); err != nil {
		return err
	}
	d := time.Until(until) // the hooks may have taken their time
	if d > 2*time.Millisecond && why == throttle.ReasonRate {
		// The next may come a little early, so that its turn is known when this one starts.
		to := until.Add(-min(d/4, lead))
		_ = l.local.Cap(ctx, throttle.Cap{Key: w.set.hold, Until: to}) // it fails on bad values only
		l.mu.Lock()
		w.set.heldTo = to
		l.mu.Unlock()
	}
	return l.rest(ctx, w, d, changed)
}

// rest waits for d, unless a gate closes for longer than the call may wait.
func (l *Limiter) rest(ctx context.Context, w *wait, d time.Duration, changed <-chan struct{}) error {
	l.waits(w.ask.Legs, 1)
	defer l.waits(w.ask.Legs, -1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		gate, shutter := l.gate(w.ask.Legs)
		if gate.Sub(w.latest) > lead {
			return w.refusal(throttle.ReasonGate, gate)
		}
		select {
		case <-timer.C:
			return nil
		case <-changed:
			return nil
		case <-shutter:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

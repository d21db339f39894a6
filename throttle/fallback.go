package throttle

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	probeEvery = time.Second
	maxPending = 1000
)

// Fallback returns a Limiter that uses shared, and local while shared answers with
// [ErrUnavailable]: give local this process' part of the rates. After a failure local
// serves for a second; then one call tries shared again, and with the first answer all
// go back. Caps go to both; gates that shared did not hear of, and that they were opened, are
// told when it is back.
// What a local bucket starts meanwhile, shared does not count.
//
// The Limiter has a method Degraded() bool, which reports whether local is in use.
func Fallback(shared, local Limiter) Limiter { return &fallback{shared: shared, local: local} }

type fallback struct {
	shared, local Limiter

	mu       sync.Mutex
	degraded bool
	probing  bool              // a call of the degraded state is on its way to shared
	retryAt  time.Time         // when the next may go
	pending  map[string]missed // what shared does not know of each scope
}

// missed is an opening, and a gate closed since then, or one of them.
type missed struct {
	open  bool
	until time.Time
	cause Cause
}

// Degraded reports whether the local limiter is in use.
func (f *fallback) Degraded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.degraded
}

// Wait implements [Limiter].
func (f *fallback) Wait(ctx context.Context, a Ask) (Turn, error) {
	begin := time.Now()
	if !f.useShared(begin) {
		return f.local.Wait(ctx, a)
	}
	ask := a
	ask.OnQueue = func(c Forecast) { // it queues, so it answers
		f.answered(ctx)
		if told := a.OnQueue; told != nil {
			a.OnQueue = nil // shared may fail after that, and local queue as well
			told(c)
		}
	}
	if a.Still != nil {
		ask.Still = func() error {
			still := a.Still
			a.Still = nil
			if still == nil {
				return nil
			}
			return still()
		}
	}
	back := false
	defer f.probed(&back)
	turn, err := f.shared.Wait(ctx, ask)
	back = true
	if !errors.Is(err, ErrUnavailable) {
		f.returned(ctx, err)
		return turn, err
	}
	f.failed()
	a.MaxWait = max(0, a.MaxWait-time.Since(begin))
	return f.local.Wait(ctx, a)
}

// inUse is the limiter that hands out turns at the moment.
func (f *fallback) inUse() Limiter {
	if f.Degraded() {
		return f.local
	}
	return f.shared
}

// Stats implements [Informer] with the limiter in use.
func (f *fallback) Stats(firstKey string) Stats {
	if i, ok := f.inUse().(Informer); ok {
		return i.Stats(firstKey)
	}
	return Stats{}
}

// Forecast implements [Informer] with the limiter in use.
func (f *fallback) Forecast(a Ask) (Forecast, error) {
	if i, ok := f.inUse().(Informer); ok {
		return i.Forecast(a)
	}
	return Forecast{}, nil
}

// Set implements [Tuner]: both know the new limits.
func (f *fallback) Set(l Leg) error {
	var errs []error
	for _, lim := range []Limiter{f.local, f.shared} {
		if t, ok := lim.(Tuner); ok {
			errs = append(errs, t.Set(l))
		}
	}
	return errors.Join(errs...)
}

// Adjust implements [Tuner]: it is for the limiter that gave the turn.
func (f *fallback) Adjust(t Turn, key string, weight int) {
	if tuner, ok := t.owner.(Tuner); ok {
		tuner.Adjust(t, key, weight)
	}
}

// Cap implements [Limiter]. It fails when shared did not take the cap.
func (f *fallback) Cap(ctx context.Context, c Cap) error {
	if err := f.local.Cap(ctx, c); err != nil {
		return err
	}
	if !f.useShared(time.Now()) {
		f.remember(c)
		return nil
	}
	back := false
	defer f.probed(&back)
	err := f.shared.Cap(ctx, c)
	back = true
	if errors.Is(err, ErrUnavailable) {
		f.failed()
		f.remember(c)
		return err
	}
	f.returned(ctx, err)
	return err
}

// useShared reports whether a call goes to shared: all do, but one a second while it
// is down.
func (f *fallback) useShared(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.degraded {
		return true
	}
	if f.probing || now.Before(f.retryAt) {
		return false
	}
	f.probing = true
	return true
}

// probed is deferred around a call to shared. One that panics says nothing, and the next
// may try.
func (f *fallback) probed(back *bool) {
	if !*back {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.probing = false
	}
}

func (f *fallback) failed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.degraded, f.probing = true, false
	f.retryAt = time.Now().Add(probeEvery)
}

// returned ends a call to shared. One that the caller gave up says nothing.
func (f *fallback) returned(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.probing = false
		return
	}
	f.answered(ctx)
}

// answered goes back to shared, and tells it the gates that it missed first.
func (f *fallback) answered(ctx context.Context) {
	f.mu.Lock()
	news := f.pending
	f.pending = nil
	f.mu.Unlock()
	for key, m := range news {
		f.tell(ctx, key, m)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.degraded, f.probing = false, false
}

// tell tells shared what it missed of a scope, in the order of time, or keeps it for the next
// time. What was missed meanwhile is newer.
func (f *fallback) tell(ctx context.Context, key string, m missed) {
	var err error
	if m.open {
		err = f.shared.Cap(ctx, Cap{Key: key, Cause: CauseOperator, Reopen: true})
	}
	if m.open = err != nil; err == nil && !m.until.IsZero() {
		err = f.shared.Cap(ctx, Cap{Key: key, Until: m.until, Cause: m.cause})
	}
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if newer := f.pending[key]; newer.open {
		return
	} else if newer.until.After(m.until) {
		m.until, m.cause = newer.until, newer.cause
	}
	f.keep(key, m)
}

// keep keeps what shared missed of a scope. The caller holds the lock.
func (f *fallback) keep(key string, m missed) {
	if f.pending == nil {
		f.pending = map[string]missed{}
	}
	f.pending[key] = m
}

// remember keeps a gate for shared, or that it was opened. Caps are not kept: their counts
// would be wrong.
func (f *fallback) remember(c Cap) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, known := f.pending[c.Key]
	switch {
	case !known && len(f.pending) >= maxPending:
		return
	case c.Reopen:
		m = missed{open: true}
	case c.N > 0 || !c.Until.After(m.until):
		return
	default:
		m.until, m.cause = c.Until, c.Cause
	}
	f.keep(c.Key, m)
}

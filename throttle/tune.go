package throttle

import "fmt"

var (
	_ Informer = (*Bucket)(nil)
	_ Tuner    = (*Bucket)(nil)
)

// Set implements [Tuner]. A scope that nobody asked for is left to its first Ask.
func (b *Bucket) Set(l Leg) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("throttle: set: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.scopes[l.Key]
	if s == nil {
		return nil
	}
	now := b.tick()
	b.adopt(s, &l, nil, now)
	if l.Slots > 0 || s.x != nil {
		b.slots(s, l.Slots)
	}
	b.run(now)
	return nil
}

// Adjust implements [Tuner]. A turn that is done already is left as it is.
func (b *Bucket) Adjust(t Turn, key string, weight int) {
	if t.owner != Owner(b) || weight < 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.turns.get(t.id)
	if e == nil {
		return
	}
	shares := e.shares()
	for i := range shares {
		if h := &shares[i]; h.s.key == key {
			now := b.tick()
			b.reweigh(h, min(weight, maxTurns), now)
			if h.s.x != nil {
				b.touch(h.s)
				b.run(now)
			}
			return
		}
	}
}

// reweigh gives back what the share took too much, or takes the rest as debt, which
// delays all who wait.
func (b *Bucket) reweigh(h *share, weight int, now int64) {
	s, more := h.s, weight-int(h.weight)
	h.weight = int32(weight)
	if s.x != nil {
		b.refresh(s, now)
		if h.grant <= s.x.drained {
			return // the bucket was emptied since
		}
		s.x.last = now
	}
	for i := range s.plan.tokens {
		l, at := s.tokens(i), b.timeOf(now)
		if more <= 0 {
			l.AllowN(at, more) // see giveBack
			continue
		}
		l.SetBurstAt(at, max(more, l.Burst())) // which adds no token
		l.ReserveN(at, more)
		l.SetBurstAt(at, s.plan.tokens[i].burst())
	}
	for i := range s.plan.strict {
		w := &s.x.windows[i]
		if more > 0 {
			w.take(more, now)
		} else {
			w.giveBack(-more, h.at)
		}
	}
	if s.x != nil && more > 0 {
		b.worsen(s, s.delay(more), now)
	}
}

// Forecast implements [Informer].
func (b *Bucket) Forecast(a Ask) (Forecast, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tick()
	b.run(now)
	var buf [4]use
	uses, err := b.resolve(a.Legs, buf[:0], now)
	if err != nil {
		return Forecast{}, err
	}
	if b.free(uses, now) {
		return Forecast{Start: b.timeOf(now)}, nil
	}
	if len(uses) > maxLegs {
		return Forecast{}, errManyLegs
	}
	// It queues for as long as the lock is held.
	w := b.newWaiter(&a, uses, now)
	w.latest = later(now, int64(max(0, a.MaxWait)))
	b.enter(w, b.flowOf(uses, classOf(a.Priority), a.Tenant), now)
	o, ahead := b.forecast(w, w.f.inFront(w), true, now)
	err = b.refusal(w, &a, o)
	b.leave(w, now)
	b.run(now)
	return b.told(o, ahead, now), err
}

package throttle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	defaultMaxQueue  = 20_000
	defaultMaxScopes = 100_000
)

// Bucket is the [Limiter] of one process. The zero value is ready. One mutex guards
// all of it and is held for arithmetic only; no goroutine runs while nobody waits, and
// one timer while somebody does. Its methods are safe for concurrent use. A Bucket must
// not be copied after first use.
//
// Those who wait for one provider (the first leg) form one queue: higher priorities
// first, tenants in fair turns, and in order of arrival for equals. A call whose other
// scopes cannot start it yet is passed over and keeps nobody up.
//
// A token bucket makes up for up to 20 ms that the scheduler woke a waiter late, so that
// the configured rate is reached; a strict window never does.
type Bucket struct {
	// MaxQueue bounds the waiters per first leg; beyond, Wait fails at once with
	// [ReasonQueueFull]. Zero: 20,000. Set before first use.
	MaxQueue int
	// MaxScopes bounds the scopes that are remembered beside each first leg, and the
	// first legs themselves. A scope is forgotten only when its buckets are full and
	// nothing is closed, capped or under way; while none can be, new keys share one
	// overflow scope, which [Bucket.Stats] shows. Zero: 100,000. Set before first use.
	MaxScopes int

	mu     sync.Mutex
	base   time.Time // of the ticks
	now    int64     // the latest tick seen
	late   int64     // by how much the timer is late, at most catchUp
	skew   time.Duration
	scopes map[string]*scope
	firsts family // first legs, and scopes known from Cap only
	plans  [16]*plan
	turns  turns
	seq    uint64
	pinned bool     // no scope is forgotten now
	dirty  []*scope // whose waiters must be looked at
	alarms pq[*alarm]
	timer  *time.Timer
	set    int64     // what the timer is set to; zero: not running
	spare  []*waiter // to use again
}

// NewBucket returns a Bucket with the default bounds.
func NewBucket() *Bucket { return new(Bucket) }

// use is a leg whose scope was found.
type use struct {
	s      *scope
	weight int
	slots  bool
}

// Wait implements [Limiter].
func (b *Bucket) Wait(ctx context.Context, a Ask) (Turn, error) {
	if err := ctx.Err(); err != nil {
		return Turn{}, err
	}
	var buf [4]use
	now := a.Now
	if now.IsZero() {
		now = time.Now()
	}
	b.mu.Lock()
	tick := b.tickOf(now)
	uses, err := b.resolve(a.Legs, buf[:0], tick)
	if err != nil {
		b.mu.Unlock()
		return Turn{}, err
	}
	if id, ok := b.atOnce(uses, tick); ok {
		b.mu.Unlock()
		return Turn{b, id}, nil
	}
	tick = b.tick() // who waits is timed from now, not from when the caller last looked
	w := b.newWaiter(&a, uses, tick)
	f, err := b.join(ctx, w, &a, uses, tick)
	if id := w.turn; id != 0 || err != nil {
		b.recycle(w)
		b.mu.Unlock()
		if err != nil {
			return Turn{}, err
		}
		return Turn{b, id}, nil
	}
	b.mu.Unlock()
	if a.OnQueue != nil || a.Still != nil {
		if err := b.tell(&a, f, w); err != nil {
			return Turn{}, err
		}
	}
	return b.await(ctx, w)
}

// tell calls the hooks of one who waits. If they do not come back, or with an error, nobody
// will take the turn.
func (b *Bucket) tell(a *Ask, f Forecast, w *waiter) (err error) {
	stays := false
	defer func() {
		if !stays {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.giveUp(w)
			b.recycle(w)
		}
	}()
	if a.OnQueue != nil {
		a.OnQueue(f)
	}
	if a.Still != nil {
		err = a.Still()
	}
	stays = err == nil
	return err
}

// giveUp takes a waiter out of the queue, or gives the turn back that it was granted in
// the same moment.
func (b *Bucket) giveUp(w *waiter) {
	now := b.tick()
	switch {
	case w.turn != 0:
		b.cancel(w.turn, now)
	case w.err == nil:
		b.leave(w, now)
		b.run(now)
	}
}

// await sleeps until the waiter has its turn, is refused, or gives up.
func (b *Bucket) await(ctx context.Context, w *waiter) (Turn, error) {
	var gone error
	select {
	case <-w.done:
	case <-ctx.Done():
		gone = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id, err := w.turn, error(nil)
	if w.err != nil {
		err = w.err
	}
	if gone != nil {
		b.giveUp(w)
		id, err = 0, gone
	}
	b.recycle(w)
	if err != nil {
		return Turn{}, err
	}
	return Turn{b, id}, nil
}

// resolve finds the scopes of the legs and takes over what the legs say of them. Those
// whom new rates let go start before the caller; the scopes found are not forgotten
// for that.
func (b *Bucket) resolve(legs []Leg, uses []use, now int64) ([]use, error) {
	uses, err := b.find(legs, uses, now)
	if len(b.dirty) > 0 {
		b.pinned = true
		b.run(now)
		b.pinned = false
	}
	return uses, err
}

func (b *Bucket) find(legs []Leg, uses []use, now int64) ([]use, error) {
	if len(legs) == 0 {
		return nil, errNoLegs
	}
	for i := range legs {
		l := &legs[i]
		s := b.scopes[l.Key]
		if s == nil || s.plan == unasked || !slices.Equal(s.plan.rates, l.Rates) {
			if err := l.Validate(); err != nil {
				return nil, fmt.Errorf("throttle: ask: Legs[%d].%w", i, err)
			}
			s = b.adopt(s, l, uses, now)
		} else if l.Weight < 0 || l.Weight > maxTurns || l.Slots < 0 || l.Slots > maxTurns {
			return nil, fmt.Errorf("throttle: ask: Legs[%d].%w", i, l.Validate())
		}
		if j := slices.IndexFunc(uses, func(u use) bool { return u.s == s }); j >= 0 {
			if s.key != overflowKey {
				return nil, fmt.Errorf("throttle: ask: Legs[%d].%w", i, errSameKey)
			}
			uses[j].weight = max(uses[j].weight, l.weight())
			continue
		}
		if l.Slots > 0 || s.x != nil {
			b.slots(s, l.Slots)
		}
		if l.weight() > s.plan.most {
			return nil, &WaitError{Provider: legs[0].Key, Reason: ReasonNever}
		}
		uses = append(uses, use{s, l.weight(), l.Slots > 0})
	}
	return uses, nil
}

// slots sets how many turns of the scope may be under way.
func (b *Bucket) slots(s *scope, n int) {
	x := s.extras()
	if x.slots != n {
		x.slots = n
		b.touch(s)
	}
}

// adopt makes the scope of a leg, or changes its rates.
func (b *Bucket) adopt(s *scope, l *Leg, uses []use, now int64) *scope {
	if s == nil {
		f := &b.firsts
		if len(uses) > 0 {
			f = uses[0].s.family()
		}
		s = b.newScope(f, l.Key, uses, now)
	} else if s.plan == unasked && len(uses) > 0 {
		s = b.move(s, uses[0].s.family())
	}
	if s.plan != unasked && slices.Equal(s.plan.rates, l.Rates) {
		return s
	}
	b.replan(s, b.planOf(l.Rates), now)
	if s.x != nil && len(s.x.flows) > 0 {
		b.review(s, now)
		b.touch(s)
	}
	return s
}

// planOf returns the plan of the rates: one that others use, if a recent one fits.
func (b *Bucket) planOf(rates []Rate) *plan {
	if len(rates) == 0 {
		return noPlan
	}
	i := slices.IndexFunc(b.plans[:], func(p *plan) bool { return p != nil && slices.Equal(p.rates, rates) })
	if i < 0 {
		i = len(b.plans) - 1
		b.plans[i] = newPlan(rates)
	}
	p := b.plans[i]
	copy(b.plans[1:i+1], b.plans[:i])
	b.plans[0] = p
	return p
}

// atOnce starts a turn if nobody waits for any leg and all can start it now.
func (b *Bucket) atOnce(uses []use, now int64) (uint64, bool) {
	if u := uses[0]; len(uses) == 1 && u.s.plain() {
		if !u.s.bucket.AllowN(b.timeOf(max(now, u.s.last())), u.weight) {
			return 0, false
		}
		u.s.grants++
		if x := u.s.x; x != nil {
			x.last = max(x.last, now)
			if u.slots {
				x.inUse++
			}
		}
		return b.record(uses, now), true
	}
	if !b.free(uses, now) {
		return 0, false
	}
	return b.grant(uses, now, now), true
}

// free reports whether nobody waits and every leg can start now.
func (b *Bucket) free(uses []use, now int64) bool {
	waiting := false
	for _, u := range uses {
		if x := u.s.x; x != nil && len(x.flows) > 0 {
			b.refresh(u.s, now) // a gate that is over lets them go before us
			waiting = true
		}
	}
	if waiting {
		return false
	}
	for _, u := range uses {
		if at, _ := b.ready(u.s, u.weight, now, now); at > now {
			return false
		}
	}
	return true
}

// grant starts a turn on all legs; its tokens are taken at the instant at.
func (b *Bucket) grant(uses []use, at, now int64) uint64 {
	for _, u := range uses {
		b.take(u.s, u.weight, at, now)
		if u.slots {
			u.s.x.inUse++
		}
	}
	return b.record(uses, now)
}

// record remembers a turn until it is done.
func (b *Bucket) record(uses []use, now int64) uint64 {
	id, shares := b.turns.add(len(uses))
	for i, u := range uses {
		shares[i] = share{s: u.s, grant: u.s.grants, at: now, weight: int32(u.weight), slot: u.slots}
	}
	if b.seq++; b.seq%64 == 0 {
		b.firsts.sweep(b, 16, uses, now)
		if x := uses[0].s.x; x != nil && x.kin != nil {
			x.kin.sweep(b, 16, uses, now)
		}
	}
	return id
}

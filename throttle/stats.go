package throttle

import "time"

// Stats is the state of a first leg and of the scopes beside it, for metrics and
// status pages.
type Stats struct {
	// Queue is who waits for the first leg.
	Queue QueueStats
	// Scopes are the first leg itself, then the scopes first asked for beside it, in no
	// order, then their overflow scope if it was used.
	Scopes []ScopeStats
	// Overflow counts the asks whose key had no room and shared the overflow scope.
	Overflow uint64
}

// QueueStats is who waits for a first leg.
type QueueStats struct {
	// Critical, Normal and Bulk are the waiters of each priority.
	Critical, Normal, Bulk int
	// Oldest is when the first of them came; zero if nobody waits.
	Oldest time.Time
}

// ScopeStats is the state of one scope.
type ScopeStats struct {
	// Key is the key of the leg.
	Key string
	// Overflow marks the scope that is shared by keys beyond [Bucket.MaxScopes].
	Overflow bool
	// Rates are the rates as configured; do not change them.
	Rates []Rate
	// Effective is the share of Rates that is in effect, 1 unless [Cap.Slow] lowered it.
	Effective float64
	// Tokens is the least that any rate has left now; zero without rates.
	Tokens float64
	// GateUntil is when a closed gate opens, and GateCause why it was closed; zero and
	// empty if it is open.
	GateUntil time.Time
	GateCause Cause
	// CapUntil, CapLeft and CapCause are until when and how many turns may still start;
	// zero and empty if nothing is capped.
	CapUntil time.Time
	CapLeft  int
	CapCause Cause
	// Slots is how many turns may be under way (zero: no bound), InUse how many are.
	Slots, InUse int
	// Waiting is how many wait for a turn that needs the scope.
	Waiting int
}

// Stats returns the state of the first leg and of its scopes. It takes time in
// proportion to their number. For a key that nobody asked for, it is empty.
func (b *Bucket) Stats(firstKey string) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.scopes[firstKey]
	if first == nil {
		return Stats{}
	}
	now := b.tick()
	kin := &family{}
	if first.x != nil && first.x.kin != nil {
		kin = first.x.kin
	}
	st := Stats{Queue: b.queueStats(first), Scopes: make([]ScopeStats, 0, kin.n+2), Overflow: kin.spilled}
	st.Scopes = append(st.Scopes, b.scopeStats(first, now))
	for s := kin.last; len(st.Scopes) <= kin.n; s = s.next {
		st.Scopes = append(st.Scopes, b.scopeStats(s, now))
	}
	if kin.overflow != nil {
		o := b.scopeStats(kin.overflow, now)
		o.Overflow = true
		st.Scopes = append(st.Scopes, o)
	}
	if len(b.dirty) > 0 { // a gate was found to be over
		b.run(now)
	}
	return st
}

func (b *Bucket) queueStats(first *scope) QueueStats {
	if first.x == nil || first.x.group == nil {
		return QueueStats{}
	}
	g := first.x.group
	oldest := int64(forever)
	for _, f := range g.flows {
		oldest = min(oldest, f.head.since)
	}
	return QueueStats{Critical: g.class[0].n, Normal: g.class[1].n, Bulk: g.class[2].n, Oldest: b.timeOf(oldest)}
}

func (b *Bucket) scopeStats(s *scope, now int64) ScopeStats {
	st := ScopeStats{Key: s.key, Effective: 1}
	if x := s.x; x != nil {
		b.refresh(s, now)
		st.Effective, st.Slots, st.InUse, st.Waiting = s.factor(), x.slots, x.inUse, x.waiting()
		if x.gate.end > 0 {
			st.GateUntil, st.GateCause = b.timeOf(x.gate.end), x.gate.cause
		}
		if x.cap.end > 0 {
			st.CapUntil, st.CapCause, st.CapLeft = b.timeOf(x.cap.end), x.cap.cause, int(x.cap.left(s.grants))
		}
	}
	if len(s.plan.rates) > 0 {
		st.Rates, st.Tokens = s.plan.rates, b.left(s, now)
	}
	return st
}

// left is the least that any rate of the scope has left.
func (b *Bucket) left(s *scope, now int64) float64 {
	least := float64(maxTurns)
	for i := range s.plan.tokens {
		least = min(least, s.tokens(i).TokensAt(b.timeOf(now)))
	}
	for i := range s.plan.strict {
		w := &s.x.windows[i]
		w.expire(now)
		least = min(least, float64(max(0, w.allowed(0, s.factor())-w.sum)))
	}
	return least
}

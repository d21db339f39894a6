package throttle

import (
	"context"
	"errors"
	"time"
)

const (
	maxClosed  = 31 * 24 * time.Hour // no gate or cap lasts longer
	sameWindow = int64(2 * time.Second)
	slowBy     = 0.7  // what a Slow multiplies the effective rate by
	slowest    = 0.01 // share of the configured rate that always remains
	recovery   = 0.02 // share of the configured rate that each second gives back
	// After a gate without a rate the waiters spread over this share of the time that
	// it was closed for, at most maxSpread.
	spreadShare = 5
	maxSpread   = int64(30 * time.Second)
)

var (
	errCapKey = errors.New("throttle: cap: Key: empty")
	errCapN   = errors.New("throttle: cap: N: negative")
)

// Cap tightens what the scope may do, for all who wait and all who come; see [Cap].
// It fails only on an empty Key or a negative N.
func (b *Bucket) Cap(_ context.Context, c Cap) error {
	if c.Key == "" {
		return errCapKey
	}
	if c.N < 0 {
		return errCapN
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	tick := b.tickOf(now)
	s := b.scopes[c.Key]
	if s == nil {
		if c.Reopen {
			return nil
		}
		s = b.newScope(&b.firsts, c.Key, nil, tick)
	}
	s.extras()
	b.refresh(s, tick)
	if c.Reopen {
		b.reopen(s, tick)
		return nil
	}
	if c.Slow {
		b.slow(s, tick)
	}
	if until := min(c.Until.Sub(now), maxClosed); until > 0 {
		b.tighten(s, c, tick, int64(until))
	}
	b.review(s, tick)
	b.touch(s)
	b.run(tick)
	return nil
}

// tighten closes the gate or sets the cap for the given time from now on.
func (b *Bucket) tighten(s *scope, c Cap, now, closed int64) {
	x, end, wallEnd := s.x, now+closed, b.wall()+closed
	if c.N == 0 {
		if x.gate.end == 0 {
			x.gate.from = now
		}
		if end > x.gate.end {
			x.gate.end, x.gate.wallEnd, x.gate.cause = end, wallEnd, c.Cause
		}
		return
	}
	base, ordered := b.grantsAt(s, c.Turn)
	n := turnCap{end: end, wallEnd: wallEnd, from: now, base: base, until: base + uint64(c.N), told: s.grants, cause: c.Cause}
	switch old := x.cap; {
	case old.end == 0:
		x.cap = n
	case ordered && base > old.told && end > old.end:
		// The answer to a turn that started after the old cap was told, for a window that
		// ends later: the provider's newer word. A window that slides would else keep its
		// first count for ever.
		x.cap = n
	case max(old.end, n.end)-min(old.end, n.end) <= sameWindow:
		if n.until < old.until {
			x.cap.until, x.cap.base, x.cap.cause = n.until, n.base, n.cause
		}
		x.cap.end, x.cap.wallEnd = max(old.end, n.end), max(old.wallEnd, n.wallEnd)
	case n.tighter(old, s.grants, now):
		x.cap = n
	}
}

// left is the number of turns that may still start.
func (c turnCap) left(grants uint64) int64 { return max(0, int64(c.until-grants)) }

// tighter reports whether c allows fewer turns for its time than o does.
func (c turnCap) tighter(o turnCap, grants uint64, now int64) bool {
	return float64(c.left(grants))*float64(o.end-now) < float64(o.left(grants))*float64(c.end-now)
}

// slow lowers the effective rate.
func (b *Bucket) slow(s *scope, now int64) {
	s.x.slow = slowdown{factor: max(slowest, s.factor()*slowBy), at: now}
	b.applyFactor(s, now)
}

// applyFactor sets the limiters to the factor that holds from the instant at on.
func (b *Bucket) applyFactor(s *scope, at int64) {
	for i, r := range s.plan.tokens {
		s.tokens(i).SetLimitAt(b.timeOf(at), limitOf(r, s.factor()))
	}
	s.x.last = max(s.x.last, at)
}

// reopen drops gate and cap. The bucket is as empty as after a gate that ended.
func (b *Bucket) reopen(s *scope, now int64) {
	x := s.x
	shut := x.gate.end > 0 || x.cap.end > 0 && x.cap.left(s.grants) == 0
	from := max(x.gate.from, x.cap.from)
	x.gate, x.cap = gate{}, turnCap{}
	if shut {
		b.open(s, now, from)
	}
	b.touch(s)
	b.run(now)
}

// refresh brings the scope to the instant now: seconds without a Slow give rate
// back, gates and caps that are over open. In the order of time, because a limiter
// must not be set back.
func (b *Bucket) refresh(s *scope, now int64) {
	x := s.x
	if x.gate.end > 0 && (x.gate.end <= now || x.gate.wallEnd <= b.wall()) {
		end, from := min(x.gate.end, now), x.gate.from
		x.gate = gate{}
		b.open(s, end, from)
	}
	if x.cap.end > 0 && (x.cap.end <= now || x.cap.wallEnd <= b.wall()) {
		end, from, shut := min(x.cap.end, now), x.cap.from, x.cap.left(s.grants) == 0
		x.cap = turnCap{}
		if shut {
			b.open(s, end, from)
		}
	}
	b.recover(s, now)
}

// recover gives back what each second without a Slow earns.
func (b *Bucket) recover(s *scope, now int64) {
	for slow := &s.x.slow; slow.factor > 0; {
		next := slow.at + (slow.seconds+1)*int64(time.Second)
		if next > now {
			return
		}
		slow.seconds++
		b.applyFactor(s, next)
		if s.factor() >= 1 {
			*slow = slowdown{}
		}
	}
}

// open lets the waiters out one at a time: at the instant at each bucket holds at
// most one token, a window alone spaces its turns, and without any rate the waiters
// are spread.
func (b *Bucket) open(s *scope, at, from int64) {
	b.recover(s, at)
	b.touch(s)
	x := s.x
	x.drained, x.freed = s.grants, at
	for i, r := range s.plan.tokens {
		l, t := s.tokens(i), b.timeOf(max(at, x.last))
		l.SetBurstAt(t, 1)
		l.SetBurstAt(t, r.burst())
	}
	x.last = max(x.last, at)
	if len(s.plan.tokens) > 0 {
		return
	}
	for i := range x.windows {
		x.windows[i].pace(at)
	}
	if len(x.windows) == 0 {
		x.spread.end = at + min((at-from)/spreadShare, maxSpread)
		x.spread.step(at, x.waiting(), x.patience(at))
	}
}

// earned is the instant at which the i-th bucket has earned what is missing at the
// instant at. Under a Slow each second is faster than the one before.
func (s *scope) earned(i int, missing float64, at int64) int64 {
	full := float64(s.plan.tokens[i].limit())
	if s.x == nil || s.x.slow.factor == 0 {
		return later(at, span(missing, full))
	}
	slow := s.x.slow
	for k := slow.seconds; ; k++ {
		factor := min(1, slow.factor+recovery*float64(k))
		end := slow.at + (k+1)*int64(time.Second)
		start := later(at, span(missing, full*factor))
		if factor >= 1 || start <= end {
			return start
		}
		missing -= full * factor * float64(max(0, end-at)) / 1e9
		at = max(at, end)
	}
}

package throttle

import (
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// scope is the state of one key. A bucket may hold a million of them, so what most
// never need is kept apart in extra; 128 bytes without it.
type scope struct {
	key    string
	plan   *plan
	bucket rate.Limiter // of plan.tokens[0]
	grants uint64       // turns started, for caps that count from a turn on
	next   *scope       // in the ring of its family
	x      *extra
}

// extra is the state of a scope with more than one token bucket.
type extra struct {
	buckets []*rate.Limiter // of plan.tokens[1:]
	windows []window        // of plan.strict
	last    int64           // the latest instant at which a bucket was changed
	freed   int64           // when a gate opened or a slot became free
	slots   int             // turns that may be under way; zero: no bound
	inUse   int             // turns under way that hold a slot

	gate    gate
	cap     turnCap
	slow    slowdown
	drained uint64 // grants at the last opening: what they took is not given back
	spread  spread

	flows []flowRef // the flows that need the scope
	group *group    // the queue, if the scope is somebody's first leg
	parks []*park   // of the groups whose flows need the scope beside their first leg
	claim *flow     // the scope is kept for it
	alarm alarm
	dirty bool
	kin   *family // the scopes first asked for beside this first leg
}

// gate: no turn before end. It is over when the monotonic or the wall clock says so.
type gate struct {
	end, wallEnd int64
	from         int64 // when it was closed
	cause        Cause
}

// turnCap: no turn beyond the until-th grant before end.
type turnCap struct {
	end, wallEnd int64
	from         int64
	base, until  uint64 // grant counts
	told         uint64 // the grant count when the provider said so
	cause        Cause
}

// slowdown: the factor at the instant of the last Slow and the seconds since then
// that were given back already. Zero: full speed.
type slowdown struct {
	factor  float64
	at      int64
	seconds int64
}

// spread: after a gate without a rate the waiters start with random gaps until end.
type spread struct{ next, end int64 }

// extras returns the scope's extra state, making it if need be.
func (s *scope) extras() *extra {
	if s.x == nil {
		s.x = &extra{}
		s.x.alarm = alarm{scope: s, pos: -1}
	}
	return s.x
}

// factor is the share of the configured rates that is in effect.
func (s *scope) factor() float64 {
	if s.x == nil || s.x.slow.factor == 0 {
		return 1
	}
	return min(1, s.x.slow.factor+recovery*float64(s.x.slow.seconds))
}

// plain reports whether one token bucket alone says whether a turn may start.
func (s *scope) plain() bool {
	if len(s.plan.tokens) != 1 || len(s.plan.strict) > 0 {
		return false
	}
	x := s.x
	return x == nil || len(x.flows) == 0 && x.gate.end == 0 && x.cap.end == 0 && x.slow.factor == 0 && x.spread.end == 0 &&
		(x.slots == 0 || x.inUse < x.slots)
}

// tokens returns the i-th token bucket.
func (s *scope) tokens(i int) *rate.Limiter {
	if i == 0 {
		return &s.bucket
	}
	return s.x.buckets[i-1]
}

// replan changes the rates of the scope. A rate keeps the state of the old one with
// the same period and kind; any other starts empty, except in a scope that nobody
// asked for before.
func (b *Bucket) replan(s *scope, p *plan, now int64) {
	fresh := s.plan == unasked
	if s.x != nil {
		b.refresh(s, now)
	}
	if len(p.tokens) > 1 || len(p.strict) > 0 || s.x != nil {
		s.extras().last = max(s.x.last, now)
	}
	b.replanTokens(s, p, fresh, now)
	b.replanWindows(s, p, fresh, now)
	s.plan = p
}

func (b *Bucket) replanTokens(s *scope, p *plan, fresh bool, now int64) {
	at, factor, levels := b.timeOf(now), s.factor(), b.levels(s, now)
	for i, r := range p.tokens {
		if i > 0 && len(s.x.buckets) < i {
			s.x.buckets = append(s.x.buckets, new(rate.Limiter))
		}
		l, j := s.tokens(i), match(s.plan.tokens, r)
		if j != i {
			level := 0
			if j >= 0 {
				level = int(levels[j])
			} else if fresh {
				level = r.burst()
			}
			refill(l, at, level)
		}
		l.SetLimitAt(at, limitOf(r, factor))
		l.SetBurstAt(at, r.burst())
	}
	if s.x != nil {
		s.x.buckets = s.x.buckets[:max(0, len(p.tokens)-1)]
	}
}

func (b *Bucket) replanWindows(s *scope, p *plan, fresh bool, now int64) {
	if len(p.strict) == 0 {
		if s.x != nil {
			s.x.windows = nil
		}
		return
	}
	old := s.x.windows
	s.x.windows = make([]window, len(p.strict))
	for i, r := range p.strict {
		if j := match(s.plan.strict, r); j >= 0 {
			s.x.windows[i] = old[j]
			s.x.windows[i].log = slices.Clone(old[j].log) // another rate of the period may go on with it too
		}
		s.x.windows[i].set(r)
		if match(s.plan.strict, r) < 0 && !fresh {
			s.x.windows[i].pace(now)
		}
	}
}

// match finds the old rate whose state a new one takes over.
func match(old []Rate, r Rate) int {
	return slices.IndexFunc(old, func(o Rate) bool { return o.Per == r.Per && o.Strict == r.Strict })
}

// levels returns what is in each token bucket.
func (b *Bucket) levels(s *scope, now int64) []float64 {
	levels := make([]float64, len(s.plan.tokens))
	for i := range levels {
		levels[i] = s.tokens(i).TokensAt(b.timeOf(now))
	}
	return levels
}

// refill sets what is in a limiter. x/time has no call for it; a burst of nothing
// empties it, and a negative AllowN puts tokens in.
func refill(l *rate.Limiter, at time.Time, level int) {
	l.SetBurstAt(at, 0)
	l.SetBurstAt(at, level)
	l.AllowN(at, -level)
}

// limitOf is the rate per second under a slow factor.
func limitOf(r Rate, factor float64) rate.Limit { return r.limit() * rate.Limit(factor) }

// ready returns when the scope can start a turn of weight for somebody who is there
// since an instant. An instant after now comes with the reason, and forever means that
// it depends on others. Any other is in the past: when the scope became ready while
// they waited, or zero if it was ready before.
func (b *Bucket) ready(s *scope, weight int, since, now int64) (at int64, why Reason) {
	if x := s.x; x != nil {
		b.refresh(s, now)
		if at, why := x.closed(s.grants, now); at > now {
			return at, why
		}
		if x.freed > since {
			at = x.freed
		}
	}
	from := max(since, s.last())
	for i := range s.plan.tokens {
		if missing := float64(weight) - s.tokens(i).TokensAt(b.timeOf(from)); missing > 0 {
			at = max(at, s.earned(i, missing, from))
		}
	}
	if len(s.plan.strict) > 0 {
		factor := s.factor()
		for i := range s.x.windows {
			if start := s.x.windows[i].earliest(0, 0, weight, factor, now, 0); start > now {
				at = max(at, start)
			}
		}
	}
	return at, ReasonRate
}

// closed returns until when gate, cap and slots let nobody start.
func (x *extra) closed(grants uint64, now int64) (int64, Reason) {
	switch {
	case x.gate.end > 0:
		return x.gate.end, ReasonGate
	case x.cap.end > 0 && grants >= x.cap.until:
		return x.cap.end, ReasonGate
	case x.slots > 0 && x.inUse >= x.slots:
		return forever, ReasonSlots
	case x.spread.next > now:
		return x.spread.next, ReasonGate
	}
	return 0, ""
}

// take starts a turn of weight that became possible at the instant at.
func (b *Bucket) take(s *scope, weight int, at, now int64) {
	s.grants++
	at = max(at, s.last()) // a limiter that is set back earns twice
	for i := range s.plan.tokens {
		// Should the rounding of a nanosecond be missing, the bucket owes it.
		if l, t := s.tokens(i), b.timeOf(at); !l.AllowN(t, weight) {
			l.ReserveN(t, weight)
		}
	}
	x := s.x
	if x == nil {
		return
	}
	x.last = max(x.last, at)
	for i := range x.windows {
		x.windows[i].take(weight, now)
	}
	if x.spread.end > 0 {
		x.spread.step(now, x.waiting()-1, x.patience(now))
	}
}

// step sets the earliest start of the next of n waiters, so that they fill what is
// left of the spread. No gap is longer than most.
func (p *spread) step(now int64, n int, most int64) {
	if n <= 0 || now >= p.end {
		*p = spread{}
		return
	}
	p.next = now + rand.Int64N(max(1, min(2*(p.end-now)/int64(n+1), most)))
}

// patience is how long a gap between two waiters may be, so that none of them, who were
// promised a turn when the gate opens, is late by it. It leaves them half of their time.
func (x *extra) patience(now int64) int64 {
	most := int64(forever)
	for _, r := range x.flows {
		share := int64(2 * len(x.flows))
		for w, n := r.flow.head, int64(1); w != nil && n <= 256; w, n = w.next, n+1 {
			most = min(most, max(0, w.latest-now)/(share*n))
		}
	}
	return most
}

// waiting is the number of waiters that need the scope.
func (x *extra) waiting() int {
	n := 0
	for _, r := range x.flows {
		n += r.flow.n
	}
	return n
}

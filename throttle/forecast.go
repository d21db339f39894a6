package throttle

import "time"

// lookAhead bounds the lines that a forecast looks into. Those beyond are taken to be
// empty, so that a forecast is never too late.
const lookAhead = 4096

// front is who goes before a waiter: their number and what they take from each leg.
type front struct {
	n      int64
	weight [maxLegs]int64
}

func (p *front) add(w *waiter) {
	p.n++
	for i := range w.f.legs {
		p.weight[i] += int64(w.weight(i))
	}
}

// inFront is who is before the last waiter of a flow in it.
func (f *flow) inFront(w *waiter) *front {
	p := &front{n: int64(f.n - 1)}
	for i := range f.legs {
		p.weight[i] = f.legs[i].weight - int64(w.weight(i))
	}
	return p
}

// walkTo is who is before any waiter of a flow in it.
func (f *flow) walkTo(w *waiter) *front {
	p := &front{}
	for o := f.head; o != w; o = o.next {
		p.add(o)
	}
	return p
}

// outlook is what somebody who waits may hope for: when its turn comes at the earliest,
// and what keeps it from coming sooner.
type outlook struct {
	start int64
	why   Reason
	slot  bool // a slot must become free as well, and nobody knows when
}

// also adds what another leg says.
func (o *outlook) also(leg outlook) {
	if leg.start > o.start {
		o.start, o.why = leg.start, leg.why
	}
	o.slot = o.slot || leg.slot
}

// forecast returns what the waiter may hope for if nobody overtakes it, and how many go
// before it. last says that it came last of all, so that everybody who is equal goes
// before it.
func (b *Bucket) forecast(w *waiter, p *front, last bool, now int64) (o outlook, ahead int64) {
	f := w.f
	o.why = ReasonRate
	for i, l := range f.legs {
		n, weight := p.n, p.weight[i]
		if i == 0 {
			n, weight = f.before0(w, n, weight, last)
			ahead = n
		} else {
			n, weight = f.beforeAt(i, w, n, weight, last)
		}
		if w.weight(i) > l.s.plan.most {
			return outlook{start: forever, why: ReasonNever}, ahead
		}
		o.also(b.earliest(l.s, n, weight, w.weight(i), now))
	}
	return o, ahead
}

// before0 adds those of other flows who go before the waiter at the first leg.
func (f *flow) before0(w *waiter, n, weight int64, last bool) (int64, int64) {
	t := f.t
	if last && f.parked == 0 {
		n, weight = n+t.readyN-int64(f.n), weight+t.weight-f.legs[0].weight
	} else if last {
		n, weight = n+t.readyN, weight+t.weight
	} else {
		for _, o := range t.ready[:min(len(t.ready), lookAhead)] {
			if o != f && o.tail.seq < w.seq {
				n, weight = n+int64(o.n), weight+o.legs[0].weight
			}
		}
	}
	mine := t.service + float64(weight)
	for _, o := range f.c.ready[:min(len(f.c.ready), lookAhead)] {
		if o != t {
			k, kw := share2(o.readyN, o.weight, mine-o.service, last)
			n, weight = n+k, weight+kw
		}
	}
	for c := range f.key.class {
		o := &f.g.class[c]
		k, kw := part(o.readyN, o.weight, patience*(n+1))
		n, weight = n+k, weight+kw
	}
	return n, weight
}

// beforeAt adds those who go before the waiter at another leg.
func (f *flow) beforeAt(leg int, w *waiter, n, weight int64, last bool) (int64, int64) {
	s := f.legs[leg].s
	mine := f.t.service + float64(weight)
	for _, r := range s.x.flows[:min(len(s.x.flows), lookAhead)] {
		o := r.flow
		if o == f || o.g != f.g || o.key.class > f.key.class || o.parked > 0 && o.legs[o.parked].s != s {
			continue
		}
		k, kw := int64(o.n), o.legs[r.leg].weight
		switch {
		case o.key.class < f.key.class:
			k, kw = part(k, kw, patience*(n+1))
		case o.t != f.t:
			k, kw = share2(k, kw, mine-o.t.service, last)
		case !last && o.tail.seq > w.seq:
			continue
		}
		n, weight = n+k, weight+kw
	}
	return n, weight
}

// share2 is the part of a tenant's line that is served before somebody whose turn
// comes after lead more of service; equals go first if they came first.
func share2(n, weight int64, lead float64, equal bool) (int64, int64) {
	if lead < 0 || weight == 0 {
		return 0, 0
	}
	units := int64(min(lead, 1<<40))
	if equal {
		units++
	}
	if units >= weight {
		return n, weight
	}
	return n * units / weight, units
}

// part is the share of a line that at most n of it make.
func part(n, weight, most int64) (int64, int64) {
	if n <= most {
		return n, weight
	}
	return most, int64(float64(weight) * float64(most) / float64(n))
}

// earliest returns when the scope can start a turn after those ahead have started as
// early as they can.
func (b *Bucket) earliest(s *scope, ahead, weightAhead int64, weight int, now int64) outlook {
	x, opens, start, slot := s.x, int64(0), now, false
	if x != nil {
		b.refresh(s, now)
		slot = x.slots > 0 && int64(x.inUse)+ahead >= int64(x.slots)
		opens = x.gate.end
		if left := x.cap.left(s.grants); x.cap.end > 0 && left <= ahead {
			opens = max(opens, x.cap.end)
			weightAhead -= int64(float64(weightAhead) * float64(left) / float64(max(1, ahead)))
			ahead -= left
		}
		start = max(start, opens, x.spread.next)
	}
	why := ReasonRate
	if start > now {
		why = ReasonGate
	}
	total := float64(weightAhead + int64(weight))
	for i := range s.plan.tokens {
		from := max(now, s.last(), opens)
		level := s.tokens(i).TokensAt(b.timeOf(from))
		if opens > now {
			level = min(1, level)
		}
		if total > level {
			start = max(start, s.earned(i, total-level, from))
		}
	}
	if len(s.plan.tokens) > 0 {
		opens = 0 // they space the turns
	}
	for i := range s.plan.strict {
		start = max(start, x.windows[i].earliest(ahead, weightAhead, weight, s.factor(), now, opens))
	}
	return outlook{start, why, slot}
}

// limitTo notes how much worse the forecast of the waiter may get.
func (b *Bucket) limitTo(w *waiter, start int64) {
	f := w.f
	if at := later(f.c.drift, w.latest-start); at < f.limit.at {
		f.limit.at = at
		f.c.limits.fix(f.limit.pos)
	}
}

// overtake tells those whom the newcomer goes before that their forecasts are worse.
func (b *Bucket) overtake(w *waiter, now int64) {
	f, delay := w.f, int64(0)
	for i, l := range f.legs {
		delay = max(delay, l.s.delay(w.weight(i)))
	}
	for i := f.key.class; i < classes; i++ {
		c := &f.g.class[i]
		if i > f.key.class || len(c.tenants) > 1 {
			b.drift(c, delay, now)
		}
	}
}

// drift notes that forecasts of the class got worse by at most delay, and looks at
// those who may be too late by that.
func (b *Bucket) drift(c *class, delay, now int64) {
	c.drift += delay
	for len(c.limits) > 0 && c.limits[0].at < c.drift {
		b.reviewFlow(c.limits[0].f, now)
	}
}

// worsen notes that the scope starts everybody later by at most delay.
func (b *Bucket) worsen(s *scope, delay, now int64) {
	groups := make([]*group, 0, 4)
	if s.x.group != nil {
		groups = append(groups, s.x.group)
	}
	for _, p := range s.x.parks {
		groups = append(groups, p.g)
	}
	for _, g := range groups {
		for i := range g.class {
			b.drift(&g.class[i], delay, now)
		}
	}
}

// delay is by how much a turn delays those behind it.
func (s *scope) delay(weight int) int64 {
	d := int64(0)
	for _, r := range s.plan.rates {
		d = max(d, span(float64(weight), float64(limitOf(r, s.factor()))))
	}
	return d
}

// review looks at all who wait for the scope, after its rates, gate or cap changed.
func (b *Bucket) review(s *scope, now int64) {
	b.reseat(s, now)
	flows := append([]flowRef(nil), s.x.flows...)
	for _, r := range flows {
		b.reviewFlow(r.flow, now)
	}
}

// reviewFlow sends those away who would start too late. Who waits in a long line may
// learn it a little later, so that the line is not walked for each newcomer.
func (b *Bucket) reviewFlow(f *flow, now int64) {
	p, slack := &front{}, int64(forever)
	for w := f.head; w != nil; {
		next := w.next
		if o, _ := b.forecast(w, p, false, now); o.start > w.latest {
			b.eject(w, o, now)
		} else {
			p.add(w)
			slack = min(slack, w.latest-o.start)
		}
		w = next
	}
	if f.n > 64 {
		slack = later(slack, int64(f.n)*4*int64(time.Microsecond))
	}
	if f.n > 0 {
		f.limit.at = later(f.c.drift, slack)
		f.c.limits.fix(f.limit.pos)
	}
}

// eject ends a wait with a refusal.
func (b *Bucket) eject(w *waiter, o outlook, now int64) {
	w.err = b.lateError(w, o)
	b.leave(w, now)
	b.finish(w)
}

// expire is for a waiter whose time is over, or almost.
func (b *Bucket) expire(w *waiter, now int64) {
	o, _ := b.forecast(w, w.f.walkTo(w), false, now)
	if now < w.latest && !o.slot && o.start <= w.latest {
		b.setAlarm(&w.alarm, min(w.latest, max(o.start, now+int64(time.Millisecond))))
		return
	}
	b.eject(w, o, now)
}

package throttle

import (
	"slices"
	"time"
)

// wallCheck is how often a waiter at a gate or a cap looks at the wall clock: a machine that
// slept does not wake timers early.
const wallCheck = int64(15 * time.Second)

// touch marks a scope whose waiters must be looked at: it may start more than before,
// or those who wait changed.
func (b *Bucket) touch(s *scope) {
	if x := s.x; x != nil && !x.dirty && (len(x.flows) > 0 || x.alarm.pos >= 0) {
		x.dirty = true
		b.dirty = append(b.dirty, s)
	}
}

// run starts all who can start now and sets the timer for the next.
func (b *Bucket) run(now int64) {
	b.settle(now)
	b.arm(now)
}

func (b *Bucket) settle(now int64) {
	for len(b.dirty) > 0 {
		last := len(b.dirty) - 1
		s := b.dirty[last]
		b.dirty[last], b.dirty = nil, b.dirty[:last]
		s.x.dirty = false
		next := min(b.serve(s, now), b.wake(s, now))
		if (s.x.gate.end > 0 || s.x.cap.end > 0) && next > now+wallCheck && len(s.x.flows) > 0 {
			next = now + wallCheck
		}
		b.setAlarm(&s.x.alarm, next)
	}
}

// serve gives turns to those whose first leg the scope is, in the order of their
// queue, and returns when the next can have one. The next in order is not overtaken
// while it waits for the first leg, however heavy it is.
func (b *Bucket) serve(s *scope, now int64) int64 {
	for s.x.group != nil {
		f := s.x.group.pick()
		if f == nil {
			break
		}
		leg, at := b.blocked(f, now)
		if leg > 0 {
			f.unready()
			b.bounce(f, now)
			b.park(f, leg)
			continue
		}
		first, _ := b.ready(s, f.head.weight(0), f.head.since, now)
		if first > now {
			return first
		}
		b.start(f, b.dated(max(first, at), now), now)
	}
	return forever
}

// blocked returns the index of a leg beside the first that cannot start the head of
// the flow now, or zero, and when the last of them became ready.
func (b *Bucket) blocked(f *flow, now int64) (leg int, at int64) {
	for i := 1; i < len(f.legs); i++ {
		s := f.legs[i].s
		switch s.x.claim {
		case f:
		case nil:
			// Whom another leg let go waits only for what is really not there, or two
			// legs could send it to and fro at one instant for ever.
			if f.woke == 0 && f.behind(f.legs[i].park) {
				return i, 0
			}
		default:
			return i, 0
		}
		since, _ := b.ready(s, f.head.weight(i), f.head.since, now)
		if since > now {
			return i, 0
		}
		at = max(at, since)
	}
	return 0, at
}

// behind reports whether somebody in the park goes before the flow.
func (f *flow) behind(p *park) bool {
	for c := range f.key.class {
		if len(p.class[c].q) > 0 && p.class[c].awake == 0 {
			return true
		}
	}
	q := p.class[f.key.class].q
	if len(q) == 0 {
		return false
	}
	top := q[0]
	return top.order < f.t.service || top.order == f.t.service && top.head.seq < f.head.seq
}

// place puts a flow that is nowhere among the ready, or parks it.
func (b *Bucket) place(f *flow, now int64) {
	if leg, _ := b.blocked(f, now); leg > 0 {
		b.park(f, leg)
		return
	}
	f.setReady()
	b.touch(f.legs[0].s)
}

// wake lets go the first flow of each class that is parked at the scope, if it can
// start there, and returns when to look again.
func (b *Bucket) wake(s *scope, now int64) int64 {
	next := int64(forever)
	for _, p := range s.x.parks {
		for c := range p.class {
			f := p.class[c].next(s)
			if f == nil {
				continue
			}
			if at, _ := b.ready(s, f.head.weight(f.parked), f.head.since, now); at > now {
				next = min(next, at)
				break // nobody of a lower class overtakes
			}
			leg := f.parked
			f.unpark()
			f.woke = leg
			p.class[c].awake++
			f.setReady()
			b.touch(f.legs[0].s)
		}
	}
	return next
}

// next is the flow that the scope should let go, if it is time for one.
func (p *parked) next(s *scope) *flow {
	if p.awake > 0 || len(p.q) == 0 {
		return nil
	}
	f := p.q[0]
	if k := s.x.claim; k != nil {
		if k.parked == 0 || k.legs[k.parked].s != s || k.c != f.c {
			return nil
		}
		return k
	}
	return f
}

// start gives the head of a ready flow its turn.
func (b *Bucket) start(f *flow, at, now int64) {
	w := f.head
	var buf [4]use
	uses := buf[:0]
	for i, l := range f.legs {
		uses = append(uses, use{l.s, w.weight(i), w.slots&(1<<i) != 0})
	}
	w.latest = forever // it is not late any more; see patience
	w.turn = b.grant(uses, at, now)
	b.passedOver(f, now)
	f.c.served(f.t, w.weight(0))
	f.g.turned(f.c)
	b.unclaim(f)
	b.sleepAgain(f)
	f.bounced = 0
	f.unlink(w)
	w.f = nil
	b.finish(w)
	f.count(-1, -int64(w.weight(0)))
	if f.n == 0 {
		f.unready()
		f.drop()
		return
	}
	f.t.ready.fix(f.pos)
	f.c.ready.fix(f.t.pos)
	if leg, _ := b.blocked(f, now); leg > 0 {
		f.unready()
		b.park(f, leg)
	}
}

// passedOver counts the turn against the patience of those who are parked at the same
// scopes and were before it, but need more than is left each time.
func (b *Bucket) passedOver(f *flow, now int64) {
	for i, l := range f.legs[1:] {
		b.touch(l.s)
		l.s.x.toFront(l.park)
		for _, p := range l.s.x.parks {
			for c := range p.class {
				q := &p.class[c]
				switch mine := p == l.park && c == f.key.class; {
				case len(q.q) == 0, mine && f.woke == i+1:
					q.skipped = 0
				case q.awake > 0, mine && !f.behind(p):
				default:
					if q.skipped++; q.skipped >= patience {
						b.claim(q.q[0], now)
					}
				}
			}
		}
	}
}

// toFront makes the group of the park the last that is served at the scope: the one
// that is woken last is served first.
func (x *extra) toFront(p *park) {
	if i := slices.Index(x.parks, p); i > 0 {
		copy(x.parks[1:i+1], x.parks[:i])
		x.parks[0] = p
	}
}

// bounce counts how often a flow was let go by one leg, and then that or another was
// not to be had.
func (b *Bucket) bounce(f *flow, now int64) {
	if f.woke == 0 {
		return
	}
	if f.bounced++; f.bounced >= patience {
		b.claim(f, now)
	}
}

// claim keeps the legs of a flow for it until it had its turn: others would take them
// one after the other, and it would never find all of them ready. Only where nothing
// but rates is in the way, so that the others do not wait for a gate of this one.
func (b *Bucket) claim(f *flow, now int64) {
	for i, l := range f.legs {
		if i > 0 && l.s.x.claim != nil {
			return
		}
		if at, why := b.ready(l.s, f.head.weight(i), now, now); at > now && why != ReasonRate {
			return
		}
	}
	for _, l := range f.legs[1:] {
		l.s.x.claim = f
		b.touch(l.s)
	}
	f.claims = true
}

// unclaim lets others have the legs of the flow.
func (b *Bucket) unclaim(f *flow) {
	if !f.claims {
		return
	}
	f.claims = false
	for _, l := range f.legs[1:] {
		if l.s.x.claim == f {
			l.s.x.claim = nil
			b.touch(l.s)
		}
	}
}

// reseat parks the ready flows that the scope cannot start any more.
func (b *Bucket) reseat(s *scope, now int64) {
	if s.x.claim != nil {
		b.unclaim(s.x.claim)
	}
	for _, r := range s.x.flows {
		if f := r.flow; r.leg > 0 && f.parked == 0 {
			if leg, _ := b.blocked(f, now); leg > 0 {
				f.unready()
				b.park(f, leg)
			}
		}
	}
}

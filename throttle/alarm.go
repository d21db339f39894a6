package throttle

import "time"

// alarm is an instant at which a scope, or a waiter, must be looked at.
type alarm struct {
	when   int64
	pos    int // in Bucket.alarms; -1: not set
	scope  *scope
	waiter *waiter
}

func (a *alarm) moved(to int)         { a.pos = to }
func (a *alarm) before(o *alarm) bool { return a.when < o.when }

// setAlarm sets, moves or, with forever, removes an alarm.
func (b *Bucket) setAlarm(a *alarm, when int64) {
	switch {
	case a.pos < 0 && when == forever:
	case a.pos < 0:
		a.when = when
		b.alarms.push(a)
	case when == forever:
		b.alarms.remove(a.pos)
	case when != a.when:
		a.when = when
		b.alarms.fix(a.pos)
	}
}

// arm sets the timer to the next alarm, or stops it when there is none.
func (b *Bucket) arm(now int64) {
	if len(b.alarms) == 0 {
		if b.set != 0 {
			b.timer.Stop()
			b.set = 0
		}
		return
	}
	when := b.alarms[0].when
	if when == b.set {
		return
	}
	b.set = when
	wait := time.Duration(when - now)
	if b.timer == nil {
		b.timer = time.AfterFunc(wait, b.fire)
		return
	}
	b.timer.Reset(wait)
}

// fire is what the timer calls.
func (b *Bucket) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tick()
	b.set = 0
	var over []*waiter
	for len(b.alarms) > 0 && b.alarms[0].when <= now {
		a := b.alarms[0]
		b.alarms.remove(0)
		if a.waiter != nil {
			over = append(over, a.waiter)
			continue
		}
		b.touch(a.scope)
	}
	b.run(now)
	for _, w := range over {
		if w.f != nil {
			b.expire(w, now)
		}
	}
	b.run(now)
}

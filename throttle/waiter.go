package throttle

import (
	"context"
	"time"
)

// leaveEarly is how long before its deadline a waiter without a forecast leaves, at
// most: an error that comes after http.Client.Timeout is replaced by net/http's own.
const leaveEarly = 10 * time.Millisecond

// maxSpare bounds the waiters that are kept to be used again.
const maxSpare = 1024

// waiter is one call that waits.
type waiter struct {
	f          *flow // nil: it does not wait any more
	prev, next *waiter
	provider   string
	seq        uint64
	since      int64 // when it came
	latest     int64 // the last instant at which it wants to start
	deadline   bool  // it is the context's deadline that sets it
	slots      uint32
	few        [4]int32 // weights of the legs
	more       []int32
	alarm      alarm
	done       chan struct{}
	turn       uint64
	err        *WaitError
}

// maxLegs bounds the legs of an ask that waits: waiter.slots has a bit for each.
const maxLegs = 32

func (b *Bucket) newWaiter(a *Ask, uses []use, now int64) *waiter {
	var w *waiter
	if n := len(b.spare) - 1; n >= 0 {
		w, b.spare[n], b.spare = b.spare[n], nil, b.spare[:n]
		*w = waiter{done: w.done}
	} else {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	b.seq++
	w.seq, w.since, w.provider = b.seq, now, a.Legs[0].Key
	w.alarm = alarm{waiter: w, pos: -1}
	if len(uses) > len(w.few) {
		w.more = make([]int32, len(uses))
	}
	for i, u := range uses {
		w.weights()[i] = int32(u.weight)
		if u.slots {
			w.slots |= 1 << i
		}
	}
	return w
}

func (w *waiter) weights() []int32 {
	if w.more != nil {
		return w.more
	}
	return w.few[:]
}

func (w *waiter) weight(leg int) int { return int(w.weights()[leg]) }

// bound sets the last instant at which the waiter wants to start. A turn at the
// deadline itself is too late, and so is never.
func (b *Bucket) bound(ctx context.Context, w *waiter, maxWait time.Duration, now int64) {
	w.latest = min(later(now, int64(max(0, maxWait))), forever-1)
	if d, ok := ctx.Deadline(); ok {
		if at := later(now, int64(d.Sub(b.timeOf(now)))-1); at < w.latest {
			w.latest, w.deadline = at, true
		}
	}
}

// leaveAt is when a waiter without a forecast leaves.
func (w *waiter) leaveAt() int64 {
	if !w.deadline {
		return w.latest
	}
	return w.latest - min(int64(leaveEarly), (w.latest-w.since)/10)
}

// finish tells the goroutine that waits.
func (b *Bucket) finish(w *waiter) {
	b.setAlarm(&w.alarm, forever)
	w.done <- struct{}{}
}

// recycle keeps a waiter that nobody refers to any more.
func (b *Bucket) recycle(w *waiter) {
	if len(b.spare) >= maxSpare {
		return
	}
	select {
	case <-w.done:
	default:
	}
	*w = waiter{done: w.done}
	b.spare = append(b.spare, w)
}

// join queues a call that cannot start at once, unless it could not start in time.
func (b *Bucket) join(ctx context.Context, w *waiter, a *Ask, uses []use, now int64) (Forecast, error) {
	if len(uses) > maxLegs {
		return Forecast{}, errManyLegs
	}
	b.bound(ctx, w, a.MaxWait, now)
	if err := b.hopeless(w, a, uses, now); err != nil {
		return Forecast{}, err
	}
	b.enter(w, b.flowOf(uses, classOf(a.Priority), a.Tenant), now)
	b.settle(now)
	if w.turn != 0 {
		b.arm(now)
		return Forecast{}, nil
	}
	o, ahead := b.forecast(w, w.f.inFront(w), true, now)
	if err := b.refusal(w, a, o); err != nil {
		b.leave(w, now)
		b.run(now)
		return Forecast{}, err
	}
	b.limitTo(w, o.start)
	b.setAlarm(&w.alarm, w.leaveAt())
	b.overtake(w, now)
	b.run(now)
	return b.told(o, ahead, now), nil
}

// told is an outlook in the words of callers.
func (b *Bucket) told(o outlook, ahead, now int64) Forecast {
	f := Forecast{Ahead: int(ahead), Cause: o.why}
	switch {
	case o.slot:
		f.Cause = ReasonSlots
	case o.start != forever:
		f.Start, f.Wait = b.timeOf(o.start), time.Duration(o.start-now)
	}
	return f
}

// hopeless refuses a call that cannot start in time although nobody waits.
func (b *Bucket) hopeless(w *waiter, a *Ask, uses []use, now int64) error {
	o := outlook{why: ReasonRate}
	for _, u := range uses {
		if x := u.s.x; x != nil && len(x.flows) > 0 {
			return nil
		}
		o.also(b.earliest(u.s, 0, 0, u.weight, now))
	}
	if a.MaxWait <= 0 || o.start > w.latest {
		return b.lateError(w, o)
	}
	return nil
}

// refusal says why a call may not wait, or nil.
func (b *Bucket) refusal(w *waiter, a *Ask, o outlook) error {
	limit := b.MaxQueue
	if limit <= 0 {
		limit = defaultMaxQueue
	}
	switch {
	case a.MaxWait > 0 && w.f.g.n > limit:
		e := b.lateError(w, o)
		e.Reason = ReasonQueueFull
		return e
	case a.MaxWait <= 0, o.start > w.latest:
		return b.lateError(w, o)
	}
	return nil
}

// lateError is the refusal of a call whose turn comes too late. Who waits for a slot is not
// late before its time is over, unless it would be even with one.
func (b *Bucket) lateError(w *waiter, o outlook) *WaitError {
	if o.slot && o.start <= max(w.latest, b.now) {
		o.start, o.why = forever, ReasonSlots
	}
	if w.deadline && o.why != ReasonNever {
		o.why = ReasonDeadline
	}
	return &WaitError{Provider: w.provider, Reason: o.why, RetryAt: b.timeOf(o.start)}
}

// enter appends the waiter to the flow.
func (b *Bucket) enter(w *waiter, f *flow, now int64) {
	w.f, w.prev = f, f.tail
	if f.tail != nil {
		f.tail.next = w
	} else {
		f.head = w
	}
	f.tail = w
	f.g.n++
	f.c.n++
	f.t.n++
	f.n++
	for i := range f.legs {
		f.legs[i].weight += int64(w.weight(i))
	}
	switch {
	case f.n == 1:
		b.place(f, now)
	case f.parked == 0:
		f.count(1, int64(w.weight(0)))
	}
}

// leave takes the waiter from its flow. Those behind move up.
func (b *Bucket) leave(w *waiter, now int64) {
	f := w.f
	head := f.head == w
	if head && f.claims {
		b.unclaim(f)
	}
	f.unlink(w)
	w.f = nil
	b.setAlarm(&w.alarm, forever)
	if f.parked > 0 {
		b.leftPark(f, head)
		return
	}
	f.count(-1, -int64(w.weight(0)))
	b.touch(f.legs[0].s)
	if !head {
		return
	}
	if f.n == 0 {
		f.unready()
		b.sleepAgain(f)
		f.drop()
		return
	}
	f.t.ready.fix(f.pos)
	f.c.ready.fix(f.t.pos)
}

// leftPark repairs the park after a waiter of a parked flow left.
func (b *Bucket) leftPark(f *flow, head bool) {
	s := f.legs[f.parked].s
	b.touch(s)
	if f.n == 0 {
		f.unpark()
		f.drop()
		return
	}
	if head {
		f.legs[f.parked].park.class[f.key.class].q.fix(f.pos)
	}
}

// unlink removes the waiter from the list and the sums.
func (f *flow) unlink(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		f.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		f.tail = w.prev
	}
	w.prev, w.next = nil, nil
	f.n--
	f.t.n--
	f.c.n--
	f.g.n--
	for i := range f.legs {
		f.legs[i].weight -= int64(w.weight(i))
	}
}

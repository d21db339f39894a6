package sqliteledger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// settleDelay bounds how long the outcome of a hold waits in memory for a group to ride
// along with. Losing one only under-uses the budget: its hold is durable and becomes
// presumed.
const settleDelay = 50 * time.Millisecond

// slowest is the longest pause between tries to write outcomes that a full disk or a
// locked file keeps in memory.
const slowest = 5 * time.Second

// An op is one step of a group: all steps of a group share one transaction and one sync.
type op struct {
	// run reads and changes the books. If it returns an error it has changed nothing.
	run  func(*books) error
	done chan error
	// taken is set by whoever comes first: the committer about to run the op, or the
	// caller whose context ended; then it never runs.
	taken atomic.Bool
}

// do runs f within the next group and returns when the group is durable. If ctx ends
// before the group has begun, nothing happened and nothing will; once it has begun it
// is waited for, so that the answer is always the truth.
func (l *Ledger) do(ctx context.Context, f func(*books) error) error {
	if err := ctx.Err(); err != nil {
		return l.givenUp(ctx)
	}
	o := &op{run: f, done: make(chan error, 1)}
	if err := l.enqueue(o); err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	}
	if o.taken.CompareAndSwap(false, true) {
		return l.givenUp(ctx)
	}
	return <-o.done
}

func (l *Ledger) enqueue(o *op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.unusable(); err != nil {
		return err
	}
	l.queue = append(l.queue, o)
	l.nudge()
	return nil
}

// unusable says why the handle cannot be used any more. l.mu is held.
func (l *Ledger) unusable() error {
	if l.closed {
		return &Error{Path: l.path, Fault: Closed}
	}
	return l.broken
}

// nudge wakes the committer.
func (l *Ledger) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// commitLoop is the committer, the one goroutine of a handle. It ends after Close, when
// what waited is written or cannot be.
func (l *Ledger) commitLoop() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := settleDelay
	for {
		select {
		case <-l.wake:
		case <-timer.C:
		}
		wait, closed := l.next()
		if wait > 0 {
			timer.Reset(wait)
			continue
		}
		err := l.group()
		if closed {
			return
		}
		if pause = min(2*pause, slowest); err == nil {
			pause = settleDelay
		}
		l.postpone(pause)
	}
}

// next reports how long the committer may wait: not at all if an op waits or the handle
// is being closed, a long time if nothing does.
func (l *Ledger) next() (wait time.Duration, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || len(l.queue) > 0:
		return 0, l.closed
	case len(l.outcomes) > 0:
		return time.Until(l.due), false
	default:
		return time.Hour, false
	}
}

// postpone sets when outcomes that are still in memory are tried again, and has the
// committer look at once at what came meanwhile.
func (l *Ledger) postpone(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = time.Now().Add(pause)
	l.nudge()
}

// wanted reports whether it makes sense to go on waiting for the file.
func (l *Ledger) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.outcomes) > 0 || slices.ContainsFunc(l.queue, func(o *op) bool { return !o.taken.Load() })
}

// group runs one transaction: the outcomes first, so that the money they free is there
// for the holds, then all ops that wait by the time the file is ours.
func (l *Ledger) group() error {
	b := l.books
	err := l.begin()
	outcomes, ops, told := l.takeWork()
	errs := make([]error, len(ops))
	if err == nil {
		b.told(told)
		for _, h := range outcomes {
			b.settle(h)
		}
		for i, o := range ops {
			errs[i] = o.run(b)
		}
		err = b.commit()
	}
	if err != nil {
		err = l.fault(err)
	}
	l.finish(outcomes, told, b.marks(err), err)
	for i, o := range ops {
		if err != nil {
			errs[i] = err
		}
		o.done <- errs[i]
	}
	return err
}

// begin takes the file: from here to the end of the group nobody else writes.
func (l *Ledger) begin() error {
	l.mu.Lock()
	err := l.broken
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.files.check(); err != nil {
		return err
	}
	return l.books.begin(l.readClock())
}

// waiting is an outcome in memory.
type waiting struct {
	id budget.HoldID
	*live
}

// takeWork returns the outcomes that wait, the ops that are still wanted, which from now
// on will be answered, and the thresholds that were told.
func (l *Ledger) takeWork() (outcomes []waiting, ops []*op, told []notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.outcomes {
		outcomes = append(outcomes, waiting{id, l.live[id]})
	}
	for _, o := range l.queue {
		if o.taken.CompareAndSwap(false, true) {
			ops = append(ops, o)
		}
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	told, l.told = l.told, nil
	return outcomes, ops, told
}

// finish forgets what is on the disk now, or remembers why it is not.
func (l *Ledger) finish(outcomes []waiting, told []notice, marks map[int64]*mark, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Fault.fatal() && l.broken == nil {
			l.broken = err
		}
		l.told = append(told, l.told...)
		return
	}
	for _, h := range outcomes {
		delete(l.live, h.id)
	}
	l.outcomes = slices.Delete(l.outcomes, 0, len(outcomes))
	l.notices = append(l.notices, l.books.takeNotices()...)
	if len(l.marks) > maxCached {
		clear(l.marks)
	}
	maps.Copy(l.marks, marks)
}

// remember keeps what the outcome of a hold of this handle will need.
func (l *Ledger) remember(id budget.HoldID, h *live) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[id] = h
}

// forget is for a hold whose outcome went to the file at once. An outcome that came to
// memory meanwhile stays until it is written.
func (l *Ledger) forget(id budget.HoldID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.live[id]; h != nil && h.outcome == nil {
		delete(l.live, id)
	}
}

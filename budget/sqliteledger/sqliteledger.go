package sqliteledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// Hold implements [budget.Ledger]. It returns when the hold is on the disk.
func (l *Ledger) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	if err := h.Validate(); err != nil {
		return budget.Report{}, err
	}
	var report budget.Report
	err := l.do(ctx, func(b *books) (err error) {
		var mine *live
		report, mine, err = b.hold(h)
		if mine != nil {
			b.kept = append(b.kept, func() { l.remember(h.ID, mine) })
		}
		return err
	})
	report.Notices = l.news()
	return report, err
}

// maxOutcomes bounds the outcomes that wait in memory while the file cannot be written.
// Holds whose outcome finds no room stay in flight, and become presumed at exit.
const maxOutcomes = 100_000

// Resolve implements [budget.Ledger]. The outcome of a hold that this handle took is
// kept in memory and written with the next hold, or within 50 ms; while the file
// cannot be written it waits there for the next operation that can. An outcome for any
// other hold, or one that crosses a threshold, is on the disk when Resolve returns.
func (l *Ledger) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	l.clock.Seen(o.Seen)
	report, ok, err := l.resolveLive(id, o, l.readClock().Now)
	if !ok {
		report, err = l.resolveNow(ctx, id, o)
	}
	report.Notices = l.news()
	return report, err
}

// resolveLive takes the outcome of a hold of this handle that is still in flight; false
// if the file has to decide.
func (l *Ledger) resolveLive(id budget.HoldID, o budget.Outcome, now time.Time) (r budget.Report, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.live[id]
	if h == nil || o.Amount > huge { // huge: the totals may refuse it
		return r, false, nil
	}
	if err := l.unusable(); err != nil {
		return r, true, err
	}
	if h.outcome != nil {
		was := outcome{said: h.outcome.State, amount: h.outcome.Amount}
		news, err := was.accepts(id, h.outcome.State, o)
		r.Overrun = h.report(*h.outcome, now).Overrun
		return r, !news || err != nil, err // news is for the file, after this outcome
	}
	if _, err := new(outcome).accepts(id, budget.StateHeld, o); err != nil {
		return r, true, err
	}
	if l.crosses(h, o) {
		return r, false, nil
	}
	return h.report(o, now), true, l.keep(id, o)
}

// huge is an amount at which sums might overflow.
const huge = math.MaxInt64 / 8

// keep has an outcome wait in memory, if the hold is in flight. l.mu is held.
func (l *Ledger) keep(id budget.HoldID, o budget.Outcome) error {
	if len(l.outcomes) >= maxOutcomes {
		return &Error{Path: l.path, Fault: Full, Err: errors.New("too many outcomes wait for the file")}
	}
	l.live[id].outcome = &o
	if l.outcomes = append(l.outcomes, id); len(l.outcomes) == 1 {
		l.due = time.Now().Add(settleDelay)
		l.nudge()
	}
	return nil
}

// resolveNow has the file decide. If it cannot be reached, the outcome of a hold that is
// in flight here waits in memory: no call fails because of its books.
func (l *Ledger) resolveNow(ctx context.Context, id budget.HoldID, o budget.Outcome) (report budget.Report, err error) {
	err = l.do(ctx, func(b *books) (err error) {
		report, err = b.resolve(id, o, "")
		if err == nil {
			b.kept = append(b.kept, func() { l.forget(id) })
		}
		return err
	})
	if err == nil || !errors.Is(err, budget.ErrUnavailable) {
		return report, err
	}
	now := l.readClock().Now
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.live[id]
	if h == nil || h.outcome != nil || o.Amount > huge || l.unusable() != nil {
		return budget.Report{}, err
	}
	return h.report(o, now), l.keep(id, o)
}

// Totals implements [budget.Ledger]. It sees what this handle has resolved; outcomes
// that other processes keep in memory it sees within 50 ms.
func (l *Ledger) Totals(ctx context.Context, at time.Time, budgets ...budget.Budget) ([]budget.Totals, error) {
	totals := make([]budget.Totals, 0, len(budgets))
	var wrong error
	err := l.view(ctx, func(view *books) {
		for _, b := range budgets {
			t, err := view.totals(b, at)
			wrong = errors.Join(wrong, err)
			totals = append(totals, t)
		}
	})
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	return totals, nil
}

// newView is for reading the books on a connection for readers.
func newView(c *conn) *books {
	view := &books{conn: c, now: time.Now()}
	view.forget()
	view.readFrozen()
	return view
}

// totals reads the state of a budget's window at an instant.
func (b *books) totals(bud budget.Budget, at time.Time) (budget.Totals, error) {
	if err := bud.Validate(); err != nil {
		return budget.Totals{}, fmt.Errorf("budget %s: %w", bud.Label, err)
	}
	bud = bud.Normal()
	w := bud.Window(at)
	a := b.account(bud.Name)
	if a == nil {
		return budget.Totals{Budget: bud, Window: w, Limit: bud.Limit, Frozen: b.isFrozen(bud.Name)}, nil
	}
	if err := a.conflict(bud); err != nil {
		return budget.Totals{}, err
	}
	t := a.totals(bud, b.span(a, w))
	t.Limit, t.Frozen = a.limitFor(bud.Limit), b.isFrozen(bud.Name)
	return t, nil
}

// flush writes the outcomes that wait in memory.
func (l *Ledger) flush(ctx context.Context) error {
	if l.readOnly { // it has none
		return nil
	}
	l.mu.Lock()
	idle := len(l.outcomes) == 0
	err := l.unusable()
	l.mu.Unlock()
	if idle || err != nil {
		return err
	}
	return l.do(ctx, func(*books) error { return nil })
}

// read runs f on the connection for readers, which neither waits for the committer nor
// keeps it waiting. All that f reads is of one instant.
func (l *Ledger) read(ctx context.Context, f func(*conn)) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	if err := l.files.check(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return l.givenUp(ctx)
	}
	l.reader.SetInterrupt(ctx)
	l.reader.exec("BEGIN")
	f(l.reader)
	err := l.reader.take()
	l.reader.SetInterrupt(context.Background())
	if !l.reader.GetAutocommit() { // an interrupted BEGIN began nothing
		l.reader.exec("ROLLBACK")
	}
	err = errors.Join(err, l.reader.take())
	switch {
	case l.changed():
		return &Error{Path: l.path, Fault: Busy, Err: errChanged}
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil:
		return l.givenUp(ctx)
	}
	return l.fault(err)
}

// ready says why there is no connection for readers, if there is none. l.reading is held.
func (l *Ledger) ready() error {
	if err := l.refresh(); err != nil {
		return l.fault(err)
	}
	if l.reader == nil {
		return &Error{Path: l.path, Fault: Closed}
	}
	return nil
}

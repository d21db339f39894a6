package transport

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// peekFor is how long a refusal of the ledger is taken for true.
const peekFor = time.Second

// exhausted remembers the last refusal by a budget whose money is spent.
type exhausted struct {
	last    atomic.Pointer[exhaustedRefusal]
	changes atomic.Uint64 // of the books by people, after which refusals count no more
}

// forget lets the next call ask the ledger, also if one that asked before is not back yet.
func (x *exhausted) forget() {
	x.changes.Add(1)
	x.last.Store(nil)
}

type exhaustedRefusal struct {
	err    budget.ExceededError
	at     time.Time
	budget string // name of the leg
}

// keep remembers err if no smaller step than the next window helps, and nobody changed the
// books since the ledger was asked: changes is what x.changes was before.
func (x *exhausted) keep(c *call, err error, changes uint64) {
	e, ok := errors.AsType[*budget.ExceededError](err)
	if !ok || e.Reason != budget.ReasonExhausted {
		return
	}
	named := 0
	for i := range c.budgets {
		if c.budgets[i].Budget.Label == e.Budget {
			named++
		}
	}
	for _, b := range c.p.budgets { // never one that was made for a single request
		if b.Label == e.Budget && named == 1 {
			r := &exhaustedRefusal{*e, c.now, b.Name}
			if x.last.Store(r); x.changes.Load() != changes {
				x.last.CompareAndSwap(r, nil)
			}
			return
		}
	}
}

// refuses returns the remembered refusal if it is fresh, concerns a call as dear as c,
// and its window outlasts what c may wait.
func (x *exhausted) refuses(c *call) error {
	r := x.last.Load()
	if r == nil || c.now.Sub(r.at) >= peekFor || c.now.Before(r.at) {
		return nil
	}
	if !r.err.RetryAt.IsZero() && !r.err.RetryAt.After(c.now.Add(c.mayWait())) {
		return nil
	}
	for i := range c.budgets {
		if l := &c.budgets[i]; l.Budget.Name == r.budget && l.Amount >= r.err.Need && l.Amount > 0 {
			err := r.err
			err.Need = l.Amount
			return &err
		}
	}
	return nil
}

// frozenCache remembers for a second that a provider without budgets is not frozen.
type frozenCache struct {
	checked atomic.Int64 // wall clock, nanoseconds; negative: an operator did something since
}

// ask has the next call ask the ledger, also if one that asked before is not back yet.
func (f *frozenCache) ask(operation uint64) { f.checked.Store(-int64(operation)) }

// checkFrozen lets an operator stop a provider that spends nothing: its freeze is read
// from the ledger at most once a second.
func (c *call) checkFrozen() error {
	if c.t.ledger == nil {
		return nil
	}
	f := &c.p.state.frozen
	checked := f.checked.Load()
	if age := c.now.UnixNano() - checked; age >= 0 && age < int64(time.Second) {
		return nil
	}
	report, err := c.t.ledger.Hold(c.ctx, budget.Hold{Provider: c.p.Name})
	c.noticed(report)
	if isFrozen(err) {
		c.giveTurnBack()
		return err
	}
	if err != nil {
		return nil // it spends nothing: not knowing is no reason to stop it
	}
	f.checked.CompareAndSwap(checked, c.now.UnixNano())
	return nil
}

func isFrozen(err error) bool {
	_, ok := errors.AsType[*budget.FrozenError](err)
	return ok
}

// isRefusal reports whether err is a ledger's considered no, after which no hold exists.
func isRefusal(err error) bool {
	if _, ok := errors.AsType[*budget.ExceededError](err); ok {
		return true
	}
	return isFrozen(err) || errors.Is(err, budget.ErrConflict)
}

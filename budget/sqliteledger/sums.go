package sqliteledger

import (
	"fmt"

	"github.com/outlay-go/outlay/budget"
)

// sums is what a window amounts to, or one leg of a hold.
type sums struct {
	settled, presumed, held budget.Amount
	overrun                 budget.Amount // cost above what was held
	floor                   budget.Amount // the part of presumed that is known to be spent
	open, unknown           int64         // holds in flight, holds without evidence
}

// used is what counts against the limit.
func (s sums) used() budget.Amount { return s.settled + s.presumed + s.held }

// add returns s + t, if all that is used together still is an Amount.
func (s sums) add(t sums) (sums, error) {
	var err error
	plus := func(a, b budget.Amount) budget.Amount {
		sum, e := a.Add(b)
		if e != nil {
			err = fmt.Errorf("%w: %w", budget.ErrConflict, e)
		}
		return sum
	}
	s.settled, s.presumed, s.held = plus(s.settled, t.settled), plus(s.presumed, t.presumed), plus(s.held, t.held)
	s.overrun, s.floor = plus(s.overrun, t.overrun), plus(s.floor, t.floor)
	plus(plus(s.settled, s.presumed), s.held)
	s.open, s.unknown = s.open+t.open, s.unknown+t.unknown
	return s, err
}

func (s sums) minus(t sums) sums {
	return sums{
		settled: s.settled - t.settled, presumed: s.presumed - t.presumed, held: s.held - t.held,
		overrun: s.overrun - t.overrun, floor: s.floor - t.floor, open: s.open - t.open, unknown: s.unknown - t.unknown,
	}
}

// cost is what a leg of which held was set aside counts for by an outcome. A leg in
// calls costs what was held, unless nothing was billed.
func cost(held budget.Amount, unit string, o budget.Outcome) budget.Amount {
	switch {
	case o.State == budget.StateHeld:
		return held
	case o.State == budget.StateVoided:
		return 0
	case unit == budget.Calls:
		return held
	case o.State == budget.StatePresumed:
		return max(held, o.Amount)
	default:
		return o.Amount
	}
}

// share is what such a leg adds to its window.
func share(held budget.Amount, unit string, o budget.Outcome) sums {
	counted := cost(held, unit, o)
	s := sums{overrun: max(0, counted-held)}
	switch {
	case o.State == budget.StateHeld:
		s.held, s.open = counted, 1
	case o.State == budget.StatePresumed && unit == budget.Calls:
		s.presumed, s.unknown = counted, 1
	case o.State == budget.StatePresumed:
		s.presumed, s.floor, s.unknown = counted, o.Amount, 1
	default:
		s.settled = counted
	}
	return s
}

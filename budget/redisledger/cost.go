package redisledger

import (
	"time"

	"github.com/outlay-go/outlay/budget"
)

// report is what resolving the hold does, as far as this instance knows.
func (o *open) report(out budget.Outcome, now time.Time) (r budget.Report) {
	money := false
	for i := range o.legs {
		lg := &o.legs[i]
		cost := lg.cost(out)
		if i == 0 || (!money && !lg.calls) {
			r.Delta, money = cost-lg.amount, !lg.calls
		}
		r.Overrun = max(r.Overrun, cost-lg.amount)
		r.Late = r.Late || !now.Before(lg.ends)
	}
	return r
}

func (l *leg) cost(o budget.Outcome) budget.Amount {
	switch {
	case o.State == budget.StateVoided:
		return 0
	case l.calls:
		return l.amount
	case o.State == budget.StatePresumed:
		return max(l.amount, o.Amount)
	}
	return o.Amount
}

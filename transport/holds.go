package transport

import (
	"context"

	"github.com/outlay-go/outlay/budget"
)

// Unresolved lists holds without evidence, oldest first, at most limit of them (zero:
// all) of one provider (empty: of all).
func (t *Transport) Unresolved(ctx context.Context, provider string, limit int) ([]budget.Unresolved, error) {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return nil, ErrUnsupported
	}
	return o.Unresolved(ctx, provider, limit)
}

// Correct puts the cost of a presumed or settled hold at a, as an invoice or a person
// says, and tells the hook. The provider and the unit are told as well where the hold
// is still without evidence: the ledger lists no others.
func (t *Transport) Correct(ctx context.Context, id budget.HoldID, a budget.Amount, by budget.By) (budget.Report, error) {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return budget.Report{}, ErrUnsupported
	}
	e := Event{Kind: KindResolved, Outcome: budget.StateCorrected.String(), Evidence: "operator", Cost: a}
	if t.onEvent != nil {
		all, err := o.Unresolved(ctx, "", 0)
		if err != nil {
			return budget.Report{}, err
		}
		for _, u := range all {
			if u.ID == id {
				e.Provider, e.Unit = u.Provider, unitOf(u.Legs)
			}
		}
	}
	report, err := o.Correct(ctx, id, a, by)
	if err != nil {
		return report, err
	}
	for _, n := range report.Notices {
		if ev, ok := noticeEvent(n); ok {
			t.emit(ctx, ev)
		}
	}
	e.Delta, e.Late = report.Delta, report.Late
	t.emit(ctx, e)
	t.emit(ctx, Event{Kind: KindChanged, Action: "correct", Actor: by.Who, Provider: e.Provider, To: a.String(), Unit: e.Unit})
	return report, nil
}

// unitOf is the money unit of a hold.
func unitOf(legs []budget.UnresolvedLeg) string {
	for _, l := range legs {
		if l.Unit != budget.Calls {
			return l.Unit
		}
	}
	return budget.Calls
}

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
// says, and tells the hook.
func (t *Transport) Correct(ctx context.Context, id budget.HoldID, a budget.Amount, by budget.By) (budget.Correction, error) {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return budget.Correction{}, ErrUnsupported
	}
	c, err := o.Correct(ctx, id, a, by)
	if err != nil {
		return c, err
	}
	for _, n := range c.Notices {
		if ev, ok := noticeEvent(n); ok {
			t.emit(ctx, ev)
		}
	}
	t.emit(ctx, Event{Kind: KindResolved, Outcome: budget.StateCorrected.String(), Evidence: "operator", Cost: a,
		Provider: c.Provider, Unit: c.Unit, Delta: c.Delta, Overrun: c.Overrun, Late: c.Late})
	t.emit(ctx, Event{Kind: KindChanged, Action: "correct", Actor: by.Who, Provider: c.Provider, To: a.String(), Unit: c.Unit})
	return c, nil
}

package transport

import (
	"context"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// History tells how the present windows of all configured budgets came about, for
// ledgers that remember it; else the error is [ErrUnsupported].
func (t *Transport) History(ctx context.Context) ([]budget.History, error) {
	h, ok := t.ledger.(budget.Historian)
	if !ok {
		return nil, ErrUnsupported
	}
	budgets := t.setup.Load().budgets()
	return within(ctx, t, func(ctx context.Context) ([]budget.History, error) { return h.History(ctx, time.Now(), budgets...) })
}

// Spending tells by provider what the present windows of all configured budgets come to,
// for ledgers that remember it; else the error is [ErrUnsupported].
func (t *Transport) Spending(ctx context.Context) ([]budget.Spending, error) {
	h, ok := t.ledger.(budget.Historian)
	if !ok {
		return nil, ErrUnsupported
	}
	budgets := t.setup.Load().budgets()
	return within(ctx, t, func(ctx context.Context) ([]budget.Spending, error) { return h.Spending(ctx, time.Now(), budgets...) })
}

// Windows returns the totals of the windows of all configured budgets that overlap the
// time from (included) to to (not included), for ledgers that remember them; else the
// error is [ErrUnsupported]. Budgets that requests name are left out.
func (t *Transport) Windows(ctx context.Context, from, to time.Time) ([]budget.Totals, error) {
	h, ok := t.ledger.(budget.Historian)
	if !ok {
		return nil, ErrUnsupported
	}
	configured := map[string]budget.Budget{}
	for _, b := range t.setup.Load().budgets() {
		configured[b.Name] = b
	}
	all, err := within(ctx, t, func(ctx context.Context) ([]budget.Totals, error) { return h.Windows(ctx, from, to) })
	kept := all[:0]
	for _, w := range all {
		if b, ok := configured[w.Budget.Name]; ok {
			w.Budget = b
			kept = append(kept, w)
		}
	}
	return kept, err
}

// Audit lists what people did and tried, as [budget.Auditor] says, for ledgers that keep
// it; else the error is [ErrUnsupported].
func (t *Transport) Audit(ctx context.Context, after string, limit int) ([]budget.Audited, error) {
	a, ok := t.ledger.(budget.Auditor)
	if !ok {
		return nil, ErrUnsupported
	}
	return within(ctx, t, func(ctx context.Context) ([]budget.Audited, error) { return a.Audit(ctx, after, limit) })
}

// Note adds an entry to what people did, for ledgers that keep it; else the error is
// [ErrUnsupported].
func (t *Transport) Note(ctx context.Context, e budget.Audited) error {
	a, ok := t.ledger.(budget.Auditor)
	if !ok {
		return ErrUnsupported
	}
	return scrub(a.Note(ctx, e))
}

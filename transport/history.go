package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// maxReaders bounds the readings of a ledger that are under way, in case it hangs and
// does not look at the context.
const maxReaders = 16

// within reads from the ledger until ctx ends, also if the ledger does not look at it.
// Then the reading goes on in a goroutine of its own, of which there are at most 16.
func within[T any](ctx context.Context, t *Transport, read func(context.Context) (T, error)) (T, error) {
	var none T
	if t.readers.Add(1) > maxReaders {
		t.readers.Add(-1)
		return none, fmt.Errorf("%w: %d readings have not come back", budget.ErrUnavailable, maxReaders)
	}
	type answer struct {
		v     T
		err   error
		panic any
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			a.panic = recover()
			t.readers.Add(-1)
			answered <- a
		}()
		a.v, a.err = read(ctx)
	}()
	select {
	case a := <-answered:
		if a.panic != nil {
			panic(a.panic)
		}
		return a.v, a.err
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", budget.ErrUnavailable, ctx.Err())
	}
}

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
	return a.Note(ctx, e)
}

// FreezeBudget stops all calls that the budget of that name pays for, for everybody who
// shares the ledger, until ReleaseBudget. Calls in flight go on and are settled.
func (t *Transport) FreezeBudget(ctx context.Context, name string, by budget.By) error {
	return t.operateBudget(ctx, name, "freeze", by, budget.Operator.Freeze)
}

// ReleaseBudget lets a frozen budget pay again.
func (t *Transport) ReleaseBudget(ctx context.Context, name string, by budget.By) error {
	return t.operateBudget(ctx, name, "release", by, budget.Operator.Release)
}

func (t *Transport) operateBudget(ctx context.Context, name, action string, by budget.By, do func(budget.Operator, context.Context, budget.Target, budget.By) error) error {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return ErrUnsupported
	}
	for _, b := range t.setup.Load().budgets() {
		if b.Name != name {
			continue
		}
		if err := do(o, ctx, budget.Target{Budget: name}, by); err != nil {
			return err
		}
		t.emit(ctx, Event{Kind: KindChanged, Time: time.Now().UTC(), Action: action, Actor: by.Who, Budget: b.Label})
		return nil
	}
	return fmt.Errorf("transport: no budget %q", name)
}

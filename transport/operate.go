package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// ErrUnsupported says that the configured Ledger or Limiter cannot do what an operator
// asks.
var ErrUnsupported = errors.New("transport: not supported by the ledger or limiter in use")

// Freeze stops a provider at once, for everybody who shares the ledger, until Release.
// Calls in flight go on and are settled. It is an entry in the ledger that names who and
// why. It fails for a name that is not configured, with [ErrUnsupported] if the ledger is
// no [budget.Operator], and as that does; then nothing has changed.
func (t *Transport) Freeze(ctx context.Context, provider string, by budget.By) error {
	return t.operate(ctx, provider, "freeze", by, func(o budget.Operator) error {
		return o.Freeze(ctx, budget.Target{Provider: provider}, by)
	})
}

// Release lets a frozen provider go on. It fails as [Transport.Freeze] does.
func (t *Transport) Release(ctx context.Context, provider string, by budget.By) error {
	return t.operate(ctx, provider, "release", by, func(o budget.Operator) error {
		return o.Release(ctx, budget.Target{Provider: provider}, by)
	})
}

// FreezeBudget stops all calls that the budget of that name pays for, for everybody who
// shares the ledger, until ReleaseBudget. Calls in flight go on and are settled. It
// fails as [Transport.Freeze] does, also for names that BudgetsFor made.
func (t *Transport) FreezeBudget(ctx context.Context, name string, by budget.By) error {
	return t.operateBudget(ctx, name, "freeze", by, budget.Operator.Freeze)
}

// ReleaseBudget lets a frozen budget pay again. It fails as [Transport.FreezeBudget] does.
func (t *Transport) ReleaseBudget(ctx context.Context, name string, by budget.By) error {
	return t.operateBudget(ctx, name, "release", by, budget.Operator.Release)
}

// SetLimit changes the limit of a budget at once, for everybody who shares the ledger,
// also before its first call. It stays until the configured limit changes. Names that
// BudgetsFor made can be changed once a call has used them.
func (t *Transport) SetLimit(ctx context.Context, name string, limit budget.Amount, by budget.By) error {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return ErrUnsupported
	}
	set := t.setup.Load()
	e := Event{Kind: KindChanged, Action: "limit", Actor: by.Who, To: limit.String()}
	for _, b := range set.budgets() {
		if b.Name != name {
			continue
		}
		if err := o.Configure(ctx, b); err != nil {
			return scrub(err)
		}
		e.Budget, e.Unit = b.Label, b.Unit
		if was, err := t.ledger.Totals(ctx, time.Now(), b); err == nil { // for the hook only
			e.From = was[0].Limit.String()
		}
	}
	if err := o.SetLimit(ctx, name, limit, by); err != nil {
		return scrub(err)
	}
	set.forgetBooks()
	t.emit(ctx, e)
	return nil
}

// OpenGate opens the gates and drops the caps of a provider and of all its scopes that
// the limiter tells of ([throttle.Informer]), although the provider said otherwise. A
// ledger that keeps what people do notes it first.
func (t *Transport) OpenGate(ctx context.Context, provider string, by budget.By) error {
	p, err := t.provider(provider)
	if err != nil {
		return err
	}
	note := budget.Audited{By: by, Action: "open_gate", Target: budget.Target{Provider: provider}}
	if err := t.Note(ctx, note); err != nil && !errors.Is(err, ErrUnsupported) {
		return err
	}
	keys := []string{p.Name}
	if i, ok := t.limiter.(throttle.Informer); ok {
		for _, s := range i.Stats(p.Name).Scopes {
			if s.Key != p.Name {
				keys = append(keys, s.Key)
			}
		}
	}
	for _, key := range keys {
		if err := t.limiter.Cap(ctx, throttle.Cap{Key: key, Cause: throttle.CauseOperator, Reopen: true}); err != nil {
			return scrub(err)
		}
		p.state.backoffs.forget(key)
	}
	t.emit(ctx, Event{Kind: KindChanged, Time: time.Now().UTC(), Action: "open_gate", Actor: by.Who, Provider: provider})
	return nil
}

// Unresolved lists holds without evidence, oldest first, at most limit of them (zero:
// all) of one provider (empty: of all).
func (t *Transport) Unresolved(ctx context.Context, provider string, limit int) ([]budget.Unresolved, error) {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return nil, ErrUnsupported
	}
	list, err := o.Unresolved(ctx, provider, limit)
	return list, scrub(err)
}

// Correct puts the cost of a presumed or settled hold at a, in the unit of its money, as
// an invoice or a person says, and tells the hook.
func (t *Transport) Correct(ctx context.Context, id budget.HoldID, a budget.Amount, by budget.By) (budget.Correction, error) {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return budget.Correction{}, ErrUnsupported
	}
	c, err := o.Correct(ctx, id, a, by)
	if err != nil {
		return c, scrub(err)
	}
	t.setup.Load().forgetBooks()
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

func (t *Transport) operate(ctx context.Context, provider, action string, by budget.By, do func(budget.Operator) error) error {
	p, err := t.provider(provider)
	if err != nil {
		return err
	}
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return ErrUnsupported
	}
	if err := do(o); err != nil {
		return scrub(err)
	}
	p.state.frozen.ask(t.operations.Add(1))
	p.state.looks.forget()
	t.emit(ctx, Event{Kind: KindChanged, Time: time.Now().UTC(), Action: action, Actor: by.Who, Provider: provider})
	return nil
}

func (t *Transport) provider(name string) (*provider, error) {
	for _, p := range t.setup.Load().providers {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("transport: no provider %q", name)
}

func (t *Transport) operateBudget(ctx context.Context, name, action string, by budget.By, do func(budget.Operator, context.Context, budget.Target, budget.By) error) error {
	o, ok := t.ledger.(budget.Operator)
	if !ok {
		return ErrUnsupported
	}
	set := t.setup.Load()
	for _, b := range set.budgets() {
		if b.Name != name {
			continue
		}
		if err := do(o, ctx, budget.Target{Budget: name}, by); err != nil {
			return scrub(err)
		}
		set.forgetBooks()
		t.emit(ctx, Event{Kind: KindChanged, Time: time.Now().UTC(), Action: action, Actor: by.Who, Budget: b.Label})
		return nil
	}
	return fmt.Errorf("transport: no budget %q", name)
}

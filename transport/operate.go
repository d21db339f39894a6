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

// Update swaps in a new configuration, whole or not at all: its error names every wrong
// field, and then nothing has changed. Base, TracedBase, Ledger, Limiter, OnEvent and
// AttemptInContext stay those of New, whatever c says.
//
// Calls under way finish under the configuration they began with. Buckets, gates, slots
// and books go on by the names of providers and scopes: those who wait are re-timed to
// new rates at once, a larger bucket is not refilled, and no gate opens. Waiters of a
// provider that is gone get their turn all the same.
func (t *Transport) Update(c Config) error {
	if err := t.swap(c); err != nil {
		return err
	}
	t.emit(context.Background(), Event{Kind: KindChanged, Time: time.Now().UTC(), Action: "update", Actor: "configuration"})
	return nil
}

func (t *Transport) swap(c Config) error {
	t.updating.Lock()
	defer t.updating.Unlock()
	c.Base, c.Ledger, c.Limiter = nil, t.ledger, nil
	set, err := compile(c, t.setup.Load())
	if err != nil {
		return err
	}
	old := t.setup.Swap(set)
	for _, p := range set.providers {
		if was := old.named(p.Name); was != nil {
			was.next.Store(p)
		}
	}
	tuner, _ := t.limiter.(throttle.Tuner)
	for _, p := range set.providers {
		p.state.forgetBooks() // limits may be higher
		if tuner != nil {
			// Validated already; what a store does not hear now, the next call tells it.
			_ = tuner.Set(throttle.Leg{Key: p.Name, Rates: p.Rates, Slots: p.MaxInFlight})
		}
	}
	return nil
}

// Freeze stops a provider at once, for everybody who shares the ledger, until Release.
// It is an entry in the ledger that names who and why.
func (t *Transport) Freeze(ctx context.Context, provider string, by budget.By) error {
	return t.operate(ctx, provider, "freeze", by, func(o budget.Operator) error {
		return o.Freeze(ctx, budget.Target{Provider: provider}, by)
	})
}

// Release lets a frozen provider go on.
func (t *Transport) Release(ctx context.Context, provider string, by budget.By) error {
	return t.operate(ctx, provider, "release", by, func(o budget.Operator) error {
		return o.Release(ctx, budget.Target{Provider: provider}, by)
	})
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
			return err
		}
		e.Budget, e.Unit = b.Label, b.Unit
		if was, err := t.ledger.Totals(ctx, time.Now(), b); err == nil { // for the hook only
			e.From = was[0].Limit.String()
		}
	}
	if err := o.SetLimit(ctx, name, limit, by); err != nil {
		return err
	}
	for _, p := range set.providers {
		p.state.forgetBooks()
	}
	t.emit(ctx, e)
	return nil
}

// OpenGate opens the gates and drops the caps of a provider and all its scopes, although
// the provider said otherwise. A ledger that keeps what people do notes it first.
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
			return err
		}
		p.state.backoffs.forget(key)
	}
	t.emit(ctx, Event{Kind: KindChanged, Time: time.Now().UTC(), Action: "open_gate", Actor: by.Who, Provider: provider})
	return nil
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
		return err
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

package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Configure implements [Operator].
func (m *Memory) Configure(_ context.Context, b Budget) error {
	if b.Name == "" {
		return fmt.Errorf("%w: a budget without a name", ErrConflict)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.account(&b)
	if err == nil {
		m.know(a)
	}
	return err
}

// SetLimit implements [Operator]. The limit that is configured, set again, ends an
// override.
func (m *Memory) SetLimit(_ context.Context, budget string, limit Amount, by By) error {
	if limit <= 0 {
		return fmt.Errorf("budget %s: the limit must be more than zero, not %v; to stop all calls freeze it", budget, limit)
	}
	if err := by.Validate(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[budget]
	if a == nil {
		return fmt.Errorf("budget %s: the ledger does not know it", budget)
	}
	m.note(Audited{By: by, Action: "limit", Target: Target{Budget: a.budget.Name}, From: a.limit().String(), To: limit.String()})
	a.override = limit
	if limit == a.budget.Limit {
		a.override = 0
	}
	return nil
}

// Freeze implements [Operator]. What is frozen already stays so since then.
func (m *Memory) Freeze(_ context.Context, t Target, by By) error {
	if err := errors.Join(t.Validate(), by.Validate()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, already := m.frozen[t]; already {
		return nil
	}
	if m.frozen == nil {
		m.frozen = make(map[Target]time.Time)
	}
	t = Target{strings.Clone(t.Provider), strings.Clone(t.Budget)}
	m.frozen[t] = m.read().Now
	m.note(Audited{By: by, Action: "freeze", Target: t})
	return nil
}

// Release implements [Operator]. What is not frozen stays so.
func (m *Memory) Release(_ context.Context, t Target, by By) error {
	if err := errors.Join(t.Validate(), by.Validate()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, frozen := m.frozen[t]; frozen {
		delete(m.frozen, t)
		m.note(Audited{By: by, Action: "release", Target: Target{strings.Clone(t.Provider), strings.Clone(t.Budget)}})
	}
	return nil
}

// stopped returns the error of a hold of which something is frozen.
func (m *Memory) stopped(r *record, provider string) error {
	if len(m.frozen) == 0 {
		return nil
	}
	if since, ok := m.frozen[Target{Provider: provider}]; ok {
		return &FrozenError{Provider: provider, Since: since}
	}
	for i := range r.legs {
		b := &r.legs[i].account.budget
		if since, ok := m.frozen[Target{Budget: b.Name}]; ok {
			return &FrozenError{Provider: provider, Budget: b.Label, Since: since}
		}
	}
	return nil
}

// Unresolved implements [Operator].
func (m *Memory) Unresolved(_ context.Context, provider string, limit int) ([]Unresolved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Unresolved
	for r := m.open.first; r != nil && (limit <= 0 || len(all) < limit); r = r.next {
		if provider != "" && provider != r.provider {
			continue
		}
		u := Unresolved{ID: r.id, Provider: r.provider, Ref: r.ref, State: r.state, At: r.at}
		for _, l := range r.legs {
			amount := l.held
			if r.state == StatePresumed {
				amount = l.counted
			}
			b := &l.account.budget
			u.Legs = append(u.Legs, UnresolvedLeg{Budget: b.Label, Window: l.book.ID, Unit: b.Unit, Amount: amount})
		}
		all = append(all, u)
	}
	return all, nil
}

// unit is what the cost of a hold is in.
func (r *record) unit() string {
	for i := range r.legs {
		if r.legs[i].money() {
			return r.legs[i].account.budget.Unit
		}
	}
	return Calls
}

// Correct implements [Operator].
func (m *Memory) Correct(ctx context.Context, id HoldID, a Amount, by By) (c Correction, err error) {
	if err := by.Validate(); err != nil {
		return c, err
	}
	c.Report, err = m.Resolve(ctx, id, Corrected(a, by.Why))
	if err != nil {
		return c, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.holds.get(id); r != nil {
		c.Provider, c.Unit = r.provider, r.unit()
	}
	m.note(Audited{By: by, Action: "correct", Target: Target{Provider: c.Provider}, Hold: id, To: c.Delta.String()})
	return c, nil
}

package sqliteledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// Configure implements [budget.Operator].
func (l *Ledger) Configure(ctx context.Context, bud budget.Budget) error {
	if err := bud.Validate(); err != nil || bud.Name == "" {
		return fmt.Errorf("%w: budget %q: %w", budget.ErrConflict, bud.Name, cmp.Or(err, errors.New("it has no name")))
	}
	bud = bud.Normal()
	bud.Alerts = slices.Clone(bud.Alerts)
	return l.do(ctx, func(b *books) error {
		a, err := b.configure(bud)
		if err == nil && a.id == 0 {
			b.addAccount(a)
			b.saveAccount(a)
		}
		return cmp.Or(err, b.err)
	})
}

// SetLimit implements [budget.Operator]. The limit that is configured, set again, ends
// an override.
func (l *Ledger) SetLimit(ctx context.Context, name string, limit budget.Amount, by budget.By) error {
	if limit <= 0 {
		return fmt.Errorf("budget %s: the limit must be more than zero, not %v; to stop all calls freeze it", name, limit)
	}
	if err := by.Validate(); err != nil {
		return err
	}
	return l.do(ctx, func(b *books) error {
		a, err := b.known(name)
		if err != nil {
			return err
		}
		was := a.limit()
		a.override = limit
		if limit == a.budget.Limit {
			a.override = 0
		}
		b.saveAccount(a)
		b.event("limit", budget.Target{Budget: name}, was, limit, by)
		return b.err
	})
}

// known returns the account of a budget that was used at least once.
func (b *books) known(name string) (*account, error) {
	a := b.account(name)
	if a == nil && b.err == nil {
		return nil, fmt.Errorf("budget %s: the ledger does not know it", name)
	}
	return a, b.err
}

// event writes a line of the audit trail that moves no money.
func (b *books) event(kind string, t budget.Target, was, amount budget.Amount, by budget.By) {
	b.lastEntry++
	b.exec(`INSERT INTO entry(id, at, kind, budget_name, provider_name, was, amount, who, why) VALUES(?,?,?,?,?,nullif(?,0),nullif(?,0),?,?)`,
		b.lastEntry, b.now.UnixMilli(), kind, t.Budget, t.Provider, int64(was), int64(amount), by.Who, by.Why)
}

// Freeze implements [budget.Operator]. What is frozen already stays so since then.
func (l *Ledger) Freeze(ctx context.Context, t budget.Target, by budget.By) error {
	return l.change(ctx, t, by, func(b *books) {
		if b.exec("INSERT INTO frozen(provider, budget, since, who, why) VALUES(coalesce(?,''),coalesce(?,''),?,?,?) ON CONFLICT DO NOTHING",
			t.Provider, t.Budget, b.now.UnixMilli(), by.Who, by.Why) > 0 {
			b.event("freeze", t, 0, 0, by)
		}
	})
}

// Release implements [budget.Operator]. What is not frozen stays so.
func (l *Ledger) Release(ctx context.Context, t budget.Target, by budget.By) error {
	return l.change(ctx, t, by, func(b *books) {
		if b.exec("DELETE FROM frozen WHERE provider=coalesce(?,'') AND budget=coalesce(?,'')", t.Provider, t.Budget) > 0 {
			b.event("release", t, 0, 0, by)
		}
	})
}

func (l *Ledger) change(ctx context.Context, t budget.Target, by budget.By, f func(*books)) error {
	if err := errors.Join(t.Validate(), by.Validate()); err != nil {
		return err
	}
	return l.do(ctx, func(b *books) error {
		f(b)
		b.readFrozen()
		return b.err
	})
}

// Frozen is a provider or a budget that an operator has stopped.
type Frozen struct {
	budget.Target
	Since time.Time
	By    budget.By
}

// Frozen lists what is frozen, by name.
func (l *Ledger) Frozen(ctx context.Context) ([]Frozen, error) {
	var all []Frozen
	err := l.view(ctx, func(b *books) {
		b.query(func(s *sqlite3.Stmt) {
			all = append(all, Frozen{
				Target: budget.Target{Provider: s.ColumnText(0), Budget: s.ColumnText(1)}, Since: instant(s, 2),
				By: budget.By{Who: s.ColumnText(3), Why: s.ColumnText(4)},
			})
		}, "SELECT provider, budget, since, who, why FROM frozen ORDER BY provider, budget")
	})
	return all, err
}

// Providers lists the providers that ever took a hold, by name.
func (l *Ledger) Providers(ctx context.Context) (names []string, err error) {
	err = l.view(ctx, func(b *books) {
		b.query(func(s *sqlite3.Stmt) { names = append(names, s.ColumnText(0)) }, "SELECT name FROM provider ORDER BY name")
	})
	return names, err
}

func (b *books) isFrozen(name string) bool {
	_, ok := b.frozen[budget.Target{Budget: name}]
	return ok
}

// Correct implements [budget.Operator].
func (l *Ledger) Correct(ctx context.Context, id budget.HoldID, a budget.Amount, by budget.By) (c budget.Correction, err error) {
	if err := by.Validate(); err != nil {
		return c, err
	}
	err = l.do(ctx, func(b *books) (err error) {
		c.Report, err = b.resolve(id, budget.Corrected(a, by.Why), by.Who)
		if h := b.row(id); err == nil && h != nil {
			c.Provider, c.Unit = b.text("SELECT name FROM provider WHERE id=?", h.provider), budget.Calls
			for _, l := range b.legsOf(h) {
				if l.unit != budget.Calls {
					c.Unit = l.unit
					break
				}
			}
		}
		return cmp.Or(err, b.err)
	})
	c.Notices = l.news()
	return c, err
}

// Unresolved implements [budget.Operator].
func (l *Ledger) Unresolved(ctx context.Context, provider string, limit int) ([]budget.Unresolved, error) {
	if limit <= 0 {
		limit = -1
	}
	var all []budget.Unresolved
	err := l.view(ctx, func(b *books) {
		b.query(func(s *sqlite3.Stmt) {
			id := budget.HoldID{Boot: uint64(s.ColumnInt64(0)), Seq: uint64(s.ColumnInt64(1))}
			all = append(all, budget.Unresolved{ID: id, At: instant(s, 2), Provider: s.ColumnText(3), Ref: s.ColumnText(4)})
		}, `SELECT boot, seq, at, name, ref FROM hold JOIN provider ON provider.id=hold.provider
			WHERE state IN (?,?) AND (?3 IS NULL OR name=?3) ORDER BY first LIMIT ?4`,
			int(budget.StateHeld), int(budget.StatePresumed), provider, limit)
		for i := range all {
			b.fill(&all[i])
		}
	})
	return all, err
}

// fill adds what an unresolved hold pins.
func (b *books) fill(u *budget.Unresolved) {
	h := b.row(u.ID)
	if h == nil {
		return
	}
	u.State = h.state
	for _, l := range b.legsOf(h) {
		u.Legs = append(u.Legs, budget.UnresolvedLeg{Budget: l.page.account.budget.Label, Window: l.page.key,
			Unit: l.unit, Amount: cost(l.held, l.unit, h.present())})
	}
}

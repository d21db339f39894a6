package redisledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
)

// Configure implements [budget.Operator].
func (l *Ledger) Configure(ctx context.Context, b budget.Budget) error {
	if err := b.Validate(); err != nil || b.Name == "" {
		return fmt.Errorf("%w: budget %q: %w", budget.ErrConflict, b.Name, cmp.Or(err, errors.New("it has no name")))
	}
	_, err := l.configure(ctx, b.Normal())
	return err
}

// SetLimit implements [budget.Operator]. The limit that is configured, set again, ends
// an override.
func (l *Ledger) SetLimit(ctx context.Context, name string, limit budget.Amount, by budget.By) error {
	if limit <= 0 {
		return fmt.Errorf("budget %s: the limit must be more than zero, not %v; to stop all calls freeze it", name, limit)
	}
	kept, err := l.operate(ctx, "limit", name, strconv.FormatInt(int64(limit), 10), by)
	if err == nil {
		l.keepLimit(name, kept)
	}
	return err
}

// Freeze implements [budget.Operator]. What is frozen already stays so since then.
func (l *Ledger) Freeze(ctx context.Context, t budget.Target, by budget.By) error {
	return l.target(ctx, "freeze", t, by)
}

// Release implements [budget.Operator]. It also lets a budget begin anew whose window
// has vanished from Redis: look at the provider's own figures first.
func (l *Ledger) Release(ctx context.Context, t budget.Target, by budget.By) error {
	return l.target(ctx, "release", t, by)
}

func (l *Ledger) target(ctx context.Context, what string, t budget.Target, by budget.By) error {
	if err := t.Validate(); err != nil {
		return err
	}
	name, field := t.Budget, frozenBudget(t.Budget)
	if t.Provider != "" {
		name, field = t.Provider, frozenProvider(t.Provider)
	}
	_, err := l.operate(ctx, what, name, field, by)
	switch {
	case err != nil:
	case what == "freeze":
		l.setFrozen(field, l.store.now().UnixMilli())
	default:
		l.setFrozen(field, 0)
	}
	return err
}

// operate returns what the store keeps of a limit.
func (l *Ledger) operate(ctx context.Context, what, name, arg string, by budget.By) (kept string, err error) {
	if err := by.Validate(); err != nil {
		return "", err
	}
	k := &l.keys
	reply, _, err := l.store.run(ctx, l.scripts.operate, []string{k.log, k.frozen, k.generation, k.account(name)}, what, arg, by.Who, by.Why, name)
	if err == nil && text(at(reply, 0)) == "unknown" {
		err = fmt.Errorf("budget %s: the ledger does not know it", name)
	}
	return text(at(reply, 1)), err
}

// Correct implements [budget.Operator].
func (l *Ledger) Correct(ctx context.Context, id budget.HoldID, a budget.Amount, by budget.By) (c budget.Correction, err error) {
	if err := by.Validate(); err != nil {
		return c, err
	}
	c.Report, err = l.resolve(context.WithoutCancel(ctx), id, late{outcome: budget.Corrected(a, by.Why), people: true, by: by})
	c.Report = l.tell(c.Report)
	if err != nil {
		return c, err
	}
	// Corrected it is, whatever becomes of this: it is for those who are told.
	if u, ok, err := l.unresolved(ctx, redis.Z{Member: id.String()}); err == nil && ok {
		c.Provider, c.Unit = u.Provider, budget.Calls
		for _, leg := range u.Legs {
			if leg.Unit != budget.Calls {
				c.Unit = leg.Unit
				break
			}
		}
	}
	return c, nil
}

// Unresolved implements [budget.Operator]. It reads every hold without evidence, so it
// takes time in proportion to their number.
func (l *Ledger) Unresolved(ctx context.Context, provider string, limit int) ([]budget.Unresolved, error) {
	l.flush(ctx)
	all, err := l.listed(ctx)
	if err != nil {
		return nil, err
	}
	var found []budget.Unresolved
	for _, m := range all {
		if limit > 0 && len(found) == limit {
			break
		}
		u, ok, err := l.unresolved(ctx, m)
		if err != nil {
			return nil, err
		}
		if ok && (provider == "" || provider == u.Provider) {
			found = append(found, u)
		}
	}
	return found, nil
}

// listed are the ids of all holds without evidence, the oldest first.
func (l *Ledger) listed(ctx context.Context) (all []redis.Z, err error) {
	owners, err := l.members(ctx, l.keys.owners, 0)
	if err != nil {
		return nil, err
	}
	keys := []string{l.keys.presumed}
	for _, o := range owners {
		keys = append(keys, l.keys.holds(o))
	}
	for _, key := range keys {
		z, _, err := do(ctx, l.store, func(ctx context.Context) ([]redis.Z, error) {
			return l.store.Client.ZRangeWithScores(ctx, key, 0, -1).Result()
		})
		if err != nil {
			return nil, err
		}
		all = append(all, z...)
	}
	slices.SortStableFunc(all, func(a, b redis.Z) int { return int(a.Score) - int(b.Score) })
	return all, nil
}

func (l *Ledger) unresolved(ctx context.Context, m redis.Z) (u budget.Unresolved, ok bool, err error) {
	id, valid := parseID(fmt.Sprint(m.Member))
	if !valid || id.Boot == l.boot && id.Seq > 1<<63 { // an allowance
		return u, false, nil
	}
	v, err := l.fields(ctx, l.keys.hold(id), "legs", "windows", "state", "amount", "ref")
	if err != nil {
		return u, false, err
	}
	provider, legs, ok := parseHold(text(at(v, 0)), text(at(v, 1)))
	if !ok {
		return u, false, nil
	}
	u = budget.Unresolved{ID: id, Provider: provider, Ref: text(at(v, 4)), State: budget.StateHeld, At: time.UnixMicro(int64(m.Score))}
	said := budget.Outcome{Amount: amount(at(v, 3))}
	if text(at(v, 2)) == "p" {
		u.State = budget.StatePresumed
	}
	for i := range legs {
		lg := &legs[i]
		pinned := budget.UnresolvedLeg{Budget: lg.name, Window: lg.id, Amount: lg.amount}
		if u.State == budget.StatePresumed {
			pinned.Amount = lg.cost(said)
		}
		if pinned.Budget, pinned.Unit, err = l.named(ctx, lg.name); err != nil {
			return u, false, err
		}
		u.Legs = append(u.Legs, pinned)
	}
	return u, true, nil
}

// named reads the label and the unit of a budget.
func (l *Ledger) named(ctx context.Context, name string) (label, unit string, err error) {
	v, err := l.fields(ctx, l.keys.account(name), "label", "what")
	if label = text(at(v, 0)); label == "" {
		label = name
	}
	unit, _, _ = strings.Cut(text(at(v, 1)), "|")
	return label, unit, err
}

// parseID reads what HoldID.String writes.
func parseID(s string) (id budget.HoldID, ok bool) {
	id, err := budget.ParseHoldID(s)
	return id, err == nil
}

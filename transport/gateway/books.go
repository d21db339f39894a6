package gateway

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// Conflicts compares the budgets of the file with the books of a ledger. What it returns
// are errors: a budget whose name the books have with another zone, period or currency pays
// for no call, so that such a file must not be served. Of a budget of which every tenant,
// caller or destination has one, those are compared that the ledger lists.
//
// An error says that the ledger did not answer; then nothing is known. Nothing is changed.
func (f *File) Conflicts(ctx context.Context, ledger budget.Ledger, at time.Time) ([]Problem, error) {
	r := &reader{file: f.Path}
	all, told := f.allBudgets(), map[string]bool{}
	var wrong []budget.Budget
	for name, b := range all {
		if f.owners[name] != "" {
			continue // it is kept under other names
		}
		if yes, err := contradicts(ctx, ledger, at, b); err != nil {
			return nil, err
		} else if yes {
			wrong = append(wrong, b)
		}
	}
	if len(wrong) == 0 && len(f.divided) == 0 {
		return nil, nil
	}
	listed, err := listBudgets(ctx, ledger, at)
	if err != nil {
		return nil, err
	}
	for _, old := range listed {
		b, ok := all[old.Label]
		if !ok || told[b.Name] || !f.isSame(b.Name, old.Name) || len(differences(b, old)) == 0 {
			continue
		}
		asked := b
		asked.Name = old.Name
		if yes, err := contradicts(ctx, ledger, at, asked); err != nil {
			return nil, err
		} else if yes {
			told[b.Name] = true
			f.tellChanges(r, b, old, "")
		}
	}
	for _, b := range wrong {
		if !told[b.Name] {
			r.errorf(f.places["budget "+b.Name], "budget %s: the ledger has it with another zone, period or currency: %s", b.Name, forEver)
		}
	}
	return r.sorted(), nil
}

// contradicts asks a ledger whether it knows another budget of this name.
func contradicts(ctx context.Context, ledger budget.Ledger, at time.Time, b budget.Budget) (bool, error) {
	_, err := ledger.Totals(ctx, at, b)
	if errors.Is(err, budget.ErrConflict) {
		return true, nil
	}
	return false, err
}

// isSame reports whether the books keep a budget of the file under this name, or a part of
// it: under that of its provider and a keyed hash. The label of a part tells which one, but
// for one that has the label of plans, whose names tell their periods.
func (f *File) isSame(name, kept string) bool {
	owner := f.owners[name]
	if owner == "" {
		return name == kept
	}
	return strings.HasPrefix(kept, owner+"-") && name != planLabel(owner)
}

// listedSince is how much of the past is read where only windows are listed.
const listedSince = 8 * 24 * time.Hour

// listBudgets returns the budgets that a ledger has books of, as far as it can list them.
func listBudgets(ctx context.Context, ledger budget.Ledger, at time.Time) (all []budget.Budget, err error) {
	var totals []budget.Totals
	switch l := ledger.(type) {
	case interface {
		Budgets(ctx context.Context, now time.Time) ([]budget.Totals, error)
	}:
		totals, err = l.Budgets(ctx, at)
	case budget.Historian:
		totals, err = l.Windows(ctx, at.Add(-listedSince), time.Time{})
	}
	for _, t := range totals {
		all = append(all, t.Budget)
	}
	return all, err
}

const forEver = "one name is one period, zone and currency for ever; give the budget a new name"

// difference is what must not change under one name. Key is where the file has it.
type difference struct{ key, what, was string }

// differences lists how b differs from the budget that has its name already. A zone that this
// machine does not know is not compared.
func differences(b, old budget.Budget) (all []difference) {
	unknown := old.Zone == nil
	b, old = b.Normal(), old.Normal()
	if !unknown && old.Zone.String() != b.Zone.String() {
		all = append(all, difference{"zone", "zone", old.Zone.String()})
	}
	if old.Every.String() != b.Every.String() {
		all = append(all, difference{"every", "every", old.Every.String()})
	}
	if old.Unit != b.Unit {
		all = append(all, difference{"limit", "currency", old.Unit})
	}
	return all
}

// tellChanges tells them at their places.
func (f *File) tellChanges(r *reader, b, old budget.Budget, more string) {
	for _, c := range differences(b, old) {
		at := cmp.Or(f.places["budget "+b.Name+"."+c.key], f.places["budget "+b.Name])
		r.errorf(at, "budget %s: %s changed from %s: %s%s", b.Name, c.what, c.was, forEver, more)
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
)

// byFlags are the flags of every command that changes something.
func byFlags(set *flag.FlagSet) *budget.By {
	by := new(budget.By)
	set.StringVar(&by.Who, "who", me(), "`NAME` of who does it")
	set.StringVar(&by.Why, "why", "", "the `REASON`, kept with the change")
	return by
}

func checkBy(by *budget.By) error {
	if by.Who == "" || by.Why == "" {
		return wrong("say why with -why REASON; it is kept with the change")
	}
	return nil
}

var limitCommand = command{
	name: "limit", short: "change the limit of a budget at once",
	args: "BUDGET AMOUNT -why REASON",
	examples: []string{
		`spend limit sms-day 80 -why "campaign until Friday"`,
	},
	define: func(set *flag.FlagSet) action {
		by := byFlags(set)
		return func(ctx context.Context, o *operator, args []string) error {
			if len(args) != 2 {
				return wrong("limit needs a budget and an amount")
			}
			limit, err := budget.Parse(args[1])
			if err != nil || limit <= 0 {
				return wrong("the limit must be an amount such as 80 or 12.50, more than zero, not %q; to stop all calls freeze the budget", args[1])
			}
			if err := checkBy(by); err != nil {
				return err
			}
			l, err := o.open()
			if err != nil {
				return err
			}
			t, err := findBudget(ctx, l, args[0])
			if err != nil {
				return err
			}
			if err := l.SetLimit(ctx, t.Budget.Name, limit, *by); err != nil {
				return err
			}
			o.print("%s: limit %v %s, was %v; used %v. It stays until the configured limit changes.\n",
				args[0], limit, t.Budget.Unit, t.Limit, t.Used())
			return nil
		}
	},
}

// findBudget finds a budget by its name, or by its label if that is not ambiguous.
func findBudget(ctx context.Context, l *sqliteledger.Ledger, name string) (budget.Totals, error) {
	all, err := l.Budgets(ctx, time.Now())
	if err != nil {
		return budget.Totals{}, err
	}
	var labelled []budget.Totals
	var known []string
	for _, t := range all {
		if t.Budget.Name == name {
			return t, nil
		}
		if t.Budget.Label == name {
			labelled = append(labelled, t)
		}
		known = append(known, t.Budget.Label)
	}
	switch len(labelled) {
	case 1:
		return labelled[0], nil
	case 0:
		slices.Sort(known)
		known = slices.Compact(known)
		return budget.Totals{}, fmt.Errorf("there is no budget %q; the ledger has: %s", name, strings.Join(known[:min(len(known), 20)], ", "))
	}
	return budget.Totals{}, fmt.Errorf("%d budgets have the label %q; use the name (column name of the view budgets)", len(labelled), name)
}

var freezeCommand = command{
	name: "freeze", short: "refuse all calls of a provider, or on a budget, at once",
	args: "-provider NAME | -budget NAME -why REASON",
	examples: []string{
		`spend freeze -provider twilio-sms -why "duplicate messages"`,
		`spend freeze -budget sms-day -why "ask finance first"`,
	},
	define: func(set *flag.FlagSet) action {
		unused := set.Bool("unused", false, "freeze the provider although no call of it is in this ledger")
		return targetAction(set, func(ctx context.Context, o *operator, t budget.Target, by budget.By) error {
			return freeze(ctx, o, t, by, *unused)
		})
	},
}

var releaseCommand = command{
	name: "release", short: "let a frozen provider or budget go on",
	args: "-provider NAME | -budget NAME -why REASON",
	examples: []string{
		`spend release -provider twilio-sms -why "fixed in 1.4.2"`,
	},
	define: func(set *flag.FlagSet) action { return targetAction(set, release) },
}

func targetAction(set *flag.FlagSet, do func(context.Context, *operator, budget.Target, budget.By) error) action {
	var t budget.Target
	set.StringVar(&t.Provider, "provider", "", "the provider's `NAME`")
	set.StringVar(&t.Budget, "budget", "", "the budget's `NAME`")
	by := byFlags(set)
	return func(ctx context.Context, o *operator, args []string) error {
		if (t.Provider == "") == (t.Budget == "") || len(args) > 0 {
			return wrong("name either a provider (-provider) or a budget (-budget)")
		}
		if err := checkBy(by); err != nil {
			return err
		}
		l, err := o.open()
		if err != nil {
			return err
		}
		if t.Budget != "" {
			found, err := findBudget(ctx, l, t.Budget)
			if err != nil {
				return err
			}
			t.Budget = found.Budget.Name
		}
		return do(ctx, o, t, *by)
	}
}

// freeze refuses a name that no call has: with a wrong one the calls would go on, while
// people believe that they are stopped.
func freeze(ctx context.Context, o *operator, t budget.Target, by budget.By, unused bool) error {
	if t.Provider != "" && !unused {
		known, err := o.ledger.Providers(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(known, t.Provider) {
			return fmt.Errorf("nothing is frozen: no call of %q is in this ledger; those that have calls: %s. If the name is right, and its calls are new or cost nothing, add -unused",
				t.Provider, cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
	if err := o.ledger.Freeze(ctx, t, by); err != nil {
		return err
	}
	o.print("%s is frozen: every call is refused from now on\n", named(t))
	return nil
}

func release(ctx context.Context, o *operator, t budget.Target, by budget.By) error {
	all, err := o.ledger.Frozen(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range all {
		if f.Target == t {
			err := o.ledger.Release(ctx, t, by)
			if err == nil {
				o.print("%s is released\n", named(t))
			}
			return err
		}
		names = append(names, named(f.Target))
	}
	return fmt.Errorf("%s is not frozen; what is: %s", named(t), cmp.Or(strings.Join(names, ", "), "nothing"))
}

var backupCommand = command{
	name: "backup", short: "write a copy of the ledger to a new file, while services use it",
	args:     "FILE",
	examples: []string{"spend backup spend-$(date +%F).db"},
	define: func(*flag.FlagSet) action {
		return func(ctx context.Context, o *operator, args []string) error {
			if len(args) != 1 {
				return wrong("backup needs the name of one new file")
			}
			l, err := o.read()
			if err != nil {
				return err
			}
			if err := l.Backup(ctx, args[0]); err != nil {
				return errors.Join(errors.New("no backup was made"), err)
			}
			o.print("%s is a copy of %s\n", args[0], o.path)
			return nil
		}
	},
}

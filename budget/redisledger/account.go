package redisledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// account is what this process knows of a budget.
type account struct {
	given   budget.Budget // as this process configured it last, normal
	stale   bool          // the store may not know it any more
	current budget.Window // in which the last hold of anybody was charged
}

// maxAccounts bounds what is known; beyond, all is forgotten, and asked for again.
const maxAccounts = 100_000

// configure tells the store of a budget, once per process and again after a change, and
// returns the current window.
func (l *Ledger) configure(ctx context.Context, b budget.Budget) (budget.Window, error) {
	l.mu.Lock()
	a := l.accounts[b.Name]
	l.mu.Unlock()
	known := a != nil && sameConfig(a.given, b)
	if known && !a.stale {
		return a.current, nil
	}
	reply, _, err := l.store.run(ctx, l.scripts.configure, []string{l.keys.account(b.Name), l.keys.log, l.keys.watched, l.keys.frozen},
		what(b), int64(b.Limit), b.Label, alerts(b), b.Name, bit(known))
	if err != nil {
		if a != nil && what(a.given) == what(b) {
			return a.current, err
		}
		return budget.Window{}, err
	}
	if text(at(reply, 0)) == "conflict" {
		return budget.Window{}, isAnother(b, text(at(reply, 1)))
	}
	l.store.told(number(at(reply, 5)))
	b.Name, b.Label, b.Alerts = strings.Clone(b.Name), strings.Clone(b.Label), slices.Clone(b.Alerts)
	a = &account{given: b, current: windowOf(b, text(at(reply, 2)), number(at(reply, 3)), number(at(reply, 4)))}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.accounts) >= maxAccounts {
		clear(l.accounts)
	}
	l.accounts[b.Name] = a
	if number(at(reply, 1)) == 1 {
		l.notices = append(l.notices, budget.Notice{Kind: budget.NoticeLimit, Budget: b.Label, Was: amount(at(reply, 6)), Limit: b.Limit, Unit: b.Unit})
	}
	return a.current, nil
}

func (l *Ledger) unconfigure(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil {
		l.accounts[name] = &account{given: a.given, current: a.current, stale: true}
	}
}

// moved notes that the current window of a budget is another one than we knew.
func (l *Ledger) moved(c *charge, id string, from, till int64) {
	l.setCurrent(c.name, windowOf(c.budget, id, from, till))
}

func (l *Ledger) setCurrent(name string, w budget.Window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[name]; a != nil && a.current.ID != w.ID {
		l.accounts[name] = &account{given: a.given, current: w}
	}
}

// windowOf is the window with this id; from and till are when it is charged.
func windowOf(b budget.Budget, id string, from, till int64) budget.Window {
	if id == "" {
		return budget.Window{}
	}
	w := budget.Window{ID: id, Oldest: id, Start: time.UnixMilli(from).UTC(), End: time.UnixMilli(till).UTC()}
	if b.Window(w.Start).Oldest != b.Window(w.Start).ID {
		return b.Window(w.Start)
	}
	return w
}

// what a budget is: it must not change under one name.
func what(b budget.Budget) string {
	return b.Unit + "|" + b.Every.String() + "|" + b.Zone.String()
}

func isAnother(b budget.Budget, stored string) error {
	return fmt.Errorf("%w: budget %s is %s, not %s (unit, period, zone)", budget.ErrConflict, b.Label, stored, what(b))
}

func sameConfig(a, b budget.Budget) bool {
	return what(a) == what(b) && a.Limit == b.Limit && a.Label == b.Label && slices.Equal(a.Alerts, b.Alerts)
}

func alerts(b budget.Budget) string {
	var s []string
	for _, p := range slices.Sorted(slices.Values(b.Alerts)) {
		s = append(s, strconv.Itoa(p))
	}
	return strings.Join(s, " ")
}

// Totals implements [budget.Ledger].
func (l *Ledger) Totals(ctx context.Context, when time.Time, budgets ...budget.Budget) ([]budget.Totals, error) {
	all := make([]budget.Totals, 0, len(budgets))
	l.flush(ctx)
	for _, b := range budgets {
		if err := b.Validate(); err != nil {
			return nil, fmt.Errorf("budget %s: %w", b.Label, err)
		}
		t, err := l.totals(ctx, when, b.Normal())
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (l *Ledger) totals(ctx context.Context, when time.Time, b budget.Budget) (budget.Totals, error) {
	t := budget.Totals{Budget: b, Window: b.Window(when), Limit: b.Limit}
	lg := leg{name: b.Name}
	lg.at(t.Window)
	keys := []string{l.keys.account(b.Name), l.keys.frozen}
	for _, id := range lg.windows() {
		keys = append(keys, l.keys.window(b.Name, id))
	}
	reply, _, err := l.store.run(ctx, l.scripts.totals, keys, b.Name)
	if err != nil {
		return t, err
	}
	if stored := text(at(list(at(reply, 0)), 0)); stored != "" && stored != what(b) {
		return t, isAnother(b, stored)
	}
	readTotals(&t, reply)
	return t, nil
}

// readTotals reads the reply of totals.lua.
func readTotals(t *budget.Totals, reply []any) {
	acc := list(at(reply, 0))
	t.Frozen = text(at(reply, 1)) != ""
	if text(at(acc, 0)) == "" {
		return
	}
	if override := amount(at(acc, 2)); override != 0 && amount(at(acc, 1)) == t.Budget.Limit {
		t.Limit = override
	}
	t.Trend.Settled = number(at(acc, 3))
	for i := range t.Trend.Spans {
		t.Trend.Spans[i] = budget.Span{Slot: number(at(acc, 4+3*i)), Now: amount(at(acc, 5+3*i)), Before: amount(at(acc, 6+3*i))}
	}
	for _, v := range list(at(reply, 2)) {
		w := list(v)
		t.Settled, t.Presumed, t.Held = plus(t.Settled, amount(at(w, 0))), plus(t.Presumed, amount(at(w, 1))), plus(t.Held, amount(at(w, 2)))
		t.Overrun, t.Floor = plus(t.Overrun, amount(at(w, 3))), plus(t.Floor, amount(at(w, 4)))
		t.OpenHolds += int(number(at(w, 5)))
		t.PresumedHolds += int(number(at(w, 6)))
	}
}

// known is a budget as far as the account knows it: without Keep and Monitor. A zone that
// this machine does not know is left out.
func known(name string, acc []any) budget.Budget {
	is := strings.SplitN(text(at(acc, 0)), "|", 3)
	b := budget.Budget{Name: name, Label: text(at(acc, 13)), Limit: amount(at(acc, 1)), Unit: is[0]}
	if len(is) == 3 {
		b.Every = budget.ParsePeriod(is[1])
		b.Zone, _ = time.LoadLocation(is[2])
	}
	for p := range strings.FieldsSeq(text(at(acc, 14))) {
		n, _ := strconv.Atoi(p)
		b.Alerts = append(b.Alerts, n)
	}
	return b
}

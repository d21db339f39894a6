package redisledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

var _ budget.Historian = (*Ledger)(nil)

// told is how the windows of a budget that count at an instant came about.
type told struct {
	budget budget.Budget // normal
	window budget.Window
	since  time.Time // from when on it is remembered
	books  []page    // the charged window last
}

// page is one of them.
type page struct {
	id    string
	sum   budget.Spending // what the window amounts to
	parts budget.Parts
	by    map[string]*budget.Spending
}

// History implements [budget.Historian]. Redis remembers a budget from the first time
// that anybody asks for it: what that costs is a few more fields with each hold of it, in
// the same round trip.
func (l *Ledger) History(ctx context.Context, at time.Time, budgets ...budget.Budget) ([]budget.History, error) {
	all, err := l.recall(ctx, at, budgets)
	if err != nil {
		return nil, err
	}
	histories := make([]budget.History, len(all))
	for i := range all {
		t := &all[i]
		h := budget.History{Budget: t.budget.Name, Window: t.window, Since: t.window.Start}
		parts := new(budget.Parts)
		if len(t.books) == 1 {
			parts = &t.books[0].parts
			if t.since.After(h.Since) {
				h.Since = t.since
			}
			settled, presumed := t.books[0].sum.Settled, t.books[0].sum.Presumed
			for _, p := range parts {
				settled, presumed = settled-p.Settled, presumed-p.Presumed
			}
			parts.Add(t.window, h.Since, settled, presumed) // what was booked before
		} else {
			for _, b := range t.books {
				start, _ := time.Parse(time.RFC3339, b.id) // else the first part
				parts.Add(t.window, start, b.sum.Settled, b.sum.Presumed)
			}
		}
		h.Points = parts.Points(t.window, h.Since, at)
		histories[i] = h
	}
	return histories, nil
}

// Spending implements [budget.Historian]. It knows providers as History does, 64 of one
// window.
func (l *Ledger) Spending(ctx context.Context, at time.Time, budgets ...budget.Budget) ([]budget.Spending, error) {
	all, err := l.recall(ctx, at, budgets)
	var found []budget.Spending
	for i := range all {
		found = append(found, all[i].spending()...)
	}
	return found, err
}

func (t *told) spending() (found []budget.Spending) {
	sum := map[string]*budget.Spending{}
	for i := range t.books {
		for name, s := range t.books[i].providers() {
			if sum[name] == nil {
				sum[name] = &budget.Spending{Budget: t.budget.Name, Window: t.window.ID, Provider: name}
			}
			sum[name].Add(s)
		}
	}
	for _, s := range sum {
		found = append(found, *s)
	}
	slices.SortFunc(found, func(a, b budget.Spending) int {
		return cmp.Or(cmp.Compare(b.Used(), a.Used()), cmp.Compare(a.Provider, b.Provider))
	})
	return found
}

// providers is what each of them used. What is of none, or was lost, is nobody's, so that
// all of them come to what the window amounts to.
func (b *page) providers() map[string]*budget.Spending {
	rest := b.sum
	if nobody := b.by[""]; nobody != nil {
		rest.Up, rest.Down, rest.Calls = nobody.Up, nobody.Down, nobody.Calls-nobody.Open
	}
	for name, s := range b.by {
		if name != "" {
			rest.Settled, rest.Presumed, rest.Held, rest.Floor = rest.Settled-s.Settled, rest.Presumed-s.Presumed, rest.Held-s.Held, rest.Floor-s.Floor
			rest.Open, rest.PresumedCalls = rest.Open-s.Open, rest.PresumedCalls-s.PresumedCalls
		}
	}
	rest.Calls += rest.Open
	delete(b.by, "")
	if rest != (budget.Spending{}) {
		b.by[""] = &rest
	}
	return b.by
}

// recall reads how the windows of budgets came about, and has them remembered.
func (l *Ledger) recall(ctx context.Context, at time.Time, budgets []budget.Budget) ([]told, error) {
	all, questions := make([]told, len(budgets)), make([]command, len(budgets))
	for i, b := range budgets {
		if err := b.Validate(); err != nil {
			return nil, fmt.Errorf("budget %s: %w", b.Label, err)
		}
		t := &all[i]
		t.budget = b.Normal()
		t.window = t.budget.Window(at)
		lg := leg{name: t.budget.Name}
		lg.at(t.window)
		keys, tallies := []string{l.keys.account(lg.name), l.keys.watched}, []string(nil)
		for _, id := range lg.windows() {
			t.books = append(t.books, page{id: id, by: map[string]*budget.Spending{}})
			keys, tallies = append(keys, l.keys.window(lg.name, id)), append(tallies, l.keys.tally(lg.name, id))
		}
		questions[i] = command{l.scripts.history, append(keys, tallies...), []any{lg.name}}
	}
	l.flush(ctx)
	for i, r := range l.store.pipe(ctx, questions) {
		if r.err != nil {
			return nil, r.err
		}
		if err := all[i].read(r.reply); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read reads the reply of the script.
func (t *told) read(reply []any) error {
	acc := list(at(reply, 0))
	if stored := text(at(acc, 0)); stored != "" && stored != what(t.budget) {
		return isAnother(t.budget, stored)
	}
	t.since = time.UnixMilli(number(at(acc, 4)))
	if len(t.books) == 1 && text(at(acc, 1)) == t.window.ID { // as it was when it was first charged
		t.window = windowOf(t.budget, t.window.ID, number(at(acc, 2)), number(at(acc, 3)))
	}
	for i, v := range list(at(reply, 1)) {
		b := &t.books[i]
		w := list(at(list(v), 0))
		b.sum = budget.Spending{
			Settled: amount(at(w, 0)), Presumed: amount(at(w, 1)), Held: amount(at(w, 2)), Floor: amount(at(w, 3)),
			Open: int(number(at(w, 4))), PresumedCalls: int(number(at(w, 5))),
		}
		tally := list(at(list(v), 1))
		for j := 0; j+1 < len(tally); j += 2 {
			b.field(text(tally[j]), number(tally[j+1]))
		}
	}
	return nil
}

// field reads a field of a tally: tally.lua has what they are.
func (b *page) field(name string, n int64) {
	if name == "" || name == "#" {
		return
	}
	kind, rest := name[0], name[1:]
	if kind == 'S' || kind == 'P' {
		if i, err := strconv.Atoi(rest); err == nil && i >= 0 && i < len(b.parts) {
			if kind == 'S' {
				b.parts[i].Settled = budget.Amount(n)
			} else {
				b.parts[i].Presumed = budget.Amount(n)
			}
		}
		return
	}
	s := b.by[rest]
	if s == nil {
		s = new(budget.Spending)
		b.by[rest] = s
	}
	switch kind {
	case 'c':
		s.Calls, s.Open = s.Calls+int(n), s.Open+int(n)
	case 'e':
		s.Open -= int(n)
	case 'v':
		s.Calls -= int(n)
	case 'u':
		s.PresumedCalls = int(n)
	case 'h':
		s.Held = budget.Amount(n)
	case 's':
		s.Settled = budget.Amount(n)
	case 'p':
		s.Presumed = budget.Amount(n)
	case 'f':
		s.Floor = budget.Amount(n)
	case 'r':
		s.Up = budget.Amount(n)
	case 'd':
		s.Down = budget.Amount(n)
	}
}

// listedWindow is a window as index.lua notes it.
type listedWindow struct {
	budget string
	budget.Window
}

// Windows implements [budget.Historian]. It reads the list of all windows whose totals are
// known, at most 100,000.
func (l *Ledger) Windows(ctx context.Context, from, to time.Time) ([]budget.Totals, error) {
	l.flush(ctx)
	members, err := l.members(ctx, l.keys.index, 0)
	if err != nil {
		return nil, err
	}
	var found []listedWindow
	for _, m := range members {
		w, ok := parseWindow(m)
		if ok && w.End.After(from) && (to.IsZero() || w.Start.Before(to)) {
			found = append(found, w)
		}
	}
	slices.SortFunc(found, func(a, b listedWindow) int {
		return cmp.Or(cmp.Compare(a.budget, b.budget), a.Start.Compare(b.Start))
	})
	var all []budget.Totals
	for some := range slices.Chunk(found, mostAtOnce) {
		t, err := l.totalsOf(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, t...)
	}
	return all, nil
}

func parseWindow(member string) (w listedWindow, ok bool) {
	head, name, _ := strings.Cut(member, "\n")
	f := strings.SplitN(head, " ", 3)
	if len(f) != 3 {
		return w, false
	}
	start, errStart := strconv.ParseInt(f[0], 10, 64)
	end, errEnd := strconv.ParseInt(f[1], 10, 64)
	w.budget = name
	w.Window = budget.Window{ID: f[2], Oldest: f[2], Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(end).UTC()}
	return w, errStart == nil && errEnd == nil
}

// totalsOf reads the totals of windows, each alone. One that is gone is left out.
func (l *Ledger) totalsOf(ctx context.Context, windows []listedWindow) ([]budget.Totals, error) {
	questions := make([]command, len(windows))
	for i, w := range windows {
		questions[i] = command{l.scripts.totals, []string{l.keys.account(w.budget), l.keys.frozen, l.keys.window(w.budget, w.ID)}, []any{w.budget}}
	}
	var all []budget.Totals
	for i, r := range l.store.pipe(ctx, questions) {
		if r.err != nil {
			return nil, r.err
		}
		if text(at(list(at(list(at(r.reply, 2)), 0)), 0)) == "" {
			continue
		}
		t := budget.Totals{Budget: known(windows[i].budget, list(at(r.reply, 0))), Window: windows[i].Window}
		t.Limit = t.Budget.Limit
		readTotals(&t, r.reply)
		all = append(all, t)
	}
	return all, nil
}

package budget

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// What a Memory remembers of those budgets that somebody asked for: about 1.7 KiB a
// budget, and 150 bytes a provider of each.
const (
	maxWatched   = 1024 // budgets
	maxProviders = 64   // of one window; what others use counts as of an empty one
)

var (
	_ Historian = (*Memory)(nil)
	_ Auditor   = (*Memory)(nil)
)

// sums is what a window amounts to.
type sums struct {
	settled, presumed, held, overrun, floor Amount
	openHolds, presumedHolds                int
}

// tally is how one window came about.
type tally struct {
	since     time.Time
	early     map[HoldID]bool // holds of that very instant that were there already
	parts     *Parts          // nil for a bucket of a rolling period: that is a part itself
	providers map[string]*Spending
}

// watch has the windows of a budget remembered from now on.
func (m *Memory) watch(b *Budget, now time.Time) {
	if m.watched[b.Name] || len(m.watched) >= maxWatched {
		return
	}
	if m.watched == nil {
		m.watched = map[string]bool{}
	}
	m.watched[b.Name] = true
	if a := m.accounts[b.Name]; a != nil && a.current != nil {
		for _, book := range a.counted(a.current.Window) {
			book.tally = newTally(a, book, now)
			for r := m.open.last; r != nil && !r.at.Before(now); r = r.prev {
				if book.tally.early == nil {
					book.tally.early = map[HoldID]bool{}
				}
				book.tally.early[r.id] = true
			}
		}
	}
}

// newTally begins to remember: what is booked already is of nobody.
func newTally(a *account, b *book, now time.Time) *tally {
	t := &tally{since: now, providers: map[string]*Spending{}}
	if a.budget.Every.kind != kindRolling {
		t.parts = new(Parts)
		t.parts.Add(b.Window, now, b.settled, b.presumed)
	}
	if b.sums != (sums{}) {
		t.providers[""] = &Spending{
			Settled: b.settled, Presumed: b.presumed, Held: b.held, Floor: b.floor,
			Calls: b.openHolds + b.presumedHolds, Open: b.openHolds, PresumedCalls: b.presumedHolds,
		}
	}
	return t
}

// rotate keeps what is remembered of a to the windows that count in w.
func (a *account) rotate(w Window) {
	for _, b := range a.books {
		if b.ID < w.Oldest {
			b.tally = nil
		}
	}
}

// of is what the provider of a hold used. Holds from before belong to nobody.
func (t *tally) of(r *record) *Spending {
	name := r.provider
	if r.at.Before(t.since) || t.early[r.id] {
		name = ""
	}
	s := t.providers[name]
	if s == nil && len(t.providers) >= maxProviders {
		name, s = "", t.providers[""]
	}
	if s == nil {
		s = new(Spending)
		t.providers[name] = s
	}
	return s
}

// taken counts a new hold.
func (t *tally) taken(r *record, held Amount) {
	s := t.of(r)
	s.Held += held
	s.Calls++
	s.Open++
}

// moved counts what an outcome changed in a window that amounted to was.
func (t *tally) moved(r *record, l *leg, was sums, from State, o Outcome, now time.Time) {
	s, b := t.of(r), l.book
	settled, presumed := b.settled-was.settled, b.presumed-was.presumed
	s.Settled, s.Presumed = s.Settled+settled, s.Presumed+presumed
	s.Held, s.Floor = s.Held+b.held-was.held, s.Floor+b.floor-was.floor
	s.Open += b.openHolds - was.openHolds
	s.PresumedCalls += b.presumedHolds - was.presumedHolds
	if o.State == StateVoided {
		s.Calls--
	}
	if from == StateVoided { // the invoice has it after all
		s.Calls++
	}
	if change := settled + presumed; from != StateHeld {
		s.Up, s.Down = s.Up+max(0, change), s.Down+max(0, -change)
	}
	if t.parts != nil {
		t.parts.Add(b.Window, now, settled, presumed)
	}
}

// History implements [Historian]. Of a calendar period it remembers the present window
// from the first time that it is asked for the budget, of at most 1,024 of them.
func (m *Memory) History(_ context.Context, at time.Time, budgets ...Budget) ([]History, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read().Now
	all := make([]History, 0, len(budgets))
	for i := range budgets {
		a, b, err := m.recall(&budgets[i], now)
		if err != nil {
			return nil, err
		}
		all = append(all, a.history(b, at))
	}
	return all, nil
}

// recall finds the account of a budget, an empty one if there is none, and has it
// remembered.
func (m *Memory) recall(given *Budget, now time.Time) (*account, *Budget, error) {
	if err := given.Validate(); err != nil {
		return nil, nil, fmt.Errorf("budget %s: %w", given.Label, err)
	}
	b := given.Normal()
	a := m.accounts[b.Name]
	if a == nil {
		a = &account{budget: b}
	}
	if err := a.conflict(&b); err != nil {
		return nil, nil, err
	}
	m.watch(&b, now)
	return a, &b, nil
}

func (a *account) history(b *Budget, at time.Time) History {
	w := b.Window(at)
	h := History{Budget: b.Name, Window: w, Since: w.Start}
	counted := a.counted(w)
	parts := new(Parts)
	if b.Every.kind == kindRolling {
		for _, book := range counted {
			parts.Add(w, book.from, book.settled, book.presumed)
		}
	} else if len(counted) == 1 {
		book := counted[0]
		h.Window = book.Window
		if book.tally == nil {
			h.Since, h.Points = at, []Point{{at, book.settled, book.presumed}}
			return h
		}
		parts = book.tally.parts
		if since := book.tally.since; since.After(h.Since) {
			h.Since = since
		}
	}
	h.Points = parts.Points(h.Window, h.Since, at)
	return h
}

// Spending implements [Historian]. It knows the providers from the first time that it is
// asked for the budget.
func (m *Memory) Spending(_ context.Context, at time.Time, budgets ...Budget) ([]Spending, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read().Now
	var all []Spending
	for i := range budgets {
		a, b, err := m.recall(&budgets[i], now)
		if err != nil {
			return nil, err
		}
		all = append(all, a.spending(b, at)...)
	}
	return all, nil
}

func (a *account) spending(b *Budget, at time.Time) []Spending {
	sum := map[string]*Spending{}
	w := b.Window(at)
	for _, book := range a.counted(w) {
		t := book.tally
		if t == nil {
			t = newTally(a, book, at)
		}
		for name, s := range t.providers {
			if sum[name] == nil {
				sum[name] = &Spending{Budget: b.Name, Window: w.ID, Provider: name}
			}
			sum[name].Add(s)
		}
	}
	out := make([]Spending, 0, len(sum))
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		out = append(out, *sum[name])
	}
	slices.SortStableFunc(out, func(a, b Spending) int { return cmp.Compare(b.Used(), a.Used()) })
	return out
}

// Windows implements [Historian].
func (m *Memory) Windows(_ context.Context, from, to time.Time) ([]Totals, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Totals
	for _, name := range slices.Sorted(maps.Keys(m.accounts)) {
		a := m.accounts[name]
		for _, b := range a.books {
			if !b.End.After(from) || !to.IsZero() && !b.Start.Before(to) {
				continue
			}
			alone := b.Window
			alone.Oldest = alone.ID
			t := a.totals(alone)
			t.Window, t.Frozen = b.Window, !m.frozen[Target{Budget: name}].IsZero()
			all = append(all, t)
		}
	}
	return all, nil
}

// audit is the newest of what people did.
type audit struct {
	made int64
	kept []Audited // at most maxAudit
}

// note keeps an entry. The caller holds m.mu.
func (m *Memory) note(e Audited) {
	m.audit.made++
	e.ID, e.At = strconv.FormatInt(m.audit.made, 10), m.read().Now
	if len(m.audit.kept) >= maxAudit {
		m.audit.kept = slices.Delete(m.audit.kept, 0, 1)
	}
	m.audit.kept = append(m.audit.kept, e)
}

// Note implements [Auditor].
func (m *Memory) Note(_ context.Context, e Audited) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(e)
	return nil
}

// Audit implements [Auditor]. The last 1,000 entries are kept.
func (m *Memory) Audit(_ context.Context, after string, limit int) ([]Audited, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, limit := m.audit.kept, bound(limit)
	if after == "" {
		return m.labelled(kept[max(0, len(kept)-limit):]), nil
	}
	id, err := strconv.ParseInt(after, 10, 64)
	if err != nil || id < 0 {
		return nil, fmt.Errorf("budget: no entry has the id %q", after)
	}
	i, _ := slices.BinarySearchFunc(kept, id+1, func(e Audited, id int64) int {
		n, _ := strconv.ParseInt(e.ID, 10, 64)
		return cmp.Compare(n, id)
	})
	return m.labelled(kept[i:min(len(kept), i+limit)]), nil
}

// labelled is a copy of entries in which budgets are called what they are shown as.
func (m *Memory) labelled(entries []Audited) []Audited {
	entries = slices.Clone(entries)
	for i := range entries {
		if a := m.accounts[entries[i].Target.Budget]; a != nil {
			entries[i].Target.Budget = a.budget.Label
		}
	}
	return entries
}

package sqliteledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

var _ budget.Historian = (*Ledger)(nil)

// maxStories bounds the windows of which a handle keeps what their entries told: about
// 1.7 KiB each, and 150 bytes a provider.
const maxStories = 1024

// story is what the entries tell of one window, or of one bucket of a rolling one.
type story struct {
	page   *page
	window budget.Window
	last   int64 // the newest entry that was read
	parts  budget.Parts
	by     map[int64]*budget.Spending // by the id of the provider
	sum    sums
}

// told is a budget's window with the stories of its pages.
type told struct {
	budget.Window
	budget  string
	stories []*story
}

// History implements [budget.Historian], from the entries. A window costs one pass over
// the entries since it began; after that only what is new is read.
func (l *Ledger) History(ctx context.Context, at time.Time, budgets ...budget.Budget) ([]budget.History, error) {
	var all []budget.History
	err := l.tell(ctx, at, budgets, func(_ *books, t told) {
		parts := new(budget.Parts)
		for _, s := range t.stories {
			if t.Oldest == t.ID {
				parts = &s.parts
				break
			}
			start, _ := time.Parse(time.RFC3339, s.window.ID) // else the first part
			parts.Add(t.Window, start, s.sum.settled, s.sum.presumed)
		}
		all = append(all, budget.History{Budget: t.budget, Window: t.Window, Since: t.Start, Points: parts.Points(t.Window, t.Start, at)})
	})
	return all, err
}

// Spending implements [budget.Historian], as History does.
func (l *Ledger) Spending(ctx context.Context, at time.Time, budgets ...budget.Budget) ([]budget.Spending, error) {
	var all []budget.Spending
	err := l.tell(ctx, at, budgets, func(b *books, t told) {
		sum := map[int64]*budget.Spending{}
		for _, s := range t.stories {
			for id, spent := range s.by {
				if sum[id] == nil {
					sum[id] = &budget.Spending{Budget: t.budget, Window: t.ID, Provider: b.text("SELECT name FROM provider WHERE id=?", id)}
				}
				sum[id].Add(spent)
			}
		}
		for _, s := range slices.SortedFunc(maps.Values(sum), func(a, b *budget.Spending) int {
			return cmp.Or(cmp.Compare(b.Used(), a.Used()), cmp.Compare(a.Provider, b.Provider))
		}) {
			all = append(all, *s)
		}
	})
	return all, err
}

// tell calls f for each of the budgets, with what the entries tell of its window. What is
// kept of that is guarded by l.reading, as the connection is.
func (l *Ledger) tell(ctx context.Context, at time.Time, budgets []budget.Budget, f func(*books, told)) error {
	var wrong error
	err := l.view(ctx, func(b *books) {
		if l.stories == nil || len(l.stories) > maxStories {
			l.stories = map[int64]*story{}
		}
		all, wanted := make([]told, len(budgets)), map[int64]*story{}
		for i, bud := range budgets {
			var err error
			all[i], err = b.locate(l.stories, bud, at)
			wrong = errors.Join(wrong, err)
			for _, s := range all[i].stories {
				wanted[s.page.id] = s
			}
		}
		if wrong != nil {
			return
		}
		b.follow(wanted)
		for _, t := range all {
			f(b, t)
		}
		if b.err != nil {
			clear(l.stories) // some may be half read
		}
	})
	return cmp.Or(err, wrong)
}

// locate finds the pages of a budget's window.
func (b *books) locate(stories map[int64]*story, bud budget.Budget, at time.Time) (told, error) {
	if err := bud.Validate(); err != nil {
		return told{}, fmt.Errorf("budget %s: %w", bud.Label, err)
	}
	bud = bud.Normal()
	t := told{budget: bud.Name, Window: bud.Window(at)}
	a := b.account(bud.Name)
	if a == nil {
		return t, nil
	}
	if err := a.conflict(bud); err != nil {
		return told{}, err
	}
	for _, p := range b.span(a, t.Window).pages {
		s := stories[p.id]
		if s == nil {
			s = &story{window: b.window(p.id), by: map[int64]*budget.Spending{}}
			stories[p.id] = s
		}
		s.page = p // as it is now
		if t.Oldest == t.ID {
			t.Window = s.window // as it was when it was first charged
		}
		t.stories = append(t.stories, s)
	}
	return t, nil
}

// follow reads the entries that are new to the stories: since the window began if
// nothing was read yet, and all of them if those do not add up to the totals, for a clock
// may have been set back.
func (b *books) follow(wanted map[int64]*story) {
	for _, s := range wanted {
		if s.last == 0 {
			s.last = b.entryBefore(s.window.Start)
		}
	}
	b.readStories(wanted)
	again := map[int64]*story{}
	for id, s := range wanted {
		if is := s.page.sums; s.sum.used() != is.used() || s.sum.settled != is.settled || s.sum.presumed != is.presumed {
			*s = story{page: s.page, window: s.window, by: map[int64]*budget.Spending{}}
			again[id] = s
		}
	}
	b.readStories(again)
}

// entryBefore returns the id of the last entry that was written before an instant.
func (b *books) entryBefore(t time.Time) int64 {
	low, high := int64(0), b.number("SELECT max(id) FROM entry") // the one sought is in [low, high]
	for low < high && b.err == nil {
		middle := low + (high-low+1)/2
		if at := b.number("SELECT at FROM entry WHERE id>=? ORDER BY id LIMIT 1", middle); at < t.UnixMilli() {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// readStories reads on in the entries.
func (b *books) readStories(wanted map[int64]*story) {
	if len(wanted) == 0 {
		return
	}
	from, last := int64(1<<62), b.number("SELECT max(id) FROM entry")
	for _, s := range wanted {
		from = min(from, s.last)
	}
	b.query(func(s *sqlite3.Stmt) {
		if story := wanted[s.ColumnInt64(1)]; story != nil && s.ColumnInt64(0) > story.last {
			kind, by := s.ColumnText(3), sums{
				settled: budget.Amount(s.ColumnInt64(5)), presumed: budget.Amount(s.ColumnInt64(6)),
				held: budget.Amount(s.ColumnInt64(7)), floor: budget.Amount(s.ColumnInt64(8)),
			}
			p := story.add(instant(s, 2), s.ColumnInt64(4), by)
			if kind == "compacted" {
				counts := parseCounts(s.ColumnText(10))
				p.Add(&counts)
			} else {
				tally(p, kind, before(s, 9, kind, by), by)
			}
		}
	}, "SELECT id, win, at, kind, provider, settled, presumed, held, floor, was, ref FROM entry WHERE id>? AND win IS NOT NULL ORDER BY id", from)
	for _, s := range wanted {
		s.last = last
	}
}

// add adds the amounts of one entry, and returns where its calls are counted.
func (s *story) add(at time.Time, provider int64, by sums) *budget.Spending {
	s.sum.settled, s.sum.presumed, s.sum.held = s.sum.settled+by.settled, s.sum.presumed+by.presumed, s.sum.held+by.held
	s.parts.Add(s.window, at, by.settled, by.presumed)
	p := s.by[provider]
	if p == nil {
		p = new(budget.Spending)
		s.by[provider] = p
	}
	p.Settled, p.Presumed, p.Held, p.Floor = p.Settled+by.settled, p.Presumed+by.presumed, p.Held+by.held, p.Floor+by.floor
	return p
}

// tally counts the call of one entry, with the state of the hold before it.
func tally(p *budget.Spending, kind string, was budget.State, by sums) {
	switch kind {
	case "held":
		p.Calls, p.Open = p.Calls+1, p.Open+1
		return
	case "presumed":
		p.PresumedCalls++
	case "voided":
		p.Calls--
	}
	if kind != "adjusted" { // which is of many calls
		switch was {
		case budget.StateHeld:
			p.Open--
			return // it was in flight: no correction
		case budget.StatePresumed:
			p.PresumedCalls--
		case budget.StateVoided:
			p.Calls++ // the invoice has it after all
		}
	}
	change := by.settled + by.presumed
	p.Up, p.Down = p.Up+max(0, change), p.Down+max(0, -change)
}

// before is the state that an entry tells of, or must mean: older versions wrote none.
func before(s *sqlite3.Stmt, col int, kind string, by sums) budget.State {
	switch {
	case s.ColumnType(col) != sqlite3.NULL:
		return budget.State(s.ColumnInt(col))
	case by.presumed < 0:
		return budget.StatePresumed
	case kind == "corrected":
		return budget.StateSettled
	}
	return budget.StateHeld
}

package sqliteledger

import (
	"context"
	"iter"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// never is later than all windows.
var never = time.UnixMilli(1 << 52)

// Windows implements [budget.Historian].
func (l *Ledger) Windows(ctx context.Context, from, to time.Time) ([]budget.Totals, error) {
	if to.IsZero() {
		to = never
	}
	var all []budget.Totals
	err := l.view(ctx, func(b *books) {
		b.eachWindow(from, to, func(a *account, w budget.Window, id int64) {
			all = append(all, b.complete(a, &span{Window: w, pages: []*page{b.page(id)}}))
		})
	})
	return all, err
}

// Budgets returns the totals of the window of every budget that contains the instant
// now, by the name of the budget; those of a budget that was not used in it are zero.
func (l *Ledger) Budgets(ctx context.Context, now time.Time) ([]budget.Totals, error) {
	var all []budget.Totals
	err := l.view(ctx, func(b *books) {
		for _, name := range b.names() {
			a := b.account(name)
			if a == nil {
				return
			}
			bud := a.known()
			all = append(all, b.complete(a, b.span(a, bud.Window(now))))
		}
	})
	return all, err
}

// view runs f on the books of one instant, what waits in memory included.
func (l *Ledger) view(ctx context.Context, f func(*books)) error {
	if err := l.flush(ctx); err != nil {
		return err
	}
	return l.read(ctx, func(c *conn) { f(newView(c)) })
}

// complete is totals for a budget that is known from the file alone.
func (b *books) complete(a *account, sp *span) budget.Totals {
	t := a.totals(a.known(), sp)
	t.Frozen = b.isFrozen(a.budget.Name)
	return t
}

// known is the budget as far as the file knows it: without Keep and Monitor. A zone
// that this machine does not know is left out.
func (a *account) known() budget.Budget {
	bud := a.budget
	bud.Every = budget.ParsePeriod(a.period)
	bud.Zone, _ = time.LoadLocation(a.zone)
	return bud
}

func (b *books) names() (names []string) {
	b.query(func(s *sqlite3.Stmt) { names = append(names, s.ColumnText(0)) }, "SELECT name FROM budget ORDER BY name")
	return names
}

func (b *books) eachWindow(from, to time.Time, f func(a *account, w budget.Window, id int64)) {
	type row struct {
		name string
		id   int64
	}
	var rows []row
	b.query(func(s *sqlite3.Stmt) { rows = append(rows, row{s.ColumnText(0), s.ColumnInt64(1)}) },
		`SELECT name, win.id FROM win JOIN budget ON budget.id=win.budget WHERE "end">? AND start<? ORDER BY name, key`,
		from.UnixMilli(), to.UnixMilli())
	for _, r := range rows {
		if a := b.account(r.name); a != nil {
			f(a, b.window(r.id), r.id)
		}
	}
}

// Entry is a line of the audit trail. The amounts say by how much it changed its window.
type Entry struct {
	ID int64
	At time.Time
	// Kind is held, settled, voided, presumed or corrected for what happened to a
	// hold; limit, configured, freeze or release for what people did; adjusted for a
	// correction that concerns no single hold; compacted for the sum of old entries.
	Kind string
	// Budget and Window are empty if the entry concerns a provider, Window also if
	// it concerns a budget as a whole.
	Budget, Window, Provider, Unit string
	// Hold is zero if the entry concerns none.
	Hold                             budget.HoldID
	Settled, Presumed, Held, Overrun budget.Amount
	// Amount is the limit that was set.
	Amount        budget.Amount
	Who, Why, Ref string
}

// entriesPage is how many entries are read at once.
const entriesPage = 1000

// Entries goes through the audit trail after the entry with the id after (0: from the
// beginning), oldest first. It ends with the first error.
func (l *Ledger) Entries(ctx context.Context, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			var page []Entry
			err := l.view(ctx, func(b *books) { page = b.entries(after) })
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.ID
			}
			if len(page) < entriesPage {
				return
			}
		}
	}
}

func (b *books) entries(after int64) (page []Entry) {
	b.query(func(s *sqlite3.Stmt) {
		page = append(page, Entry{
			ID: s.ColumnInt64(0), At: instant(s, 1), Kind: s.ColumnText(2), Budget: s.ColumnText(3), Window: s.ColumnText(4),
			Provider: s.ColumnText(5), Unit: s.ColumnText(6),
			Hold:    budget.HoldID{Boot: uint64(s.ColumnInt64(7)), Seq: uint64(s.ColumnInt64(8))},
			Settled: budget.Amount(s.ColumnInt64(9)), Presumed: budget.Amount(s.ColumnInt64(10)),
			Held: budget.Amount(s.ColumnInt64(11)), Overrun: budget.Amount(s.ColumnInt64(12)),
			Amount: budget.Amount(s.ColumnInt64(13)), Who: s.ColumnText(14), Why: s.ColumnText(15), Ref: s.ColumnText(16),
		})
	}, `SELECT e.id, at, kind, coalesce(b.name, e.budget_name), key, coalesce(p.name, e.provider_name), unit, boot, seq,
			e.settled, e.presumed, e.held, e.overrun, amount, who, why, ref
		FROM entry e LEFT JOIN win w ON w.id=e.win LEFT JOIN budget b ON b.id=e.budget LEFT JOIN provider p ON p.id=e.provider
		WHERE e.id>? ORDER BY e.id LIMIT ?`, after, entriesPage)
	return page
}

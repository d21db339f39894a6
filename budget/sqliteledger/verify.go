package sqliteledger

import (
	"context"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// Verify checks the whole ledger: the file's structure, that the totals of every window
// are the sum of its entries, and that the holds without evidence are those that the
// totals count. It returns a line for everything that is wrong. It reads all of the
// file, beside the processes that use it.
func (l *Ledger) Verify(ctx context.Context) (wrong []string, err error) {
	err = l.view(ctx, func(b *books) {
		b.query(func(s *sqlite3.Stmt) {
			if text := s.ColumnText(0); text != "ok" {
				wrong = append(wrong, "damaged: "+text)
			}
		}, "PRAGMA integrity_check(20)")
		wrong = append(wrong, b.compareTotals()...)
	})
	return wrong, err
}

// compareTotals compares the windows with their entries and with the holds.
func (b *books) compareTotals() (wrong []string) {
	entries, holds := b.foldEntries(), b.foldHolds()
	b.eachWindow(time.Time{}, never, func(a *account, w budget.Window, id int64) {
		is := b.page(id).sums
		differ := func(what string, is, should any) {
			if is != should {
				wrong = append(wrong, fmt.Sprintf("budget %s, window %s: %s is %v, but %v by the entries", a.budget.Name, w.ID, what, is, should))
			}
		}
		differ("settled", is.settled, entries[id].settled)
		differ("presumed", is.presumed, entries[id].presumed)
		differ("held", is.held, entries[id].held)
		differ("overrun", is.overrun, entries[id].overrun)
		differ("what is known of presumed", is.floor, entries[id].floor)
		differ("the number of holds in flight", is.open, holds[id].open)
		delete(entries, id)
	})
	for id := range entries {
		wrong = append(wrong, fmt.Sprintf("entries of a window %d that does not exist", id))
	}
	return wrong
}

// foldEntries adds up the entries of each window.
func (b *books) foldEntries() map[int64]sums {
	fold := map[int64]sums{}
	b.query(func(s *sqlite3.Stmt) {
		fold[s.ColumnInt64(0)] = sums{
			settled: budget.Amount(s.ColumnInt64(1)), presumed: budget.Amount(s.ColumnInt64(2)), held: budget.Amount(s.ColumnInt64(3)),
			overrun: budget.Amount(s.ColumnInt64(4)), floor: budget.Amount(s.ColumnInt64(5)),
		}
	}, `SELECT win, sum(settled), sum(presumed), sum(held), sum(overrun), sum(floor) FROM entry WHERE win IS NOT NULL GROUP BY win`)
	return fold
}

// foldHolds counts the holds in flight of each window.
func (b *books) foldHolds() map[int64]sums {
	fold := map[int64]sums{}
	b.query(func(s *sqlite3.Stmt) { fold[s.ColumnInt64(0)] = sums{open: s.ColumnInt64(1)} },
		`SELECT win, count(*) FROM hold JOIN entry ON entry.id BETWEEN first AND first+legs-1 WHERE state=? GROUP BY win`,
		int(budget.StateHeld))
	return fold
}

package sqliteledger

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// keepEntries is how long single entries are kept.
const (
	keepEntries = 400 * 24 * time.Hour
	keepRecent  = 70 * 24 * time.Hour // what Compact leaves: holds of a month may still be presumed
)

// Compact replaces the entries before an instant by their sums per window and provider.
// Totals stay, with the numbers of calls, and what people did stays; single holds of that
// time can no longer be corrected. Ledgers in use do it by themselves after 400 days. Entries of the last 70
// days are kept in any case. The space is used again, but the file does not shrink.
func (l *Ledger) Compact(ctx context.Context, before time.Time) error {
	for more := true; more; {
		err := l.do(ctx, func(b *books) error {
			if latest := b.now.Add(-keepRecent); latest.Before(before) {
				before = latest
			}
			more = b.compact(before)
			return b.err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compact does one step and reports whether there is more to do.
func (b *books) compact(before time.Time) (more bool) {
	from := b.meta("compacted")
	to, _, more := b.entriesUntil(from, before.UnixMilli()-1)
	if to == from {
		return false
	}
	for _, o := range b.takeOld(from, to) {
		b.keepSum(o, from)
	}
	b.setMeta("compacted", to)
	return more
}

// old is the sum of old entries of one window and provider.
type old struct {
	first, at, budget, win, provider, count int64
	sums
	budget.Spending // its counts of calls, and by how much corrections changed them
}

// takeOld takes out the entries in (from, to], except those that a hold still needs and
// those of people.
func (b *books) takeOld(from, to int64) (all []*old) {
	const needless = `id>? AND id<=? AND win IS NOT NULL AND who IS NULL
		AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.boot=entry.boot AND hold.seq=entry.seq)`
	known := map[[2]int64]*old{}
	b.query(func(s *sqlite3.Stmt) {
		of := [2]int64{s.ColumnInt64(3), s.ColumnInt64(4)}
		o := known[of]
		if o == nil {
			o = &old{first: s.ColumnInt64(0), budget: s.ColumnInt64(2), win: of[0], provider: of[1]}
			known[of], all = o, append(all, o)
		}
		o.at, o.count = max(o.at, s.ColumnInt64(1)), o.count+1
		o.take(s)
	}, `SELECT id, at, budget, win, provider, kind, settled, presumed, held, overrun, floor, was FROM entry WHERE `+needless+` ORDER BY id`, from, to)
	b.exec("DELETE FROM entry WHERE "+needless, from, to)
	return all
}

// take adds the entry that s reads.
func (o *old) take(s *sqlite3.Stmt) {
	kind, by := s.ColumnText(5), sums{
		settled: budget.Amount(s.ColumnInt64(6)), presumed: budget.Amount(s.ColumnInt64(7)), held: budget.Amount(s.ColumnInt64(8)),
		overrun: budget.Amount(s.ColumnInt64(9)), floor: budget.Amount(s.ColumnInt64(10)),
	}
	o.settled, o.presumed, o.held = o.settled+by.settled, o.presumed+by.presumed, o.held+by.held
	o.overrun, o.floor = o.overrun+by.overrun, o.floor+by.floor
	tally(&o.Spending, kind, before(s, 11, kind, by), by)
}

// keepSum adds a sum to the entry for old entries of its window and provider, or writes
// one in the place of the first of them, which keeps the order of ids and of time.
func (b *books) keepSum(o *old, from int64) {
	id := int64(0)
	b.query(func(s *sqlite3.Stmt) {
		id = s.ColumnInt64(0)
		counts := parseCounts(s.ColumnText(1))
		o.Spending.Add(&counts)
	}, `SELECT id, ref FROM entry WHERE id<=? AND kind='compacted' AND win=? AND provider IS ?`, from, o.win, o.provider)
	if id > 0 {
		b.exec(`UPDATE entry SET at=max(at, ?), settled=settled+?, presumed=presumed+?, held=held+?, overrun=overrun+?,
			floor=floor+?, why=(CAST(why AS INTEGER)+?) || ' entries', ref=? WHERE id=?`, o.at, int64(o.settled),
			int64(o.presumed), int64(o.held), int64(o.overrun), int64(o.floor), o.count, formatCounts(o.Spending), id)
		return
	}
	b.exec(`INSERT INTO entry(id, at, kind, budget, win, provider, settled, presumed, held, overrun, floor, why, ref)
		VALUES(?,?,'compacted',?,?,?,?,?,?,?,?,? || ' entries',?)`, o.first, o.at, o.budget, o.win, o.provider, int64(o.settled),
		int64(o.presumed), int64(o.held), int64(o.overrun), int64(o.floor), o.count, formatCounts(o.Spending))
}

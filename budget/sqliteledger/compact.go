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
// Totals stay, and what people did stays; single holds of that time can no longer be
// corrected. Ledgers in use do it by themselves after 400 days. Entries of the last 70
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
	to, ids := b.entriesUntil(from, before.UnixMilli()-1)
	if to == from {
		return false
	}
	for _, o := range b.takeOld(from, to) {
		b.keepSum(o, from)
	}
	b.setMeta("compacted", to)
	return len(ids) == upkeepStep
}

// old is the sum of old entries of one window and provider.
type old struct {
	first, at, budget, win, provider, count int64
	sums
}

// takeOld takes out the entries in (from, to], except those that a hold still needs and
// those that move no money.
func (b *books) takeOld(from, to int64) (all []old) {
	const needless = `id>? AND id<=? AND win IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.boot=entry.boot AND hold.seq=entry.seq)`
	b.query(func(s *sqlite3.Stmt) {
		all = append(all, old{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3), s.ColumnInt64(4),
			s.ColumnInt64(5), sums{
				settled: budget.Amount(s.ColumnInt64(6)), presumed: budget.Amount(s.ColumnInt64(7)), held: budget.Amount(s.ColumnInt64(8)),
				overrun: budget.Amount(s.ColumnInt64(9)), floor: budget.Amount(s.ColumnInt64(10)),
			}})
	}, `SELECT min(id), max(at), budget, win, provider, count(*), sum(settled), sum(presumed), sum(held),
		sum(overrun), sum(floor) FROM entry WHERE `+needless+` GROUP BY win, provider`, from, to)
	b.exec("DELETE FROM entry WHERE "+needless, from, to)
	return all
}

// keepSum adds a sum to the entry for old entries of its window and provider, or writes
// one in the place of the first of them, which keeps the order of ids and of time.
func (b *books) keepSum(o old, from int64) {
	n := b.exec(`UPDATE entry SET at=max(at, ?), settled=settled+?, presumed=presumed+?, held=held+?, overrun=overrun+?,
		floor=floor+?, why=(CAST(why AS INTEGER)+?) || ' entries' WHERE id<=? AND kind='compacted' AND win=? AND provider IS ?`, o.at, int64(o.settled),
		int64(o.presumed), int64(o.held), int64(o.overrun), int64(o.floor), o.count, from, o.win, o.provider)
	if n > 0 {
		return
	}
	b.exec(`INSERT INTO entry(id, at, kind, budget, win, provider, settled, presumed, held, overrun, floor, why)
		VALUES(?,?,'compacted',?,?,?,?,?,?,?,?,? || ' entries')`, o.first, o.at, o.budget, o.win, o.provider, int64(o.settled),
		int64(o.presumed), int64(o.held), int64(o.overrun), int64(o.floor), o.count)
}

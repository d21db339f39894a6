package sqliteledger

import (
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// purgeStep bounds the entries that one group looks at to forget closed holds.
const purgeStep = 2000

// upkeep does, once a second and while groups are written anyway, what nobody waits for.
func (b *books) upkeep() {
	if time.Since(b.looked) < recoverEvery && !b.behind {
		return
	}
	b.recoverDead()
	b.purge()
}

// purge forgets closed holds. It follows the entries that closed them, which are in the
// order of time, so that it never searches: meta remembers how far all processes came.
func (b *books) purge() {
	from := b.number("SELECT value FROM meta WHERE key='purged'")
	to, seen := from, 0
	before := b.now.Add(-keepClosed).UnixMilli()
	var ids []budget.HoldID
	b.query(func(s *sqlite3.Stmt) {
		to, seen = s.ColumnInt64(0), seen+1
		if s.ColumnType(1) != sqlite3.NULL {
			ids = append(ids, budget.HoldID{Boot: uint64(s.ColumnInt64(1)), Seq: uint64(s.ColumnInt64(2))})
		}
	}, `SELECT id, boot, seq FROM (SELECT id, boot, seq, at FROM entry WHERE id>? ORDER BY id LIMIT ?) WHERE at<=?`,
		from, purgeStep, before)
	b.behind = seen == purgeStep
	if to == from {
		return
	}
	for _, id := range ids {
		b.exec("DELETE FROM hold WHERE boot=? AND seq=? AND ended<=?", int64(id.Boot), int64(id.Seq), before)
	}
	b.exec("INSERT INTO meta(key, value) VALUES('purged', ?) ON CONFLICT DO UPDATE SET value=excluded.value", to)
}

// expire forgets presumed holds whose windows ended long ago. Their money stays spent.
func (b *books) expire() {
	before := b.now.Add(-keepPresumed).UnixMilli()
	b.exec(`DELETE FROM hold WHERE state=? AND at<? AND (SELECT max(ends) FROM entry JOIN win ON win.id=entry.win
		WHERE entry.id BETWEEN first AND first+legs-1)<?`, int(budget.StatePresumed), before, before)
}

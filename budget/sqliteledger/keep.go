package sqliteledger

import (
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// upkeepStep bounds the entries that one group looks at beside its work.
const upkeepStep = 2000

// upkeep does, once a second and while groups are written anyway, what nobody waits for.
func (b *books) upkeep() {
	if time.Since(b.looked) < recoverEvery && !b.behind {
		return
	}
	b.recoverDead()
	b.purge()
	b.compact(b.now.Add(-keepEntries))
}

// purge forgets closed holds. It follows the entries that closed them, which are in the
// order of time, so that it never searches.
func (b *books) purge() {
	before := b.now.Add(-keepClosed).UnixMilli()
	from := b.meta("purged")
	to, ids, more := b.entriesUntil(from, before)
	for _, id := range ids {
		b.exec("DELETE FROM hold WHERE boot=? AND seq=? AND ended<=?", int64(id.Boot), int64(id.Seq), before)
	}
	if b.behind = more; to > from {
		b.setMeta("purged", to)
	}
}

// entriesUntil returns the holds of the entries after the id from and until an instant,
// and the id of the last of them; a step at most, and whether there may be more. Entries
// that a clock wrote which was ahead are as old as what comes after them.
func (b *books) entriesUntil(from, before int64) (to int64, ids []budget.HoldID, more bool) {
	to, now, old := from, b.now.UnixMilli(), 0
	b.scan(func(s *sqlite3.Stmt) bool {
		at := s.ColumnInt64(1)
		if before < at && at <= now {
			return false
		}
		ids = append(ids, budget.HoldID{Boot: uint64(s.ColumnInt64(2)), Seq: uint64(s.ColumnInt64(3))})
		if at <= before {
			to, old = s.ColumnInt64(0), len(ids)
		}
		return true
	}, "SELECT id, at, boot, seq FROM entry WHERE id>? ORDER BY id LIMIT ?", from, upkeepStep)
	return to, ids[:old], len(ids) == upkeepStep && to > from
}

// meta is how far a background task came, for all processes.
func (b *books) meta(key string) int64 {
	return b.number("SELECT value FROM meta WHERE key=?", key)
}

func (b *books) setMeta(key string, value int64) {
	b.exec("INSERT INTO meta(key, value) VALUES(?,?) ON CONFLICT DO UPDATE SET value=excluded.value", key, value)
}

// expire forgets presumed holds whose windows ended long ago. Their money stays spent.
func (b *books) expire() {
	before := b.now.Add(-keepPresumed).UnixMilli()
	b.exec(`DELETE FROM hold WHERE state=? AND at<? AND (SELECT max(ends) FROM entry JOIN win ON win.id=entry.win
		WHERE entry.id BETWEEN first AND first+legs-1)<?`, int(budget.StatePresumed), before, before)
}

package sqliteledger

import (
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// How often a handle looks for dead owners: while it has work, and when money that others
// hold is all that is in the way.
const (
	recoverEvery = time.Second
	recoverPause = time.Millisecond
)

// recoverDead presumes the holds that dead owners have left in flight, and reports
// whether there was one. Nothing becomes free by it: what was held counts as spent.
func (b *books) recoverDead() (found bool) {
	b.looked = time.Now()
	var owners []int64
	b.query(func(s *sqlite3.Stmt) { owners = append(owners, s.ColumnInt64(0)) }, "SELECT id FROM owner WHERE id<>?", b.owner)
	for _, owner := range owners {
		if !dead(b.dir, owner) {
			continue
		}
		found = true
		b.presumeAll(owner)
		b.inherit(owner)
		b.exec("DELETE FROM owner WHERE id=?", owner)
		b.kept = append(b.kept, func() { forget(b.dir, owner) })
	}
	return found
}

// presumeOrphans presumes the holds in flight of owners that have no row: someone has
// removed their presence while they lived, so that they were taken for dead, and went on.
func (b *books) presumeOrphans() {
	var owners []int64
	b.query(func(s *sqlite3.Stmt) { owners = append(owners, s.ColumnInt64(0)) },
		"SELECT DISTINCT owner FROM hold WHERE state=? AND owner NOT IN (SELECT id FROM owner)", int(budget.StateHeld))
	for _, owner := range owners {
		b.presumeAll(owner)
	}
}

func (b *books) presumeAll(owner int64) {
	var ids []budget.HoldID
	b.query(func(s *sqlite3.Stmt) {
		ids = append(ids, budget.HoldID{Boot: uint64(s.ColumnInt64(0)), Seq: uint64(s.ColumnInt64(1))})
	}, "SELECT boot, seq FROM hold WHERE owner=? AND state=?", owner, int(budget.StateHeld))
	for _, id := range ids {
		h := b.row(id)
		if h == nil {
			return // b.err says why
		}
		legs := b.legsOf(h)
		if b.err != nil {
			return
		}
		_, _ = b.end(h, legs, budget.Outcome{Why: "owner died"}, "")
	}
	if len(ids) > 0 {
		b.notices = append(b.notices, notice{Notice: budget.Notice{Kind: budget.NoticeRecovery, Holds: len(ids)}})
	}
}

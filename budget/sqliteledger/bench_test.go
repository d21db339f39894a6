package sqliteledger

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// BenchmarkBareCommit is what one durable commit of the driver costs: the unit of the
// others.
func BenchmarkBareCommit(b *testing.B) {
	c, err := sqlite3.Open("file:" + filepath.Join(b.TempDir(), "bare.db"))
	require.NoError(b, err)
	defer c.Close()
	require.NoError(b, c.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER)"))
	begin, _, err := c.Prepare("BEGIN IMMEDIATE")
	require.NoError(b, err)
	insert, _, err := c.Prepare("INSERT INTO t(n) VALUES(1)")
	require.NoError(b, err)
	commit, _, err := c.Prepare("COMMIT")
	require.NoError(b, err)
	defer func() { begin.Close(); insert.Close(); commit.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, begin.Exec())
		require.NoError(b, insert.Exec())
		require.NoError(b, commit.Exec())
	}
}

func BenchmarkHold(b *testing.B) {
	l := openBench(b)
	var seq atomic.Uint64
	b.ReportAllocs()
	for b.Loop() {
		holdAndSettle(b, l, seq.Add(1))
	}
}

func BenchmarkHold64(b *testing.B) {
	l := openBench(b)
	var seq atomic.Uint64
	b.SetParallelism(32) // times 2 cores
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			holdAndSettle(b, l, seq.Add(1))
		}
	})
}

func openBench(b *testing.B) *Ledger {
	l, err := Open(filepath.Join(b.TempDir(), "spend.db"))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return l
}

func holdAndSettle(b *testing.B, l *Ledger, seq uint64) {
	bud := budget.PerDay(budget.Unit * 1e9)
	bud.Name = "day"
	id := budget.HoldID{Boot: 1, Seq: seq}
	_, err := l.Hold(context.Background(), budget.Hold{ID: id, Provider: "p", Legs: []budget.Leg{{Budget: bud, Amount: 1000}}})
	if err == nil {
		_, err = l.Resolve(context.Background(), id, budget.Settled(900))
	}
	if err != nil {
		b.Error(err)
	}
}

package sqliteledger

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// BenchmarkBareCommit is what one durable commit of the driver costs: the unit of the
// others.
func BenchmarkBareCommit(b *testing.B) {
	commit, closeBare := bareCommit(b, b.TempDir())
	defer closeBare()
	b.ReportAllocs()
	for b.Loop() {
		commit()
	}
}

func bareCommit(t testing.TB, dir string) (commit, closeAll func()) {
	c, err := sqlite3.Open("file:" + filepath.Join(dir, "bare.db"))
	require.NoError(t, err)
	require.NoError(t, c.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER)"))
	var steps []*sqlite3.Stmt
	for _, sql := range []string{"BEGIN IMMEDIATE", "INSERT INTO t(n) VALUES(1)", "COMMIT"} {
		s, _, err := c.Prepare(sql)
		require.NoError(t, err)
		steps = append(steps, s)
	}
	commit = func() {
		for _, s := range steps {
			require.NoError(t, s.Exec())
		}
	}
	return commit, func() {
		for _, s := range steps {
			require.NoError(t, s.Close())
		}
		require.NoError(t, c.Close())
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
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
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

func holdAndSettle(t testing.TB, l *Ledger, seq uint64) {
	b := budget.PerDay(budget.Unit * 1e9)
	b.Name = "day"
	id := budget.HoldID{Boot: 1, Seq: seq}
	_, err := l.Hold(context.Background(), budget.Hold{ID: id, Provider: "p", Legs: []budget.Leg{{Budget: b, Amount: 1000}}})
	if err == nil {
		_, err = l.Resolve(context.Background(), id, budget.Settled(900))
	}
	if err != nil {
		t.Error(err)
	}
}

// TestCommitFigures compares, in turn and on a real disk, one commit of the driver with a
// hold of one caller and with those of 64 at once.
func TestCommitFigures(t *testing.T) {
	if !proving {
		t.Skip("OUTLAY_PROVE is not set: times mean something on a quiet machine only")
	}
	dir, err := os.MkdirTemp(diskDir, "marks")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	commit, closeBare := bareCommit(t, dir)
	defer closeBare()
	l := open(t, filepath.Join(dir, "spend.db"))
	var seq atomic.Uint64
	var bare, one, many []time.Duration
	for range 1000 {
		bare = append(bare, timeOf(commit))
		one = append(one, timeOf(func() { holdAndSettle(t, l, seq.Add(1)) }))
	}
	for range 20 {
		const each = 20
		took := timeOf(func() {
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					for range each {
						holdAndSettle(t, l, seq.Add(1))
					}
				})
			}
			all.Wait()
		})
		many = append(many, took/(64*each))
	}
	b, o, m := median(bare), median(one), median(many)
	t.Logf("medians: a bare commit %v; a hold, with the outcome before it, %v (%.2f); 64 callers %v each (1/%.1f)",
		b, o, float64(o)/float64(b), m, float64(b)/float64(m))
}

func timeOf(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

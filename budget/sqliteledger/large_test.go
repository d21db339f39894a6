package sqliteledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// fill writes the calls of 400 days, one entry each, past the ledger's own steps.
func fill(t testing.TB, l *Ledger, entries int) {
	day := budget.PerDay(1000 * budget.Unit).Normal()
	day.Name, day.Label = "day", "day"
	today := time.Now()
	require.NoError(t, l.do(context.Background(), func(b *books) error {
		a := newAccount(day)
		for i := 399; i >= 0; i-- {
			at := today.AddDate(0, 0, -i)
			p := b.open(&charge{leg: budget.Leg{Budget: day}, account: a, span: b.current(a, day, at)})
			for range entries / 400 {
				b.lastEntry++
				b.exec(`INSERT INTO entry(id, at, kind, budget, win, provider, boot, seq, settled, ref) VALUES(?,?,'settled',?,?,1,77,?,8300000,'SM')`,
					b.lastEntry, at.UnixMilli(), a.id, p.id, b.lastEntry)
			}
			b.change(p, sums{settled: 8300000 * budget.Amount(entries/400)})
		}
		b.exec("INSERT INTO provider(name) VALUES('sms')")
		return b.err
	}))
}

// Opening, reporting and spending do not depend on how much history there is.
func TestLargeLedger(t *testing.T) {
	entries := rounds(20_000, 1_000_000)
	path := filepath.Join(t.TempDir(), "spend.db")
	l := open(t, path)
	fill(t, l, entries)
	require.NoError(t, l.Close())

	times := ""
	timed := func(what string, most time.Duration, f func()) {
		start := time.Now()
		f()
		took := time.Since(start)
		times += fmt.Sprintf(", %s %v", what, took.Round(time.Millisecond))
		if proving {
			require.Less(t, took, most, what)
		}
	}
	timed("open", time.Second, func() { l = open(t, path) })
	timed("report of 400 windows", 2*time.Second, func() {
		all, err := l.Windows(context.Background(), time.Time{}, time.Time{})
		require.NoError(t, err)
		require.Len(t, all, 400)
	})
	timed("hold", time.Second, func() { require.NoError(t, hold(l, 1, "0.1")) })
	timed("all entries", time.Minute, func() {
		n := 0
		for _, err := range l.Entries(context.Background(), 0) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, entries+1, n)
	})
	timed("verify", time.Minute, func() { requireSound(t, l) })
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("%d entries, %d MB%s", entries, info.Size()>>20, times)
}

// TestGrowthPerCall states what a call adds to the file for good, and for the 15 minutes
// in which its id is known.
func TestGrowthPerCall(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "spend.db"))
	pages := func() (n int64) {
		require.NoError(t, l.view(context.Background(), func(b *books) {
			n = b.number("PRAGMA page_count") - b.number("PRAGMA freelist_count")
		}))
		return n
	}
	b := budget.PerMonth(1000 * budget.Unit)
	b.Name = "month"
	const calls = 2000
	before := pages()
	for seq := range uint64(calls) {
		id := budget.HoldID{Boot: 1 << 60, Seq: seq}
		require.NoError(t, take(l, id, b, "0.0083"))
		_, err := l.Resolve(context.Background(), id, budget.Outcome{State: budget.StateSettled, Amount: 8300000, Ref: "SM0123456789abcdef0123456789abcdef"})
		require.NoError(t, err)
	}
	all := (pages() - before) * 4096 / calls
	require.NoError(t, l.do(context.Background(), func(b *books) error { b.exec("DELETE FROM hold"); return nil }))
	lasting := (pages() - before) * 4096 / calls
	t.Logf("a call with one leg and a reference of 34 characters takes %d bytes, %d of them for good", all, lasting)
	require.Positive(t, lasting)
	require.Less(t, lasting, int64(220))
	require.Less(t, all, int64(400))
}

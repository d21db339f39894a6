package sqliteledger

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
)

func historyOf(t testing.TB, l *Ledger, at time.Time, b budget.Budget) budget.History {
	t.Helper()
	all, err := l.History(context.Background(), at, b)
	require.NoError(t, err)
	totals, err := l.Totals(context.Background(), at, b)
	require.NoError(t, err)
	last := all[0].Points[len(all[0].Points)-1]
	require.Equal(t, []budget.Amount{totals[0].Settled, totals[0].Presumed}, []budget.Amount{last.Settled, last.Presumed})
	return all[0]
}

// olderSchemas take a file back to an older version.
var olderSchemas = map[string]string{
	"the first":  "DROP INDEX people; ALTER TABLE entry DROP COLUMN was; PRAGMA user_version=1",
	"the second": "DROP INDEX people; CREATE INDEX people ON entry(id) WHERE kind IN ('limit','freeze'); PRAGMA user_version=2",
}

// A file of an older version gains what this one has, and keeps its books.
func TestAnOlderFileIsBroughtUpToDate(t *testing.T) {
	for name, undo := range olderSchemas {
		t.Run(name, func(t *testing.T) { bringUpToDate(t, undo) })
	}
}

func bringUpToDate(t *testing.T, undo string) {
	path := filepath.Join(t.TempDir(), "spend.db")
	day := budget.PerDay(10 * budget.Unit)
	day.Name = "day"
	l := open(t, path)
	_, err := l.Hold(t.Context(), holdOf(budget.HoldID{Boot: 1, Seq: 1}, day, "1"))
	require.NoError(t, err)
	require.NoError(t, l.Close())

	c, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Exec(undo))
	require.NoError(t, c.Close())

	l = open(t, path)
	require.NoError(t, l.SetLimit(t.Context(), "day", 20*budget.Unit, budget.By{Who: "maria"}))
	all, err := l.Audit(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []string{"10", "20"}, []string{all[0].From, all[0].To})
	require.Equal(t, budget.Unit, totalsOf(t, l, day).Presumed, "what was in flight at the end")
	wrong, err := l.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, wrong)
}

// Entries of older versions do not say what state they ended: their amounts mostly do.
func TestHistoryOfOlderEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	day := budget.PerDay(100 * budget.Unit)
	day.Name = "day"
	l := open(t, path)
	for seq, ends := range [][]budget.Outcome{
		{budget.Settled(budget.Unit), budget.Corrected(2*budget.Unit, "invoice")},
		{budget.Presumed(0), budget.Settled(0)}, {budget.Presumed(0)}, {budget.Voided("not sent")}, nil,
	} {
		id := budget.HoldID{Boot: 1, Seq: uint64(seq)}
		_, err := l.Hold(t.Context(), holdOf(id, day, "1"))
		require.NoError(t, err)
		for _, o := range ends {
			_, err = l.Resolve(t.Context(), id, o)
			require.NoError(t, err)
		}
	}
	want, err := l.Spending(t.Context(), time.Now(), day)
	require.NoError(t, err)
	require.Equal(t, []int{4, 1, 1}, []int{want[0].Calls, want[0].Open, want[0].PresumedCalls})
	require.Equal(t, []budget.Amount{budget.Unit, budget.Unit}, []budget.Amount{want[0].Up, want[0].Down})
	meddle(t, path, "UPDATE entry SET was=NULL")
	got, err := open(t, path).Spending(t.Context(), time.Now(), day)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A clock that was set back writes entries of a window before those of an earlier one.
func TestHistoryAfterTheClockWasSetBack(t *testing.T) {
	hand := ledgertest.NewHand(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))
	path := filepath.Join(t.TempDir(), "spend.db")
	day := budget.PerDay(100 * budget.Unit)
	day.Name = "day"
	seq := uint64(0)
	spend := func(l *Ledger) {
		seq++
		id := budget.HoldID{Boot: 1, Seq: seq}
		_, err := l.Hold(t.Context(), holdOf(id, day, "1"))
		require.NoError(t, err)
		_, err = l.Resolve(t.Context(), id, budget.Settled(budget.Unit))
		require.NoError(t, err)
	}
	for _, step := range []time.Duration{0, 30 * time.Hour, -40 * time.Hour, 20 * time.Hour} {
		hand.Step(step)
		l := openWith(t, Options{clock: hand.Clock()}, path)
		for range 3 {
			spend(l)
			hand.Pass(40 * time.Minute)
		}
		require.NoError(t, l.Close())
	}
	l := openWith(t, Options{clock: hand.Clock()}, path)
	windows, err := l.Windows(t.Context(), time.Time{}, time.Time{})
	require.NoError(t, err)
	for _, w := range windows {
		h := historyOf(t, l, w.Window.End.Add(-time.Second), day)
		require.Equal(t, w.Settled, h.Points[len(h.Points)-1].Settled, w.Window.ID)
	}
}

// What another handle books is followed, entry by entry.
func TestHistoryFollowsOtherHandles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	a, b := open(t, path), open(t, path)
	month := budget.PerMonth(100 * budget.Unit)
	month.Name = "month"
	for i := range uint64(5) {
		id := budget.HoldID{Boot: 7, Seq: i}
		_, err := a.Hold(t.Context(), holdOf(id, month, "1"))
		require.NoError(t, err)
		_, err = a.Resolve(t.Context(), id, budget.Settled(budget.Unit))
		require.NoError(t, err)
		historyOf(t, a, time.Now(), month)
		historyOf(t, b, time.Now(), month)
	}
	require.EqualValues(t, 5, len(a.stories)*5)
}

// What people did is found among many entries without a search.
func TestAuditAndHistoryOfALargeLedger(t *testing.T) {
	entries := rounds(40_000, 1_000_000)
	path := filepath.Join(t.TempDir(), "spend.db")
	l := open(t, path)
	fill(t, l, entries)
	require.NoError(t, l.Freeze(t.Context(), budget.Target{Provider: "sms"}, budget.By{Who: "maria", Why: "test"}))
	times := ""
	timed := func(what string, f func()) time.Duration {
		start := time.Now()
		f()
		took := time.Since(start)
		times += fmt.Sprintf(", %s %v", what, took.Round(10*time.Microsecond))
		return took
	}
	audit := timed("the newest changes", func() {
		all, err := l.Audit(t.Context(), "", 20)
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
	day := budget.PerDay(1000 * budget.Unit)
	day.Name = "day"
	year := func() { historyOf(t, l, time.Now(), day) }
	first := timed("the history of a day", year)
	again := timed("again", year)
	t.Logf("prove: %d entries%s", entries, times)
	if proving {
		require.Less(t, audit, 20*time.Millisecond)
		require.Less(t, first, 200*time.Millisecond)
		require.Less(t, again, 50*time.Millisecond)
	}
	plan := ""
	require.NoError(t, l.view(t.Context(), func(b *books) {
		b.query(func(s *sqlite3.Stmt) { plan += s.ColumnText(3) + "\n" },
			"EXPLAIN QUERY PLAN SELECT id FROM entry e WHERE e.id>? AND "+byPeople+" ORDER BY e.id DESC LIMIT 20", 0)
	}))
	require.Contains(t, plan, "people")
}

// What is written for each call opens no table of its own.
func TestCallsWriteWithoutTemporaryTables(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "spend.db"))
	for _, sql := range []string{
		"INSERT INTO entry(id, at, kind, budget, win, provider, boot, seq, held) VALUES(?,?,?,?,?,?,?,?,?)",
		"INSERT INTO hold(boot, seq, owner, provider, flags, at, first, legs, state) VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
		"UPDATE hold SET state=?, said=?, amount=?, ended=?, ref=? WHERE boot=? AND seq=? AND state=?",
		"UPDATE win SET settled=?, presumed=? WHERE id=?",
	} {
		var codes []string
		require.NoError(t, l.view(t.Context(), func(b *books) {
			b.query(func(s *sqlite3.Stmt) { codes = append(codes, s.ColumnText(1)) }, "EXPLAIN "+sql)
		}))
		require.Contains(t, codes, "OpenWrite")
		require.NotContains(t, codes, "OpenEphemeral", sql)
	}
}

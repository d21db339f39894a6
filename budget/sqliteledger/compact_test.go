package sqliteledger

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
)

// Entries are compacted by their time, and a call has several: whatever of it has gone, the
// rest must not count as something else.
func TestCompactionAmidCalls(t *testing.T) {
	hand := ledgertest.NewHand(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))
	begin, path := hand.Now(), filepath.Join(t.TempDir(), "spend.db")
	l := openWith(t, Options{clock: hand.Clock()}, path)
	year := budget.Budget{Name: "year", Limit: 100 * budget.Unit, Every: budget.Rolling(366 * 24 * time.Hour)}
	month := budget.Budget{Name: "month", Limit: 100 * budget.Unit, Every: budget.Month}
	ends := [][]budget.Outcome{
		{budget.Settled(budget.Unit)}, {budget.Voided("not sent")}, {budget.Presumed(0)}, {budget.Presumed(0), budget.Settled(budget.Unit / 2)},
		{budget.Settled(budget.Unit), budget.Corrected(3*budget.Unit, "invoice")}, {budget.Voided("not sent"), budget.Corrected(budget.Unit, "invoice")},
	}
	id := func(i int) budget.HoldID { return budget.HoldID{Boot: 1, Seq: uint64(i + 1)} }
	var cuts []time.Time
	pass := func() {
		hand.Pass(time.Minute)
		cuts = append(cuts, hand.Now())
		hand.Pass(time.Minute)
	}
	for i := range ends {
		_, err := l.Hold(t.Context(), budget.Hold{ID: id(i), Provider: "sms", Legs: []budget.Leg{{Budget: year, Amount: 2 * budget.Unit}, {Budget: month, Amount: 2 * budget.Unit}}})
		require.NoError(t, err)
	}
	for step := range 2 {
		pass()
		for i, outcomes := range ends {
			if step < len(outcomes) {
				_, err := l.Resolve(t.Context(), id(i), outcomes[step])
				require.NoError(t, err)
				require.NoError(t, l.flush(t.Context()))
			}
		}
	}
	pass()

	spending := func() []budget.Spending {
		all, err := openWith(t, Options{clock: hand.Clock(), ReadOnly: true}, path).Spending(t.Context(), begin, year, month)
		require.NoError(t, err)
		return all
	}
	want := spending()
	require.Equal(t, []int{5, 0, 1}, []int{want[0].Calls, want[0].Open, want[0].PresumedCalls})
	hand.Pass(80 * 24 * time.Hour)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	for _, cut := range cuts {
		require.NoError(t, l.Compact(t.Context(), cut))
		require.Equal(t, want, spending(), "%v", cut)
		requireSound(t, l)
		for i := range ends {
			found, err := l.CompareLines(t.Context(), []Line{{Hold: id(i), Amount: budget.Unit}})
			require.NoError(t, err)
			forgotten := i != 2 // which has no evidence yet
			require.Equal(t, forgotten, found[0].Problem != "", "%v %v", cut, ends[i])
		}
	}
}

// An audit trail outlives what it is about.
func TestCorrectionsByPeopleAreNotCompacted(t *testing.T) {
	hand := ledgertest.NewHand(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))
	l := openWith(t, Options{clock: hand.Clock()}, filepath.Join(t.TempDir(), "spend.db"))
	month, id := budget.Budget{Name: "month", Limit: 100 * budget.Unit, Every: budget.Month}, budget.HoldID{Boot: 1, Seq: 1}
	begin := hand.Now()
	_, err := l.Hold(t.Context(), holdOf(id, month, "2"))
	require.NoError(t, err)
	_, err = l.Resolve(t.Context(), id, budget.Settled(budget.Unit))
	require.NoError(t, err)
	_, err = l.Correct(t.Context(), id, 3*budget.Unit, by)
	require.NoError(t, err)
	_, err = l.CorrectTotal(t.Context(), Total{Provider: "sms", Window: "2026-05", Amount: 4 * budget.Unit}, by)
	require.NoError(t, err)
	told, err := l.Audit(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, told, 2)
	want, err := l.Spending(t.Context(), begin, month)
	require.NoError(t, err)

	hand.Pass(80 * 24 * time.Hour)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	require.NoError(t, l.Compact(t.Context(), hand.Now()))
	still, err := l.Audit(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, told, still)
	got, err := l.Spending(t.Context(), begin, month)
	require.NoError(t, err)
	require.Equal(t, want, got)
	requireSound(t, l)
}

// A clock that was ahead when a program started must not keep what is old for as long.
func TestEntriesOfAClockThatWasAheadAreForgotten(t *testing.T) {
	hand := ledgertest.NewHand(time.Date(2099, 5, 2, 12, 0, 0, 0, time.UTC))
	path := filepath.Join(t.TempDir(), "spend.db")
	month, seq := budget.Budget{Name: "month", Limit: 100 * budget.Unit, Every: budget.Month}, uint64(0)
	spend := func() {
		seq++
		l := openWith(t, Options{clock: hand.Clock()}, path)
		_, err := l.Hold(t.Context(), holdOf(budget.HoldID{Boot: 1, Seq: seq}, month, "1"))
		require.NoError(t, err)
		_, err = l.Resolve(t.Context(), budget.HoldID{Boot: 1, Seq: seq}, budget.Settled(budget.Unit))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	spend()
	hand.Step(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC).Sub(hand.Now()))
	begin := hand.Now()
	for range 20 {
		spend()
		hand.Pass(time.Minute)
	}
	count := func(l *Ledger, table string) (n int64) {
		require.NoError(t, l.view(t.Context(), func(b *books) { n = b.number("SELECT count(*) FROM " + table) }))
		return n
	}
	l := openWith(t, Options{clock: hand.Clock()}, path)
	require.LessOrEqual(t, count(l, "hold"), int64(16), "those of the last 15 minutes, and the one of 2099")
	before, err := l.Spending(t.Context(), begin, month)
	require.NoError(t, err)
	hand.Pass(80 * 24 * time.Hour)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	require.NoError(t, l.Compact(t.Context(), hand.Now()))
	require.Equal(t, int64(3), count(l, "entry"), "one sum, and the call of 2099")
	after, err := l.Spending(t.Context(), begin, month)
	require.NoError(t, err)
	require.Equal(t, before, after)
	requireSound(t, l)
}

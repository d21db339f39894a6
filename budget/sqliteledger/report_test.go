package sqliteledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func brief(t budget.Totals) string {
	return fmt.Sprintf("%s %s %v: settled %v presumed %v held %v of %v %s", t.Budget.Name, t.Window.ID, t.Budget.Every,
		t.Settled, t.Presumed, t.Held, t.Limit, t.Budget.Unit)
}

func TestReports(t *testing.T) {
	l, hand := used(t)
	ctx := context.Background()
	now, err := l.Budgets(ctx, hand.Now())
	require.NoError(t, err)
	require.Len(t, now, 2)
	require.Equal(t, "sms-calls 2026-05 month: settled 2 presumed 1 held 0 of 100 calls", brief(now[0]))
	require.Equal(t, "sms-day 2026-05-02 day: settled 0.7583 presumed 0.5 held 0 of 60 USD", brief(now[1]))
	require.Equal(t, []bool{true, false}, []bool{now[0].Frozen, now[1].Frozen})
	require.Equal(t, int64(2), now[1].Trend.Settled)

	frozen, err := l.Frozen(ctx)
	require.NoError(t, err)
	require.Equal(t, []Frozen{{Target: budget.Target{Budget: "sms-calls"}, Since: hand.Now(), By: by}}, frozen)

	providers, err := l.Providers(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"sms"}, providers)

	later, err := l.Budgets(ctx, hand.Now().AddDate(0, 0, 1))
	require.NoError(t, err)
	require.Equal(t, "sms-day 2026-05-03 day: settled 0 presumed 0 held 0 of 60 USD", brief(later[1]))

	all, err := l.Windows(ctx, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, now[1].Used(), all[1].Used())
	none, err := l.Windows(ctx, hand.Now().AddDate(0, 1, 0), time.Time{})
	require.NoError(t, err)
	require.Empty(t, none)

	require.NoError(t, hold(l, 1, "0.1"))
	kinds := map[string]int{}
	var last int64
	for e, err := range l.Entries(ctx, 0) {
		require.NoError(t, err)
		require.Greater(t, e.ID, last)
		kinds[e.Kind], last = kinds[e.Kind]+1, e.ID
		require.Equal(t, e.Kind == "limit" || e.Kind == "freeze", e.Who == "maria")
	}
	require.Equal(t, map[string]int{"held": 9, "settled": 4, "presumed": 2, "voided": 2, "limit": 1, "freeze": 1}, kinds)
}

func TestBackup(t *testing.T) {
	l, hand := used(t)
	ctx := context.Background()
	require.NoError(t, hold(l, 1, "0.3"))
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, l.Backup(ctx, copied))
	require.ErrorIs(t, l.Backup(ctx, copied), os.ErrExist, "nothing is written over")
	info, err := os.Stat(copied)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	files, err := os.ReadDir(filepath.Dir(copied))
	require.NoError(t, err)
	require.Len(t, files, 1, "the copy is complete by itself")

	require.NoError(t, hold(l, 2, "0.3"))
	second := openWith(t, Options{clock: hand.Clock()}, copied)
	all, err := second.Budgets(ctx, hand.Now())
	require.NoError(t, err)
	require.Equal(t, "month 2026-05 month: settled 0 presumed 0.3 held 0 of 1 USD", brief(all[0]))
	require.Len(t, all, 3)
	require.Equal(t, l.ID(), second.ID())
	require.Equal(t, l.Key(), second.Key())
	require.NotEmpty(t, l.Key())
	wrong, err := second.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, wrong)

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, l.Backup(cancelled, copied+"2"))
	require.NoFileExists(t, copied+"2")
}

// Whatever is changed behind the ledger's back, Verify tells.
func TestVerify(t *testing.T) {
	l, _ := used(t)
	wrong, err := l.Verify(context.Background())
	require.NoError(t, err)
	require.Empty(t, wrong)
	for _, sql := range []string{
		"UPDATE entry SET settled=settled+1 WHERE kind='settled'",
		"DELETE FROM entry WHERE kind='presumed'",
		"UPDATE hold SET state=4 WHERE state=0",
	} {
		l, _ := used(t)
		require.NoError(t, l.Backup(context.Background(), l.path+".copy"))
		meddle(t, l.path+".copy", sql)
		wrong, err := open(t, l.path+".copy").Verify(context.Background())
		require.NoError(t, err)
		require.NotEmpty(t, wrong, sql)
	}
}

// Totals and limits are not changed by hand.
func TestMeddling(t *testing.T) {
	for _, sql := range []string{
		"UPDATE win SET settled=0 WHERE settled>0", "UPDATE budget SET configured=configured*2",
		"UPDATE budget SET override=9000000000000", "UPDATE win SET held=-1000000000", "UPDATE budget SET current=0",
	} {
		l, hand := used(t)
		require.NoError(t, l.Close())
		meddle(t, l.path, sql)
		l = openWith(t, Options{clock: hand.Clock()}, l.path)
		day := budget.PerDay(50 * budget.Unit)
		day.Name = "sms-day"
		_, err := l.Hold(context.Background(), holdOf(budget.HoldID{Boot: 9}, day, "0.1"))
		requireFault(t, err, Corrupt)
		require.ErrorContains(t, err, "do not add up")
	}
}

func meddle(t *testing.T, path, sql string) {
	c, err := dial(path, vfsName, time.Second)
	require.NoError(t, err)
	require.NoError(t, c.Exec(sql))
	require.NoError(t, c.shut())
}

func TestOldEntriesAreCompacted(t *testing.T) {
	l, hand := used(t)
	ctx := context.Background()
	day := budget.PerDay(50 * budget.Unit)
	day.Name = "sms-day"
	seq := uint64(100)
	spend := func() {
		seq++
		id := budget.HoldID{Boot: 5, Seq: seq}
		require.NoError(t, take(l, id, day, "0.5"))
		_, err := l.Resolve(ctx, id, budget.Settled(budget.MustParse("0.25")))
		require.NoError(t, err)
		require.NoError(t, l.flush(ctx)) // within the same second
	}
	for range 100 {
		spend()
		hand.Pass(24 * time.Hour)
	}
	before, err := l.Windows(ctx, time.Time{}, time.Time{})
	require.NoError(t, err)
	count := func() (n int) {
		for _, err := range l.Entries(ctx, 0) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l)) // which forgets old holds
	require.NoError(t, l.Compact(ctx, hand.Now()))
	all := count()
	require.Equal(t, 31+2+2*70, all, "one a day, what people did, and all of the last 70 days")
	require.NoError(t, l.Compact(ctx, hand.Now()))
	require.Equal(t, all, count())
	old := before[slices.IndexFunc(before, func(t budget.Totals) bool { return t.Budget.Name == "sms-day" })+1]
	spent, err := l.Spending(ctx, old.Window.Start, day)
	require.NoError(t, err)
	want := budget.Spending{Budget: "sms-day", Window: old.Window.ID, Provider: "sms", Settled: old.Settled, Calls: 1}
	require.Equal(t, []budget.Spending{want}, spent, "a sum is no correction")
	for range 2 {
		hand.Pass(230 * 24 * time.Hour)
		l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
		spend() // the usual upkeep
	}
	require.Less(t, count(), all)
	after, err := l.Windows(ctx, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Len(t, after, len(before)+2)
	used := map[string]budget.Amount{}
	for _, w := range after {
		used[w.Budget.Name+w.Window.ID] = w.Used()
	}
	for _, w := range before {
		require.Equal(t, w.Used(), used[w.Budget.Name+w.Window.ID], "%s", w.Window.ID)
	}
	wrong, err := l.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, wrong)
	_, err = l.Correct(ctx, budget.HoldID{Boot: 5, Seq: seq}, 0, by)
	require.NoError(t, err, "the last call")
}

func reclose(t *testing.T, l *Ledger) string {
	require.NoError(t, l.Close())
	return l.path
}

// Ids of holds that ended are forgotten after 15 minutes, those of presumed ones 35 days
// after their window, and the table stays small.
func TestHoldsAreForgotten(t *testing.T) {
	l, hand := used(t)
	ctx := context.Background()
	holds := func() (n int) {
		require.NoError(t, l.view(ctx, func(b *books) { n = int(b.number("SELECT count(*) FROM hold")) }))
		return n
	}
	require.Equal(t, 4, holds())
	hand.Pass(15 * time.Minute)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	require.Equal(t, 1, holds(), "the presumed one is left")
	hand.Pass((30 + 34) * 24 * time.Hour)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	require.Equal(t, 1, holds())
	hand.Pass(2 * 24 * time.Hour)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	require.Zero(t, holds())
	all, err := l.Windows(ctx, time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, budget.MustParse("0.5"), all[1].Presumed, "the money stays spent")
}

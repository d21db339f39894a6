package ledgertest

import (
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// restarts: what a ledger knows after the death of its process.
var restarts = []namedCase{
	{"what a dead process held is presumed spent", crashAfterHold},
	{"a settle right before the crash is kept, or the hold is presumed", crashAfterSettle},
	{"a refused hold leaves nothing behind", crashAfterRefusal},
	{"totals survive", totalsSurvive},
	{"ended holds are known after a restart", endedSurvive},
	{"limits and freezes survive", operatorsSurvive},
	{"thresholds are told once over all processes", thresholdsSurvive},
	{"a living process keeps its holds when another opens the ledger", livingKeep},
	{"two processes share one budget", shared},
}

// restartClocks: the same, where the process' own clock counts.
var restartClocks = []namedCase{
	{"a clock that is wrong at the start opens one extra window", wrongClockAtStart},
}

func crashAfterHold(r *rig) {
	day := r.day()
	id, other := r.take(day, "1"), r.take(day, "2")
	r.restart()
	require.Equal(r, "settled 0 presumed 3 held 0 left 7", r.books(day))
	require.Equal(r, 2, r.totals(day).PresumedHolds)
	_, report, err := r.hold(leg(day, "0"))
	require.NoError(r, err)
	found := notices(budget.NoticeRecovery, report)
	require.Len(r, found, 1)
	require.Equal(r, 2, found[0].Holds)
	r.restart()
	require.Equal(r, "settled 0 presumed 3 held 0 left 7", r.books(day))
	late, _, err := r.hold(leg(day, "1"))
	require.NoError(r, err)
	r.restart()
	r.resolve(late, budget.Presumed(budget.MustParse("1.25"))) // its owner was only taken for dead, and knows more
	require.Equal(r, "settled 0 presumed 4.25 held 0 left 5.75", r.books(day))
	r.resolve(late, budget.Voided("reconciled"))
	r.settle(id, "0.37")
	require.Equal(r, "settled 0.37 presumed 2 held 0 left 7.63", r.books(day))
	r.hand.Pass(10 * time.Hour)
	require.Equal(r, "settled 0.37 presumed 2 held 0 left 7.63", r.books(day), "time gives nothing back")
	r.resolve(other, budget.Voided("reconciled"))
	require.Equal(r, "settled 0.37 presumed 0 held 0 left 9.63", r.books(day))
}

func crashAfterSettle(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	r.settle(id, "0.37")
	r.restart()
	require.Contains(r, []string{
		"settled 0.37 presumed 0 held 0 left 9.63",
		"settled 0 presumed 1 held 0 left 9",
	}, r.books(day))
	r.settle(id, "0.37")
	require.Equal(r, "settled 0.37 presumed 0 held 0 left 9.63", r.books(day))
}

func crashAfterRefusal(r *rig) {
	day := r.day()
	id, _, err := r.hold(leg(day, "11"))
	refusal(r, err)
	r.restart()
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	_, err = r.ledger.Resolve(r.Context(), id, budget.Settled(1))
	require.ErrorIs(r, err, budget.ErrUnknownHold)
}

func totalsSurvive(r *rig) {
	day, month := r.day(), r.budget("month", budget.Month, "25")
	for _, c := range []struct{ hold, cost string }{{"1", "1.5"}, {"2", "2"}, {"0.5", "0"}} {
		id, _, err := r.hold(leg(day, c.hold), leg(month, c.hold))
		require.NoError(r, err)
		r.settle(id, c.cost)
	}
	r.durable(day, "1")
	for range 3 {
		r.restart()
		require.Equal(r, "settled 3.5 presumed 1 held 0 left 5.5", r.books(day))
		require.Equal(r, "settled 3.5 presumed 0 held 0 left 21.5", r.books(month))
		require.Equal(r, budget.MustParse("0.5"), r.totals(day).Overrun)
	}
	r.refused(day, "6")
}

func endedSurvive(r *rig) {
	day := r.day()
	settled, presumed := r.take(day, "1"), r.take(day, "1")
	r.settle(settled, "0.4")
	r.resolve(presumed, budget.Outcome{Amount: budget.MustParse("0.25"), Ref: "SM1"})
	r.durable(day, "1")
	r.restart()
	r.settle(settled, "0.4")
	r.conflicts(settled, budget.Settled(budget.MustParse("0.5")))
	require.Equal(r, budget.MustParse("0.25"), r.totals(day).Floor)
	all, err := r.operator().Unresolved(r.Context(), "sms", 0)
	require.NoError(r, err)
	require.Len(r, all, 2)
	require.Equal(r, []any{presumed, "SM1"}, []any{all[0].ID, all[0].Ref})
	h := budget.Hold{ID: settled, Provider: "sms", Legs: []budget.Leg{leg(day, "1")}}
	_, err = r.ledger.Hold(r.Context(), h)
	require.NoError(r, err, "the command arrives again")
	require.Equal(r, "settled 0.4 presumed 2 held 0 left 7.6", r.books(day))
}

func operatorsSurvive(r *rig) {
	day := r.day()
	r.spend(day, "1")
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 50*budget.Unit, by))
	unused := r.budget("unused", budget.Month, "25")
	require.NoError(r, r.operator().Configure(r.Context(), unused))
	require.NoError(r, r.operator().SetLimit(r.Context(), "unused", budget.Unit, by))
	require.NoError(r, r.operator().Freeze(r.Context(), budget.Target{Provider: "sms"}, by))
	require.NoError(r, r.operator().Freeze(r.Context(), budget.Target{Budget: "day"}, by))
	r.restart()
	require.Equal(r, budget.Unit, r.totals(unused).Limit)
	require.Equal(r, 50*budget.Unit, r.totals(day).Limit)
	require.True(r, r.totals(day).Frozen)
	require.Empty(r, r.frozen(leg(day, "1")).Budget)
	require.NoError(r, r.operator().Release(r.Context(), budget.Target{Provider: "sms"}, by))
	require.Equal(r, "day", r.frozen(leg(day, "1")).Budget)
	require.NoError(r, r.operator().Release(r.Context(), budget.Target{Budget: "day"}, by))
	r.take(day, "40")
}

func thresholdsSurvive(r *rig) {
	day := r.day()
	report := r.settle(r.take(day, "6"), "6")
	require.Len(r, notices(budget.NoticeThreshold, report), 1)
	r.durable(day, "0")
	r.restart()
	id, first, err := r.hold(leg(day, "1"))
	require.NoError(r, err)
	require.Empty(r, notices(budget.NoticeThreshold, first, r.settle(id, "1")))
	require.Len(r, notices(budget.NoticeThreshold, r.settle(r.take(day, "1"), "1")), 1)
}

func wrongClockAtStart(r *rig) {
	day := r.day()
	r.spend(day, "10")
	r.durable(day, "0")
	r.hand.Step(72 * time.Hour)
	r.restart()
	r.spend(day, "10")
	require.Equal(r, "2026-05-05", r.refused(day, "0.01").Window)
	r.hand.Step(-72 * time.Hour)
	require.Equal(r, "2026-05-02", r.refused(day, "0.01").Window)
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func livingKeep(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	first := r.ledger
	r.boot++
	r.ledger = r.open()
	require.Equal(r, "settled 0 presumed 0 held 1 left 9", r.books(day))
	r.take(day, "2")
	r.hand.Pass(time.Hour)
	require.Equal(r, "settled 0 presumed 0 held 3 left 7", r.books(day), "however long it takes")
	second := r.ledger
	r.ledger = first
	r.settle(id, "0.5")
	r.durable(day, "0")
	r.ledger = second
	require.Eventually(r, func() bool { // it may be on its way, behind the caller's back
		return r.books(day) == "settled 0.5 presumed 0 held 2 left 7.5"
	}, 10*time.Second, time.Millisecond)
}

func shared(r *rig) {
	day := r.day()
	ledgers := []budget.Ledger{r.ledger, r.open(), r.open()}
	passed := make([]int, 24)
	together(len(passed), func(i int) {
		h := budget.Hold{ID: budget.HoldID{Boot: r.boot + uint64(i%3), Seq: uint64(1000 + i)}, Provider: "sms", Legs: []budget.Leg{leg(day, "0.75")}}
		if _, err := ledgers[i%3].Hold(r.Context(), h); err == nil {
			passed[i] = 1
		}
	})
	sum := 0
	for _, n := range passed {
		sum += n
	}
	require.Equal(r, 13, sum)
	for _, l := range ledgers {
		all, err := l.Totals(r.Context(), r.now(), day)
		require.NoError(r, err)
		require.Equal(r, "settled 0 presumed 0 held 9.75 left 0.25", books(all[0]))
	}
}

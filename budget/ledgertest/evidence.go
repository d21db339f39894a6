package ledgertest

import (
	"strconv"
	"sync/atomic"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// evidence: how holds end.
var evidence = []namedCase{
	{"a settle gives the rest back at once", settleGivesBack},
	{"a cost above the hold is booked whole", overrun},
	{"an overrun budget refuses until there is room", overrunRefuses},
	{"the same settle twice is one", settleTwice},
	{"another settle is a conflict", otherSettle},
	{"a void gives everything back", voidGivesBack},
	{"settle and void race, one wins", settleVoidRace},
	{"a thousand settles at once lose nothing", lostIncrements},
	{"an unknown outcome counts as spent", presumedCounts},
	{"the known part of an unknown outcome is a floor", presumedFloor},
	{"a floor above the hold counts", floorAboveHold},
	{"a presumed hold may still be settled or voided", presumedThenEvidence},
	{"a correction changes what was booked", corrections},
	{"a settle that arrives again after a correction changes nothing", settleAfterCorrection},
	{"a hold in flight cannot be corrected", correctInFlight},
	{"an unknown id is an error", unknownID},
	{"each retry pays for itself", retries},
	{"outcomes that make no sense change nothing", senselessOutcomes},
	{"a cost that cannot be summed is refused and changes nothing", overflow},
	{"thresholds are told once", thresholds},
	{"without alerts nothing is told", noAlerts},
}

func settleGivesBack(r *rig) {
	day := r.day()
	id := r.take(day, "10")
	r.refused(day, "0.1")
	report := r.settle(id, "4")
	require.Equal(r, budget.Report{Delta: -6 * budget.Unit}, report)
	r.take(day, "6")
}

func overrun(r *rig) {
	day := r.day()
	first, second := r.take(day, "1"), r.take(day, "9")
	report := r.settle(first, "1.3")
	require.Equal(r, budget.MustParse("0.3"), report.Overrun)
	require.Equal(r, budget.MustParse("0.3"), report.Delta)
	totals := r.totals(day)
	require.Equal(r, budget.MustParse("10.3"), totals.Used())
	require.Equal(r, budget.MustParse("0.3"), totals.Overrun)
	require.Equal(r, budget.ReasonBusy, r.refused(day, "0.01").Reason)
	r.settle(second, "8")
	require.Equal(r, "settled 9.3 presumed 0 held 0 left 0.7", r.books(day))
	r.take(day, "0.7")
	require.Equal(r, budget.MustParse("0.3"), r.totals(day).Overrun)
}

func overrunRefuses(r *rig) {
	two := r.budget("two", budget.Day, "2")
	a, b := r.take(two, "1"), r.take(two, "1")
	require.Equal(r, budget.Amount(2e9), r.settle(a, "3").Overrun)
	require.Equal(r, "settled 3 presumed 0 held 1 left -2", r.books(two))
	require.Equal(r, budget.ReasonExhausted, r.refused(two, "0.01").Reason)
	r.take(two, "0")
	r.settle(b, "1")
	require.Equal(r, "settled 4 presumed 0 held 0 left -2", r.books(two))
	require.Equal(r, budget.Amount(2e9), r.totals(two).Overrun)
}

func settleTwice(r *rig) {
	day := r.day()
	id := r.take(day, "0.3")
	first := r.settle(id, "0.4")
	second := r.settle(id, "0.4")
	require.Equal(r, "settled 0.4 presumed 0 held 0 left 9.6", r.books(day))
	require.Equal(r, first.Overrun, second.Overrun)
	require.Equal(r, budget.Amount(0), second.Delta, "nothing changed")
}

func otherSettle(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	r.settle(id, "0.4")
	r.conflicts(id, budget.Settled(budget.MustParse("0.5")))
	r.conflicts(id, budget.Voided("not_sent"))
	r.conflicts(id, budget.Presumed(0))
	require.Equal(r, "settled 0.4 presumed 0 held 0 left 9.6", r.books(day))
	report := r.resolve(id, budget.Corrected(budget.MustParse("0.5"), "invoice"))
	require.Equal(r, budget.MustParse("0.1"), report.Delta)
	require.Equal(r, "settled 0.5 presumed 0 held 0 left 9.5", r.books(day))

	voided := r.take(day, "1")
	r.resolve(voided, budget.Voided("not_sent"))
	r.conflicts(voided, budget.Settled(budget.Unit))
	r.resolve(voided, budget.Voided("no answer was billed"))
	require.Equal(r, "settled 0.5 presumed 0 held 0 left 9.5", r.books(day))
}

func voidGivesBack(r *rig) {
	day := r.day()
	for range 50 {
		report := r.resolve(r.take(day, "10"), budget.Voided("not_sent"))
		require.Equal(r, -10*budget.Unit, report.Delta)
	}
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	require.Equal(r, 0, r.totals(day).OpenHolds)
	r.take(day, "10")
}

func settleVoidRace(r *rig) {
	n := rounds(300, 10_000)
	much := r.budget("much", budget.Day, strconv.Itoa(n))
	settled := 0
	for range n {
		id := r.take(much, "1")
		var won [2]atomic.Bool
		outcomes := []budget.Outcome{budget.Settled(budget.MustParse("0.6")), budget.Voided("not_sent")}
		together(2, func(i int) {
			_, err := r.ledger.Resolve(r.Context(), id, outcomes[i])
			won[i].Store(err == nil)
			if err != nil {
				assert.ErrorIs(r, err, budget.ErrConflict)
			}
		})
		require.NotEqual(r, won[0].Load(), won[1].Load(), "exactly one wins")
		if won[0].Load() {
			settled++
		}
	}
	sum, err := budget.MustParse("0.6").Mul(int64(settled))
	require.NoError(r, err)
	totals := r.totals(much)
	require.Equal(r, []budget.Amount{sum, 0, 0}, []budget.Amount{totals.Settled, totals.Presumed, totals.Held})
}

func lostIncrements(r *rig) {
	one := r.budget("one", budget.Day, "1")
	together(20, func(int) {
		for range 50 {
			id, _, err := r.hold(leg(one, "0.001"))
			if !assert.NoError(r, err) {
				return
			}
			_, err = r.ledger.Resolve(r.Context(), id, budget.Settled(budget.MustParse("0.001")))
			assert.NoError(r, err)
		}
	})
	require.Equal(r, "settled 1 presumed 0 held 0 left 0", r.books(one))
	r.refused(one, "0.000000001")
}

func presumedCounts(r *rig) {
	day := r.day()
	id := r.take(day, "7")
	report := r.resolve(id, budget.Outcome{Why: "timeout"})
	require.Equal(r, budget.Amount(0), report.Delta, "what was held now counts as spent")
	require.Equal(r, "settled 0 presumed 7 held 0 left 3", r.books(day))
	totals := r.totals(day)
	require.Equal(r, []int{0, 1}, []int{totals.OpenHolds, totals.PresumedHolds})
	over := r.refused(day, "4")
	require.Equal(r, budget.ReasonExhausted, over.Reason, "it does not clear by itself")
	r.resolve(id, budget.Presumed(0))
	require.Equal(r, "settled 0 presumed 7 held 0 left 3", r.books(day))
}

func presumedFloor(r *rig) {
	day := r.day()
	id := r.take(day, "0.8")
	r.resolve(id, budget.Presumed(budget.MustParse("0.31")))
	totals := r.totals(day)
	require.Equal(r, "settled 0 presumed 0.8 held 0 left 9.2", books(totals))
	require.Equal(r, budget.MustParse("0.31"), totals.Settled+totals.Floor, "between 0.31")
	require.Equal(r, budget.MustParse("0.8"), totals.Used(), "and 0.80")
	report := r.resolve(id, budget.Presumed(budget.MustParse("0.9"))) // more of it became known
	require.Equal(r, []budget.Amount{budget.MustParse("0.1"), budget.MustParse("0.1")}, []budget.Amount{report.Delta, report.Overrun})
	r.conflicts(id, budget.Presumed(budget.MustParse("0.5")))
	totals = r.totals(day)
	require.Equal(r, "settled 0 presumed 0.9 held 0 left 9.1", books(totals))
	require.Equal(r, []any{budget.MustParse("0.9"), 1}, []any{totals.Floor, totals.PresumedHolds})
	r.settle(id, "0.5")
	r.conflicts(id, budget.Presumed(budget.Unit))
	totals = r.totals(day)
	require.Equal(r, "settled 0.5 presumed 0 held 0 left 9.5", books(totals))
	require.Equal(r, budget.Amount(0), totals.Floor)
	require.Equal(r, 0, totals.PresumedHolds)
}

func floorAboveHold(r *rig) {
	day := r.day()
	id := r.take(day, "0.8")
	report := r.resolve(id, budget.Presumed(budget.MustParse("0.9")))
	require.Equal(r, budget.MustParse("0.1"), report.Overrun)
	require.Equal(r, budget.MustParse("0.1"), report.Delta)
	totals := r.totals(day)
	require.Equal(r, "settled 0 presumed 0.9 held 0 left 9.1", books(totals))
	require.Equal(r, []budget.Amount{budget.MustParse("0.9"), budget.MustParse("0.1")}, []budget.Amount{totals.Floor, totals.Overrun})
	report = r.resolve(id, budget.Corrected(budget.MustParse("0.7"), "invoice"))
	require.Equal(r, -budget.MustParse("0.2"), report.Delta)
	require.Equal(r, budget.Amount(0), r.totals(day).Overrun, "no call cost more than its hold after all")
}

func presumedThenEvidence(r *rig) {
	day := r.day()
	a, b := r.take(day, "1"), r.take(day, "2")
	r.resolve(a, budget.Presumed(0))
	r.resolve(b, budget.Presumed(0))
	report := r.settle(a, "0.37")
	require.True(r, report.Late)
	require.Equal(r, -budget.MustParse("0.63"), report.Delta)
	report = r.resolve(b, budget.Voided("reconciled"))
	require.True(r, report.Late)
	require.Equal(r, "settled 0.37 presumed 0 held 0 left 9.63", r.books(day))
	r.settle(a, "0.37")
	r.conflicts(a, budget.Settled(budget.MustParse("0.38")))
	r.conflicts(b, budget.Settled(1))
	require.Equal(r, "settled 0.37 presumed 0 held 0 left 9.63", r.books(day))
}

func corrections(r *rig) {
	day := r.day()
	settled, voided, presumed := r.take(day, "1"), r.take(day, "1"), r.take(day, "1")
	r.settle(settled, "1")
	r.resolve(voided, budget.Voided("not_sent"))
	r.resolve(presumed, budget.Presumed(0))
	for _, id := range []budget.HoldID{settled, voided, presumed} {
		for range 2 {
			r.resolve(id, budget.Corrected(budget.MustParse("1.25"), "invoice"))
		}
	}
	require.Equal(r, "settled 3.75 presumed 0 held 0 left 6.25", r.books(day))
	require.Equal(r, budget.MustParse("0.75"), r.totals(day).Overrun)
	report := r.resolve(settled, budget.Corrected(0, "credit note"))
	require.Equal(r, -budget.MustParse("1.25"), report.Delta)
	require.Equal(r, "settled 2.5 presumed 0 held 0 left 7.5", r.books(day))
	require.Equal(r, budget.MustParse("0.5"), r.totals(day).Overrun)
}

func settleAfterCorrection(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	r.settle(id, "0.4")
	r.resolve(id, budget.Corrected(budget.MustParse("0.5"), "invoice"))
	r.settle(id, "0.4")
	r.conflicts(id, budget.Settled(budget.MustParse("0.5")))
	r.conflicts(id, budget.Voided("not_sent"))
	require.Equal(r, "settled 0.5 presumed 0 held 0 left 9.5", r.books(day))
}

func correctInFlight(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	r.conflicts(id, budget.Corrected(0, "a guess"))
	r.settle(id, "0.7")
	require.Equal(r, "settled 0.7 presumed 0 held 0 left 9.3", r.books(day))
}

func unknownID(r *rig) {
	for _, o := range []budget.Outcome{budget.Settled(1), budget.Voided(""), budget.Presumed(0), budget.Corrected(1, "invoice")} {
		_, err := r.ledger.Resolve(r.Context(), r.id(), o)
		require.ErrorIs(r, err, budget.ErrUnknownHold)
	}
	day := r.day()
	id, _, err := r.hold(leg(day, "11"))
	refusal(r, err)
	_, err = r.ledger.Resolve(r.Context(), id, budget.Settled(1))
	require.ErrorIs(r, err, budget.ErrUnknownHold, "a refused hold does not exist")
}

func retries(r *rig) {
	day := r.day()
	for range 3 {
		r.resolve(r.take(day, "0.5"), budget.Outcome{Why: "timeout"})
	}
	r.settle(r.take(day, "0.5"), "0.45")
	require.Equal(r, "settled 0.45 presumed 1.5 held 0 left 8.05", r.books(day))

	r.spend(day, "8")
	throttled := r.take(day, "0")
	r.resolve(throttled, budget.Voided("throttled"))
	require.Equal(r, budget.ReasonExhausted, r.refused(day, "0.5").Reason)
}

func senselessOutcomes(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	r.conflicts(id, budget.Settled(-1))
	r.conflicts(id, budget.Presumed(-1))
	r.conflicts(id, budget.Outcome{State: budget.StateHeld})
	r.conflicts(id, budget.Outcome{State: 99})
	require.Equal(r, "settled 0 presumed 0 held 1 left 9", r.books(day))
	r.settle(id, "1")
}

func overflow(r *rig) {
	day := r.day()
	a, b := r.take(day, "1"), r.take(day, "1")
	r.settle(a, "9223372035")
	r.conflicts(b, budget.Settled(budget.MustParse("9223372036")))
	totals := r.totals(day)
	require.Equal(r, []budget.Amount{budget.MustParse("9223372035"), budget.Unit}, []budget.Amount{totals.Settled, totals.Held})
	r.settle(b, "1")
	r.refused(day, "1")
}

func thresholds(r *rig) {
	day := r.day()
	day.Alerts = []int{80, 150, 50, 100, 50}
	var told []int
	note := func(report budget.Report) {
		for _, n := range notices(budget.NoticeThreshold, report) {
			told = append(told, n.Percent)
			require.Equal(r, budget.Notice{
				Kind: budget.NoticeThreshold, Budget: "day", Window: day.Window(r.now()).ID, Percent: n.Percent,
				Used: n.Used, Limit: 10 * budget.Unit, Unit: "USD",
			}, n)
			require.GreaterOrEqual(r, n.Used*100, n.Limit*budget.Amount(n.Percent))
		}
	}
	open := r.take(day, "9")
	require.Empty(r, told, "what is only held crosses nothing")
	note(r.settle(open, "4"))
	require.Empty(r, told)
	for range 6 {
		note(r.settle(r.take(day, "1"), "1"))
	}
	require.Equal(r, []int{50, 80, 100}, told)
	presumed := r.take(day, "0")
	note(r.resolve(presumed, budget.Presumed(8*budget.Unit)))
	note(r.settle(presumed, "0"))
	note(r.settle(r.take(day, "0"), "8"))
	require.Equal(r, []int{50, 80, 100, 150}, told, "none of them again")
}

func noAlerts(r *rig) {
	day := r.day()
	day.Alerts = []int{}
	require.Empty(r, r.settle(r.take(day, "10"), "10").Notices)
}

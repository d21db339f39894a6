package ledgertest

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// admission: what may be held, and what is refused.
var admission = []namedCase{
	{"the limit fits exactly and not a nano more", exactFit},
	{"a race for a budget admits exactly what fits", raceForBudget},
	{"a race for the last money has one winner", raceForLast},
	{"ten times ten cents is one dollar", tenCents},
	{"a call without a price passes an exhausted budget", zeroPrice},
	{"a call dearer than the limit never passes", neverFits},
	{"a refusal names the binding leg and takes nothing", twoLegs},
	{"of two refusals the lasting one is told", bindingLeg},
	{"busy and exhausted are told apart", busyOrExhausted},
	{"kept money is for critical calls", keptMoney},
	{"a monitored budget records and refuses nothing", monitored},
	{"calls are counted beside money", callsBesideMoney},
	{"the same hold twice is one hold", sameHoldTwice},
	{"the same id for another hold is a conflict", otherHoldSameID},
	{"one budget name is one budget", oneNameOneBudget},
	{"holds that make no sense change nothing", senseless},
	{"a budget never used is all zeros", neverUsed},
	{"a ledger keeps nothing of the caller's", keepsNothing},
}

func exactFit(r *rig) {
	day := r.day()
	first := r.take(day, "6")
	second := r.take(day, "4")
	r.refused(day, "0.000000001")
	r.settle(first, "5.5")
	require.Equal(r, "settled 5.5 presumed 0 held 4 left 0.5", r.books(day))
	third := r.take(day, "0.5")
	r.refused(day, "0.000000001")
	r.settle(second, "4")
	r.settle(third, "0.5")
	over := r.refused(day, "0.000000001")
	require.Equal(r, budget.ReasonExhausted, over.Reason)
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
	require.Equal(r, budget.Amount(0), r.totals(day).Overrun)
}

func raceForBudget(r *rig) {
	day := r.day()
	var passed, refused atomic.Int64
	together(32, func(int) {
		_, _, err := r.hold(leg(day, "0.75"))
		if err == nil {
			passed.Add(1)
			return
		}
		if assert.ErrorAs(r, err, new(*budget.ExceededError)) {
			refused.Add(1)
		}
	})
	require.Equal(r, []int64{13, 19}, []int64{passed.Load(), refused.Load()}, "passed and refused")
	require.Equal(r, "settled 0 presumed 0 held 9.75 left 0.25", r.books(day))
	r.take(day, "0.25")
	r.refused(day, "0.000000001")
}

func raceForLast(r *rig) {
	for i := range rounds(50, 1000) {
		day := r.day()
		day.Name += string(rune('a'+i%26)) + r.id().String()
		var passed atomic.Int64
		together(8, func(int) {
			if _, _, err := r.hold(leg(day, "10")); err == nil {
				passed.Add(1)
			}
		})
		require.Equal(r, int64(1), passed.Load())
	}
}

func tenCents(r *rig) {
	dollar := r.budget("dollar", budget.Day, "1")
	for range 10 {
		r.spend(dollar, "0.1")
	}
	r.refused(dollar, "0.000000001")
	thirty := r.budget("thirty", budget.Day, "0.3")
	for range 3 {
		r.spend(thirty, "0.1")
	}
	r.refused(thirty, "0.1")
	require.Equal(r, "settled 0.3 presumed 0 held 0 left 0", r.books(thirty))
}

func zeroPrice(r *rig) {
	day := r.day()
	r.spend(day, "10")
	r.refused(day, "0.000000001")
	id := r.take(day, "0")
	r.settle(id, "0")
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func neverFits(r *rig) {
	day := r.day()
	over := r.refused(day, "10.000000001")
	require.Equal(r, budget.ReasonExhausted, over.Reason)
	require.True(r, over.RetryAt.IsZero(), "no window will do: %v", over.RetryAt)
	over = r.refused(day, "9223372036")
	require.True(r, over.RetryAt.IsZero())
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
}

func twoLegs(r *rig) {
	day, month := r.day(), r.budget("month", budget.Month, "25")
	r.spend(month, "24.5")
	over := r.refusedAll(leg(day, "1"), leg(month, "1"))
	require.Equal(r, "month", over.Budget)
	require.Equal(r, "sms", over.Provider)
	require.Equal(r, []budget.Amount{budget.Unit, budget.MustParse("24.5"), 25 * budget.Unit}, []budget.Amount{over.Need, over.Used, over.Limit})
	require.Equal(r, "USD", over.Unit)
	require.Equal(r, month.Window(r.now()).ID, over.Window)
	require.True(r, month.Window(r.now()).End.Equal(over.RetryAt))
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	require.Equal(r, "settled 24.5 presumed 0 held 0 left 0.5", r.books(month))

	id, _, err := r.hold(leg(day, "0.5"), leg(month, "0.5"))
	require.NoError(r, err)
	r.settle(id, "0.5")
	require.Equal(r, "settled 0.5 presumed 0 held 0 left 9.5", r.books(day))
	require.Equal(r, "settled 25 presumed 0 held 0 left 0", r.books(month))
}

func bindingLeg(r *rig) {
	busy, spent := r.budget("busy", budget.Week, "10"), r.budget("spent", budget.Month, "10")
	r.take(busy, "10")
	r.spend(spent, "10")
	require.Equal(r, "spent", r.refusedAll(leg(busy, "1"), leg(spent, "1")).Budget)
	require.Equal(r, "spent", r.refusedAll(leg(spent, "1"), leg(busy, "1")).Budget)
	small := r.budget("small", budget.Week, "0.5")
	require.Equal(r, "small", r.refusedAll(leg(spent, "1"), leg(small, "1")).Budget, "what never fits lasts longest")
}

func busyOrExhausted(r *rig) {
	day := r.day()
	id := r.take(day, "9")
	over := r.refused(day, "2")
	require.Equal(r, budget.ReasonBusy, over.Reason)
	require.True(r, over.Busy)
	r.settle(id, "9")
	over = r.refused(day, "2")
	require.Equal(r, budget.ReasonExhausted, over.Reason)
	require.False(r, over.Busy)
}

func keptMoney(r *rig) {
	day := r.day()
	day.Keep = budget.MustParse("2")
	r.spend(day, "8")
	over := r.refused(day, "1")
	require.Equal(r, budget.ReasonFloor, over.Reason)
	require.Equal(r, day.Window(r.now()).End.UnixNano(), over.RetryAt.UnixNano())
	critical := budget.Hold{ID: r.id(), Provider: "sms", Legs: []budget.Leg{leg(day, "1")}, Critical: true}
	_, err := r.ledger.Hold(r.Context(), critical)
	require.NoError(r, err)
	require.Equal(r, "settled 8 presumed 0 held 1 left 1", r.books(day))
	critical.ID, critical.Legs[0].Amount = r.id(), budget.MustParse("1.5")
	_, err = r.ledger.Hold(r.Context(), critical)
	require.Equal(r, budget.ReasonBusy, refusal(r, err).Reason)
	over = r.refused(day, "8.5")
	require.True(r, over.RetryAt.IsZero(), "no window leaves that much to other calls")
}

func monitored(r *rig) {
	day, watch := r.day(), r.budget("watch", budget.Day, "1")
	watch.Monitor = true
	id, report, err := r.hold(leg(day, "3"), leg(watch, "3"))
	require.NoError(r, err)
	require.NotNil(r, report.WouldRefuse)
	require.Equal(r, "watch", report.WouldRefuse.Budget)
	require.Equal(r, "sms", report.WouldRefuse.Provider)
	r.settle(id, "3")
	require.Equal(r, "settled 3 presumed 0 held 0 left -2", r.books(watch))
	require.Equal(r, "settled 3 presumed 0 held 0 left 7", r.books(day))
	require.Equal(r, "day", r.refusedAll(leg(day, "8"), leg(watch, "8")).Budget)
	_, report, err = r.hold(leg(day, "1"))
	require.NoError(r, err)
	require.Nil(r, report.WouldRefuse)
}

func callsBesideMoney(r *rig) {
	day, calls := r.day(), r.budget("calls", budget.Day, "3")
	calls.Unit = budget.Calls
	settled, _, err := r.hold(leg(day, "1"), leg(calls, "1"))
	require.NoError(r, err)
	report := r.settle(settled, "0.25")
	require.Equal(r, -budget.MustParse("0.75"), report.Delta, "in money")
	presumed, _, err := r.hold(leg(calls, "1"), leg(day, "1"))
	require.NoError(r, err)
	r.resolve(presumed, budget.Presumed(0))
	voided, _, err := r.hold(leg(day, "1"), leg(calls, "1"))
	require.NoError(r, err)
	require.Equal(r, "calls", r.refusedAll(leg(day, "1"), leg(calls, "1")).Budget)
	r.resolve(voided, budget.Voided("not_sent"))
	require.Equal(r, "settled 0.25 presumed 1 held 0 left 8.75", r.books(day))
	require.Equal(r, "settled 1 presumed 1 held 0 left 1", r.books(calls))
	r.settle(presumed, "2")
	require.Equal(r, "settled 2.25 presumed 0 held 0 left 7.75", r.books(day))
	require.Equal(r, "settled 2 presumed 0 held 0 left 1", r.books(calls))
	require.Equal(r, budget.Amount(0), r.totals(calls).Overrun)
}

func sameHoldTwice(r *rig) {
	day := r.day()
	h := budget.Hold{ID: r.id(), Provider: "sms", Legs: []budget.Leg{leg(day, "1")}}
	for range 2 {
		_, err := r.ledger.Hold(r.Context(), h)
		require.NoError(r, err)
	}
	require.Equal(r, "settled 0 presumed 0 held 1 left 9", r.books(day))
	require.Equal(r, 1, r.totals(day).OpenHolds)
	r.settle(h.ID, "0.4")
	_, err := r.ledger.Hold(r.Context(), h)
	require.NoError(r, err, "the command arrives again, late")
	require.Equal(r, "settled 0.4 presumed 0 held 0 left 9.6", r.books(day))
}

func otherHoldSameID(r *rig) {
	day, other := r.day(), r.budget("other", budget.Day, "10")
	h := budget.Hold{ID: r.id(), Provider: "sms", Legs: []budget.Leg{leg(day, "1")}}
	_, err := r.ledger.Hold(r.Context(), h)
	require.NoError(r, err)
	for _, edit := range []func(h *budget.Hold){
		func(h *budget.Hold) { h.Legs = []budget.Leg{leg(day, "2")} },
		func(h *budget.Hold) { h.Legs = []budget.Leg{leg(other, "1")} },
		func(h *budget.Hold) { h.Legs = []budget.Leg{leg(day, "1"), leg(other, "1")} },
		func(h *budget.Hold) { h.Provider = "maps" },
	} {
		second := h
		edit(&second)
		_, err := r.ledger.Hold(r.Context(), second)
		require.ErrorIs(r, err, budget.ErrConflict)
	}
	require.Equal(r, "settled 0 presumed 0 held 1 left 9", r.books(day))
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(other))
}

func oneNameOneBudget(r *rig) {
	day := r.day()
	r.take(day, "1")
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(r, err)
	for _, edit := range []func(b *budget.Budget){
		func(b *budget.Budget) { b.Unit = "EUR" },
		func(b *budget.Budget) { b.Unit = budget.Calls },
		func(b *budget.Budget) { b.Every = budget.Week },
		func(b *budget.Budget) { b.Every = b.Every.At(time.Hour) },
		func(b *budget.Budget) { b.Zone = tokyo },
	} {
		other := day
		edit(&other)
		_, _, err := r.hold(leg(other, "1"))
		require.ErrorIs(r, err, budget.ErrConflict)
		_, err = r.ledger.Totals(r.Context(), r.now(), other)
		require.ErrorIs(r, err, budget.ErrConflict)
	}
	same := day
	same.Unit, same.Zone, same.Label = "USD", time.UTC, "another label"
	r.take(same, "1")
	require.Equal(r, "settled 0 presumed 0 held 2 left 8", r.books(day))
}

func senseless(r *rig) {
	day, euros := r.day(), r.budget("euros", budget.Day, "10")
	euros.Unit = "EUR"
	nameless, wrong := day, day
	nameless.Name = ""
	wrong.Name, wrong.Limit = "wrong", 0
	for _, legs := range [][]budget.Leg{
		{{Budget: day, Amount: -1}},
		{leg(day, "1"), leg(euros, "1")},
		{leg(day, "1"), leg(day, "1")},
		{leg(nameless, "1")},
		{leg(wrong, "1")},
		{leg(day, "1"), leg(wrong, "1")},
	} {
		_, _, err := r.hold(legs...)
		require.ErrorIs(r, err, budget.ErrConflict)
	}
	for _, h := range []budget.Hold{
		{Provider: "sms", Legs: []budget.Leg{leg(day, "1")}}, // no id: two calls would be one hold
		{ID: r.id(), Legs: []budget.Leg{leg(day, "1")}},
		{ID: r.id(), Provider: "s\nms", Legs: []budget.Leg{leg(day, "1")}},
		{ID: r.id(), Provider: strings.Repeat("s", 201), Legs: []budget.Leg{leg(day, "1")}},
		{ID: r.id()},
		{},
	} {
		require.ErrorIs(r, h.Validate(), budget.ErrConflict, "%v", h)
		_, err := r.ledger.Hold(r.Context(), h)
		require.ErrorIs(r, err, budget.ErrConflict, "%v", h)
	}
	_, err := r.ledger.Hold(r.Context(), budget.Hold{Provider: "sms"})
	require.NoError(r, err, "which asks only whether the provider is frozen")
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(euros))
}

func neverUsed(r *rig) {
	day, month := r.day(), r.budget("month", budget.Month, "25")
	all, err := r.ledger.Totals(r.Context(), r.now(), day, month)
	require.NoError(r, err)
	require.Len(r, all, 2)
	require.Equal(r, []budget.Amount{day.Limit, month.Limit}, []budget.Amount{all[0].Limit, all[1].Limit})
	require.Equal(r, []string{day.Window(r.now()).ID, month.Window(r.now()).ID}, []string{all[0].Window.ID, all[1].Window.ID})
	require.Equal(r, budget.Amount(0), all[0].Used()+all[1].Used())
	require.Equal(r, []string{"day", "USD"}, []string{all[0].Budget.Label, all[0].Budget.Unit}, "reports show what empty fields mean")
}

func keepsNothing(r *rig) {
	day := r.day()
	day.Alerts = []int{50}
	h := budget.Hold{ID: r.id(), Provider: "sms", Legs: []budget.Leg{leg(day, "6")}}
	_, err := r.ledger.Hold(r.Context(), h)
	require.NoError(r, err)
	day.Alerts[0] = 1
	h.Legs[0] = leg(r.budget("other", budget.Day, "1"), "1")
	report := r.settle(h.ID, "6")
	require.Equal(r, "settled 6 presumed 0 held 0 left 4", r.books(r.day()))
	require.Len(r, notices(budget.NoticeThreshold, report), 1)
	require.Equal(r, 50, notices(budget.NoticeThreshold, report)[0].Percent)
}

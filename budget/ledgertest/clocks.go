package ledgertest

import (
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// clocks: what a ledger does when the wall clock is set.
var clocks = []namedCase{
	{"a clock set back a little keeps the window", smallStepBack},
	{"a clock set back far returns to that window's books", largeStepBack},
	{"a clock set back does not refill a rolling period", rollingStepBack},
	{"hosts whose clocks differ at midnight fund two days, not more", skewedHosts},
	{"a step forward is not believed at once", stepForward},
	{"an answer's date confirms a step forward", stepConfirmed},
	{"an answer's date speaks against a step forward", stepDenied},
	{"an answer's date speaks against a step of one day", oneDayDenied},
	{"after a suspend the day is the new one", suspend},
	{"after ten steady minutes a step is believed", steadyMinutes},
	{"an exhausted window does not wait for a confirmation", exhaustedStep},
	{"small steps are followed without a word", smallSteps},
}

func smallStepBack(r *rig) {
	day := r.day()
	r.spend(day, "10")
	r.hand.Step(-26 * time.Hour)
	_, report, err := r.hold(leg(day, "0.01"))
	require.Equal(r, "2026-05-02", refusal(r, err).Window)
	require.Equal(r, []budget.Notice{{Kind: budget.NoticeClock, Skew: -26 * time.Hour}}, notices(budget.NoticeClock, report))
	r.hand.Pass(time.Hour)
	r.refused(day, "0.01")
	r.hand.Step(26 * time.Hour)
	r.refused(day, "0.01")
	r.at("2026-05-03T00:00:00Z")
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	r.spend(day, "10")
}

func largeStepBack(r *rig) {
	day := r.day()
	r.spend(day, "10")
	r.at("2026-05-03T12:00:00Z")
	r.spend(day, "8")
	r.at("2026-05-05T12:00:00Z")
	r.spend(day, "1")
	r.hand.Step(-48 * time.Hour)
	require.Equal(r, "2026-05-03", r.refused(day, "2.01").Window)
	r.spend(day, "2")
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func rollingStepBack(r *rig) {
	rolling := r.budget("rolling", budget.Rolling(24*time.Hour), "10")
	r.spend(rolling, "10")
	for range 6 {
		r.hand.Step(-4 * time.Hour)
		r.refused(rolling, "0.01")
	}
}

func skewedHosts(r *rig) {
	day := r.day()
	r.at("2026-05-02T23:59:59Z")
	before := r.hand.Now()
	for i := range 400 {
		r.hand.Step(2 * time.Second * time.Duration(1-i%2*2)) // 00:00:01, 23:59:59, ...
		if id, _, err := r.hold(leg(day, "0.1")); err == nil {
			r.settle(id, "0.1")
		}
	}
	r.hand.Step(2 * time.Second)
	require.LessOrEqual(r, r.totalsAt(day, before).Used(), 10*budget.Unit)
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func stepForward(r *rig) {
	day := r.day()
	before := r.hand.Now()
	r.spend(day, "5")
	r.hand.Step(72 * time.Hour)
	id, report, err := r.hold(leg(day, "2"))
	require.NoError(r, err)
	require.Equal(r, []budget.Notice{{Kind: budget.NoticeClock, Skew: 72 * time.Hour}}, notices(budget.NoticeClock, report))
	report = r.settle(id, "2")
	require.Empty(r, notices(budget.NoticeClock, report), "told once")
	require.False(r, report.Late)
	require.Equal(r, "settled 7 presumed 0 held 0 left 3", books(r.totalsAt(day, before)))
	r.hand.Step(-72 * time.Hour)
	r.spend(day, "3")
	r.refused(day, "0.01")
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func stepConfirmed(r *rig) {
	day := r.day()
	before := r.hand.Now()
	id := r.take(day, "5")
	r.hand.Step(72 * time.Hour)
	r.spend(day, "1")
	r.resolve(id, budget.Outcome{State: budget.StateSettled, Amount: 5 * budget.Unit, Seen: r.hand.Now().Add(-2 * time.Second)})
	require.Equal(r, "settled 6 presumed 0 held 0 left 4", books(r.totalsAt(day, before)))
	r.spend(day, "10")
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
	require.Equal(r, "2026-05-05", r.totals(day).Window.ID)
}

func stepDenied(r *rig) {
	day := r.day()
	before := r.hand.Now()
	id := r.take(day, "9")
	r.hand.Step(72 * time.Hour)
	r.spend(day, "1")
	r.resolve(id, budget.Outcome{State: budget.StateSettled, Amount: 9 * budget.Unit, Seen: before})
	require.Equal(r, "2026-05-02", r.refused(day, "0.01").Window)
	r.hand.Step(-72 * time.Hour)
	r.refused(day, "0.01")
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

// One day ahead is as near as a small step back: what is current must not have moved.
func oneDayDenied(r *rig) {
	day := r.day()
	before := r.hand.Now()
	r.spend(day, "10")
	r.hand.Step(24 * time.Hour)
	id := r.take(day, "1") // of a day that nobody has confirmed
	r.resolve(id, budget.Outcome{State: budget.StateSettled, Amount: budget.Unit, Seen: before})
	require.Equal(r, "2026-05-02", r.refused(day, "0.01").Window)
	r.hand.Step(-24 * time.Hour)
	r.refused(day, "0.01")
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
	r.at("2026-05-03T00:00:00Z")
	require.Equal(r, "settled 1 presumed 0 held 0 left 9", r.books(day))
}

func suspend(r *rig) {
	day := r.day()
	r.at("2026-05-02T23:50:00Z")
	r.spend(day, "5")
	r.hand.Sleep(8 * time.Hour)
	report := r.settle(r.take(day, "10"), "10")
	require.Empty(r, notices(budget.NoticeClock, report), "a suspend is no clock fault")
	require.Equal(r, "2026-05-03", r.totals(day).Window.ID)
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func steadyMinutes(r *rig) {
	day := r.day()
	r.spend(day, "5")
	r.hand.Step(72 * time.Hour)
	r.spend(day, "1")
	r.hand.Pass(9 * time.Minute)
	r.spend(day, "1")
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	r.hand.Pass(time.Minute)
	r.spend(day, "1")
	require.Equal(r, "settled 1 presumed 0 held 0 left 9", r.books(day))
}

func exhaustedStep(r *rig) {
	day := r.day()
	r.spend(day, "10")
	r.hand.Step(72 * time.Hour)
	r.spend(day, "6")
	require.Equal(r, "settled 6 presumed 0 held 0 left 4", r.books(day))
	require.Equal(r, budget.ReasonExhausted, r.refused(day, "5").Reason)
	r.hand.Step(-72 * time.Hour)
	r.refused(day, "0.01")
}

func smallSteps(r *rig) {
	day := r.day()
	for i := range 20 {
		r.hand.Step(4 * time.Minute * time.Duration(1-i%2*2))
		require.Empty(r, r.settle(r.take(day, "0.01"), "0.01").Notices)
	}
	r.at("2026-05-02T23:58:00Z")
	r.spend(day, "1")
	r.hand.Step(4 * time.Minute)
	r.spend(day, "10")
	require.Equal(r, "2026-05-03", r.totals(day).Window.ID)
}

package ledgertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// The cases of the optional parts: ledgers without them pass.
var histories = []namedCase{
	{"a history ends with what the totals say", historyEnds},
	{"a history has every part of its window", historyParts},
	{"the history of a rolling period adds up its buckets", historyRolls},
	{"to ask for a history changes nothing", historyOfNothing},
	{"spending is told by provider", spendingByProvider},
	{"spending counts a call once, however it ended", spendingOfEveryEnd},
	{"windows are listed by time", windowsListed},
}

var restartHistories = []namedCase{
	{"a history survives a restart", historySurvives},
}

var audits = []namedCase{
	{"what people do is told, with who and why", audited},
	{"a new configuration is told as well", auditedConfiguration},
	{"a correction is one entry, in money", auditedCorrection},
	{"what was tried is told, and changes nothing", auditedTry},
}

func (r *rig) historian() budget.Historian {
	r.Helper()
	h, ok := r.ledger.(budget.Historian)
	if !ok {
		r.Skip("the ledger is no budget.Historian, which is optional")
	}
	return h
}

// begin has the ledger remember b from now on.
func (r *rig) begin(b budget.Budget) budget.Budget {
	r.Helper()
	_, err := r.historian().History(r.Context(), r.now(), b)
	require.NoError(r, err)
	_, err = r.historian().Spending(r.Context(), r.now(), b)
	require.NoError(r, err)
	return b
}

func (r *rig) history(b budget.Budget) budget.History {
	r.Helper()
	all, err := r.historian().History(r.Context(), r.now(), b)
	require.NoError(r, err)
	require.Len(r, all, 1)
	h := all[0]
	require.Equal(r, b.Name, h.Budget)
	require.NotEmpty(r, h.Points)
	require.LessOrEqual(r, len(h.Points), budget.HistoryParts)
	for i := 1; i < len(h.Points); i++ {
		require.True(r, h.Points[i].At.After(h.Points[i-1].At), "point %d", i)
	}
	t, last := r.totals(b), h.Points[len(h.Points)-1]
	require.Equal(r, []budget.Amount{t.Settled, t.Presumed}, []budget.Amount{last.Settled, last.Presumed})
	return h
}

func point(p budget.Point) string {
	return fmt.Sprintf("settled %v presumed %v", p.Settled, p.Presumed)
}

func historyEnds(r *rig) {
	day := r.begin(r.day())
	r.spend(day, "1")
	r.history(day)
	presumed, voided := r.take(day, "2"), r.take(day, "3")
	r.history(day)
	r.resolve(presumed, budget.Presumed(0))
	r.resolve(voided, budget.Voided("not_sent"))
	r.history(day)
	r.settle(presumed, "0.5")
	r.resolve(presumed, budget.Corrected(budget.Unit/4, "invoice"))
	require.Equal(r, "settled 1.25 presumed 0", point(r.history(day).Points[len(r.history(day).Points)-1]))
}

func historyParts(r *rig) {
	if r.subject.ServerTime {
		r.Skip("a server tells the time")
	}
	day := r.begin(r.day())
	r.spend(day, "1") // at noon
	r.history(day)    // what waits to be written is written
	r.at("2026-05-02T13:10:00Z")
	id := r.take(day, "2")
	r.resolve(id, budget.Presumed(0))
	r.history(day)
	r.at("2026-05-02T15:00:00Z")
	r.resolve(id, budget.Corrected(budget.Unit/2, "invoice"))
	r.at("2026-05-02T16:00:01Z")
	h := r.history(day)
	got := map[string]string{}
	for _, p := range h.Points {
		got[p.At.UTC().Format(time.TimeOnly)] = point(p)
	}
	for at, want := range map[string]string{
		"12:15:00": "settled 1 presumed 0", "13:00:00": "settled 1 presumed 0", "13:15:00": "settled 1 presumed 2",
		"15:00:00": "settled 1 presumed 2", "15:15:00": "settled 1.5 presumed 0", "16:00:01": "settled 1.5 presumed 0",
	} {
		require.Equal(r, want, got[at], at)
	}
	r.at("2026-05-03T00:00:01Z")
	require.Equal(r, "settled 0 presumed 0", point(r.history(day).Points[0]), "a new window begins anew")
	require.Len(r, r.history(day).Points, 1)
}

func historyRolls(r *rig) {
	if r.subject.ServerTime {
		r.Skip("a server tells the time")
	}
	six := r.begin(r.budget("six hours", budget.Rolling(6*time.Hour), "100"))
	for range 30 {
		r.spend(six, "1")
		r.hand.Pass(20 * time.Minute)
		r.history(six)
	}
	h := r.history(six)
	require.Less(r, h.Points[0].Settled, 2*budget.Unit, "the oldest part has what was booked first")
}

func historyOfNothing(r *rig) {
	day := r.day()
	h := r.history(day)
	require.Equal(r, "settled 0 presumed 0", point(h.Points[0]))
	all, err := r.historian().Spending(r.Context(), r.now(), day)
	require.NoError(r, err)
	require.Empty(r, all)
	require.Error(r, r.operator().SetLimit(r.Context(), "day", budget.Unit, by), "the budget is still unknown")
	_, err = r.historian().History(r.Context(), r.now(), budget.Budget{Name: "day"})
	require.Error(r, err, "a budget without a period")
}

// spending is that of b by provider, which add up to the totals.
func (r *rig) spending(b budget.Budget) map[string]budget.Spending {
	r.Helper()
	all, err := r.historian().Spending(r.Context(), r.now(), b)
	require.NoError(r, err)
	found, sum := map[string]budget.Spending{}, budget.Spending{}
	for i, s := range all {
		require.Equal(r, b.Name, s.Budget)
		require.True(r, i == 0 || all[i-1].Used() >= s.Used(), "the most first")
		found[s.Provider] = s
		sum.Add(&s)
	}
	t := r.totals(b)
	require.Equal(r, []any{t.Settled, t.Presumed, t.Held, t.Floor, t.OpenHolds, t.PresumedHolds},
		[]any{sum.Settled, sum.Presumed, sum.Held, sum.Floor, sum.Open, sum.PresumedCalls})
	return found
}

// takeFor holds an amount for another provider.
func (r *rig) takeFor(provider string, b budget.Budget, amount string) budget.HoldID {
	r.Helper()
	h := budget.Hold{ID: r.id(), Provider: provider, Legs: []budget.Leg{leg(b, amount)}}
	_, err := r.ledger.Hold(r.Context(), h)
	require.NoError(r, err)
	return h.ID
}

func spendingByProvider(r *rig) {
	day := r.begin(r.day())
	r.spend(day, "1")
	r.settle(r.takeFor("maps", day, "0.5"), "0.25")
	r.takeFor("maps", day, "0.5")
	presumed := r.take(day, "2")
	r.resolve(presumed, budget.Presumed(budget.Unit/2))
	r.resolve(r.take(day, "3"), budget.Voided("not_sent"))
	found := r.spending(day)
	require.Len(r, found, 2)
	window := r.totals(day).Window.ID
	require.Equal(r, budget.Spending{
		Budget: "day", Window: window, Provider: "sms", Settled: budget.Unit, Presumed: 2 * budget.Unit, Floor: budget.Unit / 2,
		Calls: 2, PresumedCalls: 1,
	}, found["sms"])
	require.Equal(r, budget.Spending{
		Budget: "day", Window: window, Provider: "maps", Settled: budget.Unit / 4, Held: budget.Unit / 2, Calls: 2, Open: 1,
	}, found["maps"])

	r.settle(presumed, "0.75")
	r.resolve(presumed, budget.Corrected(budget.Unit, "invoice"))
	s := r.spending(day)["sms"]
	require.Equal(r, []budget.Amount{2 * budget.Unit, 0, budget.Unit / 4, budget.Unit + budget.Unit/4}, []budget.Amount{s.Settled, s.Presumed, s.Up, s.Down})
	require.Equal(r, []int{2, 0, 0}, []int{s.Calls, s.Open, s.PresumedCalls})
}

// spendingOfEveryEnd goes all ways on which a hold may end, of calls that cost something
// and of those that cost nothing.
func spendingOfEveryEnd(r *rig) {
	month := r.begin(r.budget("month", budget.Month, "1000"))
	free, paid := budget.Corrected(0, "invoice"), budget.Corrected(budget.Unit, "invoice")
	ends := [][]budget.Outcome{
		{budget.Settled(0)}, {budget.Settled(budget.Unit)}, {budget.Voided("not sent")},
		{budget.Presumed(0)}, {budget.Presumed(0), budget.Settled(0)}, {budget.Presumed(0), budget.Voided("not sent")},
	}
	calls, want := 0, budget.Spending{}
	for _, held := range []string{"0", "2"} {
		for _, end := range ends {
			for _, after := range [][]budget.Outcome{nil, {free}, {paid}, {free, paid}, {paid, free}} {
				id := r.take(month, held)
				calls++
				was := budget.Outcome{State: budget.StateHeld}
				for _, o := range slices.Concat(end, after) {
					r.resolve(id, o)
					if change := costs(o, held) - costs(was, held); was.State != budget.StateHeld {
						want.Up, want.Down = want.Up+max(0, change), want.Down+max(0, -change)
					}
					if o.State == budget.StateVoided {
						calls--
					}
					if was.State == budget.StateVoided {
						calls++
					}
					was = o
					got := r.spending(month)["sms"]
					require.Equal(r, []any{calls, want.Up, want.Down}, []any{got.Calls, got.Up, got.Down}, "%s, %v, then %v", held, end, after)
				}
			}
		}
	}
}

// costs is what counts of a call after an outcome.
func costs(o budget.Outcome, held string) budget.Amount {
	switch o.State {
	case budget.StateHeld:
		return 0
	case budget.StatePresumed:
		return max(budget.MustParse(held), o.Amount)
	}
	return o.Amount
}

func windowsListed(r *rig) {
	h := r.historian()
	day, month := r.day(), r.budget("month", budget.Month, "25")
	r.spend(month, "1")
	r.spend(day, "2")
	if !r.subject.ServerTime {
		r.at("2026-05-03T12:00:00Z")
		r.spend(day, "3")
	}
	all, err := h.Windows(r.Context(), time.Time{}, time.Time{})
	require.NoError(r, err)
	var got []string
	for _, t := range all {
		got = append(got, fmt.Sprintf("%s %v", t.Budget.Name, t.Settled))
	}
	if r.subject.ServerTime {
		require.Equal(r, []string{"day 2", "month 1"}, got)
		return
	}
	require.Equal(r, []string{"day 2", "day 3", "month 1"}, got)
	all, err = h.Windows(r.Context(), r.now().Add(-time.Hour), r.now())
	require.NoError(r, err)
	require.Len(r, all, 2)
}

func historySurvives(r *rig) {
	day := r.begin(r.day())
	r.spend(day, "1")
	r.history(day) // what is written down is not lost
	r.take(day, "2")
	r.restart()
	r.begin(day)
	r.history(day)
	require.Equal(r, budget.Unit, r.spending(day)["sms"].Settled)
}

func (r *rig) auditor() budget.Auditor {
	r.Helper()
	a, ok := r.ledger.(budget.Auditor)
	if !ok {
		r.Skip("the ledger is no budget.Auditor, which is optional")
	}
	return a
}

func (r *rig) audit(after string, limit int) []budget.Audited {
	r.Helper()
	all, err := r.auditor().Audit(r.Context(), after, limit)
	require.NoError(r, err)
	return all
}

func audited(r *rig) {
	r.auditor()
	day := r.day()
	id := r.take(day, "2")
	r.resolve(id, budget.Presumed(0))
	require.Empty(r, r.audit("", 10))
	op := r.operator()
	require.NoError(r, op.Freeze(r.Context(), budget.Target{Provider: "sms"}, by))
	require.NoError(r, op.Freeze(r.Context(), budget.Target{Provider: "sms"}, by), "which changes nothing")
	require.NoError(r, op.SetLimit(r.Context(), "day", 12*budget.Unit, by))
	require.NoError(r, op.Release(r.Context(), budget.Target{Provider: "sms"}, by))
	_, err := op.Correct(r.Context(), id, budget.Unit, by)
	require.NoError(r, err)

	all := r.audit("", 10)
	require.Len(r, all, 4)
	for i, want := range []string{"freeze", "limit", "release", "correct"} {
		require.Equal(r, want, all[i].Action)
		require.Equal(r, by, all[i].By)
		require.NotEmpty(r, all[i].ID)
		require.False(r, all[i].Denied)
		require.WithinDuration(r, r.now(), all[i].At, 5*time.Second)
	}
	require.Equal(r, "sms", all[0].Target.Provider)
	require.Equal(r, []string{"day", "10", "12"}, []string{all[1].Target.Budget, all[1].From, all[1].To})
	require.Equal(r, id, all[3].Hold)
	require.Equal(r, "-1", all[3].To)
	require.Equal(r, all[2:], r.audit("", 2), "the newest ones")
	require.Equal(r, all[:3], r.audit("0", 3), "from the beginning")
	require.Equal(r, all[1:3], r.audit(all[0].ID, 2))
	require.Empty(r, r.audit(all[3].ID, 10))
	_, err = r.auditor().Audit(r.Context(), "no id", 10)
	require.Error(r, err)
}

func auditedConfiguration(r *rig) {
	r.auditor()
	day := r.day()
	r.spend(day, "1")
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 12*budget.Unit, by))
	day.Limit = 20 * budget.Unit
	r.spend(day, "1")
	all := r.audit("", 10)
	require.Len(r, all, 2)
	require.Equal(r, []string{"configured", "day", "12", "20", ""}, []string{all[1].Action, all[1].Target.Budget, all[1].From, all[1].To, all[1].By.Who})
}

func auditedCorrection(r *rig) {
	r.auditor()
	count := r.budget("count", budget.Day, "10")
	count.Unit = budget.Calls
	id, _, err := r.hold(leg(count, "1"), leg(r.day(), "2"), leg(r.budget("month", budget.Month, "25"), "2"))
	require.NoError(r, err)
	r.resolve(id, budget.Presumed(0))
	for _, amount := range []budget.Amount{budget.Unit / 2, budget.Unit} { // at one instant
		_, err = r.operator().Correct(r.Context(), id, amount, by)
		require.NoError(r, err)
	}
	r.resolve(id, budget.Corrected(3*budget.Unit, "a program")) // no person: no entry
	all := r.audit("", 10)
	require.Len(r, all, 2)
	for i, change := range []string{"-1.5", "0.5"} {
		require.Equal(r, budget.Target{Provider: "sms"}, all[i].Target)
		require.Equal(r, []any{id, change}, []any{all[i].Hold, all[i].To})
	}
}

func auditedTry(r *rig) {
	note := budget.Audited{By: budget.By{Who: "otto", Why: "may only read"}, Action: "freeze", Target: budget.Target{Provider: "sms"}, From: "3", To: "1,000 or so", Denied: true}
	require.NoError(r, r.auditor().Note(r.Context(), note))
	r.spend(r.day(), "1")
	all := r.audit("", 10)
	require.Len(r, all, 1)
	require.NotEmpty(r, all[0].ID)
	require.WithinDuration(r, r.now(), all[0].At, 5*time.Second)
	note.ID, note.At = all[0].ID, all[0].At
	require.Equal(r, note, all[0])
}

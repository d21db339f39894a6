package ledgertest

import (
	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// operators: what people do to a ledger, and to its configuration.
var operators = []namedCase{
	{"an operator's limit holds at once", setLimit},
	{"a limit that is no limit is refused", badLimit},
	{"a limit is set before the first call", limitBefore},
	{"what nobody does changes nothing", nobody},
	{"people are shown labels, programs names", labels},
	{"a configured limit replaces the one before, and is told", configuredLimit},
	{"an operator's limit ends when the configured one changes", overrideEnds},
	{"a frozen provider sends nothing", freezeProvider},
	{"a frozen budget stops every call that needs it", freezeBudget},
	{"a budget is frozen before its first use", freezeUnused},
	{"a freeze names one thing", freezeTarget},
	{"holds without evidence are listed, oldest first", unresolved},
	{"an operator corrects what was presumed", operatorCorrects},
}

var by = budget.By{Who: "maria", Why: "test"}

func (r *rig) operator() budget.Operator {
	r.Helper()
	op, ok := r.ledger.(budget.Operator)
	require.True(r, ok, "the ledger is no budget.Operator")
	return op
}

func setLimit(r *rig) {
	day := r.day()
	r.spend(day, "10")
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 12*budget.Unit, by))
	require.Equal(r, "settled 10 presumed 0 held 0 left 2", r.books(day))
	r.spend(day, "1")
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 5*budget.Unit, by))
	over := r.refused(day, "0.01")
	require.Equal(r, 5*budget.Unit, over.Limit)
	require.Equal(r, 11*budget.Unit, over.Used)
	require.Equal(r, "settled 11 presumed 0 held 0 left -6", r.books(day))
	r.take(day, "0")
}

func badLimit(r *rig) {
	r.spend(r.day(), "1")
	require.Error(r, r.operator().SetLimit(r.Context(), "day", 0, by))
	require.Error(r, r.operator().SetLimit(r.Context(), "day", -budget.Unit, by))
	require.Error(r, r.operator().SetLimit(r.Context(), "no such budget", budget.Unit, by))
	require.Equal(r, "settled 1 presumed 0 held 0 left 9", r.books(r.day()))
}

func configuredLimit(r *rig) {
	day := r.day()
	r.spend(day, "6")
	day.Limit = 5 * budget.Unit
	_, report, err := r.hold(leg(day, "0.01"))
	require.Equal(r, 5*budget.Unit, refusal(r, err).Limit)
	found := notices(budget.NoticeLimit, report)
	require.Len(r, found, 1)
	require.Equal(r, []any{"day", 10 * budget.Unit, 5 * budget.Unit, "USD"}, []any{found[0].Budget, found[0].Was, found[0].Limit, found[0].Unit})
	day.Limit = 20 * budget.Unit
	id, report, err := r.hold(leg(day, "14"))
	require.NoError(r, err)
	require.Len(r, notices(budget.NoticeLimit, report), 1)
	require.Empty(r, notices(budget.NoticeLimit, r.settle(id, "14")))
	require.Equal(r, "settled 20 presumed 0 held 0 left 0", r.books(day))
}

func overrideEnds(r *rig) {
	day := r.day()
	r.spend(day, "1")
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 50*budget.Unit, by))
	r.spend(day, "1")
	require.Equal(r, 50*budget.Unit, r.totals(day).Limit, "the same configuration again changes nothing")
	changed := day
	changed.Limit = 20 * budget.Unit
	id, report, err := r.hold(leg(changed, "1"))
	require.NoError(r, err)
	found := notices(budget.NoticeLimit, report)
	require.Len(r, found, 1)
	require.Equal(r, 50*budget.Unit, found[0].Was, "the one that was in force")
	r.settle(id, "1")
	require.Equal(r, 20*budget.Unit, r.totals(changed).Limit)
	r.spend(day, "1")
	require.Equal(r, 10*budget.Unit, r.totals(day).Limit, "the override does not come back")
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 50*budget.Unit, by))
	require.NoError(r, r.operator().SetLimit(r.Context(), "day", 10*budget.Unit, by))
	require.Equal(r, 10*budget.Unit, r.totals(day).Limit)
}

func limitBefore(r *rig) {
	day, op := r.day(), r.operator()
	for range 2 {
		require.NoError(r, op.Configure(r.Context(), day))
	}
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	require.NoError(r, op.SetLimit(r.Context(), "day", 5*budget.Unit, by))
	require.NoError(r, op.Configure(r.Context(), day), "the same again")
	require.Equal(r, 5*budget.Unit, r.totals(day).Limit)
	require.Equal(r, 5*budget.Unit, r.refused(day, "6").Limit)
	r.spend(day, "5")
	require.Equal(r, "settled 5 presumed 0 held 0 left 0", r.books(day))

	nameless, wrong, euros := day, day, day
	nameless.Name, wrong.Limit, euros.Unit = "", 0, "EUR"
	for _, b := range []budget.Budget{nameless, wrong, euros} {
		require.ErrorIs(r, op.Configure(r.Context(), b), budget.ErrConflict)
	}
	day.Limit = 20 * budget.Unit
	require.NoError(r, op.Configure(r.Context(), day))
	require.Equal(r, 20*budget.Unit, r.totals(day).Limit, "the last configured limit wins")
}

func nobody(r *rig) {
	day, op := r.day(), r.operator()
	id := r.take(day, "2")
	r.resolve(id, budget.Presumed(0))
	who := budget.By{Why: "no name given"}
	require.Error(r, op.SetLimit(r.Context(), "day", budget.Unit, who))
	for _, t := range []budget.Target{{Budget: "day"}, {Provider: "sms"}} {
		require.Error(r, op.Freeze(r.Context(), t, who))
		require.Error(r, op.Release(r.Context(), t, who))
	}
	_, err := op.Correct(r.Context(), id, 0, who)
	require.Error(r, err)
	require.Equal(r, "settled 0 presumed 2 held 0 left 8", r.books(day))
	r.take(day, "1")
	if a, ok := r.ledger.(budget.Auditor); ok {
		all, err := a.Audit(r.Context(), "", 10)
		require.NoError(r, err)
		require.Empty(r, all)
	}
}

// labels: a name may be a hash, or mean nothing to a person.
func labels(r *rig) {
	day, op := r.budget("b-77", budget.Day, "10"), r.operator()
	day.Label = "texts"
	require.NoError(r, op.Freeze(r.Context(), budget.Target{Budget: "b-77"}, by), "before the ledger knows the label")
	require.NoError(r, op.Configure(r.Context(), day))
	require.Equal(r, "texts", r.frozen(leg(day, "1")).Budget)
	require.NoError(r, op.Release(r.Context(), budget.Target{Budget: "b-77"}, by))
	require.NoError(r, op.SetLimit(r.Context(), "b-77", 4*budget.Unit, by))
	require.Equal(r, "texts", r.refused(day, "5").Budget)
	id := r.take(day, "2")
	crossed := notices(budget.NoticeThreshold, r.resolve(id, budget.Presumed(0)))
	require.Len(r, crossed, 1)
	require.Equal(r, "texts", crossed[0].Budget)
	open, err := op.Unresolved(r.Context(), "", 0)
	require.NoError(r, err)
	require.Len(r, open, 1)
	require.Equal(r, "texts", open[0].Legs[0].Budget)
	day.Limit = 20 * budget.Unit
	_, report, err := r.hold(leg(day, "1"))
	require.NoError(r, err)
	changed := notices(budget.NoticeLimit, report)
	require.Len(r, changed, 1)
	require.Equal(r, "texts", changed[0].Budget)
	t := r.totals(day).Budget
	require.Equal(r, []string{"b-77", "texts"}, []string{t.Name, t.Label})
	if h, ok := r.ledger.(budget.Historian); ok {
		r.history(day) // which looks for the name
		spent, err := h.Spending(r.Context(), r.now(), day)
		require.NoError(r, err)
		require.NotEmpty(r, spent)
		require.Equal(r, "b-77", spent[0].Budget)
	}
	if _, ok := r.ledger.(budget.Auditor); ok {
		for _, e := range r.audit("", 10) {
			require.Equal(r, budget.Target{Budget: "texts"}, e.Target, e.Action)
		}
	}
}

func (r *rig) frozen(legs ...budget.Leg) *budget.FrozenError {
	r.Helper()
	_, _, err := r.hold(legs...)
	var frozen *budget.FrozenError
	require.ErrorAs(r, err, &frozen)
	return frozen
}

func freezeProvider(r *rig) {
	day := r.day()
	open := r.take(day, "1")
	target := budget.Target{Provider: "sms"}
	require.NoError(r, r.operator().Freeze(r.Context(), target, by))
	require.NoError(r, r.operator().Freeze(r.Context(), target, by))
	for _, legs := range [][]budget.Leg{{leg(day, "1")}, {leg(day, "0")}, nil} {
		frozen := r.frozen(legs...)
		require.Equal(r, []string{"sms", ""}, []string{frozen.Provider, frozen.Budget})
		require.WithinDuration(r, r.now(), frozen.Since, 5e9)
	}
	require.False(r, r.totals(day).Frozen, "the budget itself is not")
	_, err := r.ledger.Hold(r.Context(), budget.Hold{ID: r.id(), Provider: "maps", Legs: []budget.Leg{leg(day, "1")}})
	require.NoError(r, err, "another provider goes on")
	r.settle(open, "1")
	require.Equal(r, "settled 1 presumed 0 held 1 left 8", r.books(day))
	require.NoError(r, r.operator().Release(r.Context(), target, by))
	require.NoError(r, r.operator().Release(r.Context(), target, by))
	r.take(day, "1")
}

func freezeBudget(r *rig) {
	day, month := r.day(), r.budget("month", budget.Month, "25")
	month.Label = "all calls"
	r.take(month, "1")
	require.NoError(r, r.operator().Freeze(r.Context(), budget.Target{Budget: "month"}, by))
	require.Equal(r, "all calls", r.frozen(leg(day, "1"), leg(month, "1")).Budget)
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	require.True(r, r.totals(month).Frozen)
	r.take(day, "1")
	require.NoError(r, r.operator().Release(r.Context(), budget.Target{Budget: "month"}, by))
	require.False(r, r.totals(month).Frozen)
	_, _, err := r.hold(leg(day, "1"), leg(month, "1"))
	require.NoError(r, err)
}

func freezeUnused(r *rig) {
	require.NoError(r, r.operator().Freeze(r.Context(), budget.Target{Budget: "day"}, by))
	r.frozen(leg(r.day(), "1"))
	require.NoError(r, r.operator().Release(r.Context(), budget.Target{Budget: "day"}, by))
	r.take(r.day(), "1")
}

func freezeTarget(r *rig) {
	for _, t := range []budget.Target{{}, {Provider: "sms", Budget: "day"}} {
		require.Error(r, r.operator().Freeze(r.Context(), t, by))
		require.Error(r, r.operator().Release(r.Context(), t, by))
	}
	r.take(r.day(), "1")
}

func unresolved(r *rig) {
	day := r.day()
	presumed := r.take(day, "1")
	settled := r.take(day, "1")
	held, _, err := r.hold(leg(day, "2"), leg(r.budget("month", budget.Month, "25"), "2"))
	require.NoError(r, err)
	r.resolve(presumed, budget.Outcome{Amount: budget.MustParse("1.5"), Why: "stream cut", Ref: "SM123"})
	r.settle(settled, "1")

	list := func(provider string, limit int) []budget.Unresolved {
		all, err := r.operator().Unresolved(r.Context(), provider, limit)
		require.NoError(r, err)
		return all
	}
	all := list("", 0)
	require.Len(r, all, 2)
	window := day.Window(r.now()).ID
	require.WithinDuration(r, r.now(), all[0].At, 5e9)
	all[0].At = all[1].At
	require.Equal(r, budget.Unresolved{
		ID: presumed, Provider: "sms", Ref: "SM123", State: budget.StatePresumed, At: all[1].At,
		Legs: []budget.UnresolvedLeg{{Budget: "day", Window: window, Unit: "USD", Amount: budget.MustParse("1.5")}},
	}, all[0])
	require.Equal(r, held, all[1].ID)
	require.Equal(r, budget.StateHeld, all[1].State)
	require.Len(r, all[1].Legs, 2)
	require.Equal(r, presumed, list("sms", 1)[0].ID)
	require.Len(r, list("sms", 1), 1)
	require.Empty(r, list("maps", 0))
	r.resolve(presumed, budget.Voided("reconciled"))
	require.Len(r, list("", 0), 1)
}

func operatorCorrects(r *rig) {
	day := r.day()
	count := r.budget("count", budget.Day, "10")
	count.Unit = budget.Calls
	id, _, err := r.hold(leg(count, "1"), leg(day, "2"))
	require.NoError(r, err)
	r.resolve(id, budget.Presumed(0))
	c, err := r.operator().Correct(r.Context(), id, budget.MustParse("0.5"), by)
	require.NoError(r, err)
	require.Equal(r, -budget.MustParse("1.5"), c.Delta)
	require.Equal(r, []string{"sms", "USD"}, []string{c.Provider, c.Unit})
	require.Equal(r, "settled 0.5 presumed 0 held 0 left 9.5", r.books(day))
	_, err = r.operator().Correct(r.Context(), r.id(), 1, by)
	require.ErrorIs(r, err, budget.ErrUnknownHold)
}

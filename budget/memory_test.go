package budget_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/stretchr/testify/require"
)

// till is a Memory with a clock that the test moves.
type till struct {
	*testing.T
	m    *budget.Memory
	hand *ledgertest.Hand
	seq  uint64
}

func newTill(t *testing.T) *till {
	hand := ledgertest.NewHand(noon)
	return &till{T: t, m: &budget.Memory{Clock: hand.Clock()}, hand: hand}
}

func named(name string, b budget.Budget) budget.Budget {
	b.Name = name
	return b
}

func (k *till) try(b budget.Budget, a budget.Amount) (budget.HoldID, error) {
	k.seq++
	id := budget.HoldID{Boot: 1, Seq: k.seq}
	_, err := k.m.Hold(k.Context(), budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{{Budget: b, Amount: a}}})
	return id, err
}

func (k *till) hold(b budget.Budget, a budget.Amount) budget.HoldID {
	k.Helper()
	id, err := k.try(b, a)
	require.NoError(k, err)
	return id
}

func (k *till) settle(id budget.HoldID, a budget.Amount) error {
	_, err := k.m.Resolve(k.Context(), id, budget.Settled(a))
	return err
}

func (k *till) spend(b budget.Budget, a budget.Amount) {
	k.Helper()
	require.NoError(k, k.settle(k.hold(b, a), a))
}

func (k *till) used(at time.Time, b budget.Budget) budget.Amount {
	k.Helper()
	all, err := k.m.Totals(k.Context(), at, b)
	require.NoError(k, err)
	return all[0].Used()
}

func TestMemoryIsReadyAsItIs(t *testing.T) {
	t.Parallel()
	var m budget.Memory
	k := &till{T: t, m: &m}
	day := named("day", budget.PerDay(10*budget.Unit))
	id := k.hold(day, 6*budget.Unit)
	k.hold(day, 4*budget.Unit)
	_, err := k.try(day, 1)
	require.EqualError(t, err, "sms: budget day: 10 of 10 USD used, call needs 0.000000001 (calls in flight hold the rest)")
	require.NoError(t, k.settle(id, 6*budget.Unit))
	require.Equal(t, 10*budget.Unit, k.used(time.Now(), day))
}

func TestMemoryFollowsTheSystemsDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC
		var m budget.Memory
		k := &till{T: t, m: &m}
		day := named("day", budget.PerDay(10*budget.Unit))
		k.spend(day, 10*budget.Unit)
		time.Sleep(24*time.Hour - time.Nanosecond)
		_, err := k.try(day, 1)
		require.Error(t, err)
		time.Sleep(time.Nanosecond)
		k.spend(day, 10*budget.Unit)
	})
}

func TestMemoryForgetsEndedHolds(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	day := named("day", budget.PerDay(10*budget.Unit))
	id := k.hold(day, budget.Unit)
	require.NoError(t, k.settle(id, budget.Unit))
	k.hand.Pass(15*time.Minute - 1)
	require.NoError(t, k.settle(id, budget.Unit))
	k.hand.Pass(1)
	require.ErrorIs(t, k.settle(id, budget.Unit), budget.ErrUnknownHold)
	require.Equal(t, budget.Unit, k.used(noon, day), "what it cost stays")
}

func TestMemoryForgetsEndedHoldsEvenIfFewCallsCome(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	day := named("day", budget.PerDay(1000*budget.Unit))
	var ids []budget.HoldID
	for range 20 {
		ids = append(ids, k.hold(day, budget.Unit))
		require.NoError(t, k.settle(ids[len(ids)-1], budget.Unit))
	}
	k.hand.Pass(15 * time.Minute)
	for i := range ids {
		require.ErrorIs(t, k.settle(ids[len(ids)-1-i], budget.Unit), budget.ErrUnknownHold)
	}
}

func TestMemoryBoundsItsEndedHolds(t *testing.T) {
	t.Parallel()
	const most = 1000
	k := newTill(t)
	k.m.Keep(0, most)
	day := named("day", budget.PerDay(1e6*budget.Unit))
	first := k.hold(day, budget.Unit)
	require.NoError(t, k.settle(first, budget.Unit))
	second := k.hold(day, budget.Unit)
	require.NoError(t, k.settle(second, budget.Unit))
	for range most - 1 {
		k.spend(day, budget.Unit)
	}
	k.hold(day, 0)
	require.ErrorIs(t, k.settle(first, budget.Unit), budget.ErrUnknownHold)
	require.NoError(t, k.settle(second, budget.Unit), "the same again")
	require.ErrorIs(t, k.settle(second, 2*budget.Unit), budget.ErrConflict)
}

func TestMemoryKeepsPresumedHoldsAMonthAfterTheirWindow(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	day := named("day", budget.PerDay(10*budget.Unit))
	id, late := k.hold(day, budget.Unit), k.hold(day, 2*budget.Unit)
	for _, id := range []budget.HoldID{id, late} {
		_, err := k.m.Resolve(t.Context(), id, budget.Presumed(0))
		require.NoError(t, err)
	}
	k.hand.Pass(35 * 24 * time.Hour)
	k.spend(day, budget.Unit)
	require.NoError(t, k.settle(id, budget.Unit/2))
	for range 2 {
		k.hand.Pass(24 * time.Hour)
		k.spend(day, budget.Unit)
	}
	require.ErrorIs(t, k.settle(late, budget.Unit), budget.ErrUnknownHold)
	require.Equal(t, 2*budget.Unit+budget.Unit/2, k.used(noon, day), "it stays presumed")
	all, err := k.m.Unresolved(t.Context(), "", 0)
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestMemoryKeepsTotalsForFourHundredDays(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	day := named("day", budget.PerDay(10*budget.Unit))
	other := named("other", budget.PerDay(10*budget.Unit))
	open := k.hold(other, budget.Unit)
	k.spend(day, 10*budget.Unit)
	for range 400 {
		k.hand.Pass(24 * time.Hour)
		k.spend(day, budget.Unit)
	}
	require.Equal(t, 10*budget.Unit, k.used(noon, day))
	for range 2 {
		k.hand.Pass(24 * time.Hour)
		k.spend(day, budget.Unit)
	}
	require.Zero(t, k.used(noon, day), "forgotten")
	require.Equal(t, budget.Unit, k.used(noon, other), "a window with calls in flight is not")
	require.NoError(t, k.settle(open, budget.Unit))

	k.hand.Step(-402 * 24 * time.Hour)
	_, err := k.try(day, budget.Unit)
	require.ErrorIs(t, err, budget.ErrUnavailable, "a forgotten window is not funded anew")
	_, err = k.try(other, 9*budget.Unit)
	require.NoError(t, err)
}

func TestMemoryForgetsBudgetsThatAreNotUsedAnyMore(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	gone, day := named("gone", budget.PerDay(10*budget.Unit)), named("day", budget.PerDay(10*budget.Unit))
	k.spend(gone, 10*budget.Unit)
	k.hand.Pass(402 * 24 * time.Hour)
	k.spend(day, budget.Unit)
	require.Error(t, k.m.SetLimit(t.Context(), "gone", budget.Unit, budget.By{Who: "maria"}), "unknown now")
	k.hand.Step(-402 * 24 * time.Hour)
	_, err := k.try(gone, budget.Unit)
	require.ErrorIs(t, err, budget.ErrUnavailable, "its window is not funded anew")
	k.hand.Step(402 * 24 * time.Hour)
	k.spend(gone, budget.Unit)
}

func TestShortRollingPeriodsKeepAThousandBuckets(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	b := named("minute", budget.Budget{Limit: 10 * budget.Unit, Every: budget.Rolling(time.Minute)})
	for range 3 * 24 * 60 {
		k.spend(b, 5*budget.Unit)
		k.hand.Pass(time.Minute)
	}
	require.Zero(t, k.used(noon, b), "forgotten")
	require.Equal(t, 10*budget.Unit, k.used(noon.Add(3*24*time.Hour-10*time.Hour), b))
	k.hand.Step(-60 * time.Hour)
	_, err := k.try(b, 1)
	require.ErrorIs(t, err, budget.ErrUnavailable)
}

// Names of budgets may come from requests, so their number is bounded: what has ended
// makes room, what is open never does.
func TestMemoryBoundsItsWindows(t *testing.T) {
	t.Parallel()
	const most = 4000
	k := newTill(t)
	k.m.Keep(most, 0)
	tenant := func(i int) budget.Budget {
		return named("tenant-"+strconv.Itoa(i), budget.Budget{Limit: budget.Unit, Every: budget.Day, Alerts: []int{}})
	}
	keep := named("keep", budget.PerDay(10*budget.Unit))
	open := k.hold(keep, budget.Unit)
	for i := range most - 1 {
		k.spend(tenant(i), budget.Unit)
	}
	_, err := k.try(tenant(most), budget.Unit)
	require.ErrorIs(t, err, budget.ErrUnavailable, "all windows are open")
	_, err = k.try(tenant(0), 1)
	require.ErrorAs(t, err, new(*budget.ExceededError), "those that are known are as before")

	k.hand.Pass(24 * time.Hour)
	k.spend(tenant(most), budget.Unit)
	require.NoError(t, k.settle(open, budget.Unit))
	for i := range most / 4 {
		k.spend(tenant(most+1+i), budget.Unit)
	}
	require.Equal(t, budget.Unit, k.used(noon, keep), "it had a call in flight")
	k.hand.Step(-24 * time.Hour)
	_, err = k.try(tenant(1), budget.Unit)
	require.ErrorIs(t, err, budget.ErrUnavailable, "a forgotten window is not funded anew")
}

func TestMemoryUsesRecordsAgainWithoutTrace(t *testing.T) {
	t.Parallel()
	k := newTill(t)
	day, month := named("day", budget.PerDay(10*budget.Unit)), named("month", budget.PerMonth(100*budget.Unit))
	old := k.hold(day, budget.Unit)
	_, err := k.m.Resolve(t.Context(), old, budget.Outcome{Amount: budget.Unit / 2, Ref: "SM1"})
	require.NoError(t, err)
	_, err = k.m.Resolve(t.Context(), old, budget.Corrected(budget.Unit/2, "invoice"))
	require.NoError(t, err)
	k.hand.Pass(20 * time.Minute)
	id := k.hold(month, budget.Unit)
	all, err := k.m.Unresolved(t.Context(), "", 0)
	require.NoError(t, err)
	require.Equal(t, []budget.Unresolved{{
		ID: id, Provider: "sms", State: budget.StateHeld, At: noon.Add(20 * time.Minute),
		Legs: []budget.UnresolvedLeg{{Budget: "month", Window: "2026-05", Unit: "USD", Amount: budget.Unit}},
	}}, all)
	require.NoError(t, k.settle(id, budget.Unit/4))
	require.Equal(t, budget.Unit/2, k.used(noon, day))
	require.Equal(t, budget.Unit/4, k.used(noon, month))
}

func TestMemoryHasOneKey(t *testing.T) {
	t.Parallel()
	var a, b budget.Memory
	require.GreaterOrEqual(t, len(a.Key()), 16)
	require.Equal(t, a.Key(), a.Key())
	require.NotEqual(t, a.Key(), b.Key())
}

func TestAdmitsSaysWhatHoldWouldAndTakesNothing(t *testing.T) {
	m, ctx := new(budget.Memory), t.Context()
	day, calls := budget.PerDay(2*budget.Unit), budget.Budget{Name: "calls", Limit: 2 * budget.Unit, Unit: budget.Calls, Every: budget.Rolling(time.Hour)}
	day.Name = "day"
	hold := func(seq uint64) budget.Hold {
		return budget.Hold{ID: budget.HoldID{Boot: 1, Seq: seq}, Provider: "api", Legs: []budget.Leg{{Budget: day, Amount: budget.Unit}, {Budget: calls, Amount: budget.Unit}}}
	}
	for range 5 {
		h := hold(9)
		h.ID = budget.HoldID{}
		require.NoError(t, m.Admits(h))
	}
	for seq := range uint64(2) {
		_, err := m.Hold(ctx, hold(seq))
		require.NoError(t, err)
	}
	_, want := m.Hold(ctx, hold(9))
	require.Error(t, want)
	require.Equal(t, want, m.Admits(hold(9)))
	require.NoError(t, m.Freeze(ctx, budget.Target{Provider: "api"}, budget.By{Who: "test"}))
	_, want = m.Hold(ctx, hold(9))
	require.Equal(t, want, m.Admits(hold(9)))
	totals, err := m.Totals(ctx, time.Now(), day)
	require.NoError(t, err)
	require.Equal(t, 2, totals[0].OpenHolds)
}

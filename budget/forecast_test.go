package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// spender is a budget on which the same amount is spent again and again.
func spender(every budget.Period, limit budget.Amount) budget.Totals {
	b := budget.Budget{Name: "b", Limit: limit, Every: every}
	return budget.Totals{Budget: b, Limit: limit, Window: b.Window(noon)}
}

func spendEvery(t *budget.Totals, from time.Time, step time.Duration, n int, a budget.Amount) time.Time {
	for range n {
		from = from.Add(step)
		t.Settled += a
		t.Trend.Add(from, a, true)
	}
	return from
}

func TestAtThePresentPaceTheBudgetEndsAt(t *testing.T) {
	t.Parallel()
	day := spender(budget.Day, 100*budget.Unit)
	now := spendEvery(&day, noon.Add(-2*time.Hour), time.Minute, 120, budget.Unit/2) // 30 dollars an hour
	require.Equal(t, noon, now)
	at, ok := day.Forecast(now)
	require.True(t, ok)
	require.WithinDuration(t, noon.Add(80*time.Minute), at, 2*time.Minute)

	slow := spender(budget.Day, 100*budget.Unit)
	now = spendEvery(&slow, noon.Add(-2*time.Hour), time.Minute, 120, budget.Unit/100)
	_, ok = slow.Forecast(now)
	require.False(t, ok, "it lasts")
}

func TestTheSlowerPaceCounts(t *testing.T) {
	t.Parallel()
	burst := spender(budget.Day, 100*budget.Unit)
	now := spendEvery(&burst, noon.Add(-10*time.Minute), time.Minute, 10, 4*budget.Unit)
	at, ok := burst.Forecast(now)
	require.True(t, ok)
	require.WithinDuration(t, noon.Add(90*time.Minute), at, time.Minute, "40 dollars in the last hour, not in 15 minutes")

	quiet := spender(budget.Day, 100*budget.Unit)
	now = spendEvery(&quiet, noon.Add(-40*time.Minute), time.Minute, 10, 4*budget.Unit).Add(30 * time.Minute)
	_, ok = quiet.Forecast(now)
	require.False(t, ok, "nothing was spent in the last 15 minutes")
}

func TestAMonthIsForecastFromItsLastDay(t *testing.T) {
	t.Parallel()
	month := spender(budget.Month, 100*budget.Unit)
	start := time.Date(2026, 5, 9, 0, 0, 0, 0, time.UTC)
	now := spendEvery(&month, start, time.Hour, 24, budget.Unit/4) // 6 dollars a day
	at, ok := month.Forecast(now)
	require.True(t, ok)
	require.WithinDuration(t, now.Add(94*24*time.Hour/6), at, time.Hour)
}

func TestThereIsNoForecastTooSoon(t *testing.T) {
	t.Parallel()
	nine := spender(budget.Day, 100*budget.Unit)
	now := spendEvery(&nine, noon.Add(-9*time.Minute), time.Minute, 9, 10*budget.Unit)
	_, ok := nine.Forecast(now)
	require.False(t, ok, "nine holds say nothing")

	early := spender(budget.Day, 100*budget.Unit)
	midnight := early.Window.Start
	now = spendEvery(&early, midnight, time.Minute, 59, budget.Unit)
	_, ok = early.Forecast(now)
	require.False(t, ok, "nor does the first hour of a day")
	_, ok = early.Forecast(midnight.Add(time.Hour))
	require.True(t, ok)
	_, ok = early.Forecast(early.Window.End)
	require.False(t, ok, "the window has ended")
	_, ok = early.Forecast(midnight.Add(-1))
	require.False(t, ok, "the window has not begun")
}

func TestAnExhaustedBudgetEndedNow(t *testing.T) {
	t.Parallel()
	day := spender(budget.Day, budget.Unit)
	day.Settled, day.Held = budget.Unit/2, budget.Unit/2
	at, ok := day.Forecast(noon)
	require.True(t, ok)
	require.Equal(t, noon, at)
}

func TestAForecastTakesHugeAmounts(t *testing.T) {
	t.Parallel()
	day := spender(budget.Day, math.MaxInt64)
	for range 20 {
		day.Trend.Add(noon, math.MaxInt64/4, true)
	}
	day.Settled = math.MaxInt64 / 2
	at, ok := day.Forecast(noon)
	require.True(t, ok)
	require.WithinDuration(t, noon.Add(30*time.Minute), at, time.Minute)
	day.Trend.Add(noon.Add(-48*time.Hour), 1, false) // the clock was set back: counted, not lost
	require.Equal(t, int64(20), day.Trend.Settled)
}

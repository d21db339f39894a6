package budget_test

import (
	"testing"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

func TestMemoryIsReadyAsItIs(t *testing.T) {
	t.Parallel()
	var m budget.Memory
	day := budget.PerDay(10 * budget.Unit)
	day.Name = "day"
	hold := func(seq uint64, a budget.Amount) error {
		_, err := m.Hold(t.Context(), budget.Hold{ID: budget.HoldID{Boot: 1, Seq: seq}, Provider: "sms", Legs: []budget.Leg{{Budget: day, Amount: a}}})
		return err
	}
	require.NoError(t, hold(1, 6*budget.Unit))
	require.NoError(t, hold(2, 4*budget.Unit))
	var over *budget.ExceededError
	require.ErrorAs(t, hold(3, 1), &over)
	require.True(t, over.Busy)
	require.EqualError(t, over, "sms: budget day: 10 of 10 USD used, call needs 0.000000001 (calls in flight hold the rest)")
	report, err := m.Resolve(t.Context(), budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(budget.MustParse("5.5")))
	require.NoError(t, err)
	require.Equal(t, -budget.Unit/2, report.Delta)
	require.Len(t, report.Notices, 1)
	require.Equal(t, 50, report.Notices[0].Percent)
	require.NoError(t, hold(4, budget.Unit/2))
}

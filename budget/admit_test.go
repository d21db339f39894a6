package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	b := budget.Budget{Name: "b", Label: "label", Limit: 10, Keep: 3, Unit: "EUR", Every: budget.Day}
	window := b.Window(noon)
	for _, c := range []struct {
		name                    string
		settled, presumed, held budget.Amount
		need                    budget.Amount
		critical                bool
		reason                  budget.Reason
		retry                   bool
	}{
		{name: "fits", settled: 1, presumed: 1, held: 1, need: 4},
		{name: "fits for critical calls", settled: 1, presumed: 1, held: 1, need: 7, critical: true},
		{name: "nothing always fits", settled: 99, need: 0},
		{name: "kept", settled: 4, need: 4, reason: budget.ReasonFloor, retry: true},
		{name: "kept and busy", settled: 3, held: 1, need: 4, reason: budget.ReasonBusy, retry: true},
		{name: "kept, and dearer than the rest", need: 8, reason: budget.ReasonFloor},
		{name: "spent", settled: 10, need: 1, reason: budget.ReasonExhausted, retry: true},
		{name: "presumed", presumed: 10, need: 1, critical: true, reason: budget.ReasonExhausted, retry: true},
		{name: "held", held: 10, need: 1, critical: true, reason: budget.ReasonBusy, retry: true},
		{name: "never", need: 11, critical: true, reason: budget.ReasonExhausted},
		{name: "never, and huge", settled: 5, need: math.MaxInt64, critical: true, reason: budget.ReasonExhausted},
		{name: "overdrawn", settled: math.MaxInt64, need: 1, critical: true, reason: budget.ReasonExhausted, retry: true},
	} {
		totals := budget.Totals{Budget: b, Window: window, Limit: b.Limit, Settled: c.settled, Presumed: c.presumed, Held: c.held}
		got := totals.Refusal(c.need, c.critical)
		if c.reason == "" {
			require.Nil(t, got, c.name)
			continue
		}
		want := &budget.ExceededError{
			Budget: "label", Window: "2026-05-02", Reason: c.reason, Need: c.need, Used: totals.Used(), Held: c.held, Limit: 10, Unit: "EUR",
			Busy: c.reason == budget.ReasonBusy,
		}
		if c.retry {
			want.RetryAt = window.End
		}
		require.Equal(t, want, got, c.name)
	}
}

func TestBinding(t *testing.T) {
	t.Parallel()
	soon, later := noon, noon.Add(time.Hour)
	never := &budget.ExceededError{}
	spentLater, spentSoon := &budget.ExceededError{RetryAt: later}, &budget.ExceededError{RetryAt: soon}
	busyLater, busySoon := &budget.ExceededError{RetryAt: later, Busy: true}, &budget.ExceededError{RetryAt: soon, Busy: true}
	order := []*budget.ExceededError{never, spentLater, spentSoon, busyLater, busySoon, nil}
	for i, strong := range order {
		for _, weak := range order[i:] {
			require.Same(t, strong, strong.Binding(weak))
			require.Same(t, strong, weak.Binding(strong))
		}
	}
	other := &budget.ExceededError{RetryAt: soon}
	require.Same(t, spentSoon, spentSoon.Binding(other), "of two equal ones the first")
}

func TestRefusalsExplainThemselves(t *testing.T) {
	t.Parallel()
	e := budget.ExceededError{Provider: "twilio-sms", Budget: "sms-day", Need: 20_000_000, Used: 49_990_000_000, Limit: 50 * budget.Unit, Unit: "USD"}
	require.EqualError(t, &e, "twilio-sms: budget sms-day: 49.99 of 50 USD used, call needs 0.02")
	e.Reason = budget.ReasonFloor
	require.ErrorContains(t, &e, "call needs 0.02 (the rest is kept for critical calls)")
	require.EqualError(t, &budget.FrozenError{Provider: "maps"}, "maps: frozen by an operator")
	require.EqualError(t, &budget.FrozenError{Provider: "maps", Budget: "all-day"}, "maps: budget all-day: frozen by an operator")
	require.Equal(t, "ff-10", budget.HoldID{Boot: 255, Seq: 16}.String())
	var names []string
	for s := range budget.StateHeld + 1 {
		names = append(names, s.String())
	}
	require.Equal(t, []string{"presumed", "settled", "voided", "corrected", "held"}, names)
}

func TestRefusalOfWhatNeverPassesSaysSo(t *testing.T) {
	e := &budget.ExceededError{Provider: "sms", Budget: "day", Unit: "USD", Need: 2 * budget.Unit, Limit: budget.Unit, Reason: budget.ReasonExhausted}
	require.EqualError(t, e, "sms: budget day: 0 of 1 USD used, call needs 2 (more than the limit: it never passes)")
}

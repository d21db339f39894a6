package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// away is a ledger that does not answer.
type away struct{ budget.Memory }

func (*away) Totals(context.Context, time.Time, ...budget.Budget) ([]budget.Totals, error) {
	return nil, budget.ErrUnavailable
}

// mute is a ledger that lists nothing.
type mute struct{ budget.Ledger }

func TestConflicts(t *testing.T) {
	const text = `version: 1
ledger: {kind: memory, allow_forgetting: true}
providers:
  api:
    upstream: https://api.example.com
    price: 0.01 USD
    budgets:
      all: {limit: 5 USD, every: day}
      each: {limit: 5 USD, every: day, per: caller}
      api-tenant: {limit: 5 USD, every: day, per: tenant}
`
	f, problems := told(t, text)
	require.Empty(t, problems)
	now := time.Now()
	hold := func(l budget.Ledger, seq uint64, b budget.Budget) {
		_, err := l.Hold(t.Context(), budget.Hold{ID: budget.HoldID{Boot: 1, Seq: seq}, Provider: "api", Legs: []budget.Leg{{Budget: b, Amount: 1}}})
		require.NoError(t, err)
	}
	week, month := budget.PerWeek(budget.Unit), budget.PerMonth(budget.Unit)
	week.Name = "all"

	ledger := new(budget.Memory)
	found, err := f.Conflicts(t.Context(), ledger, now)
	require.NoError(t, err)
	assert.Empty(t, found, "nothing is kept yet")

	month.Name, month.Label = "other-0123456789abcdef0123456789abcdef", "each" // of another provider
	hold(ledger, 4, month)
	found, err = f.Conflicts(t.Context(), ledger, now)
	require.NoError(t, err)
	assert.Empty(t, found)
	month.Name, month.Label = "api-0123456789abcdef0123456789abcdef", "each"
	hold(ledger, 1, month)
	month.Name, month.Label = "api-fedcba9876543210fedcba9876543210", "each"
	hold(ledger, 2, month)
	month.Name, month.Label = "api-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "api-tenant" // of a plan
	hold(ledger, 3, month)
	hold(ledger, 5, week)
	found, err = f.Conflicts(t.Context(), ledger, now)
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, "budget all: every changed from week: "+forEver, found[0].Text)
	assert.Equal(t, []int{8, 34}, []int{found[0].Line, found[0].Column})
	assert.Equal(t, "budget each: every changed from month: "+forEver, found[1].Text)
	assert.Equal(t, 9, found[1].Line)

	found, err = f.Conflicts(t.Context(), mute{ledger}, now)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "budget all: the ledger has it with another zone, period or currency: "+forEver, found[0].Text)
	assert.Equal(t, 8, found[0].Line)

	_, err = f.Conflicts(t.Context(), new(away), now)
	assert.True(t, errors.Is(err, budget.ErrUnavailable))
}

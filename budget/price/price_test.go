package price_test

import (
	"errors"
	"math"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

// cent is 0.01 of any currency.
const cent = budget.Unit / 100

func get(t testing.TB, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return r
}

func units(n int64, err error) price.Units {
	return func(*http.Request) (int64, error) { return n, err }
}

func TestQuotes(t *testing.T) {
	tests := []struct {
		name   string
		pricer price.Pricer
		want   budget.Quote
	}{
		{"per call", price.PerCall(2 * cent), budget.Quote{Amount: 2 * cent, Unit: "USD", Units: 1}},
		{"per call in euros", price.PerCall(cent).In("EUR"), budget.Quote{Amount: cent, Unit: "EUR", Units: 1}},
		{"a price of zero is a price", price.PerCall(0), budget.Quote{Unit: "USD", Units: 1}},
		{"free", price.Free, budget.Quote{}},
		{"an assumed price is marked", price.Assume(5 * cent), budget.Quote{Amount: 5 * cent, Unit: "USD", Units: 1, Assumed: true}},
		{"per unit", price.Per(cent, units(7, nil)), budget.Quote{Amount: 7 * cent, Unit: "USD", Units: 7}},
		{"per unit in euros", price.Per(cent, units(2, nil)).In("EUR"), budget.Quote{Amount: 2 * cent, Unit: "EUR", Units: 2}},
		{"no unit at all costs nothing", price.Per(cent, units(0, nil)), budget.Quote{Unit: "USD"}},
		{"the largest amount", price.Per(1, units(math.MaxInt64, nil)), budget.Quote{Amount: math.MaxInt64, Unit: "USD", Units: math.MaxInt64}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := tt.pricer.Quote(get(t, "https://api.example/"))
			require.NoError(t, err)
			require.Equal(t, tt.want, q)
		})
	}
}

func TestWithoutPriceNothingIsFree(t *testing.T) {
	tests := []struct {
		name   string
		pricer price.Pricer
	}{
		{"zero Fixed", price.Fixed{}},
		{"zero PerUnit", price.PerUnit{}},
		{"no counter", price.Per(cent, nil)},
		{"negative price", price.PerCall(-cent)},
		{"negative unit price", price.Per(-cent, units(1, nil))},
		{"negative count", price.Per(cent, units(-1, nil))},
		{"overflow", price.Per(2, units(math.MaxInt64, nil))},
		{"overflow of the sign bit only", price.Per(math.MaxInt64/2+1, units(2, nil))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.pricer.Quote(get(t, "https://api.example/"))
			require.ErrorIs(t, err, budget.ErrUnpriced)
		})
	}
}

func TestCountingErrorIsReturnedAsItIs(t *testing.T) {
	fault := errors.New("disk on fire")
	_, err := price.Per(cent, units(0, fault)).Quote(get(t, "https://api.example/"))
	require.ErrorIs(t, err, fault)
	require.NotErrorIs(t, err, budget.ErrUnpriced)
}

func TestUnitIsStated(t *testing.T) {
	type stated interface{ Unit() string }
	tests := []struct {
		pricer stated
		want   string
	}{
		{price.PerCall(cent), "USD"},
		{price.PerCall(cent).In("EUR"), "EUR"},
		{price.Assume(cent).In("KES"), "KES"},
		{price.Per(cent, units(1, nil)), "USD"},
		{price.Per(cent, units(1, nil)).In("JPY"), "JPY"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.pricer.Unit())
	}
	_, states := any(price.Free).(stated)
	require.False(t, states, "a free call stands beside budgets of any currency")
}

package price_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

func TestMatrixIsPricedByCell(t *testing.T) {
	x := strings.Repeat
	cells := price.Cells("origins", "destinations")
	tests := []struct {
		name   string
		pricer price.Pricer
		req    *http.Request
		units  int64
		amount string
	}{
		{
			"25 by 25", price.Per(budget.MustParse("0.005"), cells),
			get(t, "https://maps.example/?origins="+x("a%7C", 24)+"a&destinations="+x("b|", 24)+"b"), 625, "3.125",
		},
		{"2 by 5 at one unit per 4 cells", price.Per(cent, cells.Every(4)), get(t, "https://maps.example/?origins=a|b&destinations=1|2|3|4|5"), 3, "0.03"},
		{"4 by 1 at one unit per 4 cells", price.Per(cent, cells.Every(4)), get(t, "https://maps.example/?origins=a|b|c|d&destinations=1"), 1, "0.01"},
		{"groups of one", price.Per(cent, cells.Every(1)), get(t, "https://maps.example/?origins=a&destinations=1|2"), 2, "0.02"},
		{"lists in JSON", price.Per(cent, cells), post(t, jsonType, "https://maps.example/", `{"origins":[{},{}],"destinations":[{},{},{}]}`), 6, "0.06"},
		{"twice the same parameter", price.Per(cent, cells), get(t, "https://maps.example/?origins=a&origins=b|c&destinations=d"), 2, "0.02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := tt.pricer.Quote(tt.req)
			require.NoError(t, err)
			require.Equal(t, tt.units, q.Units)
			require.Equal(t, tt.amount, q.Amount.String())
		})
	}
}

func TestMatrixThatCannotBeCounted(t *testing.T) {
	for _, r := range []*http.Request{
		get(t, "https://maps.example/?origins=a"),
		get(t, "https://maps.example/?origins=&destinations=b"),
		get(t, "https://maps.example/?origins=enc:gfo}EtohhU:&destinations=b"),
		get(t, "https://maps.example/?origins=a;b&destinations=b"),
		post(t, jsonType, "https://maps.example/", `{"origins":"a","destinations":[1]}`),
		post(t, jsonType, "https://maps.example/", `[1]`),
		post(t, jsonType, "https://maps.example/", `{`),
	} {
		_, err := price.Per(cent, price.Cells("origins", "destinations").Every(4)).Quote(r)
		require.ErrorIs(t, err, budget.ErrUnpriced, r.URL)
	}
}

func TestTiers(t *testing.T) {
	steps := []price.Tier{{From: 0, Price: 5}, {From: 100, Price: 4}, {From: 200, Price: 1}}
	used := func(n int64) func() int64 { return func() int64 { return n } }
	tests := []struct {
		name   string
		tiers  price.Tiers
		amount budget.Amount
	}{
		{"first step", price.Tiers{Steps: steps, Used: used(0)}, 5},
		{"last of the first step", price.Tiers{Steps: steps, Used: used(99)}, 5},
		{"first of the second", price.Tiers{Steps: steps, Used: used(100)}, 4},
		{"over two steps", price.Tiers{Steps: steps, Used: used(98), Count: units(5, nil)}, 2*5 + 3*4},
		{"over all steps", price.Tiers{Steps: steps, Used: used(0), Count: units(250, nil)}, 100*5 + 100*4 + 50},
		{"far above", price.Tiers{Steps: steps, Used: used(math.MaxInt64)}, 1},
		{"volume not known: the dearest", price.Tiers{Steps: []price.Tier{{0, 0}, {100, 7}, {200, 3}}, Count: units(2, nil)}, 14},
		{"a negative volume is none", price.Tiers{Steps: steps, Used: used(-50)}, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := tt.tiers.Quote(get(t, "https://api.example/"))
			require.NoError(t, err)
			require.Equal(t, tt.amount, q.Amount)
			require.Equal(t, "USD", tt.tiers.Unit())
		})
	}
}

func TestTiersThatMakeNoSense(t *testing.T) {
	fault := errors.New("no")
	for _, s := range [][]price.Tier{nil, {{1, 5}}, {{0, 5}, {0, 4}}, {{0, 5}, {9, 4}, {8, 3}}, {{0, -1}}} {
		_, err := price.Tiers{Steps: s}.Quote(get(t, "https://api.example/"))
		require.ErrorIs(t, err, budget.ErrUnpriced)
	}
	one := []price.Tier{{0, 1}}
	_, err := price.Tiers{Steps: one, Count: units(0, fault)}.Quote(get(t, "https://api.example/"))
	require.ErrorIs(t, err, fault)
	_, err = price.Tiers{Steps: one, Count: units(-1, nil), Used: func() int64 { return 0 }}.Quote(get(t, "https://api.example/"))
	require.ErrorIs(t, err, budget.ErrUnpriced)
}

// autocomplete has the prices of Google's old place autocompletion.
func autocomplete() *price.Session {
	return price.PerSession(budget.MustParse("0.00283"), budget.MustParse("0.017"),
		func(r *http.Request) string { return r.URL.Query().Get("sessiontoken") },
		func(r *http.Request) bool { return strings.Contains(r.URL.Path, "details") })
}

// answered prices a call and books its answer.
func answered(t *testing.T, s *price.Session, url string) budget.Amount {
	t.Helper()
	r := get(t, url)
	q, err := s.Quote(r)
	require.NoError(t, err)
	_, cost := s.Meter(&http.Response{StatusCode: 200, Request: r})
	a, known := cost()
	require.True(t, known)
	require.LessOrEqual(t, a, q.Amount, "a quote is an upper bound")
	return a
}

func TestSessions(t *testing.T) {
	const letter, details = "https://maps.example/autocomplete?sessiontoken=", "https://maps.example/details?sessiontoken="
	var one, fresh, short, bare budget.Amount
	s := autocomplete()
	for range 14 {
		one += answered(t, s, letter+"a")
	}
	one += answered(t, s, details+"a")
	for i := range 14 {
		fresh += answered(t, s, letter+strings.Repeat("b", i+1))
		bare += answered(t, s, letter)
	}
	for range 3 {
		short += answered(t, s, letter+"c")
	}
	short += answered(t, s, details+"c")
	require.Equal(t, "0.017", one.String(), "a session costs no more than its price")
	require.Equal(t, "0.03962", fresh.String(), "sessions that nothing ends are paid by the request")
	require.Equal(t, "0.03962", bare.String(), "without a token there is no session")
	require.Equal(t, "0.017", short.String(), "what ends a session makes its price full")
	require.Equal(t, "0.00283", answered(t, s, letter+"a").String(), "a token that comes again begins anew")
	require.Equal(t, "0.00283", answered(t, s, letter+strings.Repeat("x", 500)).String())
	require.Equal(t, "0.00283", answered(t, s, letter+strings.Repeat("x", 500)).String(), "absurd tokens are not remembered")
}

func TestQuotesAloneChangeNoSession(t *testing.T) {
	s := autocomplete()
	r := get(t, "https://maps.example/autocomplete?sessiontoken=a")
	for range 20 {
		q, err := s.Quote(r)
		require.NoError(t, err)
		require.Equal(t, "0.00283", q.Amount.String(), "a call that was refused or lost was not paid")
	}
}

func TestSessionsGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := autocomplete()
		const letter = "https://maps.example/autocomplete?sessiontoken=a"
		for range 7 {
			answered(t, s, letter)
		}
		time.Sleep(3*time.Minute - time.Millisecond)
		require.Zero(t, answered(t, s, letter))
		time.Sleep(time.Millisecond)
		require.Equal(t, "0.00283", answered(t, s, letter).String())
	})
}

func TestSessionsAreBounded(t *testing.T) {
	s := autocomplete()
	const letter = "https://maps.example/autocomplete?sessiontoken="
	for range 7 {
		answered(t, s, letter+"first")
	}
	require.Zero(t, answered(t, s, letter+"first"))
	for i := range 10_000 {
		answered(t, s, fmt.Sprint(letter, i))
	}
	require.Equal(t, "0.00283", answered(t, s, letter+"first").String(), "what is forgotten costs more, not less")
}

func TestSessionWithoutPrice(t *testing.T) {
	for _, s := range []*price.Session{new(price.Session), price.PerSession(-1, 1, func(*http.Request) string { return "" }, nil), price.PerSession(1, 1, nil, nil)} {
		_, err := s.Quote(get(t, "https://maps.example/"))
		require.ErrorIs(t, err, budget.ErrUnpriced)
	}
	w, cost := autocomplete().Meter(&http.Response{StatusCode: 200})
	require.Nil(t, w)
	require.Nil(t, cost, "an answer without its request tells nothing")
	require.Equal(t, "EUR", autocomplete().In("EUR").Unit())
}

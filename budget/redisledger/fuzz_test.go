package redisledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func FuzzHistories(f *testing.F) { ledgertest.Fuzz(f, subject(redistest.Start(f).Client(f))) }

// FuzzParseHold reads what anybody may have written under the keys of holds.
func FuzzParseHold(f *testing.F) {
	for _, h := range []budget.Hold{
		holdOf(month(), "1"),
		{Provider: "a\nb\n1", Critical: true, Legs: []budget.Leg{
			{Budget: month(), Amount: 5}, {Budget: budget.Budget{Name: "calls", Unit: budget.Calls}, Amount: budget.Unit}}},
	} {
		legs := make([]leg, len(h.Legs))
		for i := range legs {
			legs[i] = leg{id: "2026-05", oldest: "2026-05", ends: time.UnixMilli(1)}
		}
		f.Add(contents(&h), windowsOf(legs))
	}
	f.Add("00-1\n", "\n\n")
	f.Add("009999999999\n", "")
	f.Fuzz(func(t *testing.T, text, windows string) {
		provider, legs, ok := parseHold(text, windows)
		if !ok {
			return
		}
		h := budget.Hold{Provider: provider, Critical: text[0] == '1', Assumed: text[1] == '1'}
		for _, l := range legs {
			b := budget.Budget{Name: l.name}
			if l.calls {
				b.Unit = budget.Calls
			}
			h.Legs = append(h.Legs, budget.Leg{Budget: b, Amount: l.amount})
			require.NotEmpty(t, l.windows())
		}
		again, legsAgain, ok := parseHold(contents(&h), windowsOf(legs))
		require.True(t, ok)
		require.Equal(t, provider, again)
		require.Equal(t, legs, legsAgain)
	})
}

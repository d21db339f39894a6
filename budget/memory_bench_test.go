package budget_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

func benchmarkPair(b *testing.B, legs, open int) {
	var m budget.Memory
	h := budget.Hold{ID: budget.HoldID{Boot: 1}, Provider: "sms"}
	for i := range legs {
		each := budget.PerDay(1e9 * budget.Unit)
		each.Name = "budget-" + strconv.Itoa(i)
		h.Legs = append(h.Legs, budget.Leg{Budget: each, Amount: 8_300_000})
	}
	ctx := context.Background()
	for range open {
		h.ID.Seq++
		_, err := m.Hold(ctx, h)
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.ID.Seq++
		if _, err := m.Hold(ctx, h); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Resolve(ctx, h.ID, budget.Settled(8_000_000)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemoryHoldSettle1Leg(b *testing.B)           { benchmarkPair(b, 1, 0) }
func BenchmarkMemoryHoldSettle3Legs(b *testing.B)          { benchmarkPair(b, 3, 0) }
func BenchmarkMemoryHoldSettle1LegOf100kOpen(b *testing.B) { benchmarkPair(b, 1, 100_000) }

func TestMemoryAllocatesNothing(t *testing.T) {
	var m budget.Memory
	day := budget.PerDay(1e9 * budget.Unit)
	day.Name = "day"
	h := budget.Hold{ID: budget.HoldID{Boot: 1}, Provider: "sms", Legs: []budget.Leg{{Budget: day, Amount: 8_300_000}}}
	pair := func() {
		h.ID.Seq++
		_, err := m.Hold(t.Context(), h)
		_, settled := m.Resolve(t.Context(), h.ID, budget.Settled(8_000_000))
		if err != nil || settled != nil {
			t.Fatal(err, settled)
		}
	}
	for range 100_000 {
		pair() // the books reach their size
	}
	require.Zero(t, testing.AllocsPerRun(1000, pair))
}

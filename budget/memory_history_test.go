package budget_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// What was booked before anybody asked is there, but of nobody.
func TestHistoryBeginsWhenItIsAskedFor(t *testing.T) {
	hand := time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)
	m := &budget.Memory{Clock: &budget.Clock{Source: func() (time.Time, time.Duration) { return hand, hand.Sub(time.Unix(0, 0)) }}}
	day := budget.PerDay(1000 * budget.Unit)
	day.Name = "day"
	seq := uint64(0)
	take := func(provider string) budget.HoldID {
		seq++
		id := budget.HoldID{Boot: 1, Seq: seq}
		_, err := m.Hold(t.Context(), budget.Hold{ID: id, Provider: provider, Legs: []budget.Leg{{Budget: day, Amount: budget.Unit}}})
		require.NoError(t, err)
		return id
	}
	settle := func(id budget.HoldID) {
		_, err := m.Resolve(t.Context(), id, budget.Settled(budget.Unit))
		require.NoError(t, err)
	}
	settle(take("sms"))
	early := take("sms")
	h, err := m.History(t.Context(), hand, day)
	require.NoError(t, err)
	require.Equal(t, hand, h[0].Since)
	require.Len(t, h[0].Points, 1)
	hand = hand.Add(time.Hour)
	settle(early)
	settle(take("sms"))
	s, err := m.Spending(t.Context(), hand, day)
	require.NoError(t, err)
	require.Len(t, s, 2)
	require.Equal(t, []string{"", "sms"}, []string{s[0].Provider, s[1].Provider})
	require.Equal(t, []budget.Amount{2 * budget.Unit, budget.Unit}, []budget.Amount{s[0].Settled, s[1].Settled})

	hand = hand.Add(24 * time.Hour)
	for i := range 200 {
		settle(take(fmt.Sprint("provider-", i)))
	}
	s, err = m.Spending(t.Context(), hand, day)
	require.NoError(t, err)
	require.Len(t, s, 65, "64 providers, and the rest together")
	require.Equal(t, "", s[0].Provider)
	require.Equal(t, 136*budget.Unit, s[0].Settled)
	h, err = m.History(t.Context(), hand, day)
	require.NoError(t, err)
	require.Equal(t, h[0].Window.Start, h[0].Since, "the next window is known from its beginning")
}

// Who is asked for a million budgets remembers a thousand, at 2 KiB each.
func TestHistoryIsBounded(t *testing.T) {
	m := new(budget.Memory)
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	spend := func(from, to int) {
		for i := from; i < to; i++ {
			day := budget.PerDay(100 * budget.Unit)
			day.Name = fmt.Sprint("day-", i)
			_, err := m.History(context.Background(), time.Now(), day)
			require.NoError(t, err)
			id := budget.HoldID{Boot: 1, Seq: uint64(i)}
			_, err = m.Hold(context.Background(), budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{{Budget: day, Amount: budget.Unit}}})
			require.NoError(t, err)
		}
	}
	before := heap()
	spend(0, 1024)
	watched := heap() - before
	before = heap()
	spend(1024, 2048)
	plain := heap() - before
	each := (int(watched) - int(plain)) / 1024
	t.Logf("%d B a budget that is remembered beside %d B for its books and a hold", each, plain/1024)
	require.Less(t, each, 2600)
	runtime.KeepAlive(m)
}

// The newest thousand of what people did are kept.
func TestAuditOfMemoryIsBounded(t *testing.T) {
	m := new(budget.Memory)
	for i := range 1500 {
		require.NoError(t, m.Note(t.Context(), budget.Audited{Action: fmt.Sprint(i)}))
	}
	all, err := m.Audit(t.Context(), "0", 1_000_000)
	require.NoError(t, err)
	require.Len(t, all, 1000)
	require.Equal(t, []string{"500", "1499"}, []string{all[0].Action, all[999].Action})
	all, err = m.Audit(t.Context(), "1498", 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	all, err = m.Audit(t.Context(), "9999", -1)
	require.NoError(t, err)
	require.Empty(t, all)
}

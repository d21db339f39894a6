package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStatsShowScopesAndQueue(t *testing.T) {
	bubble(t, func(l *lab) {
		require.Empty(t, l.b.Stats("p"))
		r := Rate{N: 2, Per: time.Second, Burst: 4}
		p := Leg{Key: "p", Rates: []Rate{r}, Slots: 1}
		turn, err := l.b.Wait(l.t.Context(), ask(p, leg("s", PerHour(1))))
		require.NoError(t, err)
		for _, class := range []Priority{Bulk, Bulk, Critical, Normal} {
			a := ask(p)
			a.Priority = class
			l.call(l.t.Context(), a)
			time.Sleep(time.Millisecond)
		}
		until := l.begin.Add(time.Minute)
		l.cap(Cap{Key: "s", Until: until, Cause: CauseThrottled})
		l.cap(Cap{Key: "p", N: 7, Until: until, Cause: CauseRemaining, Slow: true})
		require.Equal(t, Stats{
			Queue: QueueStats{Critical: 1, Normal: 1, Bulk: 2, Oldest: l.begin},
			Scopes: []ScopeStats{
				{Key: "p", Rates: []Rate{r}, Effective: 0.7, Tokens: 3.008, CapUntil: until, CapLeft: 7, CapCause: CauseRemaining, Slots: 1, InUse: 1, Waiting: 4},
				{Key: "s", Rates: []Rate{PerHour(1)}, Effective: 1, Tokens: 0.004 / 3600, GateUntil: until, GateCause: CauseThrottled},
			},
		}, l.b.Stats("p"))
		turn.Done()
		time.Sleep(time.Hour)
		st := l.b.Stats("p")
		require.Zero(t, st.Queue)
		require.Equal(t, ScopeStats{Key: "p", Rates: []Rate{r}, Effective: 1, Tokens: 4, Slots: 1}, st.Scopes[0])
	})
}

// A scope that was known from a Cap first is shown as well once it is used: an operator finds
// there what to open.
func TestStatsShowScopesThatWereCappedFirst(t *testing.T) {
	bubble(t, func(l *lab) {
		until := l.begin.Add(time.Minute)
		l.cap(Cap{Key: "s", Until: until})
		l.cap(Cap{Key: "t", Until: until})
		a := ask(leg("p"), leg("s", PerSecond(1)))
		require.Error(t, l.passes(a))
		st := l.b.Stats("p")
		require.Len(t, st.Scopes, 2)
		require.Equal(t, ScopeStats{Key: "s", Rates: []Rate{PerSecond(1)}, Effective: 1, Tokens: 1, GateUntil: until}, st.Scopes[1])
		calls := l.calls(2, a)
		l.b.MaxScopes = 1
		require.Error(t, l.passes(ask(leg("p"), leg("t"))), "its gate is not lost where there is no room")
		require.Equal(t, []time.Duration{time.Minute, time.Minute + time.Second}, l.starts(calls))
	})
}

func BenchmarkStats(b *testing.B) {
	l := NewBucket()
	for i := range 10_000 {
		turn, err := l.Wait(b.Context(), ask(leg("p", wide), leg(fmt.Sprint(i), PerHour(1))))
		if err != nil {
			b.Fatal(err)
		}
		turn.Done()
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(l.Stats("p").Scopes); n != 10_001 {
			b.Fatal(n)
		}
	}
}

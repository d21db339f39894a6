package throttle

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (l *lab) passes(a Ask) error {
	a.MaxWait = 0
	turn, err := l.b.Wait(l.t.Context(), a)
	turn.Done()
	return err
}

func TestForgettingKeysHandsOutNoFullBucket(t *testing.T) {
	bubble(t, func(l *lab) {
		l.b.MaxScopes = 1000
		key := func(i int) Ask { return ask(leg("p"), leg(fmt.Sprint("key", i), PerHour(1))) }
		require.NoError(t, l.passes(key(0)))
		for i := 1; i <= 2000; i++ {
			_ = l.passes(key(i))
		}
		require.Equal(t, ReasonRate, l.refused(l.passes(key(0))).Reason)
		st := l.b.Stats("p")
		require.Len(t, st.Scopes, 1002)
		require.True(t, st.Scopes[1001].Overflow)
		require.Equal(t, uint64(1001), st.Overflow)

		time.Sleep(time.Hour)
		require.NoError(t, l.passes(key(3000)), "idle scopes make room")
		require.Equal(t, uint64(1001), l.b.Stats("p").Overflow)
	})
}

func TestForgettingKeysForgetsNoGate(t *testing.T) {
	bubble(t, func(l *lab) {
		l.b.MaxScopes = 10
		key := func(i int) Ask { return ask(leg("p"), leg(fmt.Sprint("key", i), PerSecond(1000))) }
		require.NoError(t, l.passes(key(0)))
		time.Sleep(time.Second)
		l.gate("key0", time.Hour)
		for i := range 1000 {
			_ = l.passes(key(i))
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, ReasonGate, l.refused(l.passes(key(0))).Reason)
		require.Zero(t, l.b.Stats("p").Overflow)
	})
}

func TestKeysUsedOnceAreForgotten(t *testing.T) {
	bubble(t, func(l *lab) {
		most := 0
		for i := range 100_000 {
			require.NoError(t, l.passes(ask(leg("p"), leg(fmt.Sprint(i), PerMinute(1)))))
			most = max(most, len(l.b.scopes))
			time.Sleep(36 * time.Millisecond)
		}
		require.LessOrEqual(t, most, 2*keep+2*int(time.Minute/(36*time.Millisecond)))
	})
}

func TestFirstLegsAreBoundedToo(t *testing.T) {
	bubble(t, func(l *lab) {
		l.b.MaxScopes = 100
		for i := range 1000 {
			_ = l.passes(ask(leg(fmt.Sprint(i), PerHour(1))))
		}
		require.Len(t, l.b.scopes, 100)
	})
}

func TestAHundredThousandKeysByDefault(t *testing.T) {
	b := NewBucket()
	for i := range 100_003 {
		_, err := b.Wait(t.Context(), Ask{Legs: []Leg{leg("p"), leg(fmt.Sprint(i), PerHour(1))}})
		require.Equal(t, i > 100_000, err != nil, "key %d: %v", i, err) // those above share one bucket
	}
	require.Equal(t, uint64(3), b.Stats("p").Overflow)
}

// TestMemoryOfKeys keeps a million keys with a plain rate within 200 bytes each, key
// and map included.
func TestMemoryOfKeys(t *testing.T) {
	n := 200_000
	if os.Getenv("OUTLAY_PROVE") != "" {
		n = 1_000_000
	}
	b := &Bucket{MaxScopes: n}
	before := heap()
	for i := range n {
		turn, err := b.Wait(t.Context(), Ask{Legs: []Leg{leg("p"), leg(fmt.Sprintf("key-%08d", i), PerMinute(1))}})
		require.NoError(t, err)
		turn.Done()
	}
	bytes := (heap() - before) / uint64(n)
	t.Logf("%d bytes a key", bytes)
	require.LessOrEqual(t, bytes, uint64(200))
	runtime.KeepAlive(b)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestRatesChangeWithoutARefill(t *testing.T) {
	bubble(t, func(l *lab) {
		with := func(r ...Rate) Ask { return ask(leg("p", r...)) }
		require.NoError(t, l.passes(with(Rate{N: 1, Per: time.Hour, Burst: 3})))
		for range 2 {
			require.NoError(t, l.passes(with(Rate{N: 2, Per: time.Hour, Burst: 100})), "what was left stays")
		}
		require.Error(t, l.passes(with(Rate{N: 2, Per: time.Hour, Burst: 100})), "a larger burst is not a full one")
		require.Error(t, l.passes(with(Rate{N: 2, Per: time.Minute, Burst: 100})), "another period starts empty")
		require.Error(t, l.passes(with(Rate{N: 2, Per: time.Hour, Burst: 100}, Rate{N: 5, Per: time.Second})))
		require.Error(t, l.passes(with(Rate{N: 5, Per: time.Second}, Rate{N: 2, Per: time.Hour, Burst: 100})), "their order does not matter")
		require.NoError(t, l.passes(with()), "no rate is no limit")
	})
}

func TestStrictRateThatIsAddedStartsEmpty(t *testing.T) {
	bubble(t, func(l *lab) {
		require.NoError(t, l.passes(ask(leg("p"))))
		r := Rate{N: 4, Per: time.Second, Strict: true}
		require.Equal(t, every(0, 250*time.Millisecond, 4), l.starts(l.calls(4, ask(leg("p", r)))))
	})
}

// Two strict rates of one period both go on with what the one before has counted.
func TestStrictRatesOfOnePeriodCountApart(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 4, Per: time.Second, Strict: true}
		l.starts(l.calls(2, ask(leg("p", r))))
		at := l.starts(l.calls(14, ask(leg("p", r, Rate{N: 10, Per: time.Second, Strict: true}))))
		require.Equal(t, []time.Duration{0, 0}, at[:2])
		for i, when := range at[2:] {
			require.Equal(t, time.Duration(i/4+1)*time.Second, when)
		}
	})
}

func TestWaiterTooHeavyForNewRatesLeaves(t *testing.T) {
	for _, wait := range []time.Duration{time.Hour, math.MaxInt64} {
		bubble(t, func(l *lab) {
			heavy := l.askWithin(wait, leg("p", Rate{N: 1, Per: time.Second, Burst: 10}))
			heavy.Legs[0].Weight = 10
			calls := l.calls(2, heavy)
			l.starts(calls[:1])
			_ = l.passes(ask(leg("p", Rate{N: 1, Per: time.Second, Burst: 5})))
			r := <-calls[1]
			require.Equal(t, ReasonNever, l.refused(r.err).Reason)
			require.Zero(t, r.at)
		})
	}
}

func TestWeightAboveTheBurstIsNeverPossible(t *testing.T) {
	bubble(t, func(l *lab) {
		for _, r := range []Rate{{N: 100, Per: time.Second, Burst: 100}, {N: 100, Per: time.Second, Strict: true}} {
			a := ask(leg(fmt.Sprint(r), r))
			a.Legs[0].Weight = 625
			w := l.refused(l.passes(a))
			require.Equal(t, ReasonNever, w.Reason)
			require.True(t, w.RetryAt.IsZero())
			a.Legs[0].Weight = 100
			require.NoError(t, l.passes(a))
		}
	})
}

package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStrictWindowAfterIdleTime(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 15, Per: time.Minute, Strict: true}
		l.starts(l.calls(1, ask(leg("p", r))))
		time.Sleep(10 * time.Minute)
		at := l.starts(l.calls(40, ask(leg("p", r))))
		for i, d := range at {
			require.Equal(t, 10*time.Minute+time.Duration(i/15)*time.Minute, d)
		}
	})
}

func TestStrictWindowWithABurstIsPaced(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 4, Per: time.Second, Strict: true, Burst: 1}
		require.Equal(t, every(0, 250*time.Millisecond, 9), l.starts(l.calls(9, ask(leg("p", r)))))
	})
}

func TestStrictWindowAfterAGateIsSpacedForOnePeriod(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 4, Per: time.Second, Strict: true}
		l.starts(l.calls(1, ask(leg("p", r))))
		l.gate("p", 10*time.Second)
		require.Equal(t, every(10*time.Second, 250*time.Millisecond, 6), l.starts(l.calls(6, ask(leg("p", r)))))
		time.Sleep(10 * time.Second)
		at := l.starts(l.calls(4, ask(leg("p", r))))
		require.Equal(t, at[0], at[3], "later periods are free again")
	})
}

func TestSlowLowersAStrictWindow(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 10, Per: 100 * time.Millisecond, Strict: true}
		l.starts(l.calls(1, ask(leg("p", r))))
		l.cap(Cap{Key: "p", Slow: true})
		time.Sleep(500 * time.Millisecond)
		at := l.starts(l.calls(8, ask(leg("p", r))))
		require.Equal(t, at[0], at[6])
		require.Equal(t, 100*time.Millisecond, at[7]-at[0])
	})
}

// exact is a window that keeps every turn.
type exact struct {
	n, per int64
	at     []int64
}

func (e *exact) admits(weight int, now int64) bool {
	in := int64(0)
	for _, a := range e.at {
		if a+e.per > now {
			in++
		}
	}
	return in+int64(weight) <= e.n
}

func TestWindowAgainstOneThatKeepsEverything(t *testing.T) {
	for _, n := range []int{1, 7, 1024, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, uint64(n)))
			r := Rate{N: n, Per: time.Second, Strict: true}
			var w window
			w.set(r)
			e := exact{n: int64(n), per: int64(r.Per)}
			now, admitted := int64(1), 0
			for range 4 * min(n, 2000) {
				now += rnd.Int64N(2 * int64(r.Per) / int64(min(n, 500)))
				weight := 1 + rnd.IntN(1+n/200)
				free := w.earliest(0, 0, weight, 1, now, 0) <= now
				if n <= exactTurns {
					require.Equal(t, e.admits(weight, now), free)
				}
				if !free {
					continue
				}
				require.True(t, e.admits(weight, now))
				w.take(weight, now)
				for range weight {
					e.at = append(e.at, now)
				}
				admitted++
				require.LessOrEqual(t, w.size(), exactTurns+1)
			}
			require.Positive(t, admitted)
		})
	}
}

// TestWindowForecast checks the closed form against turns taken one by one.
func TestWindowForecast(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		n := 1 + rnd.IntN(12)
		var w window
		w.set(Rate{N: n, Per: time.Second, Strict: true})
		now := int64(1)
		for range rnd.IntN(3 * n) {
			now += rnd.Int64N(int64(time.Second) / int64(n))
			if w.earliest(0, 0, 1, 1, now, 0) <= now {
				w.take(1, now)
			}
		}
		ahead := rnd.IntN(40)
		forecast := w.earliest(int64(ahead), int64(ahead), 1, 1, now, 0)
		for range ahead {
			now = w.earliest(0, 0, 1, 1, now, 0)
			w.take(1, now)
		}
		require.Equal(t, w.earliest(0, 0, 1, 1, now, 0), forecast)
	}
}

// A forecast may be too early, but never too late, whatever those ahead weigh: nobody is
// refused who could start in time. Where all weigh one and none has started it comes true, but
// for spacings that are no whole nanoseconds.
func TestWindowForecastBehindAGate(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 5000 {
		n := 1 + rnd.IntN(12)
		var w window
		w.set(Rate{N: n, Per: time.Second, Strict: true})
		now := int64(1)
		for range rnd.IntN(n+1) * (i % 4 / 2) {
			now += rnd.Int64N(int64(time.Second) / 12)
			w.take(1, now)
		}
		opens := now + rnd.Int64N(int64(2*time.Second))
		weights, ahead := make([]int, 1+rnd.IntN(30)), int64(0)
		for j := range weights {
			if weights[j] = 1; i%2 == 0 {
				weights[j] += rnd.IntN(n)
			}
			ahead += int64(weights[j])
		}
		last := len(weights) - 1
		forecast := max(opens, w.earliest(int64(last), ahead-int64(weights[last]), weights[last], 1, now, opens))
		now = opens
		w.pace(opens)
		for _, weight := range weights {
			now = w.earliest(0, 0, weight, 1, now, 0)
			w.take(weight, now)
		}
		require.LessOrEqual(t, forecast, now, "%d: %v of %d", i, weights, n)
		if i%4 == 1 {
			require.InDelta(t, now, forecast, 100)
		}
	}
}

func TestWindowGivesBack(t *testing.T) {
	var w window
	w.set(Rate{N: 2, Per: time.Second, Strict: true})
	w.take(1, 10)
	w.take(1, 20)
	require.Greater(t, w.earliest(0, 0, 1, 1, 30, 0), int64(30))
	w.giveBack(1, 10)
	require.Equal(t, int64(30), w.earliest(0, 0, 1, 1, 30, 0))
	w.take(1, 30)
	require.Equal(t, int64(20)+int64(time.Second), w.earliest(0, 0, 1, 1, 40, 0), "the turn at 20 still counts")
	w.giveBack(1, 10)
	w.giveBack(1, int64(time.Hour))
	require.Equal(t, 2, w.sum, "what was given back is not given back again")
}

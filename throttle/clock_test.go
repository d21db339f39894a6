package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// step moves the wall clock by d and leaves the monotonic one.
func (l *lab) step(d time.Duration) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.skew += d
}

func TestWallClockStepsChangeNoRate(t *testing.T) {
	bubble(t, func(l *lab) {
		a := ask(leg("p", Rate{N: 1, Per: time.Second, Burst: 3}))
		for range 3 {
			l.starts(l.calls(1, a))
			l.step(-11 * time.Second)
			l.step(22 * time.Second)
			l.step(-11 * time.Second)
		}
		calls := l.calls(2, a)
		l.step(11 * time.Second)
		l.step(-22 * time.Second)
		require.Equal(t, every(time.Second, time.Second, 2), l.starts(calls))
	})
}

func TestWallClockSetBackDoesNotKeepAGateClosed(t *testing.T) {
	bubble(t, func(l *lab) {
		l.gate("p", time.Minute)
		c := l.call(l.t.Context(), ask(leg("p", PerSecond(1))))
		l.step(-10 * time.Hour)
		require.Equal(t, time.Minute, (<-c).at)
	})
}

func TestGateIsOverWhenTheMachineSlept(t *testing.T) {
	bubble(t, func(l *lab) {
		a := ask(leg("p", Rate{N: 5, Per: time.Second, Burst: 50}))
		l.gate("p", 10*time.Minute)
		waits := l.calls(3, a)
		l.step(10 * time.Hour)
		time.Sleep(time.Second)
		require.Equal(t, time.Second+600*time.Millisecond, l.starts(l.calls(1, a))[0], "a newcomer opens the gate for those before it")
		require.Equal(t, every(time.Second, 200*time.Millisecond, 3), l.starts(waits))
	})
}

func TestSleepersNoticeThatTheMachineSlept(t *testing.T) {
	for name, legs := range map[string][]Leg{
		"first leg": {leg("p", PerSecond(5))}, "no rate": {leg("p")}, "another leg": {leg("q", PerSecond(5)), leg("p")},
	} {
		for n := range 2 { // a gate, and a cap of one turn
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				bubble(t, func(l *lab) {
					l.cap(Cap{Key: "p", N: n, Until: time.Now().Add(10 * time.Minute)})
					l.starts(l.calls(n, ask(legs...)))
					c := l.call(l.t.Context(), ask(legs...))
					l.step(10 * time.Hour)
					require.LessOrEqual(t, (<-c).at, 18*time.Second, "15 s, and a part of them where no rate is")
				})
			})
		}
	}
}

func TestCapIsOverWhenTheMachineSlept(t *testing.T) {
	bubble(t, func(l *lab) {
		l.cap(Cap{Key: "p", N: 1, Until: time.Now().Add(10 * time.Minute)})
		l.starts(l.calls(1, ask(leg("p"))))
		l.step(10 * time.Hour)
		require.NoError(t, (<-l.call(l.t.Context(), Ask{Legs: []Leg{leg("p")}})).err)
	})
}

func TestGateLastsAtMostAMonth(t *testing.T) {
	bubble(t, func(l *lab) {
		l.gate("p", 10*365*24*time.Hour)
		_, err := l.b.Wait(l.t.Context(), Ask{Legs: []Leg{leg("p")}})
		require.Equal(t, 31*24*time.Hour, l.refused(err).RetryAt.Sub(l.begin))
	})
}

package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (l *lab) gate(key string, d time.Duration) {
	l.t.Helper()
	l.cap(Cap{Key: key, Until: time.Now().Add(d), Cause: CauseThrottled})
}

func TestGateStopsAllAndTheyLeaveAtTheRate(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 5, Per: time.Second, Burst: 50}
		l.starts(l.calls(1, ask(leg("p", r))))
		l.gate("p", 60*time.Second)
		calls := l.calls(40, ask(leg("p", r)))
		require.Equal(t, every(60*time.Second, 200*time.Millisecond, 40), l.starts(calls))
	})
}

func TestGateOnlyMovesLater(t *testing.T) {
	bubble(t, func(l *lab) {
		l.gate("p", 60*time.Second)
		l.gate("p", 30*time.Second)
		l.cap(Cap{Key: "p", N: 5, Until: time.Now().Add(10 * time.Second)})
		require.Equal(t, []time.Duration{time.Minute}, l.starts(l.calls(1, ask(leg("p", PerSecond(5))))))
	})
}

func TestGateWithoutARateSpreadsTheWaiters(t *testing.T) {
	bubble(t, func(l *lab) {
		l.gate("p", 10*time.Second)
		at := l.starts(l.calls(20, ask(leg("p"))))
		distinct := map[time.Duration]bool{}
		for i, d := range at {
			require.GreaterOrEqual(t, d, 10*time.Second)
			require.LessOrEqual(t, d, 12*time.Second)
			require.True(t, i == 0 || at[i-1] <= d, "not in order: %v", at)
			distinct[d] = true
		}
		require.GreaterOrEqual(t, len(distinct), 15)
	})
}

func TestOneSendersGateDoesNotStopTheOthers(t *testing.T) {
	bubble(t, func(l *lab) {
		sender := func(s string) Ask { return ask(leg("p", PerSecond(10)), leg(s, PerSecond(1))) }
		l.gate("closed", 30*time.Minute)
		held := l.calls(3, ask(leg("p", PerSecond(10)), leg("closed", PerSecond(1))))
		require.Equal(t, []time.Duration{0}, l.starts(l.calls(1, sender("a"))))
		require.Equal(t, []time.Duration{100 * time.Millisecond}, l.starts(l.calls(1, sender("b"))))
		l.cap(Cap{Key: "closed", Reopen: true})
		require.Equal(t, []time.Duration{200 * time.Millisecond, 1200 * time.Millisecond, 2200 * time.Millisecond}, l.starts(held))
	})
}

func TestCapAdmitsWhatIsLeft(t *testing.T) {
	bubble(t, func(l *lab) {
		l.cap(Cap{Key: "p", N: 2, Until: time.Now().Add(10 * time.Second), Cause: CauseRemaining})
		r := Rate{N: 100, Per: time.Second, Burst: 100}
		at := l.starts(l.calls(4, ask(leg("p", r))))
		require.Equal(t, []time.Duration{0, 0, 10 * time.Second, 10*time.Second + 10*time.Millisecond}, at)
	})
}

func TestSlowLowersTheRateAndItRecovers(t *testing.T) {
	bubble(t, func(l *lab) {
		l.starts(l.calls(1, ask(leg("p", PerSecond(10)))))
		l.cap(Cap{Key: "p", Slow: true})
		at := l.starts(l.calls(20, ask(leg("p", PerSecond(10)))))
		require.InDelta(t, 1.0/7, at[0].Seconds(), 1e-6)
		require.InDelta(t, 2.0/7, at[1].Seconds(), 1e-6)
		time.Sleep(20 * time.Second)
		calls := l.calls(2, ask(leg("p", PerSecond(10))))
		s := l.starts(calls)
		require.Equal(t, 100*time.Millisecond, s[1]-s[0])
	})
}

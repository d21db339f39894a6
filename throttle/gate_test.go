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

// Who was let into the queue of a gate could start when it opens. The spreading of the
// waiters must not make anybody late.
func TestSpreadingMakesNobodyLate(t *testing.T) {
	for name, within := range map[string][]time.Duration{
		"alone":                       {10*time.Second + 100*time.Millisecond},
		"alone, to the instant":       {10 * time.Second},
		"all":                         {10500 * time.Millisecond, 10500 * time.Millisecond, 10500 * time.Millisecond},
		"one behind the patient ones": {time.Hour, time.Hour, time.Hour, 10300 * time.Millisecond, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				bubble(t, func(l *lab) {
					l.gate("p", 10*time.Second)
					var calls []<-chan result
					for _, d := range within {
						calls = append(calls, l.calls(1, l.askWithin(d, leg("p")))...)
					}
					for i, at := range l.starts(calls) {
						require.GreaterOrEqual(t, at, 10*time.Second)
						require.LessOrEqual(t, at, within[i])
					}
				})
			}
		})
	}
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

func TestCapsOfOneWindowKeepTheLeast(t *testing.T) {
	for name, c := range map[string]struct {
		second Cap // 10 turns until 60 s came first
		passes int
		until  time.Duration
	}{
		"fewer":                         {Cap{N: 3, Until: bubbleTime(60)}, 3, 60 * time.Second},
		"more, as it came out of order": {Cap{N: 30, Until: bubbleTime(61)}, 10, 61 * time.Second},
		"another window, tighter":       {Cap{N: 5, Until: bubbleTime(600)}, 5, 600 * time.Second},
		"another window, wider":         {Cap{N: 50, Until: bubbleTime(120)}, 10, 60 * time.Second},
		"nothing left":                  {Cap{N: 0, Until: bubbleTime(60)}, 0, 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *lab) {
				l.cap(Cap{Key: "p", N: 10, Until: bubbleTime(60)})
				c.second.Key = "p"
				l.cap(c.second)
				passed := 0
				for l.passes(ask(leg("p"))) == nil {
					passed++
				}
				require.Equal(t, c.passes, passed)
				_, err := l.b.Wait(l.t.Context(), Ask{Legs: []Leg{leg("p")}})
				require.Equal(t, c.until, l.refused(err).RetryAt.Sub(l.begin))
			})
		})
	}
}

// bubbleTime is some seconds after the instant at which every bubble begins.
func bubbleTime(seconds int) time.Time {
	return time.Date(2000, 1, 1, 0, 0, seconds, 0, time.UTC)
}

func TestCancelledTurnLeavesTheCap(t *testing.T) {
	bubble(t, func(l *lab) {
		l.cap(Cap{Key: "p", N: 1, Until: bubbleTime(60)})
		turn, err := l.b.Wait(l.t.Context(), ask(leg("p")))
		require.NoError(t, err)
		next := l.call(l.t.Context(), ask(leg("p")))
		turn.Cancel()
		require.Zero(t, (<-next).at)
		require.Error(t, l.passes(ask(leg("p"))))
	})
}

func TestCancelAfterAGateGivesNothingBack(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 1, Per: time.Second, Burst: 5}
		turn, err := l.b.Wait(l.t.Context(), ask(leg("p", r)))
		require.NoError(t, err)
		l.gate("p", 10*time.Second)
		time.Sleep(10 * time.Second)
		calls := l.calls(2, ask(leg("p", r)))
		turn.Cancel()
		require.Equal(t, every(10*time.Second, time.Second, 2), l.starts(calls))
	})
}

func TestReopenedBucketIsAlmostEmpty(t *testing.T) {
	bubble(t, func(l *lab) {
		r := Rate{N: 10, Per: time.Second, Burst: 50}
		l.starts(l.calls(1, ask(leg("p", r))))
		l.gate("p", 30*time.Minute)
		calls := l.calls(3, ask(leg("p", r)))
		time.Sleep(time.Minute)
		l.cap(Cap{Key: "p", Reopen: true})
		require.Equal(t, every(time.Minute, 100*time.Millisecond, 3), l.starts(calls))
	})
}

func TestCapsWithoutSenseChangeNothing(t *testing.T) {
	bubble(t, func(l *lab) {
		require.Error(t, l.b.Cap(l.t.Context(), Cap{Until: bubbleTime(60)}))
		require.Error(t, l.b.Cap(l.t.Context(), Cap{Key: "p", N: -1, Until: bubbleTime(60)}))
		l.cap(Cap{Key: "p"})
		l.cap(Cap{Key: "p", Until: bubbleTime(-60)})
		l.cap(Cap{Key: "p", N: 3, Until: bubbleTime(0)})
		l.cap(Cap{Key: "q", Reopen: true})
		require.NoError(t, l.passes(ask(leg("p"))))
		require.Empty(t, l.b.Stats("q"))
	})
}

func TestSlowNeverFallsBelowAHundredth(t *testing.T) {
	bubble(t, func(l *lab) {
		l.starts(l.calls(1, ask(leg("p", PerSecond(100)))))
		for range 100 {
			l.cap(Cap{Key: "p", Slow: true})
		}
		require.InDelta(t, 0.01, l.b.Stats("p").Scopes[0].Effective, 1e-9)
		time.Sleep(10 * time.Second)
		require.InDelta(t, 0.21, l.b.Stats("p").Scopes[0].Effective, 1e-9)
		time.Sleep(time.Minute)
		require.InDelta(t, 1, l.b.Stats("p").Scopes[0].Effective, 0)
	})
}

// TestSlowForecastKnowsTheRecovery starts calls by their forecasts: at an hourly rate,
// slowed to a hundredth, the next turn is due when the rate is back.
func TestSlowForecastKnowsTheRecovery(t *testing.T) {
	bubble(t, func(l *lab) {
		a := ask(leg("p", PerMinute(1)))
		l.starts(l.calls(1, a))
		for range 100 {
			l.cap(Cap{Key: "p", Slow: true})
		}
		var due time.Time
		a.OnQueue = func(f Forecast) { due = f.Start }
		c := l.call(l.t.Context(), a)
		require.InDelta(t, due.Sub(l.begin), (<-c).at, 2)
		require.Less(t, due.Sub(l.begin), 90*time.Second)
	})
}

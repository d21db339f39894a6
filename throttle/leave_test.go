package throttle

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (l *lab) askWithin(d time.Duration, legs ...Leg) Ask { return Ask{Legs: legs, MaxWait: d} }

func TestForecastTellsWhenAndWhy(t *testing.T) {
	bubble(t, func(l *lab) {
		a := ask(leg("p", PerSecond(1)))
		l.calls(3, a)
		var got Forecast
		a.OnQueue = func(f Forecast) {
			l.b.Stats("p") // no lock is held
			got = f
		}
		c := l.call(l.t.Context(), a)
		require.Equal(t, Forecast{Start: l.begin.Add(3 * time.Second), Wait: 3 * time.Second, Ahead: 2, Cause: ReasonRate}, got)
		require.Equal(t, 3*time.Second, (<-c).at)
		l.gate("p", time.Minute)
		l.call(l.t.Context(), a)
		require.Equal(t, ReasonGate, got.Cause)
		require.Equal(t, time.Minute, got.Wait)
		time.Sleep(2 * time.Minute)
	})
}

// What is forecast for a long line comes true, also behind a gate.
func TestForecastsComeTrue(t *testing.T) {
	for name, legs := range map[string][]Leg{
		"rate":              {leg("p", PerSecond(2))},
		"window":            {leg("p", Rate{N: 3, Per: 2 * time.Second, Strict: true})},
		"window and bucket": {leg("p", Rate{N: 4, Per: 4 * time.Second, Strict: true, Burst: 2})},
		"two rates":         {leg("p", PerSecond(10), Rate{N: 6, Per: time.Minute, Burst: 6})},
		"two legs":          {leg("q", PerSecond(2)), leg("p", Rate{N: 1, Per: time.Second, Burst: 3})},
		"window of a leg":   {leg("q", PerSecond(100)), leg("p", Rate{N: 3, Per: 5 * time.Second, Strict: true})},
	} {
		for _, closed := range []time.Duration{0, 7 * time.Second} {
			t.Run(fmt.Sprint(name, closed), func(t *testing.T) {
				bubble(t, func(l *lab) {
					a := ask(legs...)
					l.starts(l.calls(1, a))
					if closed > 0 {
						l.gate("p", closed)
					}
					var said []time.Duration
					var calls []<-chan result
					for range 14 {
						f, err := l.b.Forecast(a)
						require.NoError(t, err)
						said = append(said, f.Start.Sub(l.begin))
						calls = append(calls, l.call(l.t.Context(), a))
					}
					for i, at := range l.starts(calls) {
						require.InDelta(t, at, said[i], float64(50*time.Millisecond), "call %d", i)
					}
				})
			})
		}
	}
}

func TestWaiterLeavesWhenAGateOutlastsIt(t *testing.T) {
	bubble(t, func(l *lab) {
		a := l.askWithin(30*time.Second, leg("p", PerMinute(3)))
		calls := l.calls(2, a)
		require.NoError(t, (<-calls[0]).err)
		time.Sleep(5 * time.Second)
		l.gate("p", time.Minute)
		r := <-calls[1]
		require.Equal(t, 5*time.Second, r.at)
		w := l.refused(r.err)
		require.Equal(t, ReasonGate, w.Reason)
		require.Equal(t, 65*time.Second, w.RetryAt.Sub(l.begin))
	})
}

func TestWaitersLeaveWhenTheRateIsLowered(t *testing.T) {
	for name, lower := range map[string]func(*lab){
		"configured": func(l *lab) { l.call(l.t.Context(), l.askWithin(0, leg("p", PerMinute(1)))) },
		"slow":       func(l *lab) { l.cap(Cap{Key: "p", Slow: true}) },
		"cap":        func(l *lab) { l.cap(Cap{Key: "p", N: 2, Until: time.Now().Add(time.Hour)}) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *lab) {
				calls := l.calls(6, l.askWithin(5*time.Second, leg("p", PerSecond(1))))
				time.Sleep(500 * time.Millisecond)
				lower(l)
				last := <-calls[5]
				require.Equal(t, 500*time.Millisecond, last.at)
				require.True(t, l.refused(last.err).RetryAt.Sub(l.begin) > 5*time.Second)
				for _, c := range calls[:5] {
					<-c
				}
			})
		})
	}
}

func TestWaiterLeavesWhenItIsOvertaken(t *testing.T) {
	bubble(t, func(l *lab) {
		bulk := l.askWithin(2*time.Second, leg("p", PerSecond(1)))
		bulk.Priority = Bulk
		calls := l.calls(3, bulk)
		time.Sleep(100 * time.Millisecond)
		critical := l.askWithin(2*time.Second, leg("p", PerSecond(1)))
		critical.Priority = Critical
		c := l.call(l.t.Context(), critical)
		last := <-calls[2]
		require.Equal(t, 100*time.Millisecond, last.at, "the second bulk call cannot start within its two seconds any more")
		require.Equal(t, ReasonRate, l.refused(last.err).Reason)
		require.Equal(t, time.Second, (<-c).at)
		require.Equal(t, []time.Duration{0, 2 * time.Second}, l.starts(calls[:2]))
	})
}

func TestWaiterForASlotLeavesBeforeItsDeadline(t *testing.T) {
	for left, early := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Millisecond, 50 * time.Millisecond: 5 * time.Millisecond} {
		t.Run(left.String(), func(t *testing.T) {
			bubble(t, func(l *lab) {
				held, err := l.b.Wait(l.t.Context(), ask(Leg{Key: "p", Slots: 1}))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(l.t.Context(), left)
				defer cancel()
				r := <-l.call(ctx, ask(Leg{Key: "p", Slots: 1}))
				require.InDelta(t, left-early, r.at, 2)
				require.Equal(t, ReasonDeadline, l.refused(r.err).Reason)
				require.ErrorIs(t, r.err, context.DeadlineExceeded)
				require.True(t, l.refused(r.err).RetryAt.IsZero())
				held.Done()
			})
		})
	}
}

func TestWaiterForASlotLeavesAfterMaxWait(t *testing.T) {
	bubble(t, func(l *lab) {
		held, err := l.b.Wait(l.t.Context(), ask(Leg{Key: "p", Slots: 1}))
		require.NoError(t, err)
		r := <-l.call(l.t.Context(), l.askWithin(7*time.Second, Leg{Key: "p", Slots: 1}))
		require.Equal(t, 7*time.Second, r.at)
		require.Equal(t, ReasonSlots, l.refused(r.err).Reason)
		held.Done()
	})
}

// Whom a slot would not help in time does not wait for one.
func TestASlotThatIsOfNoUseIsNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		legs   []Leg
		gate   string
		reason Reason
		at     time.Duration
	}{
		"gate":                {[]Leg{{Key: "p", Slots: 1}}, "p", ReasonGate, time.Hour},
		"gate of another leg": {[]Leg{{Key: "p", Slots: 1}, leg("s")}, "s", ReasonGate, time.Hour},
		"rate":                {[]Leg{{Key: "p", Slots: 1, Rates: []Rate{PerHour(1)}}}, "", ReasonRate, time.Hour},
		"rate of another leg": {[]Leg{{Key: "p", Slots: 1}, leg("s", Rate{N: 1, Per: time.Hour, Strict: true})}, "", ReasonRate, time.Hour},
		"slot of another leg": {[]Leg{leg("p", PerHour(1)), {Key: "s", Slots: 1}}, "", ReasonRate, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *lab) {
				held, err := l.b.Wait(l.t.Context(), ask(c.legs...))
				require.NoError(t, err)
				defer held.Done()
				if c.gate != "" {
					l.gate(c.gate, time.Hour)
				}
				f, err := l.b.Forecast(l.askWithin(59*time.Minute, c.legs...))
				require.Error(t, err)
				require.Equal(t, Forecast{Cause: ReasonSlots}, f)
				r := <-l.call(l.t.Context(), l.askWithin(59*time.Minute, c.legs...))
				require.Zero(t, r.at)
				require.Equal(t, c.reason, l.refused(r.err).Reason)
				require.Equal(t, c.at, l.refused(r.err).RetryAt.Sub(l.begin))
			})
		})
	}
}

// While somebody waits for a slot, the turn that the rate would give it behind others moves
// away. Nobody looks until its time is over: all of a long line would, again and again.
func TestWhoWaitsForASlotIsLookedAtOnce(t *testing.T) {
	bubble(t, func(l *lab) {
		a := l.askWithin(25*time.Second, Leg{Key: "p", Slots: 1, Rates: []Rate{{N: 1, Per: 10 * time.Second}}})
		held, err := l.b.Wait(l.t.Context(), a)
		require.NoError(t, err)
		calls := l.calls(2, a) // by the rate at 10 and 20 s
		for range 16 {
			time.Sleep(time.Second)
			for _, alarm := range l.b.alarms {
				require.True(t, alarm.waiter == nil || alarm.when == alarm.waiter.latest)
			}
		}
		time.Sleep(time.Second)
		held.Done()
		require.Equal(t, 17*time.Second, (<-calls[0]).at)
		late := <-calls[1]
		require.Equal(t, 25*time.Second, late.at)
		require.Equal(t, ReasonRate, l.refused(late.err).Reason)
	})
}

func TestManyWaitersGiveUpAndLeaveNothing(t *testing.T) {
	bubble(t, func(l *lab) {
		ctx, cancel := context.WithCancel(l.t.Context())
		l.starts(l.calls(1, ask(leg("p", PerHour(1)))))
		var calls []<-chan result
		for range 1000 {
			a := ask(leg("p", PerHour(1)))
			a.MaxWait = 2000 * time.Hour
			calls = append(calls, l.call(ctx, a))
		}
		time.Sleep(time.Minute)
		cancel()
		for _, c := range calls {
			r := <-c
			require.ErrorIs(t, r.err, context.Canceled)
			require.Equal(t, time.Minute, r.at)
		}
	})
}

func TestTurnGrantedToACallerWhoGaveUpIsGivenBack(t *testing.T) {
	bubble(t, func(l *lab) {
		left := 0
		for i := range 40 { // chance decides whether the caller sees the turn or its end first
			a := ask(leg(fmt.Sprint("p", i), PerHour(1)))
			ctx, cancel := context.WithCancel(l.t.Context())
			a.OnQueue = func(Forecast) {
				// The turn is granted while the caller is busy here, and then it gives up.
				l.cap(Cap{Key: a.Legs[0].Key, Reopen: true})
				cancel()
			}
			l.gate(a.Legs[0].Key, 30*time.Minute)
			if r := <-l.call(ctx, a); r.err != nil {
				require.ErrorIs(t, r.err, context.Canceled)
				left++
				_, err := l.b.Wait(l.t.Context(), Ask{Legs: a.Legs})
				require.NoError(t, err, "the turn was not given back")
			}
		}
		require.Positive(t, left)
	})
}

func TestChurnLeavesTheRateToThoseWhoStay(t *testing.T) {
	bubble(t, func(l *lab) {
		turns := make(chan int)
		for range 20 {
			go func() {
				n := 0
				for l.at() < 10*time.Second {
					ctx, cancel := context.WithCancel(l.t.Context())
					stop := time.AfterFunc(50*time.Millisecond, cancel)
					if turn, err := l.b.Wait(ctx, ask(leg("p", PerSecond(100)))); err == nil {
						n++
						turn.Done()
					}
					stop.Stop()
					cancel()
				}
				turns <- n
			}()
		}
		total := 0
		for range 20 {
			total += <-turns
		}
		require.GreaterOrEqual(t, total, 980)
		require.LessOrEqual(t, total, 1021)
	})
}

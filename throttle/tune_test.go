package throttle

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSetRetimesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := NewBucket(), time.Now()
		slow := Leg{Key: "api", Rates: []Rate{PerMinute(1)}}
		_, err := b.Wait(t.Context(), Ask{Legs: []Leg{slow}})
		require.NoError(t, err)
		done := make(chan time.Duration, 1)
		go func() {
			_, err := b.Wait(t.Context(), Ask{Legs: []Leg{slow}, MaxWait: time.Hour})
			require.NoError(t, err)
			done <- time.Since(start)
		}()
		time.Sleep(time.Second)
		require.NoError(t, b.Set(Leg{Key: "api", Rates: []Rate{PerSecond(100)}}))
		require.LessOrEqual(t, <-done, 1020*time.Millisecond)
		require.Error(t, b.Set(Leg{Key: "api", Rates: []Rate{{}}}))
	})
}

func TestAdjustGivesBackOrTakesAsDebt(t *testing.T) {
	for name, rate := range map[string]Rate{"tokens": {N: 100, Per: time.Minute, Burst: 100}, "window": {N: 100, Per: time.Minute, Strict: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leg := Leg{Key: "api", Rates: []Rate{rate}, Weight: 60}
				now := func(b *Bucket) error { _, err := b.Wait(t.Context(), Ask{Legs: []Leg{leg}}); return err }

				b := NewBucket()
				turn, err := b.Wait(t.Context(), Ask{Legs: []Leg{leg}})
				require.NoError(t, err)
				require.Error(t, now(b), "40 are left")
				b.Adjust(turn, "api", 10)
				require.NoError(t, now(b), "90 were left")

				b = NewBucket()
				turn, err = b.Wait(t.Context(), Ask{Legs: []Leg{leg}})
				require.NoError(t, err)
				b.Adjust(turn, "api", 260)
				time.Sleep(time.Minute)
				require.Equal(t, rate.Strict, now(b) == nil, "a bucket pays its debt of 160 first")
				turn.Done()
				b.Adjust(turn, "api", 0)
			})
		})
	}
}

// The real weight of a call is a number from an answer: it may be absurd.
func TestAnAbsurdWeightKeepsNobodyUp(t *testing.T) {
	b, l := NewBucket(), Leg{Key: "api", Rates: []Rate{PerSecond(1), {N: 10, Per: time.Second, Strict: true}}}
	turn, err := b.Wait(t.Context(), Ask{Legs: []Leg{l}})
	require.NoError(t, err)
	begin := time.Now()
	b.Adjust(turn, "api", math.MaxInt)
	_, err = b.Wait(t.Context(), Ask{Legs: []Leg{l}})
	require.Less(t, time.Since(begin), 5*time.Second)
	var w *WaitError
	require.ErrorAs(t, err, &w)
	require.InDelta(t, math.MaxInt32, time.Until(w.RetryAt).Seconds(), 60)
	b.Adjust(turn, "api", 1)
	_, err = b.Wait(t.Context(), Ask{Legs: []Leg{l}, MaxWait: time.Minute})
	require.NoError(t, err, "and can be corrected")
}

func TestForecastTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBucket()
		ask := Ask{Legs: []Leg{{Key: "api", Rates: []Rate{PerSecond(1)}}}, MaxWait: time.Minute}
		for range 3 {
			f, err := b.Forecast(ask)
			require.NoError(t, err)
			require.Zero(t, f.Wait)
		}
		_, err := b.Wait(t.Context(), ask)
		require.NoError(t, err)
		for range 3 {
			f, err := b.Forecast(ask)
			require.NoError(t, err)
			require.Equal(t, time.Second, f.Wait)
			require.Equal(t, ReasonRate, f.Cause)
		}
		ask.MaxWait = 0
		_, err = b.Forecast(ask)
		require.Error(t, err)
		require.Zero(t, b.Stats("api").Queue)
	})
}

func TestAHookThatPanicsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBucket()
		ask := Ask{Legs: []Leg{{Key: "api", Slots: 1}}, MaxWait: time.Minute}
		one, err := b.Wait(t.Context(), ask)
		require.NoError(t, err)
		boom := ask
		boom.OnQueue = func(Forecast) { panic("hook") }
		require.PanicsWithValue(t, "hook", func() { _, _ = b.Wait(t.Context(), boom) })
		one.Done()
		_, err = b.Wait(t.Context(), ask)
		require.NoError(t, err)
	})
}

func TestADeadlineInTheFarFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
		defer cancel()
		b := NewBucket()
		for range 2 {
			_, err := b.Wait(ctx, Ask{Legs: []Leg{{Key: "api", Rates: []Rate{PerSecond(1)}}}, MaxWait: time.Minute})
			require.NoError(t, err)
		}
	})
}

// A provider that always says "5 more within a second" is not starved of calls, and one
// that counts fixed windows gets what each of them allows.
func TestStatedLimitsOfSlidingWindowsDoNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := NewBucket(), time.Now()
		ask := Ask{Legs: []Leg{{Key: "api", Rates: []Rate{PerSecond(10)}}}, MaxWait: time.Minute}
		sent := 0
		for time.Since(start) < 10*time.Second {
			turn, err := b.Wait(t.Context(), ask)
			require.NoError(t, err)
			sent++
			require.NoError(t, b.Cap(t.Context(), Cap{Key: "api", N: 5, Until: time.Now().Add(time.Second), Cause: CauseRemaining, Turn: turn}))
			turn.Done()
		}
		require.GreaterOrEqual(t, sent, 99)
	})
}

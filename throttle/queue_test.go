package throttle

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlotIsHeldUntilDone(t *testing.T) {
	bubble(t, func(l *lab) {
		a := ask(Leg{Key: "p", Slots: 1})
		first, err := l.b.Wait(l.t.Context(), a)
		require.NoError(t, err)
		next := l.call(l.t.Context(), a)
		time.Sleep(10 * time.Second)
		first.Done()
		first.Done()
		require.Equal(t, 10*time.Second, (<-next).at)
	})
}

func TestCriticalGoesFirstAndBulkStillGoes(t *testing.T) {
	bubble(t, func(l *lab) {
		bulk, critical := ask(leg("p", PerSecond(10))), ask(leg("p", PerSecond(10)))
		bulk.Priority, critical.Priority = Bulk, Critical
		low := l.calls(1000, bulk)
		time.Sleep(time.Second)
		high := <-l.call(l.t.Context(), critical)
		require.NoError(t, high.err)
		require.LessOrEqual(t, high.at, 1200*time.Millisecond)
		l.starts(low)
	})
}

func TestClassesShareUnderEndlessLoad(t *testing.T) {
	bubble(t, func(l *lab) {
		ctx, cancel := context.WithCancel(l.t.Context())
		counts := map[Priority]int{}
		var all []<-chan result
		for _, p := range []Priority{Critical, Normal, Bulk} {
			a := ask(leg("p", PerSecond(100)))
			a.Priority = p
			for range 300 {
				c := l.call(ctx, a)
				all = append(all, c)
			}
		}
		time.Sleep(2*time.Second + time.Millisecond)
		cancel()
		i := 0
		for _, p := range []Priority{Critical, Normal, Bulk} {
			for range 300 {
				if r := <-all[i]; r.err == nil {
					counts[p]++
				}
				i++
			}
		}
		require.Equal(t, 201, counts[Critical]+counts[Normal]+counts[Bulk])
		require.GreaterOrEqual(t, counts[Bulk], 20)
		require.GreaterOrEqual(t, counts[Normal], 20)
	})
}

func TestQueueIsBounded(t *testing.T) {
	bubble(t, func(l *lab) {
		l.b.MaxQueue = 100
		ctx, cancel := context.WithCancel(l.t.Context())
		calls := make([]<-chan result, 1000)
		for i := range calls {
			calls[i] = l.call(ctx, ask(leg("p", PerSecond(1))))
		}
		cancel()
		full, gone := 0, 0
		for _, c := range calls[1:] {
			r := <-c
			require.Zero(t, r.at)
			if r.err == context.Canceled {
				gone++
				continue
			}
			require.Equal(t, ReasonQueueFull, l.refused(r.err).Reason)
			full++
		}
		require.Equal(t, 100, gone)
		require.Equal(t, 899, full)
	})
}

func TestTwentyThousandWaitByDefault(t *testing.T) {
	bubble(t, func(l *lab) {
		a := ask(leg("p", PerHour(1)))
		a.MaxWait = 40_000 * time.Hour
		require.NoError(t, l.passes(a))
		ctx, cancel := context.WithCancel(l.t.Context())
		calls := make([]<-chan result, 20_000)
		for i := range calls {
			calls[i] = l.call(ctx, a)
		}
		require.Equal(t, ReasonQueueFull, l.refused((<-l.call(ctx, a)).err).Reason)
		cancel()
		for _, c := range calls {
			require.ErrorIs(t, (<-c).err, context.Canceled)
		}
	})
}

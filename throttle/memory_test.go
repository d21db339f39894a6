package throttle

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (b *Bucket) waiting(key string) int {
	q := b.Stats(key).Queue
	return q.Critical + q.Normal + q.Bulk
}

// TestMemoryOfWaiters holds what the bucket keeps for a waiter, on the real clock, to
// 512 bytes; a tenant that waits costs up to as much again.
func TestMemoryOfWaiters(t *testing.T) {
	for tenants, most := range map[int]uint64{1: 512, 1000: 512, 10_000: 1024} {
		t.Run(fmt.Sprint(tenants, " tenants"), func(t *testing.T) {
			const n = 10_000
			b, asks := NewBucket(), make([]Ask, n)
			for i := range asks {
				asks[i] = ofTenant(fmt.Sprint(i%tenants), leg("p", PerHour(1)))
				asks[i].MaxWait = 20_000 * time.Hour
			}
			ctx, cancel := context.WithCancel(t.Context())
			turn, err := b.Wait(ctx, asks[0])
			require.NoError(t, err)
			turn.Done()
			before := heap()
			ws := make([]*waiter, n)
			for i := range asks {
				ws[i] = b.queue(t, ctx, &asks[i])
			}
			bytes := (heap() - before) / n
			runtime.KeepAlive(asks)
			t.Logf("%d bytes a waiter", bytes)
			require.LessOrEqual(t, bytes, most)
			require.Equal(t, n, b.waiting("p"))
			cancel()
			for _, w := range ws {
				_, err := b.await(ctx, w)
				require.ErrorIs(t, err, context.Canceled)
			}
			require.Zero(t, b.waiting("p"))
			require.Zero(t, b.set, "the timer runs on")
		})
	}
}

// queue makes a call wait without a goroutine of its own.
func (b *Bucket) queue(tb testing.TB, ctx context.Context, a *Ask) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.tick()
	uses, err := b.resolve(a.Legs, nil, now)
	require.NoError(tb, err)
	w := b.newWaiter(a, uses, now)
	_, err = b.join(ctx, w, a, uses, now)
	require.NoError(tb, err)
	return w
}

func TestTenThousandWaitersStartInOrder(t *testing.T) {
	bubble(t, func(l *lab) {
		calls := l.calls(10_000, ask(leg("p", PerSecond(1000))))
		require.Equal(t, every(0, time.Millisecond, 10_000), l.starts(calls))
	})
}

func TestTurnsAllocateNothing(t *testing.T) {
	b := NewBucket()
	free, slot := Ask{Legs: []Leg{leg("p", wide), leg("s", wide)}}, Ask{Legs: []Leg{{Key: "p", Rates: []Rate{wide}, Slots: 1}}}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		for _, a := range []Ask{free, slot} {
			turn, err := b.Wait(t.Context(), a)
			if err != nil {
				t.Error(err)
			}
			turn.Done()
		}
	}))
}

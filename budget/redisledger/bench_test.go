package redisledger

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// much is a budget that no benchmark exhausts.
func much() budget.Budget {
	return budget.Budget{Name: "much", Limit: 1e9 * budget.Unit, Every: budget.Month}
}

// fill takes n holds and leaves them open.
func fill(b testing.TB, l *Ledger, n int) []budget.HoldID {
	all := make([]budget.HoldID, n)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				h := holdOf(much(), "0.01")
				if _, err := l.Hold(context.Background(), h); err != nil {
					b.Error(err)
					return
				}
				all[i] = h.ID
			}
		})
	}
	wg.Wait()
	return all
}

// BenchmarkHoldResolve is what one attempt waits for, with more and more holds open: the
// outcome of one is sent with the hold of the next.
func BenchmarkHoldResolve(b *testing.B) {
	for _, open := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint("open=", open), func(b *testing.B) {
			l := open1(b, redistest.Start(b).Client(b), Options{})
			fill(b, l, open)
			b.ReportAllocs()
			for b.Loop() {
				h := holdOf(much(), "0.01")
				if _, err := l.Hold(b.Context(), h); err != nil {
					b.Fatal(err)
				}
				if _, err := l.Resolve(b.Context(), h.ID, budget.Settled(budget.Unit/200)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRoundTrip is the floor: a script that does nothing.
func BenchmarkRoundTrip(b *testing.B) {
	client := redistest.Start(b).Client(b)
	script := redis.NewScript("return 1")
	b.ReportAllocs()
	for b.Loop() {
		if err := script.Run(b.Context(), client, []string{"k"}).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// memory is what the server uses.
func memory(t testing.TB, client *redis.Client) float64 {
	n, err := strconv.ParseFloat(redisstore.Field(client.Info(context.Background(), "memory").Val(), "used_memory"), 64)
	require.NoError(t, err)
	return n
}

func TestMemoryPerHold(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	fill(t, l, 1000) // the sets have their large form by now
	const n = 5000
	before := memory(t, client)
	all := fill(t, l, n)
	opened := memory(t, client)
	for _, id := range all {
		_, err := l.Resolve(t.Context(), id, budget.Settled(budget.Unit/200))
		require.NoError(t, err)
	}
	l.flush(t.Context())
	closed := memory(t, client)
	perOpen, perClosed := (opened-before)/n, (closed-before)/n
	t.Logf("Redis uses %.0f bytes per open hold, %.0f for 15 minutes after it ended", perOpen, perClosed)
	require.Less(t, perOpen, 1000.0)
	require.Less(t, perClosed, 1000.0)
}

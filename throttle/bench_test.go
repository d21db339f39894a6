package throttle

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// wide is a rate that a benchmark cannot use up.
var wide = Rate{N: 1_000_000_000, Per: time.Second, Burst: 1_000_000_000}

func BenchmarkBucket(b *testing.B) {
	for name, a := range map[string]Ask{
		"one leg":        ask(leg("p", wide)),
		"one leg, slots": ask(Leg{Key: "p", Rates: []Rate{wide}, Slots: 10}),
		"two rates":      ask(leg("p", wide, Rate{N: wide.N, Per: time.Minute, Burst: wide.N})),
		"three legs":     ask(leg("p", wide), leg("s", wide), leg("t", wide)),
	} {
		b.Run(name, func(b *testing.B) {
			l, ctx := NewBucket(), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				turn, err := l.Wait(ctx, a)
				if err != nil {
					b.Fatal(err)
				}
				turn.Done()
			}
		})
	}
}

func BenchmarkXTime(b *testing.B) {
	l, ctx := rate.NewLimiter(1e9, 1e9), context.Background()
	b.Run("Allow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Allow()
		}
	})
	b.Run("Wait", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = l.Wait(ctx)
		}
	})
}

func BenchmarkBucketKeyed(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n, " keys"), func(b *testing.B) {
			l, ctx := &Bucket{MaxScopes: n}, context.Background()
			asks := make([]Ask, n)
			for i := range asks {
				asks[i] = ask(leg(fmt.Sprintf("key-%07d", i), wide))
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				turn, err := l.Wait(ctx, asks[i%n])
				if err != nil {
					b.Fatal(err)
				}
				turn.Done()
				i += 7919
			}
		})
	}
}

// BenchmarkQueue is one call that joins a queue of 10,000 and leaves it again.
func BenchmarkQueue(b *testing.B) {
	for name, tenants := range map[string]int{"equals": 1, "100 tenants": 100, "10000 tenants": 10_000} {
		b.Run(name, func(b *testing.B) {
			l, ctx := NewBucket(), context.Background()
			askOf := func(i int) *Ask {
				a := ofTenant(fmt.Sprint(i%tenants), leg("p", PerHour(1)))
				a.MaxWait = 1 << 62
				return &a
			}
			for i := range 10_001 {
				if i == 0 {
					_, _ = l.Wait(ctx, *askOf(0))
					continue
				}
				l.queue(b, ctx, askOf(i))
			}
			gone, cancel := context.WithCancel(ctx)
			cancel()
			asks := make([]*Ask, 100)
			for i := range asks {
				asks[i] = askOf(i)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				w := l.queue(b, ctx, asks[i%100])
				_, _ = l.await(gone, w)
				i++
			}
		})
	}
}

// BenchmarkRefusal is a call that cannot start in time.
func BenchmarkRefusal(b *testing.B) {
	l, ctx := NewBucket(), context.Background()
	a := Ask{Legs: []Leg{leg("p", PerHour(1))}}
	_, _ = l.Wait(ctx, a)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Wait(ctx, a)
	}
}

// BenchmarkPacing is 64 callers at 200 a second for ten seconds of the real clock:
// the rate that is reached, and by how much 100 ms exceed their part of it.
func BenchmarkPacing(b *testing.B) {
	const rate, callers, seconds = 200, 64, 10
	for b.Loop() {
		l, begin := NewBucket(), time.Now()
		starts := make(chan time.Duration, 2*rate*seconds)
		ctx, cancel := context.WithTimeout(b.Context(), seconds*time.Second)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for {
					a := ask(leg("p", PerSecond(rate)))
					turn, err := l.Wait(ctx, a)
					if err != nil {
						return
					}
					starts <- time.Since(begin)
					turn.Done()
				}
			})
		}
		wg.Wait()
		cancel()
		close(starts)
		n, most := 0, 0
		per := map[time.Duration]int{}
		for at := range starts {
			n++
			per[at/(100*time.Millisecond)]++
			most = max(most, per[at/(100*time.Millisecond)])
		}
		b.ReportMetric(float64(n-1)/(rate*seconds), "of-rate")
		b.ReportMetric(float64(most-rate/10), "over-in-100ms")
		b.ReportMetric(0, "ns/op")
	}
}

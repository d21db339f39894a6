package throttle

import (
	"context"
	"fmt"
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

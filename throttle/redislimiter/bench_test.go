package redislimiter

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

var endless = throttle.Rate{N: 1_000_000, Per: time.Second, Burst: 1_000_000}

// BenchmarkTurn is a turn that is asked for alone, as slow rates and strict windows are.
func BenchmarkTurn(b *testing.B) {
	slow := throttle.Rate{N: 50 * 24 * 3600, Per: 24 * time.Hour, Burst: 1_000_000_000}
	strict := throttle.Rate{N: 1_000_000, Per: time.Second, Strict: true}
	b.Run("bucket", func(b *testing.B) {
		benchmark(b, open(b, redistest.Start(b).Client(b)), []throttle.Leg{leg("p", slow)})
	})
	b.Run("window", func(b *testing.B) {
		benchmark(b, open(b, redistest.Start(b).Client(b)), []throttle.Leg{leg("p", strict)})
	})
	b.Run("bucket, three legs", func(b *testing.B) {
		benchmark(b, open(b, redistest.Start(b).Client(b)), []throttle.Leg{leg("p", slow), leg("p/a", slow), leg("p/b", slow)})
	})
}

// BenchmarkTurnInBatches is a turn while calls come fast.
func BenchmarkTurnInBatches(b *testing.B) {
	benchmark(b, open(b, redistest.Start(b).Client(b)), []throttle.Leg{leg("p", endless)})
}

func benchmark(b *testing.B, l *Limiter, legs []throttle.Leg) {
	b.ReportAllocs()
	for b.Loop() {
		turn, err := now(b, l, legs...)
		if err != nil {
			b.Fatal(err)
		}
		turn.Done()
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

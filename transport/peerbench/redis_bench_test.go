package peerbench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/redisledger"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter"
)

// startRedis starts a redis-server of its own on loopback and returns a client. Without
// redis-server the benchmark is skipped, but never in CI.
func startRedis(b *testing.B) *redis.Client {
	b.Helper()
	path, err := exec.LookPath("redis-server")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		b.Fatal("redis-server is not installed")
	case err != nil:
		b.Skip("NOT MEASURED: redis-server is not installed (apt-get install redis-server)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	host, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		b.Fatal(err)
	}
	server := exec.Command(path, "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--logfile", filepath.Join(dir, "log"))
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 32})
	b.Cleanup(func() {
		_ = client.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	})
	for range 1000 {
		if client.Ping(context.Background()).Err() == nil {
			return client
		}
		time.Sleep(5 * time.Millisecond) // nothing tells when a server listens
	}
	b.Fatal("redis-server does not answer")
	return nil
}

// turns is a rate that no benchmark uses up. Up to 50 a second each turn is asked for
// alone; above, a twentieth of a second's turns is taken at once, here 50.
func turns(perSecond int) throttle.Rate {
	return throttle.Rate{N: perSecond * 24 * 3600, Per: 24 * time.Hour, Burst: 1_000_000_000}
}

func openLimiter(b *testing.B, client *redis.Client) *redislimiter.Limiter {
	b.Helper()
	l, err := redislimiter.New(client, redislimiter.Options{Timeout: 5 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// outlayTurn returns a function that takes one turn of ours.
func outlayTurn(b *testing.B, client *redis.Client, rate throttle.Rate) func() {
	l := openLimiter(b, client)
	ask := throttle.Ask{Legs: []throttle.Leg{{Key: "twilio-sms", Rates: []throttle.Rate{rate}}}}
	return func() {
		turn, err := l.Wait(b.Context(), ask)
		if err != nil {
			b.Fatal(err)
		}
		turn.Done()
	}
}

// peerRate is the same for redis_rate.
func peerRate(perSecond int) redis_rate.Limit {
	return redis_rate.Limit{Rate: perSecond * 24 * 3600, Period: 24 * time.Hour, Burst: 1_000_000_000}
}

// peerNothing is a rate at which redis_rate has nothing to keep: the turn is over within
// the precision of its numbers, so that it answers and writes nothing down.
var peerNothing = redis_rate.Limit{Rate: 1_000_000_000, Burst: 1_000_000_000, Period: time.Second}

// peerTurn returns a function that takes one turn of redis_rate.
func peerTurn(b *testing.B, client *redis.Client, limit redis_rate.Limit) func() {
	l := redis_rate.NewLimiter(client)
	b.Cleanup(func() {
		kept := client.Exists(context.Background(), "rate:twilio-sms").Val() == 1
		if kept != (limit != peerNothing) {
			b.Errorf("redis_rate keeps its turns: %v", kept)
		}
	})
	return func() {
		r, err := l.Allow(b.Context(), "twilio-sms", limit)
		if err != nil || r.Allowed != 1 {
			b.Fatal(r, err)
		}
	}
}

func repeat(b *testing.B, do func()) {
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
}

// beside takes both from one server, in turn, so that a busy machine slows both alike: x
// is the median time of a turn of redis_rate by that of one of ours.
func beside(b *testing.B, rate throttle.Rate, peer redis_rate.Limit, each int) {
	client := startRedis(b)
	both := [2]func(){outlayTurn(b, client, rate), peerTurn(b, client, peer)}
	var took [2][]time.Duration
	for b.Loop() {
		for i, do := range both {
			begin := time.Now()
			for range each {
				do()
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	ours, theirs := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(float64(theirs)/float64(ours), "x")
	b.ReportMetric(float64(ours)/float64(each), "ns/turn")
}

// roundTrip is the floor of both: a script that does nothing.
func roundTrip(b *testing.B) {
	client, script := startRedis(b), redis.NewScript("return 1")
	b.ReportAllocs()
	for b.Loop() {
		if err := script.Run(b.Context(), client, []string{"k"}).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRedis sets turns through Redis beside those of redis_rate, and shows what a
// hold and its outcome cost while few or many holds are open.
//
// What a hold and its outcome through Redis cost, by the profiles (Redis 7.0.15, one core):
// five parts of six are the server's, for two scripts with 13 and 10 commands on what must
// not be decided apart (generation, owner, hold, what is frozen, account, windows), each
// O(1), of which the interpreter takes four fifths; the client's write and read of 1.5 KiB
// are the system's; and of the 170 allocations a third is go-redis' copy of the arguments,
// which it takes as an any each, and 40 % are the arguments. The outcome waits for no round
// trip of its own.
func BenchmarkRedis(b *testing.B) {
	b.Run("floor", roundTrip)
	b.Run("outlay_single", func(b *testing.B) { repeat(b, outlayTurn(b, startRedis(b), turns(50))) })
	b.Run("redis_rate", func(b *testing.B) { repeat(b, peerTurn(b, startRedis(b), peerRate(50))) })
	b.Run("redis_rate_nothing", func(b *testing.B) { repeat(b, peerTurn(b, startRedis(b), peerNothing)) })
	b.Run("outlay_batch50", func(b *testing.B) { repeat(b, outlayTurn(b, startRedis(b), turns(1000))) })
	b.Run("beside_single", func(b *testing.B) { beside(b, turns(50), peerRate(50), 1) })
	b.Run("beside_single_nothing", func(b *testing.B) { beside(b, turns(50), peerNothing, 1) })
	b.Run("beside_batch50", func(b *testing.B) { beside(b, turns(1000), peerRate(1000), 50) })
	for _, open := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("outlay_hold_resolve/open=%d", open), func(b *testing.B) { holdAndResolve(b, open) })
	}
}

var seq uint64

func holdOf() budget.Hold {
	seq++
	much := budget.Budget{Name: "sms-month", Limit: 1e9 * budget.Unit, Every: budget.Month}
	return budget.Hold{ID: budget.HoldID{Boot: 1, Seq: seq}, Provider: "twilio-sms", Legs: []budget.Leg{{Budget: much, Amount: budget.Unit / 100}}}
}

func holdAndResolve(b *testing.B, open int) {
	l, err := redisledger.New(startRedis(b), redisledger.Options{Timeout: 5 * time.Second, Learn: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	fill(b, l, open)
	b.ReportAllocs()
	for b.Loop() {
		h := holdOf()
		if _, err := l.Hold(b.Context(), h); err != nil {
			b.Fatal(err)
		}
		if _, err := l.Resolve(b.Context(), h.ID, budget.Settled(budget.Unit/200)); err != nil {
			b.Fatal(err)
		}
	}
}

// fill leaves n holds open.
func fill(b *testing.B, l *redisledger.Ledger, n int) {
	holds := make(chan budget.Hold)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for h := range holds {
				if _, err := l.Hold(context.Background(), h); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for range n {
		holds <- holdOf()
	}
	close(holds)
	wg.Wait()
}

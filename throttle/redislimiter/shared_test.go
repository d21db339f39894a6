package redislimiter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// rounds is how often to repeat something: more if OUTLAY_PROVE is set.
func rounds(usual, prove int) int {
	if os.Getenv("OUTLAY_PROVE") != "" {
		return prove
	}
	return usual
}

func leg(key string, r ...throttle.Rate) throttle.Leg { return throttle.Leg{Key: key, Rates: r} }

func now(t testing.TB, l throttle.Limiter, legs ...throttle.Leg) (throttle.Turn, error) {
	return l.Wait(t.Context(), throttle.Ask{Legs: legs})
}

func reasonOf(t testing.TB, err error) throttle.Reason {
	t.Helper()
	var e *throttle.WaitError
	require.ErrorAs(t, err, &e)
	return e.Reason
}

// starts lets each limiter take turns from n goroutines until the time is over, and
// returns when they started, by the server's clock.
func starts(t testing.TB, d time.Duration, n int, a throttle.Ask, limiters ...*Limiter) []time.Time {
	var mu sync.Mutex
	var all []time.Time
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, l := range limiters {
		for range n {
			wg.Go(func() {
				for {
					turn, err := l.Wait(ctx, a)
					if err != nil {
						return
					}
					at := time.UnixMicro(l.find(turn).start)
					turn.Done()
					mu.Lock()
					all = append(all, at)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(all, time.Time.Compare)
	return all
}

func TestProcessesShareOneRate(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiters := []*Limiter{open(t, client), open(t, client), open(t, client)}
	for _, r := range []throttle.Rate{throttle.PerSecond(40), throttle.PerSecond(400)} {
		a := throttle.Ask{Legs: []throttle.Leg{leg(fmt.Sprint("p", r.N), r)}, MaxWait: time.Minute}
		all := starts(t, 2*time.Second, 8, a, limiters...)
		n, passed := len(all), all[len(all)-1].Sub(all[0]).Seconds()
		inBatch := max(1, r.N/batchShare) // turns of one batch have one start
		require.LessOrEqual(t, float64(n), float64(r.N)*passed+float64(inBatch)+0.1, "at %d/s", r.N)
		require.GreaterOrEqual(t, float64(n), 0.8*float64(r.N)*2, "at %d/s", r.N)
	}
}

func TestProcessesShareOneStrictWindow(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiters := []*Limiter{open(t, client), open(t, client), open(t, client)}
	r := throttle.Rate{N: 10, Per: 500 * time.Millisecond, Strict: true}
	a := throttle.Ask{Legs: []throttle.Leg{leg("p", r), leg("p/s", throttle.PerSecond(1000))}, MaxWait: time.Minute}
	all := starts(t, 3*time.Second, 4, a, limiters...)
	require.GreaterOrEqual(t, len(all), 40, "of about 60")
	for i := r.N; i < len(all); i++ {
		require.GreaterOrEqual(t, all[i].Sub(all[i-r.N]), r.Per, "turn %d", i)
	}
}

func TestLastTurnHasOneWinner(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	for i := range rounds(50, 1000) {
		var passed atomic.Int64
		var wg sync.WaitGroup
		for _, l := range []*Limiter{a, b} {
			wg.Go(func() {
				_, err := now(t, l, leg(fmt.Sprint("p", i), throttle.PerHour(1)), leg(fmt.Sprint("s", i), throttle.PerHour(1)))
				if err == nil {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), passed.Load())
	}
}

func TestClosedGateStopsOtherProcesses(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	var delays []time.Duration
	for i := range rounds(100, 1000) {
		key := fmt.Sprint("p", i)
		for _, l := range []*Limiter{a, b} {
			turn, err := now(t, l, leg(key))
			require.NoError(t, err)
			turn.Done()
		}
		require.NoError(t, a.Cap(t.Context(), throttle.Cap{Key: key, Until: time.Now().Add(time.Hour), Cause: throttle.CauseThrottled}))
		begin := time.Now()
		require.Eventually(t, func() bool {
			st := b.Stats(key)
			return !st.Scopes[0].GateUntil.IsZero()
		}, 2*time.Second, 200*time.Microsecond)
		delays = append(delays, time.Since(begin))
		_, err := now(t, b, leg(key))
		require.Equal(t, throttle.ReasonGate, reasonOf(t, err))
	}
	slices.Sort(delays)
	p99 := delays[len(delays)*99/100]
	t.Logf("a gate is heard of after %v in the median, %v at p99", delays[len(delays)/2], p99)
	require.Less(t, p99, 100*time.Millisecond)
}

func TestClosedGateIsSeenWithoutMessages(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	require.NoError(t, b.hearing.Unsubscribe(t.Context()))
	fast := throttle.Rate{N: 1000, Per: time.Second, Burst: 10}
	ask := throttle.Ask{Legs: []throttle.Leg{leg("p", fast)}, MaxWait: time.Minute}
	starts(t, 300*time.Millisecond, 2, ask, b) // it takes batches by now
	require.NoError(t, a.Cap(t.Context(), throttle.Cap{Key: "p", Until: time.Now().Add(time.Hour)}))
	closed := time.Now()
	all := starts(t, 3*time.Second, 2, ask, b)
	last := closed
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	require.LessOrEqual(t, last.Sub(closed), batchLasts)
	_, err := now(t, b, leg("p", fast))
	require.Equal(t, throttle.ReasonGate, reasonOf(t, err))
}

func TestOperatorOpensGateEverywhere(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	_, err := now(t, b, leg("p"))
	require.NoError(t, err)
	require.NoError(t, a.Cap(t.Context(), throttle.Cap{Key: "p", Until: time.Now().Add(time.Hour)}))
	_, err = now(t, a, leg("p"))
	require.Equal(t, throttle.ReasonGate, reasonOf(t, err))
	require.Eventually(t, func() bool { return !b.Stats("p").Scopes[0].GateUntil.IsZero() }, 5*time.Second, time.Millisecond)
	_, err = now(t, b, leg("p"))
	require.Equal(t, throttle.ReasonGate, reasonOf(t, err))
	waited := make(chan error, 1)
	queued := make(chan struct{})
	go func() {
		_, err := b.Wait(t.Context(), throttle.Ask{Legs: []throttle.Leg{leg("p")}, MaxWait: 2 * time.Hour, OnQueue: func(throttle.Forecast) { close(queued) }})
		waited <- err
	}()
	<-queued
	require.NoError(t, a.Cap(t.Context(), throttle.Cap{Key: "p", Reopen: true}))
	select {
	case err := <-waited:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("still closed")
	}
}

func TestGateBeforeTheFirstCall(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a := open(t, client)
	require.NoError(t, a.Cap(t.Context(), throttle.Cap{Key: "p/s", Until: time.Now().Add(time.Hour)}))
	_, err := now(t, a, leg("p"), leg("p/s"))
	require.Equal(t, throttle.ReasonGate, reasonOf(t, err))
	_, err = now(t, a, leg("p"), leg("p/other"))
	require.NoError(t, err)
}

func TestCapCountsTurnsOfAllProcesses(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	first, err := now(t, a, leg("p"))
	require.NoError(t, err)
	_, err = now(t, b, leg("p"))
	require.NoError(t, err)
	require.NoError(t, a.Cap(t.Context(), throttle.Cap{Key: "p", N: 3, Until: time.Now().Add(time.Hour), Turn: first}))
	passed := 0
	for range 4 {
		for _, l := range []*Limiter{a, b} {
			if _, err := now(t, l, leg("p")); err == nil {
				passed++
			}
		}
	}
	require.LessOrEqual(t, passed, 2, "one of three was taken before the cap was known")
	require.GreaterOrEqual(t, passed, 1)
}

func TestUnusedTurnsOfBatchesComeBack(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	r := throttle.Rate{N: 6000, Per: time.Minute, Burst: 100} // 100 a second: batches of five
	for range 4 {
		turn, err := now(t, a, leg("p", r))
		require.NoError(t, err)
		turn.Done()
	}
	a.mu.Lock()
	left := a.sets["p"].batch.left
	a.mu.Unlock()
	require.Positive(t, left)
	level := func() int {
		n, err := client.Eval(t.Context(), `local v = redis.call('GET', KEYS[1])
			if string.find(v, 'outlay-1', 1, true) == 73 then return ({struct.unpack('<ddd', v)})[2] end
			return cmsgpack.unpack(v)[5][1][6]`, []string{a.scopeKey("p", "p")}).Int()
		require.NoError(t, err)
		return n
	}
	before := level()
	require.NoError(t, a.Close())
	require.GreaterOrEqual(t, level(), before+left*1_000_000)
	_, err := now(t, b, leg("p", r))
	require.NoError(t, err)
}

func TestAdjustedWeightsCountInRedis(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	heavy := leg("p", throttle.Rate{N: 1, Per: time.Hour, Burst: 10})
	heavy.Weight = 8
	turn, err := now(t, a, heavy)
	require.NoError(t, err)
	_, err = now(t, b, heavy)
	require.Equal(t, throttle.ReasonRate, reasonOf(t, err))
	a.Adjust(turn, "p", 1)
	_, err = now(t, b, heavy)
	require.NoError(t, err)
}

// The real weight of a call is a number from an answer: it may be absurd.
func TestAnAbsurdWeightKeepsRedisFree(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client)
	strict := leg("p", throttle.Rate{N: 10, Per: time.Second, Strict: true}, throttle.PerSecond(10))
	turn, err := now(t, l, strict)
	require.NoError(t, err)
	begin, key := time.Now(), l.windowKey("p", "p", "s1000000")
	require.NoError(t, client.Persist(t.Context(), key).Err()) // as if the window had been forgotten meanwhile
	l.Adjust(turn, "p", math.MaxInt32)
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Equal(t, int64(10), client.LLen(t.Context(), key).Val())
	require.Positive(t, client.PTTL(t.Context(), key).Val())
	_, err = now(t, l, strict)
	require.Equal(t, throttle.ReasonRate, reasonOf(t, err))
	l.Adjust(turn, "p", 1)
	_, err = l.Wait(t.Context(), throttle.Ask{Legs: []throttle.Leg{strict}, MaxWait: time.Minute})
	require.NoError(t, err, "and can be corrected")
}

func TestUnavailableInTime(t *testing.T) {
	s := redistest.Start(t)
	l, err := New(s.Client(t), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	require.Eventually(t, func() bool { _, err := now(t, l, leg("p")); return err == nil }, 10*time.Second, 10*time.Millisecond)
	resume := s.Pause(t)
	begin := time.Now()
	_, err = now(t, l, leg("q", throttle.PerSecond(1000)))
	took := time.Since(begin)
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.Greater(t, took, 200*time.Millisecond)
	require.Less(t, took, 2*time.Second)
	begin = time.Now()
	_, err = now(t, l, leg("q", throttle.PerSecond(1000)))
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.Less(t, time.Since(begin), 200*time.Millisecond, "the next does not wait")
	resume()
	require.Eventually(t, func() bool {
		_, err := now(t, l, leg("q", throttle.PerSecond(1000)))
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "it comes back by itself")
	s.Kill()
	_, err = now(t, l, leg("r"))
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	s.Restart(t)
	require.Eventually(t, func() bool { _, err := now(t, l, leg("r")); return err == nil }, 10*time.Second, 10*time.Millisecond)
}

// wrapped hides that the client is a *redis.Client, so that nothing of it is known.
type wrapped struct{ redis.UniversalClient }

func TestUnknownClientIsBounded(t *testing.T) {
	s := redistest.Start(t)
	l, err := New(wrapped{s.Client(t)}, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	resume := s.Pause(t)
	begin := time.Now()
	_, err = now(t, l, leg("p"))
	took := time.Since(begin)
	resume()
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.Less(t, took, 2*time.Second)
}

func TestScriptsComeBackAfterFlush(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t)
	l := open(t, client)
	_, err := now(t, l, leg("p", throttle.PerHour(1)))
	require.NoError(t, err)
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	_, err = now(t, l, leg("q", throttle.PerHour(1)))
	require.NoError(t, err)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	_, err = now(t, l, leg("r", throttle.PerHour(1)))
	require.NoError(t, err)
}

func TestEveryKeyExpires(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client)
	turn, err := now(t, l, leg("p", throttle.PerHour(1)), leg("p/{a} b\n", throttle.Rate{N: 5, Per: time.Minute, Strict: true}))
	require.NoError(t, err)
	turn.Cancel()
	require.NoError(t, l.Cap(t.Context(), throttle.Cap{Key: "p", Until: time.Now().Add(time.Hour), Slow: true}))
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(keys), 3)
	for _, k := range keys {
		require.Positive(t, client.PTTL(t.Context(), k).Val(), k)
		require.Regexp(t, `^outlay:\{(p|start)\}:[!-~]+$`, k)
	}
}

func TestRefusalWritesNothing(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	legs := []throttle.Leg{leg("p", throttle.Rate{N: 1, Per: time.Hour, Burst: 5}), leg("p/s", throttle.PerHour(1))}
	_, err := now(t, a, legs...)
	require.NoError(t, err)
	before := client.Get(t.Context(), a.scopeKey("p", "p")).Val()
	_, err = now(t, b, legs...)
	require.Equal(t, throttle.ReasonRate, reasonOf(t, err))
	require.Equal(t, before, client.Get(t.Context(), a.scopeKey("p", "p")).Val())
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t)
	ctx := t.Context()
	require.NoError(t, client.Do(ctx, "ACL", "SETUSER", "weak", "on", ">se-cret", "~*", "&*", "+@all", "-eval", "-evalsha").Err())
	require.NoError(t, client.Set(ctx, "other:{start}:scope:start", "1", 0).Err())
	require.NoError(t, client.Set(ctx, "garbage:{start}:scope:start", "\xda\xff", 0).Err())
	require.NoError(t, client.HSet(ctx, "hash:{start}:scope:start", "a", 1).Err())
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for name, c := range map[string]struct {
		redis redis.Options
		o     Options
		want  string
	}{
		"no scripts":     {redis.Options{Addr: s.Addr, Username: "weak", Password: "se-cret"}, Options{}, "@scripting"},
		"wrong password": {redis.Options{Addr: s.Addr, Username: "weak", Password: "se-cret-2"}, Options{}, "password of the client"},
		"foreign keys":   {redis.Options{Addr: s.Addr}, Options{Prefix: "other"}, "choose another Prefix"},
		"garbage":        {redis.Options{Addr: s.Addr}, Options{Prefix: "garbage"}, "choose another Prefix"},
		"other types":    {redis.Options{Addr: s.Addr}, Options{Prefix: "hash"}, "choose another Prefix"},
		"TLS to a plain": {redis.Options{Addr: s.Addr, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis"}}, Options{}, "TLS on both sides"},
		"nobody there":   {redis.Options{Addr: gone.Addr().String()}, Options{}, "refused"},
		"braces":         {redis.Options{Addr: s.Addr}, Options{Prefix: "a{b}"}, "braces"},
		"bad time-out":   {redis.Options{Addr: s.Addr}, Options{Timeout: -1}, "Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			c.redis.MaxRetries, c.redis.DialTimeout = -1, time.Second
			client := redis.NewClient(&c.redis)
			defer client.Close()
			_, err := New(client, c.o)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "se-cret")
		})
	}
	_, err = New(nil, Options{})
	require.ErrorContains(t, err, "no client")
}

func TestFallbackServesDuringAnOutage(t *testing.T) {
	s := redistest.Start(t)
	l, err := New(s.Client(t), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	f := throttle.Fallback(l, throttle.NewBucket())
	s.Kill()
	_, err = now(t, f, leg("p", throttle.PerSecond(10)))
	assert.NoError(t, err)
	require.True(t, f.(interface{ Degraded() bool }).Degraded())
	require.False(t, errors.Is(err, throttle.ErrUnavailable))
}

package redislimiter

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// What a hook that panics was told of is nobody's: neither its turn nor its slot.
func TestAHookThatPanicsLeavesNothingBehind(t *testing.T) {
	client := redistest.Start(t).Client(t)
	rate := throttle.Rate{N: 1, Per: time.Second}
	for name, c := range map[string]struct {
		rates  []throttle.Rate
		others bool // the first turn is another process's
		gives  bool // a turn is had at the next second
	}{
		"a turn that lies ahead":    {rates: []throttle.Rate{rate}, others: true, gives: true},
		"a turn that cannot be had": {rates: []throttle.Rate{{N: 1, Per: time.Minute, Strict: true}}, others: true},
		"the queue of this process": {rates: []throttle.Rate{rate}, gives: true},
		"the queue for a free slot": {gives: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, other := open(t, client), open(t, client)
			ask := throttle.Ask{Legs: []throttle.Leg{{Key: "hook:" + name, Slots: 1, Rates: c.rates}}, MaxWait: 2 * time.Minute}
			from := l
			if c.others {
				from = other
			}
			first, err := from.Wait(t.Context(), ask)
			require.NoError(t, err)
			ask.OnQueue = func(throttle.Forecast) { panic("hook") }
			require.PanicsWithValue(t, "hook", func() { _, _ = l.Wait(t.Context(), ask) })
			first.Done()
			stats := l.Stats(ask.Legs[0].Key)
			require.Zero(t, stats.Queue)
			require.Zero(t, stats.Scopes[0].InUse)
			if !c.gives {
				return
			}
			ask.OnQueue = nil
			begin := time.Now()
			turn, err := l.Wait(t.Context(), ask)
			require.NoError(t, err)
			turn.Done()
			require.Less(t, time.Since(begin), 1500*time.Millisecond, "its turn was given back")
		})
	}
}

// boomHook is a hook of a client that panics once.
type boomHook struct{ armed atomic.Bool }

func (h *boomHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *boomHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.armed.CompareAndSwap(true, false) {
			panic("client")
		}
		return next(ctx, cmd)
	}
}

func (h *boomHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAClientsHookThatPanicsKeepsNobodyUp(t *testing.T) {
	s := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true}) // so that its hooks see our commands
	defer client.Close()
	hook := new(boomHook)
	client.AddHook(hook)
	l := open(t, client)
	ask := throttle.Ask{Legs: []throttle.Leg{{Key: "p", Slots: 1}}, MaxWait: 5 * time.Second}
	hook.armed.Store(true)
	require.PanicsWithValue(t, "client", func() { _, _ = l.Wait(t.Context(), ask) })
	turn, err := l.Wait(t.Context(), ask)
	require.NoError(t, err)
	turn.Done()
}

// The ledger may be asked in Still, and a turn that lies ahead comes closer meanwhile.
func TestASlowHookDelaysNoTurn(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l, other := open(t, client), open(t, client)
	ask := throttle.Ask{Legs: []throttle.Leg{leg("slow", throttle.Rate{N: 1, Per: time.Second})}, MaxWait: time.Minute}
	first, err := other.Wait(t.Context(), ask)
	require.NoError(t, err)
	first.Done()
	begin := time.Now()
	ask.Still = func() error {
		time.Sleep(700 * time.Millisecond)
		return nil
	}
	turn, err := l.Wait(t.Context(), ask)
	require.NoError(t, err)
	turn.Done()
	require.Less(t, time.Since(begin), 1500*time.Millisecond)
}

// Who waits for a turn that other processes took is counted as well, and timed anew.
func TestThoseWhoWaitForOthersAreCounted(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	slow, fast := leg("p/s", throttle.PerHour(1)), leg("p/s", throttle.PerSecond(100))
	_, err := now(t, b, leg("p"), slow)
	require.NoError(t, err)
	done := make(chan error, 2)
	for range cap(done) {
		go func() {
			_, err := a.Wait(t.Context(), throttle.Ask{Legs: []throttle.Leg{leg("p"), slow}, MaxWait: 10 * time.Hour})
			done <- err
		}()
	}
	waiting := func() (n []int) {
		for _, s := range a.Stats("p").Scopes {
			n = append(n, s.Waiting)
		}
		return n
	}
	require.Eventually(t, func() bool { return slices.Equal([]int{2, 2}, waiting()) }, 10*time.Second, time.Millisecond, "%v", waiting())
	require.NoError(t, a.Set(fast))
	for range cap(done) {
		require.NoError(t, <-done)
	}
	require.Equal(t, []int{0, 0}, waiting())
}

// Who waits for a turn that other processes took leaves when a gate closes for longer.
func TestThoseWhoWaitForOthersLeaveWhenAGateOutlastsThem(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client), open(t, client)
	for name, closer := range map[string]*Limiter{"own": a, "of another process": b} {
		t.Run(name, func(t *testing.T) {
			l := leg(name, throttle.PerMinute(1))
			_, err := now(t, b, l)
			require.NoError(t, err)
			until := time.Now().Add(time.Hour)
			begin := time.Now()
			_, err = a.Wait(t.Context(), throttle.Ask{Legs: []throttle.Leg{l}, MaxWait: 2 * time.Minute, Still: func() error {
				return closer.Cap(t.Context(), throttle.Cap{Key: name, Until: until})
			}})
			require.Equal(t, throttle.ReasonGate, reasonOf(t, err))
			require.Less(t, time.Since(begin), 30*time.Second)
		})
	}
}

package redisledger

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// refusingServer is what a test does to a server so that it refuses to write, and how it
// ends that.
type refusingServer struct {
	begin, end func(t *testing.T, client *redis.Client)
}

var refusingServers = map[string]refusingServer{
	"no memory left": {
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(context.Background(), "maxmemory", "1").Err())
		},
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(context.Background(), "maxmemory", "0").Err())
		},
	},
	"a replica now": {
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ReplicaOf(context.Background(), "127.0.0.1", "1").Err())
		},
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ReplicaOf(context.Background(), "no", "one").Err())
		},
	},
	"an endless script": {
		func(t *testing.T, c *redis.Client) {
			ctx := context.Background()
			require.NoError(t, c.ConfigSet(ctx, "busy-reply-threshold", "10").Err())
			endless := redis.NewClient(&redis.Options{Addr: c.Options().Addr, MaxRetries: -1, ReadTimeout: 50 * time.Millisecond})
			defer endless.Close()
			_ = endless.Eval(ctx, "while true do end", nil).Err() // its time-out
			require.Eventually(t, func() bool { return redis.HasErrorPrefix(c.Get(ctx, "x").Err(), "BUSY") }, 5*time.Second, 5*time.Millisecond)
		},
		func(t *testing.T, c *redis.Client) { require.NoError(t, c.ScriptKill(context.Background()).Err()) },
	},
}

func TestServerThatRefusesToWrite(t *testing.T) {
	for name, refusing := range refusingServers {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			admin := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
			t.Cleanup(func() { _ = admin.Close() })
			l := open1(t, s.Client(t), Options{Timeout: quick, beat: 20 * time.Millisecond, Outage: map[string]budget.Amount{"month": budget.MustParse("0.2")}})
			spend(t, l, month(), "1")
			less, more := take(t, l, month(), "1"), take(t, l, month(), "1")
			eventually(t, l, month(), "settled 1 presumed 0 held 2.2")
			refusing.begin(t, admin)
			for range 3 { // the first may be what finds out
				_, err := l.Hold(t.Context(), holdOf(month(), "0.21"))
				require.ErrorIs(t, err, budget.ErrUnavailable)
			}
			h := holdOf(month(), "0.15")
			require.Eventually(t, func() bool { _, err := l.Hold(t.Context(), h); return err == nil }, 5*time.Second, 10*time.Millisecond,
				"of the allowance")
			_, err := l.Resolve(t.Context(), less, budget.Settled(budget.MustParse("0.5")))
			require.NoError(t, err)
			report, err := l.Resolve(t.Context(), more, budget.Settled(budget.MustParse("1.5")))
			require.NoError(t, err)
			require.Equal(t, budget.MustParse("0.5"), report.Overrun)
			_, err = l.Resolve(t.Context(), h.ID, budget.Settled(budget.MustParse("0.15")))
			require.NoError(t, err)
			refusing.end(t, admin)
			eventually(t, l, month(), "settled 3.15 presumed 0 held 0.2")
		})
	}
}

// TestSlotThatMoves moves the books to another node of a cluster while they are written.
func TestSlotThatMoves(t *testing.T) {
	c := redistest.StartCluster(t)
	ctx := t.Context()
	l := open1(t, c, Options{})
	spend(t, l, month(), "1")
	stop, done := make(chan struct{}), make(chan budget.Amount)
	go func() {
		sum := budget.Amount(0)
		for {
			select {
			case <-stop:
				done <- sum
				return
			default:
			}
			h := holdOf(month(), "0.001")
			if _, err := l.Hold(context.Background(), h); err != nil {
				continue // the slot is between two nodes
			}
			_, err := l.Resolve(context.Background(), h.ID, budget.Settled(budget.MustParse("0.001")))
			if err == nil {
				sum += budget.MustParse("0.001")
			}
		}
	}()
	move(t, c, l.keys.generation)
	close(stop)
	want := budget.Unit + <-done
	require.Eventually(t, func() bool {
		s, err := totalsOf(l, month())
		return err == nil && s.Settled == want && s.Held+s.Presumed == 0
	}, 15*time.Second, 20*time.Millisecond)
	require.NoError(t, ctx.Err())
}

// move brings the slot of a key to another master.
func move(t testing.TB, c *redis.ClusterClient, key string) {
	ctx := context.Background()
	slot := c.ClusterKeySlot(ctx, key).Val()
	from, err := c.MasterForKey(ctx, key)
	require.NoError(t, err)
	var to *redis.Client
	var mu sync.Mutex
	require.NoError(t, c.ForEachMaster(ctx, func(_ context.Context, m *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if m.Options().Addr != from.Options().Addr {
			to = m
		}
		return nil
	}))
	source, target := from.Do(ctx, "CLUSTER", "MYID").Val(), to.Do(ctx, "CLUSTER", "MYID").Val()
	require.NoError(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", source).Err())
	require.NoError(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", target).Err())
	for {
		keys := from.ClusterGetKeysInSlot(ctx, int(slot), 50).Val()
		if len(keys) == 0 {
			break
		}
		host, port, err := net.SplitHostPort(to.Options().Addr)
		require.NoError(t, err)
		args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		require.NoError(t, from.Do(ctx, args...).Err())
	}
	for _, node := range []*redis.Client{to, from} {
		require.NoError(t, node.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err())
	}
}

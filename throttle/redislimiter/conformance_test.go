package redislimiter

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/limitertest"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, client redis.UniversalClient) *Limiter {
	t.Helper()
	l, err := New(client, Options{Timeout: 30 * time.Second}) // the machine or its disk may be busy
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func TestConformance(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limitertest.Run(t, func(t *testing.T) throttle.Limiter { return open(t, client) })
}

// Until v9.19 go-redis copied the options of a client while its first connection wrote
// them; only the race detector sees it.
func TestLimitersAreMadeAtOnceOverOneClient(t *testing.T) {
	s := redistest.Start(t)
	for range 20 {
		client := redis.NewClient(&redis.Options{Addr: s.Addr})
		start := make(chan struct{})
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() { <-start; open(t, client) })
		}
		close(start)
		done.Wait()
		require.NoError(t, client.Close())
	}
}

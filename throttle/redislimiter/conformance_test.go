package redislimiter

import (
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

package redislimiter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/limitertest"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestConformanceOnACluster(t *testing.T) {
	client := redistest.StartCluster(t)
	limitertest.Run(t, func(t *testing.T) throttle.Limiter { return open(t, client) })
}

func TestConformanceThroughSentinel(t *testing.T) {
	client := redistest.StartSentinel(t).Client
	limitertest.Run(t, func(t *testing.T) throttle.Limiter { return open(t, client) })
}

func TestFailover(t *testing.T) {
	s := redistest.StartSentinel(t)
	l, err := New(s.Client, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = now(t, l, leg("p", throttle.PerHour(1)))
	require.NoError(t, err)
	replica := s.Replica.Client(t)
	require.Eventually(t, func() bool {
		return replica.Exists(t.Context(), l.scopeKey("p", "p")).Val() == 1
	}, 10*time.Second, 5*time.Millisecond)
	s.Master.Kill()
	_, err = now(t, l, leg("q"))
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	require.Eventually(t, func() bool { _, err := now(t, l, leg("q")); return err == nil }, 30*time.Second, 20*time.Millisecond)
	other, err := New(s.Client, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	_, err = now(t, other, leg("p", throttle.PerHour(1)))
	require.Equal(t, throttle.ReasonRate, reasonOf(t, err), "the replica knows of the turn")
}

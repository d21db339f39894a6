package redislimiter

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestNoErrorHasThePassword(t *testing.T) {
	redistest.NoErrorHasThePassword(t, "mine:{start}:scope:start", func(client redis.UniversalClient) error {
		_, err := New(client, Options{Prefix: "mine"})
		return err
	})
}

func TestNoRefusalHasThePassword(t *testing.T) {
	s := redistest.Start(t, "--requirepass", redistest.Secret)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Password: redistest.Secret, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	l := open(t, client)
	s.Kill()
	_, err := l.Wait(context.Background(), throttle.Ask{Legs: []throttle.Leg{leg("p")}})
	require.ErrorIs(t, err, throttle.ErrUnavailable)
	redistest.NoSecret(t, err.Error())
}

// What observers of Redis see holds no key of a scope.
func TestScopesAreNamedByHashes(t *testing.T) {
	s := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	defer client.Close()
	const number = "p\x1fsender\x1f+15550100"
	legs := []throttle.Leg{{Key: "p", Rates: []throttle.Rate{throttle.PerMinute(10)}}, {Key: number, Rates: []throttle.Rate{{N: 1, Per: time.Minute, Strict: true}}}}
	spy := client.Subscribe(t.Context(), "outlay:gates")
	defer spy.Close()
	_, err := spy.Receive(t.Context())
	require.NoError(t, err)
	var two [2]*Limiter
	for i := range two {
		two[i], err = New(client, Options{HashKey: []byte("secret")})
		require.NoError(t, err)
		defer two[i].Close()
	}
	turn, err := two[0].Wait(t.Context(), throttle.Ask{Legs: legs})
	require.NoError(t, err)
	turn.Cancel()
	turn, err = two[1].Wait(t.Context(), throttle.Ask{Legs: legs, MaxWait: time.Second})
	require.NoError(t, err, "the turn was given back")
	turn.Done()
	require.NoError(t, two[0].Cap(t.Context(), throttle.Cap{Key: number, Until: time.Now().Add(time.Hour), Cause: throttle.CauseThrottled}))
	message, err := spy.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.NotContains(t, message.Payload, "15550100")
	require.Eventually(t, func() bool { return two[1].shut(legs) }, 10*time.Second, time.Millisecond, "the other process hears of the gate")
	for _, key := range client.Keys(t.Context(), "*").Val() {
		require.NotContains(t, key, "15550100")
		require.NotContains(t, key, new(Limiter).safe(number), "a hash that everybody can make")
	}
}

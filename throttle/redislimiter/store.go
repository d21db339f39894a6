package redislimiter

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// store runs scripts, each for a bounded time.
type store struct{ *redisstore.Store }

func newStore(client redis.UniversalClient, timeout time.Duration) store {
	return store{redisstore.New(client, timeout, throttle.ErrUnavailable)}
}

// run runs a script. All of its errors wrap throttle.ErrUnavailable; the command may have
// been carried out nevertheless.
func (s store) run(ctx context.Context, sc script, keys []string, args ...any) ([]int64, error) {
	return s.send(ctx, sc, sc.command(keys, args))
}

// send is run for a command that was made before, and that the caller may change when
// send has returned.
func (s store) send(ctx context.Context, sc script, command []any) ([]int64, error) {
	if !s.Direct {
		command = slices.Clone(command) // it may still be sent when send has returned
	}
	v, _, err := redisstore.Do(ctx, s.Store, func(ctx context.Context) ([]int64, error) { return sc.run(ctx, s.Client, command) })
	return v, err
}

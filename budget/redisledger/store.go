package redisledger

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// store runs scripts, each for a bounded time, and knows the server's clock.
type store struct {
	*redisstore.Store

	mu     sync.Mutex
	offset time.Duration // the server's clock less ours
}

func newStore(client redis.UniversalClient, timeout time.Duration) *store {
	return &store{Store: redisstore.New(client, timeout, budget.ErrUnavailable)}
}

func unavailable(err error) error {
	return fmt.Errorf("%w: redis: %w", budget.ErrUnavailable, err)
}

// do calls f, which sends commands, and returns when the time is over.
func do[T any](ctx context.Context, s *store, f func(context.Context) (T, error)) (v T, sent bool, err error) {
	return redisstore.Do(ctx, s.Store, f)
}

// run runs a script. All of its errors wrap budget.ErrUnavailable; the command may have
// been carried out nevertheless, unless sent is false.
func (s *store) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (reply []any, sent bool, err error) {
	return redisstore.Do(ctx, s.Store, func(ctx context.Context) ([]any, error) { return script.Run(ctx, s.Client, keys, args...).Slice() })
}

// command is one call of a script.
type command struct {
	script *redis.Script
	keys   []string
	args   []any
}

// result is what came of a command, with the errors of run.
type result struct {
	reply []any
	err   error
}

// pipe sends commands together and in this order, in one round trip. Those of a script
// that the server does not know any more are carried out after the others.
func (s *store) pipe(ctx context.Context, all []command) []result {
	results := make([]result, len(all))
	if len(all) == 1 {
		results[0].reply, _, results[0].err = s.run(ctx, all[0].script, all[0].keys, all[0].args...)
		return results
	}
	replies, _, err := redisstore.Do(ctx, s.Store, func(ctx context.Context) ([]*redis.Cmd, error) {
		pipe := s.Client.Pipeline()
		cmds := make([]*redis.Cmd, len(all))
		for i, c := range all {
			cmds[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
		}
		_, err := pipe.Exec(ctx)
		if err != nil && redisstore.IsAnswer(err) {
			err = nil // each command has its own
		}
		return cmds, err
	})
	for i := range results {
		switch r := &results[i]; {
		case err != nil:
			r.err = err
		case redis.HasErrorPrefix(replies[i].Err(), "NOSCRIPT"):
			r.reply, _, r.err = s.run(ctx, all[i].script, all[i].keys, all[i].args...)
		default:
			if r.reply, r.err = replies[i].Slice(); r.err != nil {
				r.err = s.Unavailable(r.err)
			}
		}
	}
	return results
}

// now is the server's time, as far as its last answer tells.
func (s *store) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.offset)
}

// told notes the server's time in an answer.
func (s *store) told(ms int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = time.Until(time.UnixMilli(ms))
}

// skew is by how much our clock is ahead of the server's.
func (s *store) skew() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return -s.offset
}

// The values of a reply. Scripts of ours wrote them, so that a wrong one reads as zero.

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func number(v any) int64 {
	n, _ := strconv.ParseInt(text(v), 10, 64)
	return n
}

func amount(v any) budget.Amount { return budget.Amount(number(v)) }

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// at is the i-th value, or nil.
func at(reply []any, i int) any {
	if i < len(reply) {
		return reply[i]
	}
	return nil
}

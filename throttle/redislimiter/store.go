package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/throttle"
)

// store sends commands, each for a bounded time.
type store struct {
	client  redis.UniversalClient
	timeout time.Duration
	direct  bool // the client keeps to the deadline of a context

	mu      sync.Mutex
	down    bool
	probeAt time.Time // while it is down: when one command tries again
}

// newStore binds the client to a time per command. The client's own options are left
// alone: they may be meant for other uses. A copy does not have its hooks.
func newStore(client redis.UniversalClient, timeout time.Duration) *store {
	s := &store{client: client, timeout: timeout}
	switch c := client.(type) {
	case *redis.Client:
		if s.direct = c.Options().ContextTimeoutEnabled; s.direct {
			break
		}
		bound := c.WithTimeout(timeout)
		bound.Options().ContextTimeoutEnabled = true
		s.client, s.direct = bound, true
	case *redis.ClusterClient:
		s.direct = c.Options().ContextTimeoutEnabled
	}
	return s
}

// refuses reports whether a command would not be sent now.
func (s *store) refuses(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down && now.Before(s.probeAt)
}

// errDown: the last command got no answer, and it is too early to ask again.
var errDown = errors.New("no answer a moment ago")

// run runs a script. All of its errors wrap throttle.ErrUnavailable; the command may have
// been carried out nevertheless.
func (s *store) run(ctx context.Context, sc script, keys []string, args ...any) ([]int64, error) {
	return s.send(ctx, sc, sc.command(keys, args))
}

// send is run for a command that was made before, and that the caller may change when
// send has returned.
func (s *store) send(ctx context.Context, sc script, command []any) ([]int64, error) {
	if !s.direct {
		command = slices.Clone(command) // it may still be sent when send has returned
	}
	return do(ctx, s, func(ctx context.Context) ([]int64, error) { return sc.run(ctx, s.client, command) })
}

// do calls f, which sends commands, and returns when the time is over.
func do[T any](ctx context.Context, s *store, f func(context.Context) (T, error)) (v T, err error) {
	if !s.may(time.Now()) {
		return v, unavailable(errDown)
	}
	bound, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.direct {
		v, err = f(bound)
	} else {
		v, err = apart(bound, f)
	}
	err = quiet(err)
	if err == nil {
		s.answered(nil)
		return v, nil
	}
	if ctx.Err() == nil {
		s.answered(err)
	}
	return v, unavailable(err)
}

// apart is for clients that do not look at the context: f ends later, alone.
func apart[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f(ctx)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func unavailable(err error) error {
	return fmt.Errorf("%w: redis: %w", throttle.ErrUnavailable, err)
}

// quiet leaves out the arguments that a server repeats when it does not know a command:
// one of them may be the password.
func quiet(err error) error {
	if err == nil {
		return nil
	}
	text, _, found := strings.Cut(err.Error(), ", with args beginning with")
	if !found {
		return err
	}
	return &cut{text, err}
}

// cut is an error that tells a part of its text only.
type cut struct {
	text string
	err  error
}

func (c *cut) Error() string { return c.text }
func (c *cut) Unwrap() error { return c.err }

// may reports whether a command may be sent: all, but one per timeout while the store
// is down.
func (s *store) may(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return true
	}
	if now.Before(s.probeAt) {
		return false
	}
	s.probeAt = now.Add(s.timeout)
	return true
}

// answered notes whether the store works. An error that it told is an answer, but a
// server that is loading, has no master or is no master, has no memory or runs somebody's
// endless script is down.
func (s *store) answered(err error) {
	if err != nil && isAnswer(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err != nil
	if err != nil {
		s.probeAt = time.Now().Add(s.timeout)
	}
}

func isAnswer(err error) bool {
	_, told := errors.AsType[redis.Error](err)
	if !told {
		return false
	}
	for _, prefix := range []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "TRYAGAIN", "NOREPLICAS", "MISCONF", "OOM", "BUSY"} {
		if redis.HasErrorPrefix(err, prefix) {
			return false
		}
	}
	return true
}

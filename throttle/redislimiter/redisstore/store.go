// Package redisstore sends commands to Redis, each for a bounded time, and notices when it
// does not answer: what redislimiter and redisledger have in common. It is for those two and
// may change at any time.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Store sends commands. It is safe for concurrent use.
type Store struct {
	Client  redis.UniversalClient
	Timeout time.Duration // of each command
	Direct  bool          // the client keeps to the deadline of a context
	Back    func()        // if set, called when Redis answers again
	Gone    func(error)   // if set, called when it does not answer any more

	unavailable error

	mu      sync.Mutex
	down    bool
	probeAt time.Time // while it is down: when one command tries again
}

// New binds the client to a time per command. All errors of the store wrap unavailable.
// The client's own options are left alone: they may be meant for other uses. A copy does
// not have its hooks.
func New(client redis.UniversalClient, timeout time.Duration, unavailable error) *Store {
	s := &Store{Client: client, Timeout: timeout, unavailable: unavailable}
	switch c := client.(type) {
	case *redis.Client:
		if s.Direct = c.Options().ContextTimeoutEnabled; s.Direct {
			break
		}
		bound := c.WithTimeout(timeout)
		bound.Options().ContextTimeoutEnabled = true
		s.Client, s.Direct = bound, true
	case *redis.ClusterClient:
		s.Direct = c.Options().ContextTimeoutEnabled
	}
	return s
}

// Refuses reports whether a command would not be sent now.
func (s *Store) Refuses(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down && now.Before(s.probeAt)
}

// Down reports whether the last command got no answer.
func (s *Store) Down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

// ErrDown: the last command got no answer, and it is too early to ask again.
var ErrDown = errors.New("no answer a moment ago")

// Do calls f, which sends commands, and returns when the time is over. If sent, they may
// have been carried out although there is an error.
func Do[T any](ctx context.Context, s *Store, f func(context.Context) (T, error)) (v T, sent bool, err error) {
	if !s.may(time.Now()) {
		return v, false, s.Unavailable(ErrDown)
	}
	bound, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if s.Direct {
		v, err = f(bound)
	} else {
		v, err = apart(bound, f)
	}
	if err == nil {
		s.answered(nil)
		return v, true, nil
	}
	err = quiet(err)
	if ctx.Err() == nil {
		s.answered(err)
	}
	return v, true, s.Unavailable(err)
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

// Unavailable is an error that says that the store is not there. It leaves out the
// arguments that a server repeats when it does not know a command.
func (s *Store) Unavailable(err error) error {
	return fmt.Errorf("%w: redis: %w", s.unavailable, quiet(err))
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
func (s *Store) may(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return true
	}
	if now.Before(s.probeAt) {
		return false
	}
	s.probeAt = now.Add(s.Timeout)
	return true
}

// answered notes whether the store works. An error that it told is an answer, but a
// server that is loading, has no master or is no master, has no memory or runs somebody's
// endless script is down.
func (s *Store) answered(err error) {
	if err != nil && IsAnswer(err) {
		return
	}
	s.mu.Lock()
	was := s.down
	s.down = err != nil
	if err != nil {
		s.probeAt = time.Now().Add(s.Timeout)
	}
	s.mu.Unlock()
	switch {
	case was && err == nil && s.Back != nil:
		s.Back()
	case !was && err != nil && s.Gone != nil:
		s.Gone(err)
	}
}

// IsAnswer reports whether an error is what the server told, which is not down.
func IsAnswer(err error) bool {
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

package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
)

// store sends commands, each for a bounded time.
type store struct {
	client  redis.UniversalClient
	timeout time.Duration
	direct  bool // the client keeps to the deadline of a context

	mu      sync.Mutex
	down    bool
	probeAt time.Time     // while it is down: when one command tries again
	offset  time.Duration // the server's clock less ours
	back    func()        // called when it answers again
	gone    func(error)   // called when it does not answer any more
}

// newStore binds the client to a time per command. The client's own options are left
// alone: they may be meant for other uses. A copy does not have its hooks.
func newStore(client redis.UniversalClient, timeout time.Duration) *store {
	s := &store{client: client, timeout: timeout, back: func() {}, gone: func(error) {}}
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

// errDown: the last command got no answer, and it is too early to ask again.
var errDown = errors.New("no answer a moment ago")

// run runs a script. All of its errors wrap budget.ErrUnavailable; the command may have
// been carried out nevertheless, unless sent is false.
func (s *store) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (reply []any, sent bool, err error) {
	return do(ctx, s, func(ctx context.Context) ([]any, error) { return script.Run(ctx, s.client, keys, args...).Slice() })
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
	replies, _, err := do(ctx, s, func(ctx context.Context) ([]*redis.Cmd, error) {
		pipe := s.client.Pipeline()
		cmds := make([]*redis.Cmd, len(all))
		for i, c := range all {
			cmds[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
		}
		_, err := pipe.Exec(ctx)
		if err != nil && isAnswer(err) {
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
				r.err = unavailable(quiet(r.err))
			}
		}
	}
	return results
}

// do calls f, which sends commands, and returns when the time is over.
func do[T any](ctx context.Context, s *store, f func(context.Context) (T, error)) (v T, sent bool, err error) {
	if !s.may(time.Now()) {
		return v, false, unavailable(errDown)
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
		return v, true, nil
	}
	if ctx.Err() == nil {
		s.answered(err)
	}
	return v, true, unavailable(err)
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
	return fmt.Errorf("%w: redis: %w", budget.ErrUnavailable, err)
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
	was := s.down
	s.down = err != nil
	if err != nil {
		s.probeAt = time.Now().Add(s.timeout)
	}
	s.mu.Unlock()
	switch {
	case was && err == nil:
		s.back()
	case !was && err != nil:
		s.gone(err)
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

// isDown reports whether the last command got no answer.
func (s *store) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
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

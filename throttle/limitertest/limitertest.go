// Package limitertest is the suite that every [throttle.Limiter] passes. It runs on
// the real clock with generous bounds, so that it can test limiters that live in a
// shared store as well.
package limitertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// Run tests the limiters that open makes: each part of the suite opens its own, and
// all keys are new, so that they may share a store. The parts run in parallel and take
// a few seconds together.
func Run(t *testing.T, open func(*testing.T) throttle.Limiter) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.run(newTrial(t.Context(), open(t))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// check is a part of the suite: nil when the limiter does what it should.
type check struct {
	name string
	run  func(*trial) error
}

// checks are all parts.
var checks = slices.Concat(rateChecks, gateChecks, waitChecks, queueChecks)

// trial is one limiter under test and the helpers around it.
type trial struct {
	throttle.Limiter
	ctx   context.Context
	key   string // a key that nobody used before
	begin time.Time
}

var trials atomic.Int64

func newTrial(ctx context.Context, l throttle.Limiter) *trial {
	key := fmt.Sprintf("trial-%d-%d", time.Now().UnixNano(), trials.Add(1))
	return &trial{Limiter: l, ctx: ctx, key: key, begin: time.Now()}
}

// leg is the trial's first leg with the given rates.
func (c *trial) leg(r ...throttle.Rate) throttle.Leg {
	return throttle.Leg{Key: c.key, Rates: r}
}

// scope is a further leg.
func (c *trial) scope(name string, r ...throttle.Rate) throttle.Leg {
	return throttle.Leg{Key: c.key + "/" + name, Rates: r}
}

// now asks for a turn now or never.
func (c *trial) now(legs ...throttle.Leg) (throttle.Turn, error) {
	return c.Wait(c.ctx, throttle.Ask{Legs: legs})
}

// within asks for a turn within d.
func (c *trial) within(d time.Duration, legs ...throttle.Leg) (throttle.Turn, error) {
	return c.Wait(c.ctx, throttle.Ask{Legs: legs, MaxWait: d})
}

// passes expects a turn at once on each of n asks.
func (c *trial) passes(n int, legs ...throttle.Leg) error {
	for i := range n {
		turn, err := c.now(legs...)
		if err != nil {
			return fmt.Errorf("turn %d of %d: got %w, want a turn", i+1, n, err)
		}
		turn.Done()
	}
	return nil
}

// refuses expects a refusal at once, for the reason.
func (c *trial) refuses(reason throttle.Reason, legs ...throttle.Leg) error {
	turn, err := c.now(legs...)
	if err == nil {
		turn.Done()
		return fmt.Errorf("got a turn, want a refusal (%s)", reason)
	}
	return refusal(err, reason)
}

func refusal(err error, reason throttle.Reason) error {
	w, ok := errors.AsType[*throttle.WaitError](err)
	if !ok {
		return fmt.Errorf("got error %w, want a *throttle.WaitError", err)
	}
	if w.Reason != reason {
		return fmt.Errorf("got reason %q, want %q", w.Reason, reason)
	}
	return nil
}

// at is the time since the trial began.
func (c *trial) at() time.Duration { return time.Since(c.begin) }

// notBefore expects that an event at the given time did not come too early, nor
// seconds too late.
func notBefore(what string, at, due time.Duration) error {
	if at < due-2*time.Millisecond {
		return fmt.Errorf("%s at %v, want not before %v", what, at, due)
	}
	if at > due+3*time.Second {
		return fmt.Errorf("%s at %v, want soon after %v", what, at, due)
	}
	return nil
}

// together runs the asks at once and returns when each started, in order of time, or
// the first error.
func (c *trial) together(n int, a throttle.Ask) ([]time.Duration, error) {
	starts, errs := make([]time.Duration, n), make([]error, n)
	barrier := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-barrier
			turn, err := c.Wait(c.ctx, a)
			starts[i], errs[i] = c.at(), err
			turn.Done()
		})
	}
	close(barrier)
	wg.Wait()
	slices.Sort(starts)
	return starts, errors.Join(errs...)
}

// queue collects the names of calls in the order in which they start.
type queue struct {
	mu    sync.Mutex
	wg    sync.WaitGroup
	names []string
	errs  []error
}

// add asks in a goroutine and returns when the call waits or has started.
func (q *queue) add(c *trial, name string, a throttle.Ask) {
	waits := make(chan struct{})
	var once sync.Once
	a.OnQueue = func(throttle.Forecast) { once.Do(func() { close(waits) }) }
	q.wg.Go(func() {
		turn, err := c.Wait(c.ctx, a)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.names, q.errs = append(q.names, name), append(q.errs, err)
		turn.Done()
		once.Do(func() { close(waits) })
	})
	<-waits
}

// order waits for all calls and returns their names as one string.
func (q *queue) order() (string, error) {
	q.wg.Wait()
	return strings.Join(q.names, ""), errors.Join(q.errs...)
}

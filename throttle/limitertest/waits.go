package limitertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// race asks n times at once and returns the errors.
func (c *trial) race(n int, legs ...throttle.Leg) []error {
	errs, barrier := make([]error, n), make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-barrier
			turn, err := c.now(legs...)
			errs[i] = err
			turn.Done()
		})
	}
	close(barrier)
	wg.Wait()
	return errs
}

// promptly is far less than any wait that a check provokes.
const promptly = 2 * time.Second

var waitChecks = []check{
	{"no wait is allowed: a turn or a refusal", func(c *trial) error {
		l := c.leg(throttle.PerMinute(1))
		for range 20 { // a timer for no time at all would win now and then
			if err := c.passes(1, l); err != nil {
				return err
			}
			if err := c.refuses(throttle.ReasonRate, l); err != nil {
				return err
			}
			l.Key += "+"
		}
		return nil
	}},
	{"a turn after the deadline is refused at once", func(c *trial) error {
		l := c.leg(throttle.PerMinute(1))
		if err := c.passes(1, l); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.ctx, 10*time.Second)
		defer cancel()
		_, err := c.Wait(ctx, throttle.Ask{Legs: []throttle.Leg{l}, MaxWait: time.Hour})
		if err := refusal(err, throttle.ReasonDeadline); err != nil {
			return err
		}
		w, _ := errors.AsType[*throttle.WaitError](err)
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("%w is not context.DeadlineExceeded", err)
		case c.at() > promptly:
			return fmt.Errorf("refused after %v, want at once", c.at())
		case time.Until(w.RetryAt) < 50*time.Second || time.Until(w.RetryAt) > time.Minute:
			return fmt.Errorf("RetryAt in %v, want in a minute", time.Until(w.RetryAt))
		}
		return nil
	}},
	{"a turn after MaxWait is refused at once", func(c *trial) error {
		l := c.leg(throttle.PerMinute(1))
		if err := c.passes(1, l); err != nil {
			return err
		}
		_, err := c.within(10*time.Second, l)
		if err := refusal(err, throttle.ReasonRate); err != nil {
			return err
		}
		if c.at() > promptly {
			return fmt.Errorf("refused after %v, want at once", c.at())
		}
		return nil
	}},
	{"a context that is done takes nothing", func(c *trial) error {
		ctx, cancel := context.WithCancel(c.ctx)
		cancel()
		_, err := c.Wait(ctx, throttle.Ask{Legs: []throttle.Leg{c.leg(hourly)}})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %w, want context.Canceled", err)
		}
		return c.passes(1, c.leg(hourly))
	}},
	{"a caller that gives up returns at once", func(c *trial) error {
		l := c.leg(throttle.PerMinute(1))
		if err := c.passes(1, l); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		_, err := c.Wait(ctx, throttle.Ask{Legs: []throttle.Leg{l}, MaxWait: time.Hour, OnQueue: func(throttle.Forecast) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %w, want context.Canceled", err)
		}
		if c.at() > promptly {
			return fmt.Errorf("returned after %v, want at once", c.at())
		}
		return nil
	}},
	{"who waits is told so once, who does not is not", func(c *trial) error {
		told := 0
		a := throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(20))}, MaxWait: time.Minute}
		a.OnQueue = func(f throttle.Forecast) { told++ }
		for i := range 2 {
			turn, err := c.Wait(c.ctx, a)
			turn.Done()
			if err != nil {
				return err
			}
			if told != i {
				return fmt.Errorf("call %d: told %d times, want %d", i, told, i)
			}
		}
		return nil
	}},
	{"who is of no use any more leaves the queue, and the rate to the others", func(c *trial) error {
		a := throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(5))}, MaxWait: time.Minute}
		asked, gone := 0, errors.New("no use")
		a.Still = func() error { asked++; return gone }
		if turn, err := c.Wait(c.ctx, a); err != nil || asked != 0 {
			return fmt.Errorf("a turn at once: got %w, asked %d times", err, asked)
		} else {
			turn.Done()
		}
		for range 20 {
			if _, err := c.Wait(c.ctx, a); !errors.Is(err, gone) {
				return fmt.Errorf("got %w, want the error of Still", err)
			}
		}
		if asked != 20 {
			return fmt.Errorf("asked %d times, want 20", asked)
		}
		a.Still = func() error { return nil }
		turn, err := c.Wait(c.ctx, a)
		turn.Done()
		if took := c.at(); err == nil && took > promptly {
			return fmt.Errorf("the next turn came after %v: those who left took some", took)
		}
		return err
	}},
	{"callers who give up leave the rate to the others", func(c *trial) error {
		var turns atomic.Int64
		var wg sync.WaitGroup
		until := time.Now().Add(time.Second)
		for range 10 {
			wg.Go(func() {
				for time.Now().Before(until) {
					ctx, cancel := context.WithCancel(c.ctx)
					stop := time.AfterFunc(25*time.Millisecond, cancel)
					turn, err := c.Wait(ctx, throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(100))}, MaxWait: time.Minute})
					if err == nil {
						turns.Add(1)
					}
					turn.Done()
					stop.Stop()
					cancel()
				}
			})
		}
		wg.Wait()
		if n := turns.Load(); n < 50 {
			return fmt.Errorf("got %d turns in a second, want about 100", n)
		}
		return nil
	}},
	{"an ask without sense is an error", func(c *trial) error {
		for _, l := range []throttle.Leg{
			{}, {Key: c.key, Weight: -1}, {Key: c.key, Slots: -1}, c.leg(throttle.Rate{}), c.leg(throttle.Rate{N: -1, Per: time.Second}),
			c.leg(throttle.Rate{N: 1}), c.leg(throttle.Rate{N: 1, Per: time.Second, Burst: -1}),
		} {
			_, err := c.now(l)
			if _, refused := errors.AsType[*throttle.WaitError](err); err == nil || refused {
				return fmt.Errorf("%+v: got %w, want an error that names the field", l, err)
			}
		}
		if _, err := c.now(); err == nil {
			return errors.New("no legs: got a turn, want an error")
		}
		return nil
	}},
}

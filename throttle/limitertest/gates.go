package limitertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

func (c *trial) close(key string, d time.Duration) error {
	return c.Cap(c.ctx, throttle.Cap{Key: key, Until: time.Now().Add(d), Cause: throttle.CauseThrottled})
}

var wide = throttle.Rate{N: 1_000_000, Per: time.Second, Burst: 1_000_000}

var gateChecks = []check{
	{"a gate lets nobody start and only moves later", func(c *trial) error {
		err := errors.Join(c.passes(1, c.leg(wide)), c.close(c.key, 300*time.Millisecond), c.close(c.key, 50*time.Millisecond))
		if err != nil {
			return err
		}
		if err := c.refuses(throttle.ReasonGate, c.leg(wide)); err != nil {
			return err
		}
		turn, err := c.within(time.Minute, c.leg(wide))
		turn.Done()
		if err != nil {
			return err
		}
		return notBefore("turn", c.at(), 300*time.Millisecond)
	}},
	{"a refusal says when the gate opens", func(c *trial) error {
		until := time.Now().Add(time.Minute)
		if err := c.Cap(c.ctx, throttle.Cap{Key: c.key, Until: until}); err != nil {
			return err
		}
		_, err := c.within(time.Second, c.leg(wide))
		if err := refusal(err, throttle.ReasonGate); err != nil {
			return err
		}
		w, _ := errors.AsType[*throttle.WaitError](err)
		if d := w.RetryAt.Sub(until).Abs(); d > time.Second {
			return fmt.Errorf("RetryAt is off by %v", d)
		}
		if w.Provider != c.key {
			return fmt.Errorf("got provider %q, want %q", w.Provider, c.key)
		}
		return nil
	}},
	{"those who waited at a gate leave at the rate", func(c *trial) error {
		r := throttle.Rate{N: 40, Per: time.Second, Burst: 40}
		if err := errors.Join(c.passes(1, c.leg(r)), c.close(c.key, 200*time.Millisecond)); err != nil {
			return err
		}
		starts, err := c.together(8, throttle.Ask{Legs: []throttle.Leg{c.leg(r)}, MaxWait: time.Minute})
		for i, at := range starts {
			if err == nil {
				err = notBefore(fmt.Sprint("turn ", i), at, 200*time.Millisecond+time.Duration(i)*25*time.Millisecond)
			}
		}
		return err
	}},
	{"a gate without a rate lets nobody start early", func(c *trial) error {
		if err := c.close(c.key, 200*time.Millisecond); err != nil {
			return err
		}
		starts, err := c.together(8, throttle.Ask{Legs: []throttle.Leg{c.leg()}, MaxWait: time.Minute})
		if err != nil {
			return err
		}
		return notBefore("first turn", starts[0], 200*time.Millisecond)
	}},
	{"who may wait until a gate opens is not late by those before it", func(c *trial) error {
		if err := c.close(c.key, 2*time.Second); err != nil {
			return err
		}
		var q queue
		for i := range 6 { // the waiters may be spread over a part of the gate, but those who cannot wait so long
			a := throttle.Ask{Legs: []throttle.Leg{c.leg()}, MaxWait: time.Minute}
			if i%2 == 1 {
				a.MaxWait = time.Until(c.begin.Add(2*time.Second + 150*time.Millisecond))
			}
			q.add(c, "x", a)
		}
		return inOrder(&q, "xxxxxx")
	}},
	{"who may wait to the instant at which a gate opens gets a turn", func(c *trial) error {
		for i := range 10 {
			l, until := c.scope(fmt.Sprint(i)), time.Now().Add(100*time.Millisecond)
			if err := c.Cap(c.ctx, throttle.Cap{Key: l.Key, Until: until}); err != nil {
				return err
			}
			turn, err := c.within(time.Until(until), l)
			turn.Done()
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"a gate of one scope leaves the others open", func(c *trial) error {
		a, b := c.scope("a", wide), c.scope("b", wide)
		if err := errors.Join(c.passes(1, c.leg(wide), a), c.close(a.Key, time.Minute)); err != nil {
			return err
		}
		return errors.Join(c.refuses(throttle.ReasonGate, c.leg(wide), a), c.passes(3, c.leg(wide), b))
	}},
	{"an operator opens a gate", func(c *trial) error {
		if err := errors.Join(c.passes(1, c.leg(wide)), c.close(c.key, time.Minute), c.refuses(throttle.ReasonGate, c.leg(wide))); err != nil {
			return err
		}
		if err := c.Cap(c.ctx, throttle.Cap{Key: c.key, Reopen: true, Cause: throttle.CauseOperator}); err != nil {
			return err
		}
		turn, err := c.within(10*time.Second, c.leg(wide))
		turn.Done()
		return err
	}},
	{"a cap admits what is left", func(c *trial) error {
		err := errors.Join(c.passes(1, c.leg(wide)), c.Cap(c.ctx, throttle.Cap{Key: c.key, N: 3, Until: time.Now().Add(300 * time.Millisecond)}))
		if err == nil {
			err = errors.Join(c.passes(3, c.leg(wide)), c.refuses(throttle.ReasonGate, c.leg(wide)))
		}
		if err != nil {
			return err
		}
		turn, err := c.within(time.Minute, c.leg(wide))
		turn.Done()
		if err != nil {
			return err
		}
		return notBefore("turn", c.at(), 300*time.Millisecond)
	}},
	{"a cap only tightens", func(c *trial) error {
		until := time.Now().Add(time.Minute)
		for _, n := range []int{5, 2, 4} {
			if err := c.Cap(c.ctx, throttle.Cap{Key: c.key, N: n, Until: until}); err != nil {
				return err
			}
		}
		return errors.Join(c.passes(2, c.leg(wide)), c.refuses(throttle.ReasonGate, c.leg(wide)))
	}},
	{"a cap counts from the turn whose answer set it", func(c *trial) error {
		first, err := c.now(c.leg(wide))
		if err != nil {
			return err
		}
		defer first.Done()
		if err := c.passes(2, c.leg(wide)); err != nil {
			return err
		}
		if err := c.Cap(c.ctx, throttle.Cap{Key: c.key, N: 3, Until: time.Now().Add(time.Minute), Turn: first}); err != nil {
			return err
		}
		return errors.Join(c.passes(1, c.leg(wide)), c.refuses(throttle.ReasonGate, c.leg(wide)))
	}},
	{"the newest word on a window that slides holds", func(c *trial) error {
		l, turns := c.leg(throttle.PerSecond(40)), 0
		for ; c.at() < time.Second; turns++ {
			turn, err := c.within(time.Minute, l)
			if err == nil {
				err = c.Cap(c.ctx, throttle.Cap{Key: c.key, N: 2, Until: time.Now().Add(300 * time.Millisecond), Turn: turn})
			}
			turn.Done()
			if err != nil {
				return err
			}
		}
		if turns < 16 {
			return fmt.Errorf("got %d turns in a second, want about 40: two more are always allowed", turns)
		}
		return nil
	}},
	{"slow lowers the rate", func(c *trial) error {
		r := throttle.PerSecond(10)
		if err := errors.Join(c.passes(1, c.leg(r)), c.Cap(c.ctx, throttle.Cap{Key: c.key, Slow: true})); err != nil {
			return err
		}
		turn, err := c.within(time.Minute, c.leg(r))
		turn.Done()
		if err != nil {
			return err
		}
		return notBefore("turn", c.at(), 140*time.Millisecond)
	}},
}

package limitertest

import (
	"fmt"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

var hourly = throttle.PerHour(1)

var rateChecks = []check{
	{"turns keep the rate", func(c *trial) error {
		starts, err := c.together(21, throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(40))}, MaxWait: time.Minute})
		for i, at := range starts {
			if err == nil {
				err = notBefore(fmt.Sprint("turn ", i), at, time.Duration(i)*25*time.Millisecond)
			}
		}
		return err
	}},
	{"a burst starts at once and no more", func(c *trial) error {
		r := throttle.Rate{N: 1, Per: time.Hour, Burst: 5}
		if err := c.passes(5, c.leg(r)); err != nil {
			return err
		}
		return c.refuses(throttle.ReasonRate, c.leg(r))
	}},
	{"a strict window admits N in any period", func(c *trial) error {
		r := throttle.Rate{N: 5, Per: 300 * time.Millisecond, Strict: true}
		starts, err := c.together(15, throttle.Ask{Legs: []throttle.Leg{c.leg(r)}, MaxWait: time.Minute})
		for i, at := range starts {
			if err == nil {
				err = notBefore(fmt.Sprint("turn ", i), at, time.Duration(i/5)*300*time.Millisecond)
			}
		}
		return err
	}},
	{"several rates hold together", func(c *trial) error {
		legs := c.leg(throttle.Rate{N: 1000, Per: time.Second, Burst: 10}, throttle.Rate{N: 1, Per: time.Hour, Burst: 3})
		if err := c.passes(3, legs); err != nil {
			return err
		}
		return c.refuses(throttle.ReasonRate, legs)
	}},
	{"a refused leg takes nothing from the others", func(c *trial) error {
		p, s := c.leg(throttle.Rate{N: 1, Per: time.Hour, Burst: 2}), c.scope("s", hourly)
		if err := c.passes(1, p, s); err != nil {
			return err
		}
		if err := c.refuses(throttle.ReasonRate, p, s); err != nil {
			return err
		}
		if err := c.passes(1, p); err != nil {
			return err
		}
		return c.refuses(throttle.ReasonRate, p)
	}},
	{"weights are taken", func(c *trial) error {
		heavy := c.leg(throttle.Rate{N: 1, Per: time.Hour, Burst: 10})
		heavy.Weight = 4
		if err := c.passes(2, heavy); err != nil {
			return err
		}
		return c.refuses(throttle.ReasonRate, heavy)
	}},
	{"heavier than the burst is never possible", func(c *trial) error {
		heavy := c.leg(throttle.Rate{N: 100, Per: time.Second, Burst: 5})
		heavy.Weight = 6
		_, err := c.within(time.Hour, heavy)
		return refusal(err, throttle.ReasonNever)
	}},
	{"a cancelled turn gives its tokens back", func(c *trial) error {
		for _, r := range []throttle.Rate{hourly, {N: 1, Per: time.Hour, Strict: true}} {
			l := c.scope(fmt.Sprint(r.Strict), r)
			turn, err := c.now(l)
			if err != nil {
				return err
			}
			turn.Cancel()
			if err := c.passes(1, l); err != nil {
				return err
			}
			if err := c.refuses(throttle.ReasonRate, l); err != nil {
				return err
			}
		}
		return nil
	}},
	{"a higher rate frees those who wait", func(c *trial) error {
		if err := c.passes(1, c.leg(throttle.PerMinute(1))); err != nil {
			return err
		}
		var q queue
		q.add(c, "a", throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerMinute(1))}, MaxWait: time.Hour})
		if turn, err := c.within(10*time.Second, c.leg(throttle.Rate{N: 100, Per: time.Second})); err != nil {
			return err
		} else {
			turn.Done()
		}
		_, err := q.order()
		if err == nil {
			err = notBefore("turn", c.at(), 10*time.Millisecond)
		}
		return err
	}},
	{"only so many of many at once get a turn", func(c *trial) error {
		passed := 0
		for _, err := range c.race(64, c.leg(throttle.Rate{N: 1, Per: time.Hour, Burst: 10}), c.scope("s", throttle.Rate{N: 1, Per: time.Hour, Burst: 11})) {
			if err == nil {
				passed++
			} else if err := refusal(err, throttle.ReasonRate); err != nil {
				return err
			}
		}
		if passed != 10 {
			return fmt.Errorf("got %d turns, want 10", passed)
		}
		return nil
	}},
}

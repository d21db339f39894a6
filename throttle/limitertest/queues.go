package limitertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

var queueChecks = []check{
	{"slots are held until Done", func(c *trial) error {
		l := c.leg()
		l.Slots = 2
		a, errA := c.now(l)
		b, errB := c.now(l)
		if errA != nil || errB != nil {
			return fmt.Errorf("got %w and %w, want two turns", errA, errB)
		}
		if err := c.refuses(throttle.ReasonSlots, l); err != nil {
			return err
		}
		a.Done()
		if err := c.passes(1, l); err != nil {
			return err
		}
		b.Cancel()
		return c.passes(1, l)
	}},
	{"a slot that is freed goes to who waits", func(c *trial) error {
		l := c.leg()
		l.Slots = 1
		first, err := c.now(l)
		if err != nil {
			return err
		}
		var q queue
		q.add(c, "a", throttle.Ask{Legs: []throttle.Leg{l}, MaxWait: time.Minute})
		first.Done()
		_, err = q.order()
		return err
	}},
	{"who waits for a slot leaves when its time is over", func(c *trial) error {
		l := c.leg()
		l.Slots = 1
		first, err := c.now(l)
		if err != nil {
			return err
		}
		defer first.Done()
		_, err = c.within(100*time.Millisecond, l)
		if err := refusal(err, throttle.ReasonSlots); err != nil {
			return err
		}
		return notBefore("refusal", c.at(), 100*time.Millisecond)
	}},
	{"who waits for a slot leaves when a slot is of no use in time", func(c *trial) error {
		l := c.leg(wide)
		l.Slots = 1
		first, err := c.now(l)
		if err != nil {
			return err
		}
		defer first.Done()
		closed := make(chan error, 1)
		_, err = c.Wait(c.ctx, throttle.Ask{Legs: []throttle.Leg{l}, MaxWait: time.Minute, OnQueue: func(throttle.Forecast) {
			closed <- c.close(c.key, time.Hour)
		}})
		for range 2 { // who comes later does not even wait
			if err := refusal(err, throttle.ReasonGate); err != nil {
				return err
			}
			_, err = c.within(time.Minute, l)
		}
		if c.at() > promptly {
			return fmt.Errorf("refused after %v, want at once", c.at())
		}
		return <-closed
	}},
	{"equals start in order of arrival", func(c *trial) error {
		var q queue
		for name := range strings.SplitSeq("abcdef", "") {
			q.add(c, name, throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(10))}, MaxWait: time.Minute})
		}
		return inOrder(&q, "abcdef")
	}},
	{"a critical call passes bulk calls", func(c *trial) error {
		var q queue
		a := throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(5))}, MaxWait: time.Minute, Priority: throttle.Bulk}
		for range 6 {
			q.add(c, "b", a)
		}
		a.Priority = throttle.Critical
		q.add(c, "C", a)
		order, err := q.order()
		if err == nil && strings.Index(order, "C") > 3 {
			err = fmt.Errorf("started as %s, want the critical call within two turns", order)
		}
		return err
	}},
	{"tenants take turns", func(c *trial) error {
		var q queue
		a := throttle.Ask{Legs: []throttle.Leg{c.leg(throttle.PerSecond(5))}, MaxWait: time.Minute, Tenant: "a"}
		for range 6 {
			q.add(c, "a", a)
		}
		a.Tenant = "b"
		q.add(c, "b", a)
		q.add(c, "b", a)
		order, err := q.order()
		if err == nil && !strings.Contains(order[:6], "bab") {
			err = fmt.Errorf("started as %s, want the tenants in turns", order)
		}
		return err
	}},
	{"a call that waits for its own scope keeps nobody up", func(c *trial) error {
		r := throttle.PerSecond(1000)
		busy, free := c.scope("busy", hourly), c.scope("free", wide)
		if err := c.passes(1, c.leg(r), busy); err != nil {
			return err
		}
		var q queue
		q.add(c, "x", throttle.Ask{Legs: []throttle.Leg{c.leg(r), busy}, MaxWait: 2 * time.Hour})
		turn, err := c.within(10*time.Second, c.leg(r), free)
		turn.Done()
		if err != nil {
			return err
		}
		if err := c.Cap(c.ctx, throttle.Cap{Key: busy.Key, Reopen: true}); err != nil {
			return err
		}
		busy.Rates = []throttle.Rate{throttle.PerSecond(1000)} // lets the waiter go
		if turn, err := c.within(10*time.Second, c.leg(r), busy); err != nil {
			return err
		} else {
			turn.Done()
		}
		return inOrder(&q, "x")
	}},
}

func inOrder(q *queue, want string) error {
	order, err := q.order()
	if err == nil && order != want {
		err = fmt.Errorf("started as %q, want %q", order, want)
	}
	return err
}

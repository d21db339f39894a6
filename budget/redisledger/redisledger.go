package redisledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// Hold implements [budget.Ledger]. When it returns, Redis has acknowledged the hold. A
// hold whose answer was lost is voided as soon as Redis answers again.
func (l *Ledger) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	if err := h.Validate(); err != nil {
		return l.tell(budget.Report{}), err
	}
	if !l.undoubt(h.ID) {
		return l.tell(budget.Report{}), unavailable(fmt.Errorf("hold %v is being taken back", h.ID))
	}
	if l.mustFlush(&h) {
		l.flush(ctx)
	}
	var report budget.Report
	var err error
	for range tries {
		unsent, before := l.unsent()
		report, err = l.holdNow(ctx, h)
		_, refused := errors.AsType[*budget.ExceededError](err)
		if _, after := l.unsent(); !refused || !unsent && before == after {
			break
		}
		l.flush(ctx) // what was on its way may have freed enough
	}
	return l.tell(report), err
}

// tries bounds how often one operation is tried again with what a reply told: the
// server's time, the current window, a new generation.
const tries = 8

func (l *Ledger) holdNow(ctx context.Context, h budget.Hold) (budget.Report, error) {
	charges := make([]charge, len(h.Legs))
	for range tries {
		if err := l.prepare(ctx, &h, charges); err != nil {
			return l.holdAway(&h, charges, err)
		}
		gen := l.generation()
		o := newOpen(&h, charges)
		reply, sent, err := l.ride(ctx, gen, l.holdCommand(gen, o, charges, &h, false))
		if err != nil {
			if sent && len(h.Legs) > 0 && !redisstore.IsAnswer(err) {
				l.doubt(o)
			}
			return l.holdAway(&h, charges, err)
		}
		report, again, err := l.readHold(ctx, gen, o, charges, &h, reply)
		if !again {
			return report, err
		}
		if err != nil {
			return l.holdAway(&h, charges, err)
		}
	}
	return budget.Report{}, unavailable(fmt.Errorf("the books changed %d times while a hold was taken", tries))
}

// charge is what a hold does to one budget.
type charge struct {
	leg
	budget  budget.Budget // normal
	current string        // the window that is current as far as we know
	window  budget.Window
}

// prepare finds the window of every leg, by the server's clock.
func (l *Ledger) prepare(ctx context.Context, h *budget.Hold, charges []charge) error {
	now := l.store.now()
	for i := range h.Legs {
		from := &h.Legs[i]
		c := &charges[i]
		c.budget = from.Budget.Normal()
		c.leg = leg{name: c.budget.Name, amount: from.Amount, calls: c.budget.Unit == budget.Calls}
		current, err := l.configure(ctx, c.budget)
		c.current = current.ID
		c.window = current.Advance(c.budget.Window(now))
		c.at(c.window)
		if err != nil {
			return err
		}
	}
	return nil
}

// restore sends the script of a hold that was granted once: no limit refuses it.
func (l *Ledger) restore(ctx context.Context, gen generation, o *open) ([]any, error) {
	c := l.holdCommand(gen, o, nil, nil, true)
	reply, _, err := l.store.run(ctx, c.script, c.keys, c.args...)
	return reply, err
}

func (l *Ledger) holdCommand(gen generation, o *open, charges []charge, h *budget.Hold, restore bool) command {
	k := &l.keys
	names := append(make([]string, 0, 7+3*len(o.legs)), k.generation, k.writes(l.id), k.owners, k.holds(l.id), k.frozen, k.hold(o.id), k.index)
	args := append(make([]any, 0, 12+11*len(o.legs)), gen.id, gen.writes, l.id, ownerAlive.Milliseconds(), o.id.String(), o.contents,
		windowsOf(o.legs), o.provider, millis(o.expires()), bit(h != nil && h.Critical), bit(restore), len(o.legs))
	for i := range o.legs {
		leg := &o.legs[i]
		windows := leg.windows()
		names = k.counted(names, leg, windows)
		keep, monitor, current := budget.Amount(0), false, ""
		if !restore {
			keep, monitor, current = charges[i].budget.Keep, charges[i].budget.Monitor, charges[i].current
		}
		args = append(args, leg.name, int64(leg.amount), leg.unit(), int64(keep), bit(monitor), current, leg.id,
			millis(leg.from), millis(leg.till), millis(leg.expires()), len(windows))
	}
	return command{l.scripts.hold, names, args}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// readHold reads the reply of a hold; again says that it must be tried once more.
func (l *Ledger) readHold(ctx context.Context, gen generation, o *open, charges []charge, h *budget.Hold, reply []any) (r budget.Report, again bool, err error) {
	leg := func(i int64) *charge { return &charges[i] }
	switch text(at(reply, 0)) {
	case "ok":
		l.store.told(number(at(reply, 2)))
		if len(o.legs) > 0 && !l.took(gen, o, reply) {
			return r, true, nil // the books were lost meanwhile
		}
		for _, v := range list(at(reply, 4)) {
			r.WouldRefuse = r.WouldRefuse.Binding(refusal(h, charges, list(v)))
		}
		return r, false, nil
	case "known":
		return r, false, nil
	case "conflict":
		return r, false, fmt.Errorf("%w: hold %v was another one", budget.ErrConflict, h.ID)
	case "frozen":
		l.noteFrozen(h, charges, number(at(reply, 1)), number(at(reply, 2)))
		return r, false, frozen(h, charges, number(at(reply, 1)), number(at(reply, 2)))
	case "refused":
		l.store.told(number(at(reply, 1)))
		var e *budget.ExceededError
		for _, v := range list(at(reply, 2)) {
			e = e.Binding(refusal(h, charges, list(v)))
		}
		return r, false, e
	case "overflow":
		return r, false, fmt.Errorf("%w: budget %s: the amount is out of range", budget.ErrConflict, leg(number(at(reply, 1))).budget.Label)
	case "learning":
		return r, false, unavailable(fmt.Errorf("the books are new or were lost: nothing is granted for another %v, while those who know report",
			time.Duration(number(at(reply, 1)))*time.Millisecond))
	case "time":
		l.store.told(number(at(reply, 1)))
		return r, true, nil
	case "current":
		l.moved(leg(number(at(reply, 1))), text(at(reply, 2)), number(at(reply, 3)), number(at(reply, 4)))
		return r, true, nil
	case "account":
		l.unconfigure(leg(number(at(reply, 1))).name)
		return r, true, nil
	case "vanished":
		c, id := leg(number(at(reply, 1))), text(at(reply, 3))
		if number(at(reply, 2)) == 1 {
			return r, false, unavailable(fmt.Errorf("budget %s: window %s has vanished (evicted or deleted) and is not all known: an operator may release the budget",
				c.budget.Label, id))
		}
		return r, true, l.relearn(ctx, gen, "a window has vanished", c.name+":"+id)
	case "lost":
		return r, true, l.relearn(ctx, gen, "acknowledged writes are lost", "")
	case "generation":
		return r, true, l.relearn(ctx, gen, "the books are gone", "")
	}
	return r, false, unavailable(fmt.Errorf("a reply that makes no sense"))
}

func frozen(h *budget.Hold, charges []charge, i, since int64) error {
	e := &budget.FrozenError{Provider: h.Provider, Since: time.UnixMilli(since)}
	if i > 0 {
		e.Budget = charges[i-1].budget.Label
	}
	return e
}

// refusal makes the error of a leg that does not fit from its index, its limit, and
// what each window has: settled, presumed and held.
func refusal(h *budget.Hold, charges []charge, v []any) *budget.ExceededError {
	c := &charges[number(at(v, 0))]
	t := budget.Totals{Budget: c.budget, Window: c.window, Limit: amount(at(v, 1))}
	var used []budget.Amount
	for i := 2; i+2 < len(v); i += 3 {
		s, p, held := amount(v[i]), amount(v[i+1]), amount(v[i+2])
		t.Settled, t.Presumed, t.Held = plus(t.Settled, s), plus(t.Presumed, p), plus(t.Held, held)
		used = append(used, plus(plus(s, p), held))
	}
	e := t.Refusal(c.amount, h.Critical)
	if e == nil {
		return nil
	}
	e.Provider = h.Provider
	if !e.RetryAt.IsZero() && len(used) > 1 {
		e.RetryAt = c.frees(t, used, h.Critical)
	}
	return e
}

// frees says when enough buckets of a rolling period will have left.
func (c *charge) frees(t budget.Totals, used []budget.Amount, critical bool) time.Time {
	first, step, _ := rolling(c.oldest, c.id)
	for i := range used {
		left := budget.Amount(0)
		for _, u := range used[i+1:] {
			left = plus(left, u)
		}
		t.Settled, t.Presumed, t.Held = left, 0, 0
		if t.Refusal(c.amount, critical) == nil {
			return first.Add(time.Duration(i+1+buckets) * step)
		}
	}
	return c.till
}

// plus adds, and stops at the largest amount.
func plus(a, b budget.Amount) budget.Amount {
	sum, err := a.Add(b)
	if err != nil {
		return budget.Amount(1<<63 - 1)
	}
	return sum
}

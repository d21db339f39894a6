package redisledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/outlay-go/outlay/budget"
)

// allowance is money of one window that is held in advance, to be spent while the store
// is away.
type allowance struct {
	hold *open
	left budget.Amount
	used bool
}

// holdAway grants from the allowances if the store does not answer, or returns err.
func (l *Ledger) holdAway(h *budget.Hold, charges []charge, err error) (budget.Report, error) {
	if !errors.Is(err, budget.ErrUnavailable) || !l.store.Down() || len(h.Legs) == 0 || len(l.options.Outage) == 0 {
		return budget.Report{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if frozen := l.knownFrozen(h, charges); frozen != nil {
		return budget.Report{}, frozen
	}
	now := l.store.now()
	for i := range charges {
		c := &charges[i]
		if c.budget.Monitor && c.id != "" {
			continue
		}
		a := l.allowed[c.name]
		if a == nil || c.id == "" || a.hold.legs[0].id != c.id || !now.Before(c.till) {
			return budget.Report{}, fmt.Errorf("%w (nothing of budget %s is held for this)", err, c.budget.Label)
		}
		if a.left < c.amount {
			return budget.Report{}, fmt.Errorf("%w (what was held of budget %s for this is spent)", err, c.budget.Label)
		}
	}
	if e := l.doubts[h.ID]; e != nil { // it may be in the books, and counts now
		e.dropped = true
		delete(l.doubts, h.ID)
	}
	for i := range charges {
		if a := l.allowed[charges[i].name]; a != nil {
			a.left, a.used = a.left-charges[i].amount, true
		}
	}
	o := newOpen(h, charges)
	o.away = true
	l.open[o.id] = o
	l.away = append(l.away, o)
	return budget.Report{}, nil
}

// land books what was granted while the store was away, before anything else; false if
// the store does not take it.
func (l *Ledger) land(ctx context.Context) bool {
	for range tries {
		l.mu.Lock()
		if len(l.away) == 0 {
			l.mu.Unlock()
			return true
		}
		o, gen := l.away[0], l.gen
		l.mu.Unlock()
		reply, err := l.restore(ctx, gen, o)
		if err != nil {
			return false
		}
		switch text(at(reply, 0)) {
		case "ok":
			l.landed(o, reply)
		case "known", "conflict":
			l.landed(o, nil)
		case "account":
			err = l.reconfigure(ctx, o)
		default:
			err = l.relearn(ctx, gen, "the books are gone", "")
		}
		if err != nil {
			return false
		}
	}
	return l.landing()
}

// landing reports whether nothing is left, and has the keeper look again if not.
func (l *Ledger) landing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.away) > 0 {
		l.wake()
	}
	return len(l.away) == 0
}

func (l *Ledger) landed(o *open, reply []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.away) > 0 && l.away[0] == o {
		l.away[0], l.away = nil, l.away[1:]
	}
	o.away = false
	if reply != nil {
		l.wrote(o, number(at(reply, 1)), list(at(reply, 3)))
	}
}

func (l *Ledger) reconfigure(ctx context.Context, o *open) error {
	for i := range o.legs {
		l.unconfigure(o.legs[i].name)
		l.mu.Lock()
		a := l.accounts[o.legs[i].name]
		l.mu.Unlock()
		if a == nil {
			continue
		}
		if _, err := l.configure(ctx, a.given); err != nil {
			return err
		}
	}
	return nil
}

// renewAllowances holds what may be spent in an outage: of the window that is current,
// and again after one was used.
func (l *Ledger) renewAllowances(ctx context.Context) {
	for name, amount := range l.options.Outage {
		l.mu.Lock()
		a, known := l.allowed[name], l.accounts[name]
		l.mu.Unlock()
		if known == nil || amount <= 0 {
			continue
		}
		window := known.current.Advance(known.given.Window(l.store.now())).ID
		if a != nil && !a.used && a.hold.legs[0].id == window {
			continue
		}
		if a != nil && !l.giveUp(ctx, name, a) {
			return
		}
		l.allow(ctx, name, known.given, amount)
	}
}

// allow takes an allowance, if the budget has room for it.
func (l *Ledger) allow(ctx context.Context, name string, b budget.Budget, amount budget.Amount) {
	l.mu.Lock()
	id := budget.HoldID{Boot: l.boot, Seq: math.MaxUint64 - l.seq}
	l.seq++
	l.mu.Unlock()
	h := budget.Hold{ID: id, Provider: "(outage)", Legs: []budget.Leg{{Budget: b, Amount: amount}}}
	_, err := l.holdNow(ctx, h)
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.open[id]; err == nil && o != nil && !o.away {
		l.allowed[name] = &allowance{hold: o, left: amount}
	}
}

// giveUp gives an allowance back; false if the store did not take it.
func (l *Ledger) giveUp(ctx context.Context, name string, a *allowance) bool {
	_, err := l.send(ctx, &late{open: a.hold, outcome: budget.Voided("allowance")})
	if errors.Is(err, budget.ErrUnavailable) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.allowed[name] == a {
		delete(l.allowed, name)
	}
	return true
}

func (l *Ledger) giveUpAllowances(ctx context.Context) {
	if !l.land(ctx) {
		return // what was spent of them is not booked yet
	}
	l.mu.Lock()
	all := maps.Clone(l.allowed)
	l.mu.Unlock()
	for name, a := range all {
		l.giveUp(ctx, name, a)
	}
}

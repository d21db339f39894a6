package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

const (
	// lookFor is how long what was read of a ledger outside this process is taken for true.
	lookFor = 200 * time.Millisecond
	// lookTime bounds the reading, which a caller with a turn may be waiting for.
	lookTime = 100 * time.Millisecond
)

// unpaid is asked by the limiter when the call begins to wait, and by wait when it may not:
// the refusal of a call that the ledger would refuse now, and no sooner admit than the call
// would have its turn. Money that only calls in flight hold may come back: for that it waits.
// A call that gets its turn at once is not asked, the ledger itself answers it.
func (c *call) unpaid() error {
	if c.t.ledger == nil || c.p.Monitor || c.p.next.Load() != nil {
		return nil // or its budgets may be others by now
	}
	changes := c.p.state.exhausted.changes.Load()
	err := c.booksSay()
	if isFrozen(err) {
		return err
	}
	e, ok := errors.AsType[*budget.ExceededError](err)
	if !ok || e.Busy || !e.RetryAt.IsZero() && !e.RetryAt.After(c.now.Add(c.mayWait())) {
		return nil
	}
	c.p.state.exhausted.keep(c, err, changes)
	return err
}

// lasting makes of the refusal of a limiter that of the budget, if that lasts longer: who
// tried again when a turn is free would be refused again.
func (c *call) lasting(err error) error {
	e, ok := errors.AsType[*throttle.WaitError](err)
	if !ok || e.Reason == throttle.ReasonNever || c.ctx.Err() != nil {
		return err
	}
	if broke := c.unpaid(); broke != nil {
		return broke
	}
	return err
}

// booksSay is what the ledger would say to a hold now: exactly, where it is asked for
// nothing but memory, else as far as its totals tell.
func (c *call) booksSay() error {
	if m, ok := c.t.ledger.(interface{ Admits(budget.Hold) error }); ok {
		return m.Admits(budget.Hold{Provider: c.p.Name, Legs: c.budgets, Critical: c.priority == throttle.Critical})
	}
	k := c.p.state.looks.at(c)
	switch {
	case k == nil:
		return nil
	case k.frozen != nil:
		return k.frozen
	}
	var binding *budget.ExceededError
	for i := range c.budgets {
		l := &c.budgets[i]
		if l.Budget.Monitor {
			continue
		}
		t, err := k.window(c, &l.Budget)
		switch {
		case err != nil:
			return nil // it is asked again when there is a turn
		case t.Frozen:
			return &budget.FrozenError{Provider: c.p.Name, Budget: l.Budget.Label}
		case !c.now.Before(t.Window.End):
			continue // another window has begun
		}
		if e := t.Refusal(l.Amount, c.priority == throttle.Critical); e != nil {
			e.Provider = c.p.Name
			binding = binding.Binding(e)
		}
	}
	if binding == nil {
		return nil
	}
	return binding
}

// looks lets the calls of a provider that queue share one reading of its budgets.
type looks struct {
	mu   sync.Mutex // guards last
	last *look
}

// look is one reading. Its answers are there when done is closed.
type look struct {
	at   time.Time
	done chan struct{}
	looked
	err error
}

type looked struct {
	totals  []budget.Totals
	frozen  error // the provider's
	notices []budget.Notice
}

// at returns a reading that is fresh, or nil if there is none in time.
func (l *looks) at(c *call) *look {
	now := time.Now()
	l.mu.Lock()
	k := l.last
	if k == nil || now.Sub(k.at) >= lookFor || now.Before(k.at) {
		k = &look{at: now, done: make(chan struct{})}
		l.last = k
		l.mu.Unlock()
		k.read(c)
		return k
	}
	l.mu.Unlock()
	select {
	case <-k.done:
		return k
	case <-c.ctx.Done():
		return nil
	}
}

// forgetBooks lets the next call ask the ledger itself.
func (s *providerState) forgetBooks() {
	s.looks.forget() // first: what is kept of a refusal may come from there
	s.exhausted.forget()
}

// forgetBooks is the same for all providers: they may share what changed.
func (s *setup) forgetBooks() {
	for _, p := range s.providers {
		p.state.forgetBooks()
	}
}

// forget lets the next call read anew: somebody changed the books.
func (l *looks) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = nil
}

// read reads the provider's own budgets, and whether it is frozen. That its caller leaves
// does not spoil it for the others.
func (k *look) read(c *call) {
	defer close(k.done)
	k.err = budget.ErrUnavailable // should the ledger panic
	ctx, stop := context.WithTimeout(c.books(), lookTime)
	defer stop()
	p, t, at := c.p, c.t, k.at
	var books looked
	books, k.err = within(ctx, t, func(ctx context.Context) (l looked, err error) {
		report, err := t.ledger.Hold(ctx, budget.Hold{Provider: p.Name}) // it asks only for a freeze
		if l.notices = report.Notices; isFrozen(err) {
			l.frozen = err
			return l, nil
		}
		if len(p.budgets) > 0 {
			l.totals, err = t.ledger.Totals(ctx, at, p.budgets...)
		}
		return l, err
	})
	k.looked = books
	c.noticed(budget.Report{Notices: books.notices})
}

// window finds the window of a budget. One that was made for this request is read for it.
func (k *look) window(c *call, b *budget.Budget) (budget.Totals, error) {
	if k.err != nil {
		return budget.Totals{}, k.err
	}
	for i := range k.totals {
		if k.totals[i].Budget.Name == b.Name {
			return k.totals[i], nil
		}
	}
	ctx, stop := context.WithTimeout(c.ctx, lookTime)
	defer stop()
	all, err := c.t.ledger.Totals(ctx, c.now, *b)
	if err != nil || len(all) != 1 {
		return budget.Totals{}, errors.Join(err, budget.ErrUnavailable)
	}
	return all[0], nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// books is a ledger that can be corrected.
type books interface {
	budget.Ledger
	budget.Operator
}

// account is a service's budget at the begin of the work, to tell what was spent since.
type account struct {
	ledger budget.Ledger
	budget budget.Budget
	opened time.Time
	before budget.Totals
}

func openBooks(ctx context.Context, ledger budget.Ledger, services []*service) ([]account, error) {
	var accounts []account
	for _, s := range services {
		b := s.provider.Budgets[0]
		b.Name = s.provider.Name + "-" + b.Every.String() // as outlay names it
		a := account{ledger: ledger, budget: b, opened: time.Now()}
		totals, err := ledger.Totals(ctx, a.opened, b)
		if err != nil {
			return nil, err
		}
		a.before = totals[0]
		accounts = append(accounts, a)
	}
	return accounts, nil
}

// spent is what the work has cost so far: in the window in which it began, and in the
// one that may have begun meanwhile.
func (a account) spent(ctx context.Context) (settled, presumed budget.Amount, err error) {
	first, err := a.ledger.Totals(ctx, a.opened, a.budget)
	if err != nil {
		return 0, 0, err
	}
	now, err := a.ledger.Totals(ctx, time.Now(), a.budget)
	if err != nil {
		return 0, 0, err
	}
	settled = first[0].Settled - a.before.Settled
	presumed = first[0].Presumed - a.before.Presumed
	if now[0].Window.ID != first[0].Window.ID {
		settled, presumed = settled+now[0].Settled, presumed+now[0].Presumed
	}
	return settled, presumed, nil
}

// charge is a line of an invoice that no hold has claimed yet.
type charge struct {
	vendortest.Line
	claimed bool
}

// correction is what an invoice says about the holds of unknown outcome.
type correction struct {
	billed, free, unexplained int
}

// correct replaces what was presumed by what the invoice says. A line belongs to the
// call whose answer told its reference; where none did, to a call for the same
// destination. A hold for which no line is left was not billed.
func (s *service) correct(ctx context.Context, ledger books, invoice vendortest.Invoice) (correction, error) {
	charges := make([]charge, len(invoice.Lines))
	for i, l := range invoice.Lines {
		charges[i] = charge{Line: l}
	}
	owner := s.claimSettled(charges)
	unresolved, err := ledger.Unresolved(ctx, s.provider.Name, 0)
	if err != nil {
		return correction{}, err
	}
	var c correction
	for _, u := range unresolved {
		to, ours := owner[u.ID]
		if !ours {
			continue // of an earlier run
		}
		var amount budget.Amount
		if l := claim(charges, func(l vendortest.Line) bool { return l.To == to }); l != nil {
			amount = l.Amount
			c.billed++
		} else {
			c.free++
		}
		if _, err := ledger.Correct(ctx, u.ID, amount, budget.By{Who: "quickstart", Why: "invoice"}); err != nil {
			return c, err
		}
	}
	for _, l := range charges {
		if !l.claimed {
			c.unexplained++
		}
	}
	return c, nil
}

// claimSettled claims the lines of calls that are settled, and returns where the other
// holds went.
func (s *service) claimSettled(charges []charge) map[budget.HoldID]string {
	for _, r := range s.results {
		if r.id != "" {
			claim(charges, func(l vendortest.Line) bool { return l.Ref == r.id })
		}
	}
	owner := map[budget.HoldID]string{}
	for i, r := range s.results {
		for _, c := range r.calls {
			for _, a := range c.Attempts {
				owner[a.Hold] = s.rows[i].to
				if a.State == budget.StateSettled && r.id == "" {
					claim(charges, func(l vendortest.Line) bool { return l.To == s.rows[i].to && l.Amount == a.Cost })
				}
			}
		}
	}
	return owner
}

// claim takes the first free line that fits, or returns nil.
func claim(charges []charge, fits func(vendortest.Line) bool) *vendortest.Line {
	i := slices.IndexFunc(charges, func(c charge) bool { return !c.claimed && fits(c.Line) })
	if i < 0 {
		return nil
	}
	charges[i].claimed = true
	return &charges[i].Line
}

// String tells what the invoice said.
func (c correction) String() string {
	s := fmt.Sprintf("%d of unknown outcome: %d billed, %d not", c.billed+c.free, c.billed, c.free)
	if c.unexplained > 0 {
		s += fmt.Sprintf("; %d lines of the invoice belong to no call", c.unexplained)
	}
	return s
}

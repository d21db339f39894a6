package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// summary is what the table shows of a service.
type summary struct {
	sent, throttled, retried int
	ends                     [endings]int
	waits                    []time.Duration
	reasons                  map[transport.Reason]int
}

func (s *service) summary() summary {
	sum := summary{reasons: map[transport.Reason]int{}}
	for _, r := range s.results {
		sum.ends[r.end]++
		if r.end == refused {
			sum.reasons[r.reason]++
		}
		for _, c := range r.calls {
			if len(c.Attempts) == 0 {
				continue
			}
			sum.sent += len(c.Attempts)
			sum.retried += len(c.Attempts) - 1
			sum.waits = append(sum.waits, c.Waited)
			for _, a := range c.Attempts {
				if a.Throttled {
					sum.throttled++
				}
			}
		}
	}
	slices.Sort(sum.waits)
	return sum
}

// wait returns the wait that so many percent of the calls did not exceed.
func (s summary) wait(percent int) time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	return s.waits[(len(s.waits)*percent-1)/100].Round(time.Millisecond)
}

// why lists the reasons of the refusals.
func (s summary) why() string {
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(s.reasons)) {
		parts = append(parts, fmt.Sprintf("%s %d", r, s.reasons[r]))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// settleUp prints the table of a service, compares its books with the invoice, corrects
// them, and compares again. It reports whether everything agrees.
func (s *service) settleUp(ctx context.Context, ledger books, a account, out io.Writer) bool {
	invoice := s.fake.Invoice()
	settled, presumed, err := a.spent(ctx)
	if err == nil {
		s.table(out, settled, presumed, invoice.Total)
		c := checks{out: out}
		c.check(settled <= invoice.Total && invoice.Total <= settled+presumed,
			"settled %v <= invoice %v <= settled + presumed %v", settled, invoice.Total, settled+presumed)
		var corrected correction
		if corrected, err = s.correct(ctx, ledger, invoice); err == nil {
			settled, presumed, err = a.spent(ctx)
			c.check(err == nil && settled == invoice.Total && presumed == 0,
				"corrected from the invoice (%v): books %v = invoice %v", corrected, settled+presumed, invoice.Total)
		}
		if s.provider.Retry.Unknown == transport.ReplayNever {
			twice := s.fake.Counts().Double
			c.check(twice == 0, "sent twice: %d", twice)
		}
		if err == nil {
			return !c.failed
		}
	}
	fmt.Fprintf(out, "%s: %v\n", s.provider.Name, err)
	return false
}

// table prints what happened, and the money.
func (s *service) table(out io.Writer, settled, presumed, invoice budget.Amount) {
	sum := s.summary()
	usd := func(a budget.Amount) string { return fmt.Sprintf("%v USD", a) }
	fmt.Fprintf(out, "\n%s\n", s.provider.Name)
	for _, l := range []struct {
		name  string
		value any
	}{
		{"rows", len(s.rows)},
		{"done", sum.ends[done]},
		{"failed", sum.ends[failed]},
		{"outcome unknown", sum.ends[uncertain]},
		{"refused", fmt.Sprint(sum.ends[refused], sum.why())},
		{"not begun", sum.ends[notBegun]},
		{"sent (attempts)", sum.sent},
		{"waited, p50", sum.wait(50)},
		{"waited, p99", sum.wait(99)},
		{"throttled by the vendor", sum.throttled},
		{"sent in a pause it set", s.fake.Counts().Early},
		{"retried", sum.retried},
		{"settled", usd(settled)},
		{"presumed", usd(presumed)},
		{"budget of the day", usd(s.provider.Budgets[0].Limit)},
		{"the vendor's invoice", usd(invoice)},
	} {
		fmt.Fprintf(out, "  %-24s %v\n", l.name, l.value)
	}
}

// checks prints what is claimed, and whether it holds.
type checks struct {
	out    io.Writer
	failed bool
}

func (c *checks) check(holds bool, claim string, args ...any) {
	verdict := "ok    "
	if !holds {
		verdict, c.failed = "WRONG ", true
	}
	fmt.Fprintf(c.out, "  "+verdict+claim+"\n", args...)
}

package transport

import (
	"math"
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/dialect"
)

type costFunc func() (budget.Amount, bool)

// outcome says what an attempt cost, by the evidence at hand. What the vendor's dialect
// knows decides first; the rules below are for what it leaves open.
func (a *attempt) outcome(price budget.Amount) budget.Outcome {
	switch {
	case a.err != nil && a.notSent:
		return budget.Voided("not_sent")
	case a.notTaken:
		return budget.Voided("not_taken")
	case a.err != nil:
		return budget.Outcome{Why: "no_answer"}
	case a.reading.Billed == dialect.BilledNo:
		return budget.Voided("vendor_rule")
	case a.reading.Billed == dialect.BilledYes:
		return settled(price, "vendor_rule")
	case a.reading.Partial:
		return settled(price, "partial")
	case a.reading.Throttled, a.reading.Wall:
		return budget.Voided("throttled")
	}
	return statusOutcome(a.resp.StatusCode, a.resp.Header, price)
}

// statusOutcome is what a status alone says. Nothing was found that bills an ordinary
// 429; other client errors may be billed as lookups are; a server error may come after
// the work was done, except a 503 that names a time to come back.
func statusOutcome(status int, h http.Header, price budget.Amount) budget.Outcome {
	switch {
	case status >= 300 && status < 400, status == 401, status == 403, status == 407, status == 429:
		return budget.Voided("status")
	case status < 500:
		return settled(price, "status")
	case status == http.StatusServiceUnavailable && h.Get("Retry-After") != "":
		return budget.Voided("status")
	default:
		return budget.Outcome{Why: "status"}
	}
}

func settled(a budget.Amount, why string) budget.Outcome {
	o := budget.Settled(a)
	o.Why = why
	return o
}

// resolveHold ends the hold now, or leaves it to the end of the body if the price is in
// there.
func (c *call) resolveHold(a *attempt, o budget.Outcome) {
	a.date = c.t.dateOf(a.resp)
	if o.State == budget.StateSettled && a.resp != nil && c.p.metered != nil {
		if a.meter, a.cost = c.p.metered.Meter(a.resp); a.cost != nil {
			a.pending = true
			return
		}
	}
	if a.err != nil && o.State == budget.StatePresumed {
		o.Why = errorClass(c.ctx, a.err) + "_after_write"
	}
	o.Ref, o.Seen = a.reading.Ref, a.date
	c.close(o)
}

// close resolves the hold of the attempt under way. It never fails the call: a ledger that cannot
// write keeps the outcome, and until then the hold counts as spent.
func (c *call) close(o budget.Outcome) {
	c.holding = false
	c.freshen()
	began := c.now
	report, err := c.t.ledger.Resolve(c.books(), c.holdID, o)
	c.t.ledgerHealth.note(c, "resolve", err)
	cost := c.quote.Amount
	switch o.State {
	case budget.StateSettled:
		cost = o.Amount
	case budget.StatePresumed:
		cost = max(cost, o.Amount) // what is known to be spent may be more than was held
	case budget.StateVoided:
		cost = 0
	}
	c.cost = plus(c.cost, cost)
	c.rec.attempt(c.attempt, func(i *AttemptInfo) {
		i.State, i.Cost, i.Unit, i.Why = o.State, cost, c.quote.Unit, o.Why
	})
	if c.t.onEvent != nil {
		e := Event{Kind: KindResolved, Took: c.lap().Sub(began), Outcome: o.State.String(), Evidence: o.Why, Hold: c.quote.Amount, Cost: cost,
			Unit: c.quote.Unit, Overrun: report.Overrun, Delta: report.Delta, Late: report.Late, Assumed: c.quote.Assumed}
		if !o.Seen.IsZero() {
			e.Skew = began.Sub(o.Seen)
		}
		if report.Overrun == 0 && o.State == budget.StateSettled {
			e.Overrun = max(0, cost-c.quote.Amount)
		}
		c.emit(&e)
		c.noticed(report)
	}
}

// plus adds costs, which are not negative, without overflow.
func plus(a, b budget.Amount) budget.Amount {
	if sum, err := a.Add(b); err == nil {
		return sum
	}
	return math.MaxInt64
}

// dateOf returns the Date of an answer as a witness for the ledger's clock, at most once
// per second of it: parsing each would cost more than the books themselves.
func (t *Transport) dateOf(resp *http.Response) time.Time {
	if resp == nil || t.ledger == nil {
		return time.Time{}
	}
	v := resp.Header["Date"]
	if len(v) != 1 {
		return time.Time{}
	}
	if last := t.date.Load(); last != nil && *last == v[0] {
		return time.Time{}
	}
	seen, err := http.ParseTime(v[0])
	if err != nil {
		return time.Time{}
	}
	date := v[0] // the caller may change the header
	t.date.Store(&date)
	return seen
}

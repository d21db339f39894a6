package price

import (
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/outlay-go/outlay/budget"
)

// AnswerCost says where a vendor's answer tells what the call cost.
type AnswerCost struct {
	// Amounts is the path of the amounts in the JSON of the answer: keys joined by dots,
	// lists being passed through, as in "messages.message-price". All that are there
	// are added up. An amount may have its currency before it: "KES 0.8000".
	Amounts string
	// Currency is the path of the currency's code, or In is the currency itself. Both
	// empty: the amounts bring it.
	Currency, In string
	// Header instead names a header with a number of credits, of PerCredit each.
	Header    string
	PerCredit budget.Amount
}

// Answered prices calls by an estimate, and learns the real cost from the answer. Make
// one with [FromAnswer]; it must not be copied.
type Answered struct {
	estimate Pricer
	tells    AnswerCost
	unit     string
	dearest  atomic.Int64 // quote so far
}

// FromAnswer prices calls at what the estimate says, to be held, and learns from the
// answer at what to settle.
//
// The answer is not believed, and the cost stays unknown, if the amount is missing,
// malformed or negative, in another currency than the estimate, or more than a
// hundred times the dearest quote so far, as an amount in another unit would be.
func FromAnswer(estimate Pricer, cost AnswerCost) *Answered {
	a := &Answered{estimate: estimate, tells: cost, unit: unitOr("")}
	if u, ok := estimate.(interface{ Unit() string }); ok {
		a.unit = u.Unit()
	}
	return a
}

// Unit is the currency of the estimate.
func (a *Answered) Unit() string { return a.unit }

// Quote is that of the estimate.
func (a *Answered) Quote(r *http.Request) (budget.Quote, error) {
	if a.estimate == nil {
		return budget.Quote{}, unpriced("no estimate was given")
	}
	q, err := a.estimate.Quote(r)
	for old := a.dearest.Load(); err == nil && int64(q.Amount) > old; old = a.dearest.Load() {
		if a.dearest.CompareAndSwap(old, int64(q.Amount)) {
			break
		}
	}
	return q, err
}

// Meter reads what a good answer tells.
func (a *Answered) Meter(resp *http.Response) (io.Writer, func() (budget.Amount, bool)) {
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, nil
	}
	if a.tells.Header != "" {
		return nil, func() (budget.Amount, bool) {
			told := resp.Header.Values(a.tells.Header)
			if len(told) != 1 || a.tells.PerCredit < 0 {
				return 0, false
			}
			credits, err := budget.Parse(told[0])
			if err != nil {
				return 0, false
			}
			var w wide
			w.add(a.tells.PerCredit, int64(credits))
			sum, err := w.over(int64(budget.Unit))
			return sum, err == nil && a.believes(sum)
		}
	}
	t := telling{tells: &a.tells, currency: a.tells.In}
	e := newEvents(t.read, func(_ []byte, broken bool) { t.whole = !broken })
	return metering(resp, e, func() (budget.Amount, bool) {
		if !t.whole || t.bad || t.found == 0 || !t.in(a.unit) || !a.believes(t.sum) {
			return 0, false
		}
		return t.sum, true
	})
}

// believes reports whether an amount can be right. With nothing but free estimates
// there is nothing to compare it with.
func (a *Answered) believes(sum budget.Amount) bool {
	dearest := a.dearest.Load()
	return dearest == 0 || dearest > math.MaxInt64/100 || int64(sum) <= 100*dearest
}

// telling is what an answer told so far.
type telling struct {
	tells    *AnswerCost
	sum      budget.Amount
	currency string
	found    int
	whole    bool
	bad      bool
}

func (t *telling) read(path, raw []byte, _ bool) {
	switch string(path) {
	case t.tells.Amounts:
		t.add(string(raw))
	case t.tells.Currency:
		t.name(string(raw))
	}
}

// add takes one amount.
func (t *telling) add(s string) {
	if code, amount, ok := strings.Cut(s, " "); ok {
		t.name(code)
		s = amount
	}
	v, err := budget.ParseUp(s)
	if err == nil {
		t.sum, err = t.sum.Add(v)
	}
	t.bad = t.bad || err != nil
	t.found++
}

// name takes a currency; two are too many.
func (t *telling) name(code string) {
	t.bad = t.bad || t.currency != "" && t.currency != code
	t.currency = code
}

// in reports whether the amounts are in a currency. Nothing costs nothing in any.
func (t *telling) in(unit string) bool {
	return t.currency == unit || t.sum == 0 && t.currency == ""
}

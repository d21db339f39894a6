// Package price says what a call costs before it is sent.
//
// Every price has Quote, which reads a request and gives an upper bound of its cost,
// and all but [Free] have Unit, which names the currency. Those whose real cost is told
// by the answer have Meter as well. Quote and Meter are the seams Pricer and Metered of
// package transport; this package knows nothing of HTTP clients.
//
// A price that is not known is never free: Quote then fails with an error that wraps
// [budget.ErrUnpriced], the call is not sent and nothing is charged. Whoever wants an
// unpriced call to go out says so, with [Or] and [Assume].
//
// Quote never consumes a request: a body is read only as a fresh copy from GetBody.
// Prices are integers of 10^-9 units, and what does not divide is rounded up. All
// prices are safe for concurrent use; the zero values of all but Free know no price.
package price

import (
	"fmt"
	"math/bits"
	"net/http"

	"github.com/outlay-go/outlay/budget"
)

// Pricer gives the upper bound of what a request may cost. It is what package
// transport asks for.
type Pricer interface {
	Quote(*http.Request) (budget.Quote, error)
}

// Units counts the billed things in a request: segments, elements, lookups. An error
// that wraps [budget.ErrUnpriced] says that they cannot be counted.
type Units func(*http.Request) (int64, error)

// Fixed is one price for every call, from [PerCall] or [Assume]. The zero value
// knows no price.
type Fixed struct {
	amount         budget.Amount
	unit           string
	known, assumed bool
}

// PerCall prices every call at a US dollars; see [Fixed.In] for other currencies. A
// price of zero is a price: such calls pass even when the budget is exhausted.
func PerCall(a budget.Amount) Fixed { return Fixed{amount: a, known: true} }

// Assume prices every call at a, and marks the quote as an assumption that no price
// list supports.
func Assume(a budget.Amount) Fixed { return Fixed{amount: a, known: true, assumed: true} }

// In returns f with its price in another currency, an ISO 4217 code.
func (f Fixed) In(unit string) Fixed { f.unit = unit; return f }

// Unit is the currency of the price.
func (f Fixed) Unit() string { return unitOr(f.unit) }

// Quote gives the fixed price. It does not look at the request, which may be nil.
func (f Fixed) Quote(*http.Request) (budget.Quote, error) {
	if !f.known {
		return budget.Quote{}, unpriced("no price was given")
	}
	if f.amount < 0 {
		return budget.Quote{}, unpriced("the price is negative")
	}
	return budget.Quote{Amount: f.amount, Unit: f.Unit(), Units: 1, Assumed: f.assumed}, nil
}

// Validate returns an error for a price that nobody means: below zero, or more than zero
// and less than 0.0000001, so far below what any vendor charges that a [budget.Unit] was
// forgotten, which would let money out uncounted. The transport refuses such a price
// when it is configured.
func (f Fixed) Validate() error { return plausible(f.amount, leastPrice, f.Unit()) }

// Less than any vendor charges: a ten-millionth for a call or a text, a hundred-millionth
// for a smaller thing such as a character.
const leastPrice, leastUnitPrice budget.Amount = 100, 10

func plausible(a, least budget.Amount, unit string) error {
	switch {
	case a < 0:
		return fmt.Errorf("%v %s is negative", a, unit)
	case 0 < a && a < least:
		return fmt.Errorf("%v %s is no price; for %d %[2]s write %[3]d*budget.Unit, for less budget.MustParse", a, unit, int64(a))
	}
	return nil
}

// FreeOfCharge is the type of [Free].
type FreeOfCharge uint8

// Free says that calls cost nothing. It states no currency, so that it stands beside
// budgets in any.
const Free FreeOfCharge = 0

// Quote gives an amount of zero.
func (FreeOfCharge) Quote(*http.Request) (budget.Quote, error) { return budget.Quote{}, nil }

// PerUnit is a price per billed thing, from [Per]. The zero value knows no price.
type PerUnit struct {
	price budget.Amount
	unit  string
	count Units
}

// Per prices a call at unitPrice US dollars for each thing that count finds in the
// request; see [PerUnit.In] for other currencies.
func Per(unitPrice budget.Amount, count Units) PerUnit {
	return PerUnit{price: unitPrice, count: count}
}

// In returns p with its price in another currency, an ISO 4217 code.
func (p PerUnit) In(unit string) PerUnit { p.unit = unit; return p }

// Unit is the currency of the price.
func (p PerUnit) Unit() string { return unitOr(p.unit) }

// Validate returns an error for a price that nobody means; see [Fixed.Validate].
func (p PerUnit) Validate() error { return plausible(p.price, leastUnitPrice, p.Unit()) }

// Quote counts and multiplies. The error of the counting function is returned as it
// is; a negative count or price and an overflow are [budget.ErrUnpriced].
func (p PerUnit) Quote(r *http.Request) (budget.Quote, error) {
	if p.count == nil {
		return budget.Quote{}, unpriced("no price was given")
	}
	n, err := p.count(r)
	if err != nil {
		return budget.Quote{}, err
	}
	a, err := cost(p.price, n)
	if err != nil {
		return budget.Quote{}, err
	}
	return budget.Quote{Amount: a, Unit: p.Unit(), Units: n}, nil
}

// wide is a sum of products in 128 bits, so that a cost is rounded once and no
// product overflows on the way.
type wide struct{ hi, lo uint64 }

// add adds price*n. Both are zero or more, and their product is below 2^126.
func (w *wide) add(price budget.Amount, n int64) {
	hi, lo := bits.Mul64(uint64(price), uint64(n))
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

// over divides by per and rounds up to the next 10^-9 of the currency.
func (w wide) over(per int64) (budget.Amount, error) {
	lo, carry := bits.Add64(w.lo, uint64(per-1), 0)
	hi := w.hi + carry
	if hi >= uint64(per) {
		return 0, unpriced("the cost overflows")
	}
	q, _ := bits.Div64(hi, lo, uint64(per))
	if int64(q) < 0 {
		return 0, unpriced("the cost overflows")
	}
	return budget.Amount(q), nil
}

// cost is price*n.
func cost(price budget.Amount, n int64) (budget.Amount, error) {
	if price < 0 || n < 0 {
		return 0, unpriced("a price or a count is negative")
	}
	var w wide
	w.add(price, n)
	return w.over(1)
}

// unpriced makes an error that says why there is no price. The reason must not quote
// the request: it holds phone numbers and texts.
func unpriced(why string) error { return fmt.Errorf("%w: %s", budget.ErrUnpriced, why) }

// unitOr is unit, or US dollars.
func unitOr(unit string) string {
	if unit == "" {
		return "USD"
	}
	return unit
}

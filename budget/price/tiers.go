package price

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
)

// Tiers prices units by volume: the more of them in a billing period, the cheaper the
// next.
type Tiers struct {
	// Steps in ascending order of From.
	Steps []Tier
	// Count counts the units of a call. Nil: one.
	Count Units
	// Used says how many units the billing period has seen so far. It must survive a
	// restart of the program to be right. Nil: unknown, and every unit is priced at the
	// dearest step.
	Used func() int64
	// Currency of the prices, an ISO 4217 code. Empty: USD.
	Currency string
}

// Tier is the price of every unit after the first From units of a period.
type Tier struct {
	From  int64
	Price budget.Amount
}

// Unit is the currency of the prices.
func (t Tiers) Unit() string { return unitOr(t.Currency) }

// Quote prices the units of a call one step after the other. Without steps, or with
// such as do not ascend from zero, calls are unpriced.
func (t Tiers) Quote(r *http.Request) (budget.Quote, error) {
	n, err := int64(1), error(nil)
	if t.Count != nil {
		n, err = t.Count(r)
	}
	if err != nil {
		return budget.Quote{}, err
	}
	dearest, err := t.check()
	if err != nil {
		return budget.Quote{}, err
	}
	var a budget.Amount
	if t.Used == nil {
		a, err = cost(dearest, n)
	} else {
		a, err = t.cost(max(0, t.Used()), n)
	}
	return budget.Quote{Amount: a, Unit: t.Unit(), Units: n}, err
}

// check returns the dearest price.
func (t Tiers) check() (dearest budget.Amount, err error) {
	if len(t.Steps) == 0 || t.Steps[0].From != 0 {
		return 0, unpriced("the steps of the price do not begin at zero")
	}
	for i, s := range t.Steps {
		if s.Price < 0 || i > 0 && s.From <= t.Steps[i-1].From {
			return 0, unpriced("the steps of the price do not ascend")
		}
		dearest = max(dearest, s.Price)
	}
	return dearest, nil
}

// cost prices the n units after the first used ones.
func (t Tiers) cost(used, n int64) (budget.Amount, error) {
	if n < 0 {
		return 0, unpriced("a count is negative")
	}
	var w wide
	for i, s := range t.Steps {
		take := n
		if i+1 < len(t.Steps) {
			take = min(n, max(0, t.Steps[i+1].From-used))
		}
		w.add(s.Price, take)
		used, n = used+take, n-take
	}
	return w.over(1)
}

package price

import (
	"errors"
	"io"
	"net/http"

	"github.com/outlay-go/outlay/budget"
)

// Or prices a call by p, and if p knows no price, by fallback: Or(p, Assume(a)) lets
// unpriced calls go out at an assumed price. Other errors of p, such as a body that
// cannot be read, stay errors.
//
// The result states the currency and learns the real cost as p does.
func Or(p, fallback Pricer) Pricer {
	o := or{p, fallback}
	if m, ok := p.(metered); ok {
		return orMetered{o, m}
	}
	return o
}

type metered interface {
	Meter(*http.Response) (io.Writer, func() (budget.Amount, bool))
}

type or struct{ first, fallback Pricer }

type orMetered struct {
	or
	metered
}

func (o or) Quote(r *http.Request) (budget.Quote, error) {
	q, err := o.first.Quote(r)
	if errors.Is(err, budget.ErrUnpriced) {
		return o.fallback.Quote(r)
	}
	return q, err
}

// Unit is the currency of the first pricer that states one.
func (o or) Unit() string {
	for _, p := range []Pricer{o.first, o.fallback} {
		if u, ok := p.(interface{ Unit() string }); ok {
			return u.Unit()
		}
	}
	return unitOr("")
}

package throttle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// The bounds of a sane rate. Beyond them a number in a configuration is a mistake of
// unit, and the arithmetic of waiting would overflow.
const (
	maxTurns  = math.MaxInt32        // of N, Burst and Weight
	maxPeriod = 400 * 24 * time.Hour // of Per
)

// wrong is what is wrong with a field.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...))
}

// Validate reports what is wrong with r, naming the field, or nil.
func (r Rate) Validate() error {
	switch {
	case r.N < 1:
		return wrong("N", "%d turns, want at least 1; no limit is an empty slice of rates", r.N)
	case r.N > maxTurns:
		return wrong("N", "%d turns, want at most %d", r.N, maxTurns)
	case r.Per <= 0:
		return wrong("Per", "%v, want more than zero", r.Per)
	case r.Per > maxPeriod:
		return wrong("Per", "%v, want at most %v", r.Per, maxPeriod)
	case int64(r.N) > int64(r.Per):
		return wrong("N", "%d turns in %v, want at most one in a nanosecond", r.N, r.Per)
	case r.Burst < 0:
		return wrong("Burst", "%d, want zero or more", r.Burst)
	case r.Burst > maxTurns:
		return wrong("Burst", "%d, want at most %d", r.Burst, maxTurns)
	}
	return nil
}

// burst is the size of the token bucket, or 0 where a strict window alone limits.
func (r Rate) burst() int {
	if r.Strict {
		return r.Burst
	}
	return max(1, r.Burst)
}

// most is the heaviest turn the rate can ever admit.
func (r Rate) most() int {
	if !r.Strict {
		return r.burst()
	}
	if r.Burst > 0 {
		return min(r.N, r.Burst)
	}
	return r.N
}

// limit is the rate per second, for x/time.
func (r Rate) limit() rate.Limit { return rate.Limit(float64(r.N) / r.Per.Seconds()) }

// plan is the rates of a scope, checked and split by mechanism. Scopes with equal
// rates share one, so that a million keys do not carry a million copies.
type plan struct {
	rates  []Rate
	tokens []Rate // those with a token bucket
	strict []Rate // those with a window
	most   int    // the heaviest turn that all rates can admit
}

// noPlan is that of scopes without a rate, unasked that of scopes known from Cap only.
var (
	noPlan  = &plan{most: maxTurns}
	unasked = &plan{most: maxTurns}
)

func newPlan(rates []Rate) *plan {
	if len(rates) == 0 {
		return noPlan
	}
	p := &plan{rates: slices.Clone(rates), most: maxTurns}
	for _, r := range p.rates {
		if r.burst() > 0 {
			p.tokens = append(p.tokens, r)
		}
		if r.Strict {
			p.strict = append(p.strict, r)
		}
		p.most = min(p.most, r.most())
	}
	return p
}

var (
	errNoLegs  = errors.New("throttle: ask: Legs: empty, want at least one")
	errNoKey   = wrong("Key", "empty")
	errSameKey = wrong("Key", "the same scope twice")

	errManyLegs = fmt.Errorf("throttle: ask: Legs: more than %d", maxLegs)
)

// Validate reports what is wrong with l, naming the field, or nil.
func (l Leg) Validate() error {
	switch {
	case l.Key == "":
		return errNoKey
	case l.Weight < 0 || l.Weight > maxTurns:
		return wrong("Weight", "%d, want 0 to %d", l.Weight, maxTurns)
	case l.Slots < 0 || l.Slots > maxTurns:
		return wrong("Slots", "%d, want 0 to %d", l.Slots, maxTurns)
	}
	for i, r := range l.Rates {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("%s[%d].%w", "Rates", i, err)
		}
	}
	return nil
}

// weight is what the turn takes from each rate.
func (l Leg) weight() int { return max(1, l.Weight) }

// Validate reports what is wrong with the ask, naming the field, or nil.
func (a Ask) Validate() error {
	if len(a.Legs) == 0 {
		return errNoLegs
	}
	for i, l := range a.Legs {
		err := l.Validate()
		if err == nil && slices.ContainsFunc(a.Legs[:i], func(o Leg) bool { return o.Key == l.Key }) {
			err = errSameKey
		}
		if err != nil {
			return fmt.Errorf("throttle: ask: Legs[%d].%w", i, err)
		}
	}
	return nil
}

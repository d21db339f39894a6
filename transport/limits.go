package transport

import "github.com/outlay-go/outlay/throttle"

// current is the provider of this name in the newest configuration.
func (p *provider) current() *provider {
	for next := p.next.Load(); next != nil; next = p.next.Load() {
		p = next
	}
	return p
}

// limits brings the legs of a call that began under an older configuration up to date: the
// rates last asked with hold for everybody, so that a late attempt of an old call would
// bring the old ones back.
func (c *call) limits() {
	if p := c.p.current(); p != c.p {
		c.legs = p.legsFor(c.req, c.quote)
	}
}

// retune tells the limiter the newest rates, in case the configuration changed between
// limits and the limiter.
func (c *call) retune() {
	p := c.p.current()
	if p == c.p {
		return
	}
	if tuner, ok := c.t.limiter.(throttle.Tuner); ok {
		_ = tuner.Set(throttle.Leg{Key: p.Name, Rates: p.Rates, Slots: p.MaxInFlight}) // as in retime
	}
}

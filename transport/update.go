package transport

import (
	"context"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// Update swaps in a new configuration, whole or not at all: its error names every wrong
// field, and then nothing has changed. Base, TracedBase, Ledger, Limiter, OnEvent and
// AttemptInContext stay those of New, whatever c says.
//
// Calls under way finish under the configuration they began with. Buckets, gates, slots
// and books go on by the names of providers and scopes: those who wait are re-timed to
// new rates at once, a larger bucket is not refilled, and no gate opens. Waiters of a
// provider that is gone get their turn all the same.
func (t *Transport) Update(c Config) error {
	if err := t.swap(c); err != nil {
		return err
	}
	t.emit(context.Background(), Event{Kind: KindChanged, Time: time.Now().UTC(), Action: "update", Actor: "configuration"})
	return nil
}

func (t *Transport) swap(c Config) error {
	t.updating.Lock()
	defer t.updating.Unlock()
	c.Base, c.Ledger, c.Limiter = nil, t.ledger, nil
	set, err := compile(c, t.setup.Load())
	if err != nil {
		return err
	}
	old := t.setup.Swap(set)
	for _, p := range set.providers {
		if was := old.named(p.Name); was != nil {
			was.next.Store(p)
		}
	}
	for _, p := range set.providers {
		p.state.forgetBooks() // limits may be higher
		t.retime(p)
	}
	return nil
}

// retime tells the limiter what limits those who wait for the provider, and for its scopes.
func (t *Transport) retime(p *provider) {
	tuner, ok := t.limiter.(throttle.Tuner)
	if !ok {
		return
	}
	// Validated already; what a store does not hear now, the next call tells it.
	_ = tuner.Set(throttle.Leg{Key: p.Name, Rates: p.Rates, Slots: p.MaxInFlight})
	i, ok := t.limiter.(throttle.Informer)
	if !ok {
		return
	}
	for _, s := range i.Stats(p.Name).Scopes {
		if s.Waiting == 0 {
			continue // the next call tells it
		}
		if leg, ok := p.legOf(s.Key); ok {
			_ = tuner.Set(leg)
		}
	}
}

package gateway

import (
	"context"
	"fmt"
	"sync"
)

// drain counts the calls under way and ends when there are none any more.
type drain struct {
	mu      sync.Mutex // guards all
	n       int
	closing bool
	empty   chan struct{}
}

// enter counts a call, unless no more are taken.
func (d *drain) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.n++
	return true
}

func (d *drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n--; d.n == 0 && d.closing {
		close(d.empty)
	}
}

// close takes no more calls, and returns a channel that is closed when the last one is
// gone.
func (d *drain) close() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.empty == nil {
		d.empty = make(chan struct{})
		if d.closing = true; d.n == 0 {
			close(d.empty)
		}
	}
	return d.empty
}

// Shutdown refuses all calls that come, and those that wait, with 503: nothing of them was
// sent. Calls that were sent are finished and settled until ctx ends; then they are cut
// off, which presumes their holds spent, and the error is that of ctx. It returns when no
// call is under way any more; the ledger may be closed then. A Gateway cannot be used
// again.
func (g *Gateway) Shutdown(ctx context.Context) error {
	empty := g.active.close()
	g.endQueue(errShuttingDown)
	select {
	case <-empty:
	case <-ctx.Done():
		g.abort(errAborted)
		<-empty
		g.base().CloseIdleConnections()
		return ctx.Err()
	}
	g.base().CloseIdleConnections()
	return nil
}

func (g *Gateway) base() base { return base{g} }

// Reload swaps in another configuration, whole or not at all: its error names every wrong
// field, and then nothing has changed.
//
// Calls under way go on under the configuration that they began with; those that wait are
// re-timed to new rates at once. What is known of rates, gates and money goes on by the
// names of providers, scopes and budgets. Calls that wait for a provider that is gone, or
// stopped, are refused with 503, and nothing of them was sent; those that were sent finish.
func (g *Gateway) Reload(c Config) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	old := g.snap.Load()
	next, err := g.compile(c, old)
	if err != nil {
		return err
	}
	if err := g.t.Update(next.transportConfig()); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.snap.Store(next)
	for _, u := range old.upstreams {
		now := next.byName[u.Name]
		switch {
		case now == nil:
			u.live.end(errRemoved)
		case now.live != u.live:
			u.live.end(errStopped)
		}
		if c, ok := u.conns.(interface{ CloseIdleConnections() }); ok && g.parts.Base == nil && (now == nil || now.conns != u.conns) {
			c.CloseIdleConnections()
		}
	}
	g.log.Info("configuration", "source", c.Source, "providers", len(next.upstreams))
	return nil
}

// Outdated sets a sentence that ends the refusals of paths and providers that are not
// configured: that a newer configuration, which may have them, was refused. Empty: none.
func (g *Gateway) Outdated(why string) { g.outdated.Store(&why) }

// outdatedHint ends the text of a refusal that a newer configuration may not make.
func (g *Gateway) outdatedHint() string {
	if why := g.outdated.Load(); why != nil && *why != "" {
		return "; " + *why
	}
	return ""
}

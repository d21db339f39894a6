package transport_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// A heavy call takes as many turns as it weighs, of the provider or of a scope.
func TestHeavyCallsTakeSeveralTurns(t *testing.T) {
	ten := []throttle.Rate{{N: 10, Per: time.Second, Burst: 10}}
	for name, change := range map[string]func(*transport.Provider, func(*http.Request) int){
		"provider": func(p *transport.Provider, w func(*http.Request) int) { p.Rates, p.Weight = ten, w },
		"scope": func(p *transport.Provider, w func(*http.Request) int) {
			p.Scopes = []transport.Scope{{Name: "key", Rates: ten, Weight: w}}
		},
	} {
		for weight, passes := range map[int]int{-1: 10, 0: 10, 3: 3, 10: 1, 11: 0} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
					c.MaxWait = transport.NoWait
					change(p, func(*http.Request) int { return weight })
				})
				for range passes {
					_, err := w.get()
					require.NoError(t, err, "%s, weight %d", name, weight)
				}
				_, err := w.get()
				require.Equal(t, map[bool]transport.Reason{true: transport.ReasonNever, false: transport.ReasonRate}[weight > 10], transport.ReasonOf(err), "%s, weight %d", name, weight)
			})
		}
	}
}

// asking remembers what a limiter is asked and told.
type asking struct {
	throttle.Limiter
	asks []throttle.Ask
	caps []throttle.Cap
}

func (a *asking) Wait(ctx context.Context, ask throttle.Ask) (throttle.Turn, error) {
	a.asks = append(a.asks, ask)
	return a.Limiter.Wait(ctx, ask)
}

func (a *asking) Cap(ctx context.Context, c throttle.Cap) error {
	a.caps = append(a.caps, c)
	return a.Limiter.Cap(ctx, c)
}

// Who goes first is said by the context, or by the provider for SDKs that drop it.
func TestPriorityAndTenantOfACall(t *testing.T) {
	said := func(ctx context.Context) context.Context {
		return transport.WithTenant(transport.WithPriority(ctx, throttle.Critical), "acme")
	}
	of := func(p *transport.Provider) {
		p.Priority = func(*http.Request) throttle.Priority { return throttle.Bulk }
		p.Tenant = func(*http.Request) string { return "bolt" }
	}
	for name, c := range map[string]struct {
		change   func(*transport.Provider)
		ctx      func(context.Context) context.Context
		view     func(context.Context) context.Context
		priority throttle.Priority
		tenant   string
	}{
		"nobody":       {priority: throttle.Normal},
		"the context":  {ctx: said, priority: throttle.Critical, tenant: "acme"},
		"a view":       {view: said, priority: throttle.Critical, tenant: "acme"},
		"the provider": {change: of, ctx: said, priority: throttle.Bulk, tenant: "bolt"},
	} {
		limiter := &asking{Limiter: throttle.NewBucket()}
		w := newWorld(t, answers(t, answer{status: 200}), func(k *transport.Config, p *transport.Provider) {
			k.Limiter = limiter
			if c.change != nil {
				c.change(p)
			}
		})
		ctx, rt := t.Context(), http.RoundTripper(w)
		if c.ctx != nil {
			ctx = c.ctx(ctx)
		}
		if c.view != nil {
			rt = w.As(c.view(t.Context()))
		}
		_, err := rt.RoundTrip(request(t, ctx, nil))
		require.NoError(t, err)
		require.Len(t, limiter.asks, 1)
		require.Equal(t, c.priority, limiter.asks[0].Priority, name)
		require.Equal(t, c.tenant, limiter.asks[0].Tenant, name)
	}
}

// A 429 that says nothing lowers the effective rate, unless the configured one is fixed.
func TestA429WithoutAHintSlowsUnlessTheRateIsFixed(t *testing.T) {
	for header, slows := range map[string]bool{"": true, "Retry-After: 2": false} {
		for _, fixed := range []bool{false, true} {
			limiter := &asking{Limiter: throttle.NewBucket()}
			w := newWorld(t, answers(t, answer{status: 429, header: header}), func(k *transport.Config, p *transport.Provider) {
				k.Limiter, p.FixedRate, p.Retry.Attempts = limiter, fixed, 1
			})
			_, err := w.get()
			require.NoError(t, err)
			require.Len(t, limiter.caps, 1)
			require.Equal(t, slows && !fixed, limiter.caps[0].Slow, "%q, fixed %t", header, fixed)
		}
	}
}

// Budgets without a name have that of their provider, or of all, with the period.
func TestBudgetsWithoutNames(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(k *transport.Config, p *transport.Provider) {
		k.Budgets = []budget.Budget{budget.PerMonth(5 * budget.Unit)}
		p.Budgets = []budget.Budget{budget.PerDay(5 * budget.Unit), budget.PerWeek(5 * budget.Unit)}
	})
	s, err := w.Status(t.Context())
	require.NoError(t, err)
	var names []string
	for _, b := range s.Budgets {
		names = append(names, b.Budget.Name)
	}
	require.ElementsMatch(t, []string{"api-day", "api-week", "all-month"}, names)
}

package transport_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// away is a store whose errors have its address with the password in them.
type away struct {
	budget.Memory
	err error
}

func (a *away) Hold(context.Context, budget.Hold) (budget.Report, error) {
	return budget.Report{}, a.err
}

func (a *away) Wait(context.Context, throttle.Ask) (throttle.Turn, error) {
	return throttle.Turn{}, a.err
}

func (a *away) Cap(context.Context, throttle.Cap) error { return a.err }

// What callers log has no password of a store, and still says what was wrong.
func TestThePasswordOfAStoreIsNotInOurErrors(t *testing.T) {
	for _, secret := range []string{"redis://:planted-pw@10.1.2.3:6379", "redis://user:planted@pw@host", "rediss://planted%40@h"} {
		for _, cause := range []error{budget.ErrUnavailable, throttle.ErrUnavailable} {
			store := &away{err: fmt.Errorf("%w: dial %q: refused", cause, secret)}
			c := transport.Config{Providers: []transport.Provider{{
				Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(1000), Budgets: []budget.Budget{budget.PerDay(budget.Unit)},
			}}}
			if cause == budget.ErrUnavailable {
				c.Ledger = store
			} else {
				c.Limiter, c.Ledger = store, new(budget.Memory)
			}
			rt, err := transport.New(c)
			require.NoError(t, err)
			_, err = rt.Client().Get("http://api.example.com/")
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "refused")
			require.ErrorContains(t, err, "://***@")
			require.NotContains(t, err.Error(), "planted")
		}
	}
}

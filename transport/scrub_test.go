package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

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

// shut answers nobody, and says why with its address.
type shut struct {
	budget.Memory
	err error
}

func (s *shut) Totals(context.Context, time.Time, ...budget.Budget) ([]budget.Totals, error) {
	return nil, s.err
}
func (s *shut) Configure(context.Context, budget.Budget) error                     { return s.err }
func (s *shut) Freeze(context.Context, budget.Target, budget.By) error             { return s.err }
func (s *shut) Note(context.Context, budget.Audited) error                         { return s.err }
func (s *shut) Windows(_ context.Context, _, _ time.Time) ([]budget.Totals, error) { return nil, s.err }
func (s *shut) Unresolved(context.Context, string, int) ([]budget.Unresolved, error) {
	return nil, s.err
}
func (s *shut) Correct(context.Context, budget.HoldID, budget.Amount, budget.By) (budget.Correction, error) {
	return budget.Correction{}, s.err
}

// Operators log errors too.
func TestThePasswordOfAStoreIsNotInWhatOperatorsAreTold(t *testing.T) {
	store := &shut{err: fmt.Errorf("%w: redis://user:planted@host: refused", budget.ErrUnavailable)}
	w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, _ *transport.Provider) { c.Ledger = store })
	ctx, by := t.Context(), budget.By{Who: "maria"}
	status, err := w.Status(ctx)
	require.NoError(t, err)
	_, plan := w.Plan(request(t, ctx, nil))
	_, unresolved := w.Unresolved(ctx, "", 0)
	_, corrected := w.Correct(ctx, budget.HoldID{}, 0, by)
	_, windows := w.Windows(ctx, time.Now(), time.Now())
	for name, err := range map[string]error{
		"status": status.LedgerErr, "plan": plan, "unresolved": unresolved, "correct": corrected, "windows": windows,
		"freeze": w.Freeze(ctx, "api", by), "freeze budget": w.FreezeBudget(ctx, "day", by), "limit": w.SetLimit(ctx, "day", 1, by),
		"gate": w.OpenGate(ctx, "api", by), "note": w.Note(ctx, budget.Audited{}),
	} {
		require.ErrorIs(t, err, budget.ErrUnavailable, name)
		require.ErrorContains(t, err, "://***@host: refused", name)
		require.NotContains(t, err.Error(), "planted", name)
	}
}

// Errors of Base quote what they failed on: an address with its key, a proxy's password, or
// what the server wrote.
func TestWhatBaseQuotesIsNotInOurErrors(t *testing.T) {
	_, badURL := url.Parse(fmt.Sprint("http://user:planted", "/x@proxy:8080"))
	require.ErrorContains(t, badURL, "planted")
	for name, cause := range map[string]error{
		"address":          &url.Error{Op: "Post", URL: "https://u:planted@api.example.com/x?key=planted", Err: io.ErrUnexpectedEOF},
		"wrapped":          fmt.Errorf("giving up: %w", &url.Error{Op: "Post", URL: "https://api.example.com/planted", Err: io.EOF}),
		"address in text":  errors.New("POST https://api.example.com/x?key=planted giving up after 5 attempts"),
		"proxy":            fmt.Errorf("invalid proxy address %q: %v", "user:planted@proxy", badURL),
		"proxy's password": badURL,
		"answer":           fmt.Errorf("malformed HTTP response %q", `key "planted" is invalid`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{err: cause}))
				_, err := w.post("text")
				require.ErrorIs(t, err, cause)
				require.NotContains(t, err.Error(), "planted")
				require.Contains(t, err.Error(), "***")
			})
		})
	}
}

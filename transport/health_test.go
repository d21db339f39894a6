package transport_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// shaky is a ledger whose holds fail while they are told to; reading works.
type shaky struct {
	budget.Memory
	err atomic.Pointer[error]
}

func (f *shaky) be(err error) { f.err.Store(&err) }

func (f *shaky) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	if e := f.err.Load(); e != nil && *e != nil && len(h.Legs) > 0 {
		return budget.Report{}, *e
	}
	return f.Memory.Hold(ctx, h)
}

// full is the error of a store that can be read and not be written.
type full struct{}

func (full) Error() string      { return "disk full" }
func (full) ErrorClass() string { return "full" }
func (full) Unwrap() error      { return budget.ErrUnavailable }

// The ledger is away from the first failed operation on, whatever its class, until one
// succeeds or says no, or until it is read when no call had failed for a minute.
func TestALedgerIsAwayUntilItAnswers(t *testing.T) {
	gone := fmt.Errorf("%w: gone", budget.ErrUnavailable)
	for _, tt := range []struct {
		name, class string
		err         error
		idle        bool // it is up again after a minute without calls
	}{
		{"gone", "unavailable", gone, true},
		{"slow", "timeout", fmt.Errorf("%w: %w", gone, context.DeadlineExceeded), true},
		{"full", "full", full{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(shaky)
				w := newWorld(t, answers(t, answer{status: 200}, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
					c.Ledger, p.Budgets = f, []budget.Budget{budget.PerDay(budget.Unit)}
				})
				up := func() bool {
					s, err := w.Status(t.Context())
					require.NoError(t, err)
					require.NoError(t, s.LedgerErr)
					return s.LedgerUp
				}
				require.True(t, up())
				f.be(tt.err)
				_, err := w.get()
				require.ErrorIs(t, err, budget.ErrUnavailable)
				require.False(t, up(), "reading works, but a call was refused just now")
				f.be(nil)
				time.Sleep(61 * time.Second)
				require.Equal(t, tt.idle, up())

				f.be(tt.err)
				_, err = w.get()
				require.Error(t, err)
				f.be(nil)
				_, err = w.get()
				require.NoError(t, err)
				require.True(t, up(), "a call was paid")

				f.be(tt.err)
				_, err = w.get()
				require.Error(t, err)
				f.be(&budget.ExceededError{Budget: "api-day"})
				_, err = w.get()
				require.Error(t, err)
				require.True(t, up(), "it said no, so it is there")

				var told []string
				for _, e := range w.eventsOf(transport.KindStore) {
					told = append(told, map[bool]string{true: "up", false: e.ErrorClass}[e.Up])
				}
				want := []string{tt.class, "up", tt.class, "up", tt.class, "up"}
				if !tt.idle {
					want = []string{tt.class, tt.class, "up", tt.class, "up"}
				}
				require.Equal(t, want, told)
			})
		})
	}
}

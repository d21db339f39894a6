package transport_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

// hanging is a ledger that looks at no context and comes back when it is told to.
type hanging struct {
	budget.Memory
	hang chan struct{}
}

func (h *hanging) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	<-h.hang
	return h.Memory.Totals(ctx, at, b...)
}

func (h *hanging) Audit(context.Context, string, int) ([]budget.Audited, error) {
	<-h.hang
	return nil, nil
}

func TestStatusComesBackFromALedgerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &hanging{hang: make(chan struct{})}
		rt, err := transport.New(transport.Config{Ledger: ledger, Providers: []transport.Provider{{Name: "api", Match: []string{"api.example.com"}}}})
		require.NoError(t, err)
		read := func() (transport.Status, time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			s, err := rt.Status(ctx)
			require.NoError(t, err)
			return s, time.Since(begin)
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				s, took := read()
				require.ErrorIs(t, s.LedgerErr, context.DeadlineExceeded)
				require.ErrorIs(t, s.LedgerErr, budget.ErrUnavailable)
				require.Len(t, s.Providers, 1)
				require.Equal(t, time.Second, took)
			})
		}
		all.Wait()
		s, took := read()
		require.ErrorIs(t, s.LedgerErr, budget.ErrUnavailable)
		require.Zero(t, took, "no more readings pile up")
		_, err = rt.Audit(t.Context(), "", 1)
		require.ErrorIs(t, err, budget.ErrUnavailable)
		close(ledger.hang)
		synctest.Wait()
		s, _ = read()
		require.NoError(t, s.LedgerErr)
	})
}

func TestAFrozenBudgetPaysForNothing(t *testing.T) {
	var told []transport.Event
	b := budget.PerDay(budget.Unit)
	b.Name, b.Label = "api-day-7", "api-day"
	rt, err := transport.New(transport.Config{
		Ledger: new(budget.Memory), OnEvent: func(_ context.Context, e transport.Event) { told = append(told, e) },
		Providers: []transport.Provider{{Name: "api", Match: []string{"api.example.com"}, Price: price.Free, Budgets: []budget.Budget{b}}},
	})
	require.NoError(t, err)
	by := budget.By{Who: "maria", Why: "pumping"}
	require.Error(t, rt.FreezeBudget(t.Context(), "no such budget", by))
	require.NoError(t, rt.FreezeBudget(t.Context(), "api-day-7", by))
	s, err := rt.Status(t.Context())
	require.NoError(t, err)
	require.True(t, s.Budgets[0].Frozen)
	require.NoError(t, rt.ReleaseBudget(t.Context(), "api-day-7", by))
	all, err := rt.Audit(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "pumping", all[0].By.Why)
	require.Len(t, told, 2)
	require.Equal(t, "api-day", told[0].Budget, "the label, not the name")
}

// plain has none of the optional parts.
type plain struct{ budget.Ledger }

func TestWithoutTheOptionalPartsOfALedger(t *testing.T) {
	rt, err := transport.New(transport.Config{Ledger: plain{new(budget.Memory)}})
	require.NoError(t, err)
	_, history := rt.History(t.Context())
	_, spending := rt.Spending(t.Context())
	_, windows := rt.Windows(t.Context(), time.Time{}, time.Time{})
	_, audit := rt.Audit(t.Context(), "", 1)
	by := budget.By{Who: "maria"}
	for _, err := range []error{history, spending, windows, audit, rt.Note(t.Context(), budget.Audited{}), rt.FreezeBudget(t.Context(), "x", by)} {
		require.ErrorIs(t, err, transport.ErrUnsupported)
	}
}

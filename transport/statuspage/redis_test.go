package statuspage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/redisledger"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// A ledger in Redis tells every page its history and what people did, whoever made it.
func TestAPageOverALedgerInRedis(t *testing.T) {
	client := redistest.Start(t).Client(t)
	open := func() budget.Ledger {
		l, err := redisledger.New(client, redisledger.Options{Learn: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	first := newWorld(t, open(), provider("maps", "100"))
	first.json(t, "/") // from here on it is remembered
	for range 4 {
		require.NoError(t, first.send(t.Context(), "maps"))
	}
	require.NoError(t, first.FreezeBudget(t.Context(), "maps-day", budget.By{Who: "otto", Why: "pumping"}))

	second := newWorld(t, open(), provider("maps", "100"))
	s := second.json(t, "/")
	h := s.Budgets[0].History
	require.Equal(t, "2", s.Budgets[0].Settled)
	require.Equal(t, "2", h.Points[len(h.Points)-1].Settled)
	require.Contains(t, second.html(t, "/"), "pumping")
	b := second.bill(t, "/?view=bill")
	require.True(t, b.Budgets[0].ByProvider)
	require.Equal(t, "maps", b.Budgets[0].Providers[0].Provider)
	require.Equal(t, []any{"2", 4}, []any{b.Budgets[0].Providers[0].Settled, b.Budgets[0].Providers[0].Calls})
	windows, err := second.Windows(t.Context(), time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Len(t, windows, 1)
	require.Equal(t, 2*budget.Unit, windows[0].Settled)
	e := second.entries(t, admin(t, second), "?after=0")
	require.Len(t, e.Entries, 1)
	require.Equal(t, []string{"otto", "freeze", "pumping"}, []string{e.Entries[0].Actor, e.Entries[0].Action, e.Entries[0].Reason})
}

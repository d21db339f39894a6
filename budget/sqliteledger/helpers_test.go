package sqliteledger

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func open(t testing.TB, path string) *Ledger {
	t.Helper()
	return openWith(t, Options{}, path)
}

func openWith(t testing.TB, o Options, path string) *Ledger {
	t.Helper()
	l, err := o.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func reopen(t testing.TB, l *Ledger) *Ledger {
	t.Helper()
	require.NoError(t, l.Close())
	return open(t, l.path)
}

func holdOf(id budget.HoldID, b budget.Budget, amount string) budget.Hold {
	return budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{{Budget: b, Amount: budget.MustParse(amount)}}}
}

func totalsOf(t testing.TB, l *Ledger, b budget.Budget) budget.Totals {
	t.Helper()
	all, err := l.Totals(context.Background(), time.Now(), b)
	require.NoError(t, err)
	return all[0]
}

func fields(lines []string) []string { return strings.Fields(strings.Join(lines, " ")) }

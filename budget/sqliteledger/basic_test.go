package sqliteledger

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func TestBasics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	l, err := Open(path)
	require.NoError(t, err)
	b := budget.PerDay(10 * budget.Unit)
	b.Name = "day"
	ctx := context.Background()
	hold := func(seq uint64, a string) error {
		_, err := l.Hold(ctx, budget.Hold{ID: budget.HoldID{Boot: 1, Seq: seq}, Provider: "p", Legs: []budget.Leg{{Budget: b, Amount: budget.MustParse(a)}}})
		return err
	}
	require.NoError(t, hold(1, "6"))
	require.NoError(t, hold(2, "4"))
	require.Error(t, hold(3, "0.000000001"))
	r, err := l.Resolve(ctx, budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(budget.MustParse("5.5")))
	require.NoError(t, err)
	require.Equal(t, budget.MustParse("5.5")-budget.MustParse("6"), r.Delta)
	require.NoError(t, hold(4, "0.5"))
	tot, err := l.Totals(ctx, time.Now(), b)
	require.NoError(t, err)
	t.Logf("%+v", tot)
	require.NoError(t, l.Close())
	l, err = Open(path)
	require.NoError(t, err)
	tot, err = l.Totals(ctx, time.Now(), b)
	require.NoError(t, err)
	t.Logf("%+v", tot)
	require.NoError(t, l.Close())
}

package sqliteledger

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func daily(limit string) budget.Budget {
	b := budget.PerDay(budget.MustParse(limit))
	b.Name = "day"
	return b.Normal()
}

// A process with an older configuration whose file was busy once leaves what others, and
// people, have set since.
func TestABusyFileUndoesNoLimit(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "spend.db")
	old, young := openWith(t, Options{Wait: 50 * time.Millisecond}, path), open(t, path)
	take := func(l *Ledger, boot, seq uint64, limit, amount string) error {
		_, err := l.Hold(ctx, holdOf(budget.HoldID{Boot: boot, Seq: seq}, daily(limit), amount))
		return err
	}
	require.NoError(t, take(old, 1, 1, "100", "1"))
	require.NoError(t, take(young, 2, 1, "10", "1"))
	require.NoError(t, young.SetLimit(ctx, "day", 5*budget.Unit, budget.By{Who: "maria", Why: "campaign"}))
	release := lock(t, path)
	require.ErrorIs(t, take(old, 1, 2, "100", "4"), budget.ErrUnavailable)
	release()
	require.Error(t, take(old, 1, 3, "100", "4"), "the limit is still 5")
	require.Error(t, take(young, 2, 2, "10", "4"))
	require.Equal(t, 5*budget.Unit, totalsOf(t, young, daily("10")).Limit)
}

// Someone removed the files by which processes see that the others live.
func TestAHoldWhoseOwnerWasTakenForDeadIsPresumed(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "spend.db")
	a := open(t, path)
	require.NoError(t, os.RemoveAll(livePath(a.path)))
	open(t, path) // takes a for dead
	id := budget.HoldID{Boot: 1, Seq: 1}
	_, err := a.Hold(ctx, holdOf(id, daily("10"), "4"))
	require.NoError(t, err)
	_ = a.Close()
	b := open(t, path)
	require.Equal(t, 4*budget.Unit, totalsOf(t, b, daily("10")).Presumed)
	_, err = b.Correct(ctx, id, budget.Unit, budget.By{Who: "maria", Why: "invoice"})
	require.NoError(t, err)
}

func TestAHoldWithoutProviderIsRefused(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "spend.db"))
	h := holdOf(budget.HoldID{Boot: 1, Seq: 1}, daily("10"), "4")
	h.Provider = ""
	_, err := l.Hold(context.Background(), h)
	require.ErrorIs(t, err, budget.ErrConflict)
	require.NoError(t, hold(l, 2, "0.1"))
}

// A copy has its name only when it is whole.
func TestABackupNeverReplacesAndLeavesNoParts(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	l := open(t, filepath.Join(dir, "spend.db"))
	require.NoError(t, hold(l, 1, "0.1"))
	file := filepath.Join(dir, "copy.db")
	require.NoError(t, l.Backup(ctx, file))
	require.ErrorIs(t, l.Backup(ctx, file), os.ErrExist)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.Error(t, l.Backup(gone, filepath.Join(dir, "other.db")))
	parts, err := filepath.Glob(filepath.Join(dir, "*.part*"))
	require.NoError(t, err)
	require.Empty(t, parts)
	_, err = os.Stat(filepath.Join(dir, "other.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, 1, totalsOf(t, open(t, file), dollar("month")).PresumedHolds)
}

func TestOthersAreThoseWhoLive(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "spend.db")
	a := open(t, path)
	others := func(want int) {
		t.Helper()
		n, err := a.Others(ctx)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	others(0)
	b := open(t, path)
	others(1)
	require.NoError(t, b.Close())
	others(0)
}

// What stands beside the file while it is open has the names that people are told to leave alone.
func TestFilesBesideTheLedger(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, hold(open(t, filepath.Join(dir, "spend.db")), 1, "0.1"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, []string{"spend.db", "spend.db-wal", "spend.db-shm", "spend.db-live"}, names)
}

package sqliteledger

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

var reading = Options{ReadOnly: true}

// spent is a ledger with a settled and a presumed call, and one in flight.
func spent(t *testing.T, path string) (*Ledger, budget.Budget) {
	day := budget.PerMonth(10 * budget.Unit)
	day.Name = "month"
	l := open(t, path)
	for seq, end := range []budget.Outcome{budget.Settled(budget.Unit), budget.Presumed(0), {State: budget.StateHeld}} {
		id := budget.HoldID{Boot: 1, Seq: uint64(seq)}
		_, err := l.Hold(t.Context(), holdOf(id, day, "1"))
		require.NoError(t, err)
		if end.State != budget.StateHeld {
			_, err = l.Resolve(t.Context(), id, end)
			require.NoError(t, err)
		}
	}
	require.NoError(t, l.flush(t.Context()))
	return l, day
}

// everything that reads.
func readAll(t *testing.T, l *Ledger, b budget.Budget) budget.Totals {
	_, err := l.Windows(t.Context(), time.Time{}, time.Time{})
	require.NoError(t, err)
	_, err = l.Unresolved(t.Context(), "", 0)
	require.NoError(t, err)
	_, err = l.Audit(t.Context(), "", 10)
	require.NoError(t, err)
	_, err = l.Frozen(t.Context())
	require.NoError(t, err)
	_, err = l.Others(t.Context())
	require.NoError(t, err)
	_, err = l.Spending(t.Context(), time.Now(), b)
	require.NoError(t, err)
	historyOf(t, l, time.Now(), b)
	wrong, err := l.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, wrong)
	require.NotEmpty(t, l.ID())
	require.NotEmpty(t, l.Key())
	return totalsOf(t, l, b)
}

// listed is what is in a directory, with content; of an index only that it is there.
func listed(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) != ".db-shm" {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			all[path] = string(content)
		} else {
			all[path] = "-"
		}
		return err
	}))
	return all
}

func TestAReaderChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spend.db")
	l, month := spent(t, path)
	for _, state := range []string{"in use", "closed"} {
		before := listed(t, dir)
		r := openWith(t, reading, path)
		total := readAll(t, r, month)
		require.Equal(t, []budget.Amount{budget.Unit, budget.Unit, budget.Unit}, []budget.Amount{total.Settled, total.Presumed, total.Held}, state)
		_, err := r.Hold(t.Context(), holdOf(budget.HoldID{Boot: 2}, month, "1"))
		requireFault(t, err, ReadOnly)
		require.ErrorContains(t, err, "Options.ReadOnly")
		require.NotContains(t, err.Error(), "must be writable")
		_, err = r.Resolve(t.Context(), budget.HoldID{Boot: 1, Seq: 2}, budget.Settled(0))
		requireFault(t, err, ReadOnly)
		requireFault(t, r.Freeze(t.Context(), budget.Target{Provider: "sms"}, budget.By{Who: "maria", Why: "test"}), ReadOnly)
		requireFault(t, r.Compact(t.Context(), time.Now()), ReadOnly)
		require.NoError(t, r.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")))
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		_, err = r.Windows(t.Context(), time.Time{}, time.Time{})
		requireFault(t, err, Closed)
		require.Equal(t, before, listed(t, dir), state)
		require.NoError(t, l.Close())
	}
}

// A handle that reads follows what others write, whether they came before it or after.
func TestAReaderFollowsWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	l, month := spent(t, path)
	require.NoError(t, l.Close())
	r := openWith(t, reading, path)
	require.Equal(t, budget.Unit, readAll(t, r, month).Held, "nobody has presumed it")
	for i := range uint64(3) {
		l = open(t, path)
		_, err := l.Hold(t.Context(), holdOf(budget.HoldID{Boot: 3, Seq: i}, month, "1"))
		require.NoError(t, err)
		require.Equal(t, budget.Unit, readAll(t, r, month).Held)
		require.NoError(t, l.Close())
		require.Equal(t, budget.Unit, readAll(t, r, month).Held)
	}
}

// What begins to be written while it is read without locks is not told.
func TestAReaderTellsNothingHalfNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	l, month := spent(t, path)
	require.NoError(t, l.Close())
	r := openWith(t, reading, path)
	err := r.read(t.Context(), func(*conn) { open(t, path) })
	requireFault(t, err, Busy)
	require.ErrorContains(t, err, "read again")
	require.Equal(t, 2*budget.Unit, readAll(t, r, month).Presumed)
}

// A report of a newer version must not lock out the service that runs.
func TestAReaderLeavesAnOlderSchema(t *testing.T) {
	for name, undo := range olderSchemas {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spend.db")
			l, month := spent(t, path)
			require.NoError(t, l.Close())
			meddle(t, path, undo)
			before := listed(t, filepath.Dir(path))
			readAll(t, openWith(t, reading, path), month)
			require.Equal(t, before, listed(t, filepath.Dir(path)))
		})
	}
}

func TestAReaderRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := reading.Open(filepath.Join(dir, "none.db"))
	requireFault(t, err, Foreign)
	require.ErrorIs(t, err, os.ErrNotExist)
	empty, other, newer := filepath.Join(dir, "empty.db"), filepath.Join(dir, "other.db"), filepath.Join(dir, "newer.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	c, err := sqlite3.Open(other)
	require.NoError(t, err)
	require.NoError(t, c.Exec("CREATE TABLE t(x)"))
	require.NoError(t, c.Close())
	require.NoError(t, open(t, newer).Close())
	meddle(t, newer, "PRAGMA user_version=99")
	for path, want := range map[string]Fault{dir: Foreign, empty: Foreign, other: Foreign, newer: NewerSchema} {
		before := listed(t, dir)
		_, err = reading.Open(path)
		requireFault(t, err, want)
		require.Equal(t, before, listed(t, dir))
	}
}

// Who may only read needs no more than that: of the file alone while nobody has it open,
// of the log and its index as well while somebody has, or has died.
func TestAReaderNeedsTheRightToReadAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spend.db")
	l, month := spent(t, path)
	require.NoError(t, l.Close())
	for p := dir; p != "/"; p = filepath.Dir(p) {
		_ = os.Chmod(p, 0o755) // so that nobody can look into it; fails where it is not ours
	}
	asked := func() (held budget.Amount, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
			asNobody()
			var r *Ledger
			if r, err = reading.Open(path); err != nil {
				return
			}
			defer r.Close()
			var all []budget.Totals
			if all, err = r.Totals(t.Context(), time.Now(), month); err == nil {
				held = all[0].Held
			}
		}()
		<-done
		return held, err
	}
	if _, err := asked(); err == nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "nothing was tested: this system does not take rights away from a thread")
		t.Skip("this system does not take rights away from a thread")
	} else {
		requireFault(t, err, ReadOnly)
		require.ErrorContains(t, err, "must be readable")
	}
	require.NoError(t, os.Chmod(path, 0o644))
	held, err := asked()
	require.NoError(t, err)
	require.Equal(t, budget.Unit, held)

	l = open(t, path)
	_, err = l.Hold(t.Context(), holdOf(budget.HoldID{Boot: 4}, month, "2"))
	require.NoError(t, err)
	held, err = asked()
	require.NoError(t, err)
	require.Equal(t, 2*budget.Unit, held, "beside a process that writes")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		copied := filepath.Join(dir, "copy"+name[len(path):])
		require.NoError(t, os.WriteFile(copied, content, 0o644))
	}
	require.NoError(t, l.Close())
	path = filepath.Join(dir, "copy")
	held, err = asked()
	require.NoError(t, err, "a process that died")
	require.Equal(t, 2*budget.Unit, held)
	require.NoError(t, os.Remove(path+"-shm"))
	_, err = asked()
	requireFault(t, err, ReadOnly)
	require.ErrorContains(t, err, "copy-wal and copy-shm")
}

package sqliteledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func requireFault(t testing.TB, err error, want Fault) {
	t.Helper()
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.Equal(t, want, faultOf(err), "%v", err)
}

func hold(l *Ledger, seq uint64, amount string) error {
	return take(l, budget.HoldID{Boot: 1, Seq: seq}, dollar("month"), amount)
}

// A sync that fails loses what it should have kept, and does so once: the next one
// reports success. A ledger that went on would send calls that no book knows.
func TestFailedSyncStopsTheLedger(t *testing.T) {
	d, path := newDisk(t), filepath.Join(t.TempDir(), "spend.db")
	l := openWith(t, Options{vfs: d.name}, path)
	require.NoError(t, hold(l, 1, "0.3"))
	d.mu.Lock()
	d.failAt, d.forget = d.writes+1, true
	d.failing = nil // writes succeed, the sync does not
	d.mu.Unlock()
	requireFault(t, hold(l, 2, "0.1"), IO)
	requireFault(t, hold(l, 3, "0.1"), IO)
	_, err := l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(1))
	requireFault(t, err, IO)
	_, err = l.Totals(context.Background(), time.Now(), dollar("month"))
	requireFault(t, err, IO)
	_ = l.Close()

	l = openWith(t, Options{vfs: d.name}, path)
	used := totalsOf(t, l, dollar("month")).Used()
	require.GreaterOrEqual(t, used, budget.MustParse("0.3"))
	require.LessOrEqual(t, used, budget.MustParse("0.4"), "the hold that failed may count, and was not sent")
	require.NoError(t, hold(l, 4, "0.1"))
}

// Writes that fail are told, and the ledger goes on when they succeed again. Outcomes
// wait meanwhile.
func TestFullDisk(t *testing.T) {
	d, path := newDisk(t), filepath.Join(t.TempDir(), "spend.db")
	l := openWith(t, Options{vfs: d.name}, path)
	require.NoError(t, hold(l, 1, "0.3"))
	require.NoError(t, hold(l, 10, "0.4"))
	d.mu.Lock()
	d.failAt, d.failing = 1, sqlite3.FULL
	d.mu.Unlock()
	requireFault(t, hold(l, 2, "0.1"), Full)
	report, err := l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(budget.Unit/10))
	require.NoError(t, err, "no call fails because its outcome cannot be written")
	require.Equal(t, -budget.Unit/5, report.Delta)
	report, err = l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 10}, budget.Settled(budget.Unit/2))
	require.NoError(t, err, "nor does one whose outcome crosses a threshold")
	require.Equal(t, budget.Unit/10, report.Delta)
	_, err = l.Totals(context.Background(), time.Now(), dollar("month"))
	requireFault(t, err, Full)
	d.on()
	report, err = l.Hold(context.Background(), holdOf(budget.HoldID{Boot: 1, Seq: 3}, dollar("month"), "0.4"))
	require.NoError(t, err, "the outcomes ride on the next hold")
	require.Equal(t, 50, report.Notices[0].Percent)
	total := totalsOf(t, l, dollar("month"))
	require.Equal(t, []budget.Amount{budget.Unit * 6 / 10, budget.Unit * 4 / 10}, []budget.Amount{total.Settled, total.Held})
}

// The same with a real limit of the operating system.
func TestFileTooLarge(t *testing.T) {
	c := startChild(t, "filler", filepath.Join(t.TempDir(), "spend.db"))
	require.Equal(t, "true full true", c.hear())
	require.Equal(t, "<nil>", c.hear())
	require.Equal(t, "true", c.hear(), "holds that were granted, and no others")
}

func TestOutcomesThatWaitAreBounded(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "spend.db"))
	require.NoError(t, hold(l, 1, "0.1"))
	l.mu.Lock()
	l.outcomes = make([]budget.HoldID, maxOutcomes)
	l.mu.Unlock()
	_, err := l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(1))
	requireFault(t, err, Full)
	l.mu.Lock()
	l.outcomes = nil
	l.mu.Unlock()
}

func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	l := openWith(t, Options{Wait: 100 * time.Millisecond}, path)
	patient := open(t, path)
	require.NoError(t, hold(l, 1, "0.1"))
	release := lock(t, path)
	requireFault(t, hold(l, 2, "0.1"), Busy)

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := patient.Hold(ctx, holdOf(budget.HoldID{Boot: 1, Seq: 3}, dollar("month"), "0.1"))
	requireFault(t, err, GivenUp)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(1))
	require.NoError(t, err)
	release()
	require.NoError(t, hold(patient, 4, "0.1"))
	total := totalsOf(t, l, dollar("month"))
	require.Equal(t, 1, total.OpenHolds, "holds that were refused do not exist, also not later")
	require.Equal(t, budget.Amount(1), total.Settled)
}

// lock keeps the file locked as a slow writer does.
func lock(t *testing.T, path string) (release func()) {
	c, err := dial(path, vfsName, time.Second)
	require.NoError(t, err)
	require.NoError(t, c.Exec("BEGIN IMMEDIATE"))
	return func() {
		require.NoError(t, c.Exec("ROLLBACK"))
		require.NoError(t, c.shut())
	}
}

func TestCancelledBeforeItBegan(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "spend.db"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Hold(ctx, holdOf(budget.HoldID{Boot: 1, Seq: 1}, dollar("month"), "0.1"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.Zero(t, totalsOf(t, l, dollar("month")).Used())
}

func TestFileGoneOrReplaced(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"deleted":       os.Remove,
		"log deleted":   func(path string) error { return os.Remove(path + "-wal") },
		"index deleted": func(path string) error { return os.Remove(path + "-shm") },
		"moved":         func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spend.db")
			l := open(t, path)
			require.NoError(t, hold(l, 1, "0.1"))
			require.NoError(t, harm(path))
			requireFault(t, hold(l, 2, "0.1"), Deleted)
			requireFault(t, hold(l, 3, "0.1"), Deleted)
		})
	}
}

func TestEmptiedFileIsNoNewBudget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	l := open(t, path)
	require.NoError(t, hold(l, 1, "0.1"))
	require.NoError(t, l.Close())
	require.NoError(t, os.Truncate(path, 0))
	_, err := Open(path)
	requireFault(t, err, Corrupt)
	require.NoError(t, os.Remove(path))
	require.Zero(t, totalsOf(t, open(t, path), dollar("month")).Used(), "who deletes the file begins anew")
}

// Wherever a closed file is damaged: it is refused, or the damage is where it changes
// no total.
func TestDamagedFile(t *testing.T) {
	sound, dir := usedFile(t), t.TempDir()
	step := len(sound)/rounds(60, 2000) | 1
	refused := 0
	for at := 0; at < len(sound); at += step {
		damaged := append([]byte{}, sound...)
		damaged[at] ^= 0xff
		refused += openDamaged(t, dir, damaged)
	}
	for size := 1; size < len(sound); size += 10 * step {
		refused += openDamaged(t, dir, sound[:size])
	}
	require.Greater(t, refused, 10)
	t.Logf("%d times refused", refused)
}

// usedFile is the content of a ledger that was closed.
func usedFile(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "spend.db")
	l := open(t, path)
	for seq := range uint64(200) {
		require.NoError(t, hold(l, seq, "0.002"))
		_, err := l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: seq}, budget.Settled(1))
		require.NoError(t, err)
	}
	require.NoError(t, hold(l, 1000, "0.5"))
	require.NoError(t, l.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

func openDamaged(t *testing.T, dir string, content []byte) (refused int) {
	path := filepath.Join(dir, "spend.db")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	defer func() {
		for _, name := range []string{path + "-wal", path + "-shm", path} {
			_ = os.Remove(name)
		}
		require.NoError(t, os.RemoveAll(livePath(path)))
	}()
	l, err := Open(path)
	if err == nil {
		defer l.Close()
		var all []budget.Totals
		if all, err = l.Totals(context.Background(), time.Now(), dollar("month")); err == nil {
			require.Equal(t, budget.Unit/2+200, all[0].Used())
			require.Error(t, hold(l, 2000, "0.5"))
			return 0
		}
	}
	require.Contains(t, []Fault{Corrupt, Foreign, NewerSchema}, faultOf(err), "%v", err)
	require.ErrorIs(t, err, budget.ErrUnavailable)
	return 1
}

func TestForeignFiles(t *testing.T) {
	other, _ := sqliteFile(t, "CREATE TABLE t(x); PRAGMA application_id=1")
	unmarked, _ := sqliteFile(t, "CREATE TABLE t(x)")
	newer, _ := sqliteFile(t, "CREATE TABLE t(x); PRAGMA application_id=1869968492; PRAGMA user_version=99")
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("this is a shopping list, and long enough to be one"), 0o600))
	for path, want := range map[string]Fault{other: Foreign, unmarked: Foreign, text: Foreign, newer: NewerSchema, t.TempDir(): Foreign} {
		before, _ := os.ReadFile(path)
		_, err := Open(path)
		requireFault(t, err, want)
		after, _ := os.ReadFile(path)
		require.Equal(t, before, after, "a file that is not ours is left alone")
	}
}

func sqliteFile(t *testing.T, sql string) (string, *sqlite3.Conn) {
	path := filepath.Join(t.TempDir(), "other.db")
	c, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Exec(sql))
	require.NoError(t, c.Close())
	return path, c
}

func TestPathsThatCannotBe(t *testing.T) {
	for _, path := range []string{"", ":memory:"} {
		_, err := Open(path)
		require.Error(t, err)
		require.NoFileExists(t, path)
	}
	_, err := Open(filepath.Join(t.TempDir(), "no", "such", "directory", "spend.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, err, budget.ErrUnavailable)
}

// Without the right to write nothing is opened. Root may write everything, so that the
// test gives up its rights for one thread.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spend.db")
	require.NoError(t, open(t, path).Close())
	require.NoError(t, os.Chmod(path, 0o444))
	for p := dir; p != "/"; p = filepath.Dir(p) {
		_ = os.Chmod(p, 0o755) // so that nobody can look into it; fails where it is not ours
	}
	errs := make(chan error, 2)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		asNobody()
		for _, name := range []string{path, filepath.Join(dir, "new.db")} {
			_, err := Open(name)
			errs <- err
		}
	}()
	requireFault(t, <-errs, ReadOnly)
	requireFault(t, <-errs, ReadOnly)
}

func TestOnlyItsOwnerMayReadIt(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	l := open(t, filepath.Join(dir, "spend.db"))
	require.NoError(t, hold(l, 1, "0.1"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s: %v", e.Name(), info.Mode())
	}
}

func TestStrangeNames(t *testing.T) {
	for _, name := range []string{"a b.db", "100%.db", "what?.db", "a#b.db", "ünï.db", "a&mode=ro.db"} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, hold(open(t, path), 1, "0.1"))
		require.FileExists(t, path)
	}
	dir := t.TempDir()
	require.NoError(t, open(t, filepath.Join(dir, "spend.db")).Close())
	require.NoError(t, os.Symlink(filepath.Join(dir, "spend.db"), filepath.Join(dir, "link.db")))
	a, b := open(t, filepath.Join(dir, "spend.db")), open(t, filepath.Join(dir, "link.db"))
	require.NoError(t, hold(a, 1, "0.6"))
	require.Error(t, hold(b, 2, "0.6"), "a link is the file that it leads to")
}

func TestClosed(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "spend.db"))
	require.NoError(t, hold(l, 1, "0.1"))
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	requireFault(t, hold(l, 2, "0.1"), Closed)
	_, err := l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 1}, budget.Settled(1))
	requireFault(t, err, Closed)
	_, err = l.Totals(context.Background(), time.Now(), dollar("month"))
	requireFault(t, err, Closed)
	requireFault(t, l.Backup(context.Background(), l.path+".copy"), Closed)
}

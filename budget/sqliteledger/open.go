package sqliteledger

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// Ledger is a handle on a ledger file: [Open] makes one, [Ledger.Close] ends it. It is
// safe for concurrent use, and several handles of one process or of many may share a
// file.
type Ledger struct {
	path     string
	readOnly bool
	id, key  string // drawn when the file was made
	wait     time.Duration
	clock    *budget.Clock
	presence *presence
	files    watch
	books    *books // used by the committer alone

	wake chan struct{} // capacity 1
	done chan struct{} // closed when the committer has ended

	reading sync.Mutex // guards what follows, until mu
	reader  *conn
	stories map[int64]*story // by page; see History
	redial  func() error     // of a handle that only reads and is open; else nil
	still   os.FileInfo      // of such a handle: the file at rest, which has no log; else nil

	mu       sync.Mutex // guards what follows
	queue    []*op
	live     map[budget.HoldID]*live // holds of this handle that are not resolved in the file
	outcomes []budget.HoldID         // those of live whose outcome waits to be written
	due      time.Time               // when outcomes are written at the latest
	marks    map[int64]*mark         // by page: which cost crosses a threshold
	notices  []notice                // to be told
	told     []notice                // thresholds that were told, which the file does not know yet
	broken   error
	closed   bool
}

var (
	_ budget.Ledger   = (*Ledger)(nil)
	_ budget.Operator = (*Ledger)(nil)
	_ budget.Keyed    = (*Ledger)(nil)
)

// Options are for those who need more than [Open]. The zero Options are what Open uses.
type Options struct {
	// Wait is how long an operation waits for a file that other processes keep
	// locked, if its context does not end before. Zero: 10 seconds.
	Wait time.Duration
	// AllowNetworkFS opens a file on a network file system. If its locks or syncs are
	// not what they say, budgets are overspent.
	AllowNetworkFS bool
	// ReadOnly opens a file that exists and changes nothing, in it or beside it: an older
	// schema stays as it is and can be read, no process is signed in, and what a dead one
	// has left in flight stays held until somebody opens the file for writing. It works
	// while other processes write. Whatever would change the books fails with the fault
	// [ReadOnly]; holds among it, so that nothing is sent.
	//
	// The right to read FILE is enough while no process has it open. Else FILE-wal and
	// FILE-shm must be readable too, which have the mode of FILE; if a process has died and
	// left FILE-wal without FILE-shm, the right to make that is needed.
	ReadOnly bool

	vfs   string        // for tests: a VFS of the driver; empty: ours
	clock *budget.Clock // for tests; nil: the system's
}

// Open opens the ledger in a file, which is made if it does not exist. What a dead
// process has left in flight is presumed spent. The caller closes the ledger.
func Open(path string) (*Ledger, error) { return Options{}.Open(path) }

// Open is like the function [Open], with options.
func (o Options) Open(path string) (*Ledger, error) {
	switch path {
	case "":
		return nil, &Error{Fault: Foreign, Err: errors.New("the path is empty")}
	case ":memory:":
		return nil, &Error{Fault: Foreign, Path: path, Err: errors.New("a ledger is a file; one that forgets is budget.Memory")}
	}
	given := path
	path, err := resolvePath(path)
	if err != nil {
		return nil, fault(given, err)
	}
	if name := networkFS(filepath.Dir(path)); name != "" && !o.AllowNetworkFS {
		return nil, &Error{Path: path, Fault: NetworkFS, Err: errors.New(name)}
	}
	if !o.ReadOnly {
		if err := create(path); err != nil {
			return nil, err
		}
	}
	l := &Ledger{
		path: path, wait: o.Wait, clock: o.clock, live: map[budget.HoldID]*live{}, marks: map[int64]*mark{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if l.clock == nil {
		l.clock = &budget.Clock{}
	}
	if l.wait == 0 {
		l.wait = 10 * time.Second
	}
	registerVFS()
	if o.ReadOnly {
		return o.openReader(l, cmp.Or(o.vfs, vfsName))
	}
	if err := l.open(cmp.Or(o.vfs, vfsName)); err != nil {
		return nil, errors.Join(l.fault(err), l.release())
	}
	go l.commitLoop()
	return l, nil
}

// open does what can fail once the file exists.
func (l *Ledger) open(vfs string) (err error) {
	l.books = &books{dir: livePath(l.path), owner: rand.Int64(), given: map[string]budget.Budget{}}
	l.books.forget()
	if l.books.conn, err = dial(l.path, vfs, l.wait); err != nil {
		return err
	}
	if err := l.books.prepareSchema(l.path); err != nil {
		return err
	}
	if err := l.books.examine(l.path); err != nil {
		return err
	}
	if l.reader, err = dial(l.path, vfs, l.wait); err != nil {
		return err
	}
	if l.presence, err = appear(l.books.dir, l.books.owner); err != nil {
		return err
	}
	if err := l.enter(); err != nil {
		return err
	}
	if info, err := os.Stat(l.path); err == nil {
		_ = os.Chmod(l.path+"-shm", info.Mode().Perm()) // who may read the file needs it for that
	}
	if l.files, err = look(l.path, l.path+"-wal", l.path+"-shm"); err != nil {
		return err
	}
	return l.books.patience(l.wait, l.wanted)
}

// enter signs this handle in and presumes what dead ones have left.
func (l *Ledger) enter() error {
	b := l.books
	if err := b.begin(l.readClock()); err != nil {
		return err
	}
	b.exec("INSERT INTO owner(id, pid, opened) VALUES(?,?,?)", b.owner, os.Getpid(), b.now.UnixMilli())
	l.id, l.key = b.text("SELECT value FROM meta WHERE key='ledger'"), b.text("SELECT value FROM meta WHERE key='key'")
	b.presumeOrphans()
	b.expire()
	if err := b.commit(); err != nil {
		return err
	}
	l.notices = append(l.notices, b.takeNotices()...)
	return nil
}

// Key implements [budget.Keyed]: the key is in the file, which only its owner may read.
func (l *Ledger) Key() []byte { return []byte(l.key) }

// ID names the books: eight hexadecimal digits, drawn when the file was made. All
// handles on one file have the same.
func (l *Ledger) ID() string { return l.id }

// Close writes what waits and ends the handle. Holds without an outcome stay in flight
// until the next Open, or another handle, presumes them spent. A second Close does
// nothing.
func (l *Ledger) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.nudge()
	l.mu.Unlock()
	<-l.done
	if !first {
		return nil
	}
	return l.release()
}

// release gives back what open took.
func (l *Ledger) release() error {
	l.reading.Lock()
	defer l.reading.Unlock()
	var errs []error
	for _, c := range []*conn{l.reader, l.books.conn} {
		if c != nil {
			errs = append(errs, c.shut())
		}
	}
	l.reader, l.redial = nil, nil
	if l.presence != nil {
		errs = append(errs, l.presence.leave())
	}
	return errors.Join(errs...)
}

package sqliteledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// Fault says in what way the file cannot be used.
type Fault string

// The faults. Nothing was sent and nothing was charged with any of them.
const (
	// Busy: other processes kept the file locked for the whole of Options.Wait. Try again.
	Busy Fault = "busy"
	// GivenUp: the caller's context ended first. Nothing happened, and nothing will.
	GivenUp Fault = "given up"
	// Full: the disk or the quota is full. The ledger works again when there is space.
	Full Fault = "full"
	// ReadOnly: the file, its directory or its file system cannot be written, or the ledger
	// was opened with Options.ReadOnly.
	ReadOnly Fault = "read-only"
	// Corrupt: the file is damaged.
	Corrupt Fault = "corrupt"
	// NewerSchema: a newer version of this package has written the file.
	NewerSchema Fault = "newer schema"
	// NetworkFS: the file lies on a file system whose locks and syncs cannot be
	// trusted between machines.
	NetworkFS Fault = "network file system"
	// Deleted: the file was removed, replaced or moved while it was open.
	Deleted Fault = "deleted"
	// Foreign: the file is no ledger.
	Foreign Fault = "foreign"
	// IO: the disk failed. What it has kept is unknown, so that the ledger refuses
	// every hold until it is opened again.
	IO Fault = "i/o"
	// Unsupported: this operating system has no locks that a process' death releases.
	Unsupported Fault = "unsupported"
	// Closed: Close was called.
	Closed Fault = "closed"
)

// Error is what a ledger fails with when its file cannot be used: nothing was sent and
// nothing was charged. It wraps [budget.ErrUnavailable].
type Error struct {
	// Path is the ledger's file.
	Path  string
	Fault Fault
	// Err is the cause; it may be nil.
	Err error
}

// Error names the file, the fault, and what helps.
func (e *Error) Error() string {
	s := fmt.Sprintf("ledger %s: %s", e.Path, e.Fault)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if help := helps[e.Fault]; help != "" && !errors.Is(e.Err, errReader) {
		s += " (" + help + ")"
	}
	return s
}

// ErrorClass is the word for the fault in the events of package transport: full, corrupt
// or unavailable.
func (e *Error) ErrorClass() string {
	switch e.Fault {
	case Full:
		return "full"
	case Corrupt:
		return "corrupt"
	}
	return "unavailable"
}

// Unwrap gives the cause and [budget.ErrUnavailable].
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{budget.ErrUnavailable}
	}
	return []error{budget.ErrUnavailable, e.Err}
}

var helps = map[Fault]string{
	Busy:        "another process holds the file; try again",
	Full:        "make space on the disk",
	ReadOnly:    "the file and its directory must be writable",
	Corrupt:     "put a backup back, or save what can be read with: sqlite3 FILE .recover",
	NewerSchema: "use the version of outlay that wrote it, or a newer one",
	NetworkFS:   "use a local disk, or redisledger for several machines; Options.AllowNetworkFS takes the risk",
	Deleted:     "put the file back and open the ledger again",
	Foreign:     "give the path of a ledger, or of a file that does not exist yet",
	IO:          "check the disk, then open the ledger again",
}

// fatal reports whether a fault ends the use of a handle: what is on the disk is not
// known any more, or is not the file that was opened.
func (f Fault) fatal() bool { return f == IO || f == Corrupt || f == Deleted }

// givenUp is the error for a caller whose context ended.
func (l *Ledger) givenUp(ctx context.Context) error {
	return &Error{Path: l.path, Fault: GivenUp, Err: context.Cause(ctx)}
}

// fault makes an *[Error] of err, an error of the driver or of the operating system.
func (l *Ledger) fault(err error) error { return fault(l.path, err) }

func fault(path string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Path: path, Fault: classify(err), Err: err}
}

func classify(err error) Fault {
	switch {
	case isFull(err), errors.Is(err, sqlite3.FULL), errors.Is(err, sqlite3.IOERR_SHMSIZE):
		return Full
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission),
		errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.PERM):
		return ReadOnly
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED), errors.Is(err, sqlite3.INTERRUPT):
		return Busy
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, syscall.EISDIR):
		return Foreign
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, errBooks),
		// Our statements are right: if they fail, the file's schema or rows are not.
		errors.Is(err, sqlite3.ERROR), errors.Is(err, sqlite3.CONSTRAINT), errors.Is(err, sqlite3.MISMATCH):
		return Corrupt
	default:
		return IO
	}
}

// errBooks: the file is a sound database, but its numbers contradict each other.
var errBooks = errors.New("the books do not add up")

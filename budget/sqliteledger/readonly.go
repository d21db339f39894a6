package sqliteledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// errReader is why a ledger that was opened with Options.ReadOnly changes nothing.
var errReader = errors.New("it was opened with Options.ReadOnly")

// errChanged: without a log there are no locks, and what was read may be half old, half new.
var errChanged = errors.New("another process began to write while the file was read; read again")

// openReader opens a ledger for reading alone: no committer runs, and no owner is signed in.
func (o Options) openReader(l *Ledger, vfs string) (*Ledger, error) {
	close(l.done)
	l.books = &books{dir: livePath(l.path)}
	l.readOnly, l.broken = true, &Error{Path: l.path, Fault: ReadOnly, Err: errReader}
	l.redial = func() error { return l.dialReader(vfs) }
	err := l.redial()
	if err == nil {
		l.id, l.key = l.reader.text("SELECT value FROM meta WHERE key='ledger'"), l.reader.text("SELECT value FROM meta WHERE key='key'")
		err = l.reader.take()
	}
	if err != nil {
		return nil, errors.Join(l.fault(err), l.release())
	}
	return l, nil
}

// dialReader opens the connection of a reader. A file without a log is at rest: nobody has
// it open. SQLite would make a log and its index beside it and leave them, of whatever user
// reads; such a file is taken as one that does not change, and watched.
func (l *Ledger) dialReader(vfs string) error {
	info, err := os.Stat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Path: l.path, Fault: Foreign, Err: err}
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return &Error{Path: l.path, Fault: Foreign, Err: errors.New("not a regular file with content")}
	}
	how := "&mode=ro"
	if l.still = nil; !exists(l.path + "-wal") {
		l.still, how = info, "&immutable=1"
	}
	c, err := dialAs(l.path, vfs, sqlite3.OPEN_READONLY, how, l.wait)
	if err == nil {
		if err = l.prepareReader(c); err != nil {
			err = errors.Join(err, c.shut())
		}
	}
	if errors.Is(err, sqlite3.CANTOPEN) || errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w; the file must be readable, and %[2]s-wal and %[2]s-shm if there is one of them", err, filepath.Base(l.path))
		return &Error{Path: l.path, Fault: ReadOnly, Err: errors.Join(errReader, err)}
	}
	return err
}

// prepareReader makes a new connection that of the readers.
func (l *Ledger) prepareReader(c *conn) (err error) {
	if err = c.prepareOld(l.path); err != nil {
		return err
	}
	if err = c.examine(l.path); err != nil {
		return err
	}
	names := []string{l.path, l.path + "-wal", l.path + "-shm"}
	if l.still != nil {
		names = names[:1]
	}
	if l.files, err = look(names...); err == nil {
		l.reader, l.stories = c, nil
	}
	return err
}

// prepareOld lets an older schema be read as it is.
func (c *conn) prepareOld(path string) error {
	if err := c.checkSchema(path); err != nil {
		return err
	}
	switch c.number("PRAGMA user_version") {
	case 0:
		return &Error{Path: path, Fault: Foreign, Err: errors.New("an empty database")}
	case 1: // it lacks what audit2 adds
		c.exec("CREATE TEMP VIEW entry AS SELECT *, NULL AS was FROM main.entry")
	}
	return c.take()
}

// refresh opens a reader anew if the file was at rest and is not any more.
func (l *Ledger) refresh() (err error) {
	if l.redial == nil || l.reader != nil && !l.changed() {
		return nil
	}
	if l.reader != nil {
		err = l.reader.shut()
		l.reader = nil
	}
	return errors.Join(err, l.redial())
}

// changed reports whether a file that was at rest was written since.
func (l *Ledger) changed() bool {
	if l.still == nil {
		return false
	}
	info, err := os.Stat(l.path)
	return err != nil || !info.ModTime().Equal(l.still.ModTime()) || info.Size() != l.still.Size() || exists(l.path+"-wal")
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

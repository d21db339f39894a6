package sqliteledger

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Backup writes a copy of the ledger to a file that does not exist yet, while processes
// go on using it. The copy is one instant of the ledger and a ledger itself, on the
// disk when Backup returns, and readable for its owner alone. Calls that were in flight
// at that instant are presumed when the copy is opened.
func (l *Ledger) Backup(ctx context.Context, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return &fs.PathError{Op: "backup", Path: file, Err: fs.ErrExist}
	}
	// Under its name only once it is whole: the beginning of a copy, left by a process that
	// died, would open as a ledger of which nothing is spent.
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part")
	if err != nil {
		return err
	}
	if err = l.copyTo(ctx, f.Name()); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), file) // fails if the file exists by now
	}
	return errors.Join(err, os.Remove(f.Name()), syncDir(filepath.Dir(file)))
}

func (l *Ledger) copyTo(ctx context.Context, file string) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	if err := l.ready(); err != nil {
		return err
	}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: file}
	backup, err := l.reader.BackupInit("main", uri.String())
	if err != nil {
		return l.fault(err)
	}
	const pages = 1000
	for done := false; !done && err == nil; {
		if err = ctx.Err(); err == nil {
			done, err = backup.Step(pages)
		}
	}
	err = errors.Join(err, backup.Close())
	switch {
	case l.changed():
		return &Error{Path: l.path, Fault: Busy, Err: errChanged}
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return l.givenUp(ctx)
	}
	return l.fault(err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

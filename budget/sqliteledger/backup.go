package sqliteledger

import (
	"context"
	"errors"
	"os"
)

// Backup writes a copy of the ledger to a file that does not exist yet, while it is in
// use. The copy is one instant of the ledger, and a ledger itself; it is readable for
// its owner alone.
func (l *Ledger) Backup(ctx context.Context, file string) error {
	if err := l.flush(ctx); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	err = l.read(ctx, func(c *conn) { c.exec("VACUUM INTO ?", file) })
	if err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

//go:build unix

package sqliteledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A presence proves that the owner of holds is alive: an flock on a file of its own,
// which the kernel drops at the death of the process and at no other time. A stopped or
// suspended process keeps it, so that no clock takes part. fcntl locks would not do:
// closing any descriptor of the file drops them.
type presence struct{ file *os.File }

func presencePath(dir string, owner int64) string {
	return filepath.Join(dir, strconv.FormatUint(uint64(owner), 16))
}

// appear makes the presence of owner. The descriptor is close-on-exec, as all of the
// os package are: a child that outlives us does not hold the lock.
func appear(dir string, owner int64) (*presence, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(presencePath(dir, owner), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &presence{f}, nil
}

// leave ends the presence: from now on the owner counts as dead.
func (p *presence) leave() error {
	return errors.Join(os.Remove(p.file.Name()), p.file.Close())
}

// dead reports whether the owner is gone for ever. When in doubt it lives.
func dead(dir string, owner int64) bool {
	f, err := os.OpenFile(presencePath(dir, owner), os.O_RDWR, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// forget removes what a dead owner has left.
func forget(dir string, owner int64) { _ = os.Remove(presencePath(dir, owner)) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

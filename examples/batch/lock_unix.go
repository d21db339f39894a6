//go:build unix

package batch

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this program. The kernel gives it back when the program ends,
// however that happens.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}

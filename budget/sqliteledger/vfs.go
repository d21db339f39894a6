package sqliteledger

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// vfsName is how SQLite finds fullVFS.
const vfsName = "outlay"

// fullVFS is the driver's own VFS, but it tells a full disk from a broken one: after the
// first the ledger goes on when there is space. The driver (v0.37.0) means to, and looks
// for a bare errno where the os package returns a *PathError. And it opens a log that may
// only be read for reading, as SQLite's own does.
type fullVFS struct{ vfs.VFSFilename }

func registerVFS() { vfs.Register(vfsName, fullVFS{vfs.Find("").(vfs.VFSFilename)}) }

// OpenFilename implements [vfs.VFSFilename].
func (v fullVFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := v.VFSFilename.OpenFilename(name, flags)
	if flags&vfs.OPEN_WAL != 0 && flags&vfs.OPEN_READWRITE != 0 && errors.Is(err, fs.ErrPermission) {
		f, flags, err = v.VFSFilename.OpenFilename(name, flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE)|vfs.OPEN_READONLY)
	}
	if err != nil {
		return nil, flags, err
	}
	return fullFile{f}, flags, nil
}

type fullFile struct{ vfs.File }

// WriteAt implements [vfs.File].
func (f fullFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	if isFull(err) {
		err = vfs.SystemError(err, sqlite3.FULL)
	}
	return n, err
}

// SharedMemory implements [vfs.FileSharedMemory].
func (f fullFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

package sqliteledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// watch notices when the files that a handle has open are not those that others find
// under their names: two processes would then keep two books.
type watch map[string]os.FileInfo

// look remembers the files of a ledger. The log and its index exist from the first
// commit to the last close.
func look(names ...string) (watch, error) {
	w := watch{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		w[name] = info
	}
	return w, nil
}

func (w watch) check() error {
	for name, was := range w {
		is, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &Error{Path: name, Fault: Deleted}
		case err != nil:
			return fault(name, err)
		case !os.SameFile(was, is):
			return &Error{Path: name, Fault: Deleted, Err: errors.New("another file has its name")}
		}
	}
	return nil
}

// resolvePath returns the path by which SQLite and we name the same file.
func resolvePath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return real, err
}

// create makes the file if there is none, for its owner alone, and refuses what cannot
// be a ledger: an empty file that once was one would be a full budget again.
func create(path string) error {
	live := livePath(path)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(live) // of a ledger that someone deleted; fails if a handle has it open
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fault(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return fault(path, err)
	case !info.Mode().IsRegular():
		return &Error{Path: path, Fault: Foreign, Err: errors.New("not a regular file")}
	}
	if why := otherPlace(path, info); why != "" {
		return &Error{Path: path, Fault: Foreign, Err: errors.New(why)}
	}
	if info.Size() > 0 {
		return nil
	}
	if _, err := os.Stat(live); err == nil {
		return &Error{Path: path, Fault: Corrupt, Err: fmt.Errorf("the file is empty, but %s says that it was a ledger", live)}
	}
	return nil
}

// livePath is the directory of the presence files.
func livePath(path string) string { return path + "-live" }

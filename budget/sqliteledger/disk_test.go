package sqliteledger

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/stretchr/testify/require"
)

// disk is a file system below SQLite whose machine may lose power: what was written
// since the last sync of a file is then lost, in part and torn. It keeps the files in
// the real file system, so that names, locks and shared memory are real, and never
// syncs them.
type disk struct {
	name string // by which SQLite finds it

	mu      sync.Mutex
	files   map[string]*platter
	writes  int   // writes, truncations and syncs so far
	failAt  int   // which of them fails, with all that follow; 0: none
	failing error // what they fail with
	forget  bool  // a sync that fails forgets what it should have kept
}

// platter is one file.
type platter struct {
	safe    []byte   // what a power loss leaves
	pending []change // what it may take
}

type change struct {
	data []byte
	off  int64 // or the new size, if data is nil
}

var disks atomic.Int64

func newDisk(t testing.TB) *disk {
	d := &disk{name: fmt.Sprintf("disk-%d", disks.Add(1)), files: map[string]*platter{}, failing: sqlite3.IOERR_WRITE}
	vfs.Register(d.name, d)
	t.Cleanup(func() { vfs.Unregister(d.name) })
	return d
}

// fails counts an access that writes, and reports whether it fails.
func (d *disk) fails() bool {
	d.writes++
	return d.failAt > 0 && d.writes >= d.failAt
}

// off is the end of the power: nothing is written any more.
func (d *disk) off() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = 1
}

// lose puts on the real disk what a power loss leaves, and turns the power on again.
// Each sector that was not synced may have been written or not.
func (d *disk) lose(t testing.TB, rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = 0
	for name, p := range d.files {
		kept := rng.IntN(3) // nothing, all, or some
		for _, c := range p.pending {
			p.safe = c.apply(p.safe, func() bool { return kept == 1 || (kept == 2 && rng.IntN(2) == 0) })
		}
		p.pending = nil
		require.NoError(t, os.WriteFile(name, p.safe, 0o600))
		_ = os.Remove(name + "-shm") // memory
	}
}

// on turns the power on again after a crash of the process alone: all that was written
// is there.
func (d *disk) on() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = 0
}

// apply applies a change sector by sector, as far as keep says.
func (c change) apply(to []byte, keep func() bool) []byte {
	const sector = 512
	if c.data == nil {
		if !keep() {
			return to
		}
		if int(c.off) <= len(to) {
			return to[:c.off]
		}
		return append(to, make([]byte, int(c.off)-len(to))...)
	}
	for at := 0; at < len(c.data); {
		n := min(sector-(int(c.off)+at)%sector, len(c.data)-at)
		if keep() {
			end := int(c.off) + at + n
			if end > len(to) {
				to = append(to, make([]byte, end-len(to))...)
			}
			copy(to[int(c.off)+at:], c.data[at:at+n])
		}
		at += n
	}
	return to
}

func always() bool { return true }

// Open implements vfs.VFS.
func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, flags, sqlite3.CANTOPEN // OpenFilename is called
}

// OpenFilename implements vfs.VFSFilename.
func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := vfs.Find("").(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.files[name.String()]
	if p == nil {
		safe, err := os.ReadFile(name.String())
		if err != nil {
			return nil, flags, err
		}
		p = &platter{safe: safe}
		d.files[name.String()] = p
	}
	return &diskFile{file, d, p}, flags, nil
}

// Delete implements vfs.VFS.
func (d *disk) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails() {
		return sqlite3.IOERR_DELETE
	}
	delete(d.files, name)
	return vfs.Find("").Delete(name, false)
}

// Access implements vfs.VFS.
func (d *disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return vfs.Find("").Access(name, flags)
}

// FullPathname implements vfs.VFS.
func (d *disk) FullPathname(name string) (string, error) { return vfs.Find("").FullPathname(name) }

type diskFile struct {
	vfs.File
	d *disk
	p *platter
}

// WriteAt implements vfs.File.
func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.fails() {
		return 0, f.d.failing
	}
	f.p.pending = append(f.p.pending, change{append([]byte{}, b...), off})
	return f.File.WriteAt(b, off)
}

// Truncate implements vfs.File.
func (f *diskFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.fails() {
		return sqlite3.IOERR_TRUNCATE
	}
	f.p.pending = append(f.p.pending, change{nil, size})
	return f.File.Truncate(size)
}

// Sync implements vfs.File.
func (f *diskFile) Sync(vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.fails() {
		if f.d.forget { // as Linux does: the pages are clean now, and lost
			f.p.pending = nil
			f.d.failAt = 0
		}
		return sqlite3.IOERR_FSYNC
	}
	for _, c := range f.p.pending {
		f.p.safe = c.apply(f.p.safe, always)
	}
	f.p.pending = nil
	return nil
}

// SharedMemory implements vfs.FileSharedMemory.
func (f *diskFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

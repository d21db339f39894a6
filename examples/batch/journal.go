package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Journal keeps what became of the rows, in a file with one line of JSON for each step.
// One program at a time has it open. Methods are safe for concurrent use.
type Journal struct {
	mu   sync.Mutex // guards what follows
	file *os.File
	last map[string]Result
	// broken: a line may be half written, and nothing more is.
	broken error
}

// entry is one line.
type entry struct {
	Key string `json:"key"`
	Result
}

// ErrBusy says that another program has the journal open.
var ErrBusy = errors.New("another run is at work on these results")

// OpenJournal opens the journal in a file, which is made if it does not exist. A last
// line that was cut when the program died is dropped: it says nothing that had happened
// by then. Any other damage is an error.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f, last: map[string]Result{}}
	if err := j.load(); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, syncDir(filepath.Dir(path))
}

func (j *Journal) load() error {
	if err := lock(j.file); err != nil {
		return err
	}
	text, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	n := 0
	for line := range bytes.Lines(whole) {
		n++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Key == "" {
			return fmt.Errorf("line %d is damaged", n)
		}
		j.last[e.Key] = e.Result
	}
	if err := j.file.Truncate(int64(len(whole))); err != nil {
		return err
	}
	_, err = j.file.Seek(int64(len(whole)), io.SeekStart)
	return err
}

// Last returns the last that is known of a row.
func (j *Journal) Last(key string) Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last[key]
}

// Write adds a step. It is on the disk when Write returns.
func (j *Journal) Write(key string, r Result) error {
	line, err := json.Marshal(entry{key, r})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	if _, err = j.file.Write(append(line, '\n')); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("the journal cannot be written: %w", err)
		return j.broken
	}
	j.last[key] = r
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// syncDir makes the name of a new file durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

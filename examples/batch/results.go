package batch

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// WriteResults writes a CSV file with a line for each row: its line, its values under
// names, its state, the vendor's id, the cost, the detail, and the further columns under
// extra. It replaces the file at once, so that nobody sees a half of it.
func (b *Batch) WriteResults(path string, names []string, extra ...string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(b.write(csv.NewWriter(f), names, extra), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func (b *Batch) write(w *csv.Writer, names, extra []string) error {
	record := append(append([]string{"line"}, names...), "state", "ref", "cost", "detail")
	if err := w.Write(append(record, extra...)); err != nil {
		return err
	}
	for _, r := range b.Rows {
		last := b.Journal.Last(r.Key)
		state := last.Seen()
		if state == Waiting {
			state = "waiting"
		}
		record := append(append([]string{strconv.Itoa(r.Line)}, r.Values...), string(state), last.Ref, fmt.Sprint(last.Cost), last.Detail)
		values := make([]string, len(extra))
		copy(values, last.Values)
		if err := w.Write(append(record, values...)); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

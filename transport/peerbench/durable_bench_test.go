package peerbench

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
)

// BenchmarkDurable puts a hold on the disk before its call may leave, by one caller and by
// 64 at once. outlay's is a whole hold with its outcome; bbolt's is the least that would
// do: the record of the hold and the new sum in one transaction; fsync is a record of 128
// bytes appended and synced, for 64 callers once for all who wait.
//
// What a hold costs, by the profile (go1.26.8, one core): for one caller the sync of the
// commit is half of the processor's time and nearly all of the waiting, writing the log
// before it a tenth, and the statements of hold and outcome a quarter; one commit covers
// both, since the outcome rides on the next hold's. For 64 callers it is the statements:
// the outcome's row and totals, a third of all; the hold's, a third; and the commit, a
// seventh. Each of them is a prepared statement on a row that is found by its key, run by
// an SQLite that was compiled to Go: less is only to be had by keeping no line of what
// happened.
func BenchmarkDurable(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(*testing.B, string) func(uint64) error
	}{
		{"outlay", openLedger},
		{"bbolt_update", func(b *testing.B, dir string) func(uint64) error { return openBolt(b, dir, (*bbolt.DB).Update) }},
		{"bbolt_batch", func(b *testing.B, dir string) func(uint64) error { return openBolt(b, dir, (*bbolt.DB).Batch) }},
		{"fsync", openRaw},
	} {
		for _, callers := range []struct {
			name string
			n    int
		}{{"one", 1}, {"64", 64}} {
			if c.name == "bbolt_batch" && callers.n == 1 {
				continue // Batch is made for many: alone it waits for company
			}
			b.Run(callers.name+"/"+c.name, func(b *testing.B) {
				put := c.open(b, b.TempDir())
				var seq atomic.Uint64
				b.ReportAllocs()
				b.SetParallelism(callers.n)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := put(seq.Add(1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

func openLedger(b *testing.B, dir string) func(uint64) error {
	l, err := sqliteledger.Open(filepath.Join(dir, "spend.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	day := budget.PerDay(1e9 * budget.Unit)
	day.Name = "day"
	return func(seq uint64) error {
		id := budget.HoldID{Boot: 1, Seq: seq}
		_, err := l.Hold(context.Background(), budget.Hold{ID: id, Provider: "p", Legs: []budget.Leg{{Budget: day, Amount: 1000}}})
		if err == nil {
			_, err = l.Resolve(context.Background(), id, budget.Settled(900))
		}
		return err
	}
}

func openBolt(b *testing.B, dir string, commit func(*bbolt.DB, func(*bbolt.Tx) error) error) func(uint64) error {
	db, err := bbolt.Open(filepath.Join(dir, "holds.db"), 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	holds, sum := []byte("holds"), []byte("sum")
	err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(holds); return err })
	if err != nil {
		b.Fatal(err)
	}
	return func(seq uint64) error {
		key := binary.BigEndian.AppendUint64(nil, seq)
		return commit(db, func(tx *bbolt.Tx) error {
			t := tx.Bucket(holds)
			var total uint64
			if v := t.Get(sum); v != nil {
				total = binary.BigEndian.Uint64(v)
			}
			if err := t.Put(key, make([]byte, 32)); err != nil {
				return err
			}
			return t.Put(sum, binary.BigEndian.AppendUint64(nil, total+1000))
		})
	}
}

// journal is a file of records with one sync for all who wait for it.
type journal struct {
	f       *os.File
	mu      sync.Mutex
	cond    *sync.Cond
	buf     []byte
	written uint64 // records taken into buf
	synced  uint64 // records on the disk
	busy    bool   // somebody writes
	err     error
}

func openRaw(b *testing.B, dir string) func(uint64) error {
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	l := &journal{f: f}
	l.cond = sync.NewCond(&l.mu)
	return func(uint64) error { return l.append(make([]byte, 128)) }
}

func (l *journal) append(record []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, record...)
	l.written++
	mine := l.written
	for l.synced < mine {
		if l.busy {
			l.cond.Wait()
			continue
		}
		l.busy = true
		buf, upTo := l.buf, l.written
		l.buf = nil
		l.mu.Unlock()
		_, err := l.f.Write(buf)
		if err == nil {
			err = syscall.Fdatasync(int(l.f.Fd()))
		}
		l.mu.Lock()
		l.busy, l.synced, l.err = false, upTo, err
		l.cond.Broadcast()
	}
	return l.err
}

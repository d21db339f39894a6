// Package batch works through the rows of a CSV file, each of them once, and can be
// stopped at any moment and started again. It is what examples/bulksms and
// examples/geocode have in common.
//
// What becomes of a row is written to a journal beside the results, and is on the disk
// before the next step: that a row is about to be sent ([Journal.Sending]), and how it
// ended. A row that was on its way when the program died has an unknown outcome. It is
// listed, and not sent again unless that does no harm.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// State is how a row stands. The zero State: it waits to be sent.
type State string

// The states of a row.
const (
	Waiting State = ""
	Begun   State = "begun"   // on its way
	Done    State = "done"    // the vendor says that it did it
	Failed  State = "failed"  // the vendor says that it did not and will not
	Unknown State = "unknown" // nobody knows
)

// Result is what became of a row.
type Result struct {
	State State `json:"state"`
	// Ref is the vendor's own id.
	Ref string `json:"ref,omitempty"`
	// Cost is what it cost, all tries together.
	Cost budget.Amount `json:"cost,omitempty"`
	// Detail says why it failed.
	Detail string `json:"detail,omitempty"`
	// Values are further columns of the results.
	Values []string `json:"values,omitempty"`
}

// Batch is the work.
type Batch struct {
	Name    string
	Rows    []Row
	Journal *Journal
	// Workers is how many rows are under way at once.
	Workers int
	// Harmless: doing a row twice does no harm, so that rows of unknown outcome are done
	// again.
	Harmless bool
	// Do does one row. An error says that nothing was done, and the row waits: after
	// [ErrLater] for the end of the run, after a budget that is used up for another run.
	// Any other error stops the run.
	Do func(context.Context, Row) (Result, error)
	// Out is told how far it is.
	Out io.Writer

	mu       sync.Mutex // guards what follows
	finished int
	later    []Row
	refused  map[string]*refusal // by the label of the budget
}

// ErrLater says that nothing was done now, and that it may work in a while.
var ErrLater = errors.New("later")

// passes is how often a run tries a row that was put off.
const passes = 3

// refusal is what a budget refused.
type refusal struct {
	rows    int
	retryAt time.Time
}

// Run does the rows that wait. When ctx ends it begins no more, but what is on its way is
// waited for: a call that is cut off has an unknown outcome. It returns the error that
// stopped it, the context's own included.
func (b *Batch) Run(ctx context.Context) error {
	b.refused = map[string]*refusal{}
	var todo []Row
	taken := map[string]bool{}
	for _, r := range b.Rows {
		if b.Pending(r) && !taken[r.Key] {
			todo = append(todo, r)
			taken[r.Key] = true
		}
	}
	over, all := make(chan struct{}), len(todo)
	var reporter sync.WaitGroup
	reporter.Go(func() { b.report(all, over) })
	var err error
	for pass := 0; pass < passes && len(todo) > 0 && err == nil; pass++ {
		err = b.pass(ctx, todo)
		todo, b.later = b.later, nil
	}
	close(over)
	reporter.Wait()
	return err
}

// pass tries each of the rows once.
func (b *Batch) pass(ctx context.Context, todo []Row) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rows := make(chan Row)
	var work sync.WaitGroup
	for range b.Workers {
		work.Go(func() {
			for r := range rows {
				if err := b.do(context.WithoutCancel(ctx), r); err != nil {
					cancel(err)
				}
			}
		})
	}
	feed(ctx, todo, rows)
	work.Wait()
	return context.Cause(ctx)
}

// feed hands out the rows until ctx ends.
func feed(ctx context.Context, todo []Row, rows chan<- Row) {
	defer close(rows)
	for _, r := range todo {
		if ctx.Err() != nil {
			return // also if a worker is free at this moment
		}
		select {
		case rows <- r:
		case <-ctx.Done():
			return
		}
	}
}

// Pending reports whether a row is still to be done.
func (b *Batch) Pending(r Row) bool {
	switch b.Journal.Last(r.Key).State {
	case Waiting:
		return true
	case Begun, Unknown:
		return b.Harmless
	}
	return false
}

// do does one row. Its error stops the run.
func (b *Batch) do(ctx context.Context, r Row) error {
	before := b.Journal.Last(r.Key)
	result, notSent := b.Do(context.WithValue(ctx, rowKey{}, r.Key), r)
	if notSent != nil {
		result = Result{Cost: result.Cost} // it waits again
	}
	result.Cost += before.Cost
	if b.Journal.Last(r.Key).State != Waiting || result.State != Waiting || result.Cost != before.Cost {
		if err := b.Journal.Write(r.Key, result); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	over, ok := errors.AsType[*budget.ExceededError](notSent)
	if errors.Is(notSent, ErrLater) || ok && over.Busy { // busy: what is on its way may cost less
		b.later = append(b.later, r)
		return nil
	}
	b.finished++
	if !ok {
		return notSent
	}
	f := b.refused[over.Budget]
	if f == nil {
		f = new(refusal)
		b.refused[over.Budget] = f
	}
	f.rows++
	f.retryAt = over.RetryAt
	return nil
}

// Count returns how many rows stand in each state.
func (b *Batch) Count() map[State]int {
	n := map[State]int{}
	for _, r := range b.Rows {
		n[b.Journal.Last(r.Key).Seen()]++
	}
	return n
}

// Seen is the state as people should see it: a row on its way whose program is gone has
// an unknown outcome.
func (r Result) Seen() State {
	if r.State == Begun {
		return Unknown
	}
	return r.State
}

// Summary prints what was done, what is unknown, and when to go on with the rest. It
// reports whether every row is done or failed.
func (b *Batch) Summary(stopped error) bool {
	n := b.Count()
	fmt.Fprintf(b.Out, "%s: %d done, %d failed, %d of unknown outcome, %d waiting\n", b.Name, n[Done], n[Failed], n[Unknown], n[Waiting])
	for _, r := range b.Rows {
		if l := b.Journal.Last(r.Key); l.Seen() == Unknown && !b.Harmless {
			fmt.Fprintf(b.Out, "  line %d: nobody knows whether it was sent; it is not sent again\n", r.Line)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(b.refused)) {
		f := b.refused[label]
		fmt.Fprintf(b.Out, "  budget %s is used up: %d rows wait%s\n", label, f.rows, goOn(f.retryAt))
	}
	switch at, known := transport.RetryAt(stopped); {
	case stopped == nil:
	case errors.Is(stopped, context.Canceled):
		fmt.Fprintln(b.Out, "  stopped; start it again to go on")
	case known:
		fmt.Fprintf(b.Out, "  stopped: %v%s\n", stopped, goOn(at))
	default:
		fmt.Fprintf(b.Out, "  stopped: %v\n", stopped)
	}
	return n[Waiting]+n[Unknown] == 0
}

func goOn(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "; go on after " + at.UTC().Format("2006-01-02 15:04:05 MST")
}

// report tells how far the run is: on a terminal in one line that is written over, else
// every two seconds in a new one.
func (b *Batch) report(all int, over <-chan struct{}) {
	every, begin, end := 2*time.Second, "", "\n"
	if isTerminal(b.Out) {
		every, begin, end = 200*time.Millisecond, "\r\x1b[K", ""
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	line := func(end string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		fmt.Fprintf(b.Out, "%s%s: %d of %d%s", begin, b.Name, b.finished, all, end)
	}
	for {
		select {
		case <-tick.C:
			line(end)
		case <-over:
			line("\n")
			return
		}
	}
}

// isTerminal reports whether w is a device that a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

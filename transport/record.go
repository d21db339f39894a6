package transport

import (
	"context"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
)

type recordKey struct{}

// CallRecord tells what one call went through, for the program that made it. It is
// filled while the call runs; read it after the response body has been read and
// closed. When several calls use the same context (redirects do) it tells of all of
// them. Methods are safe for concurrent use.
type CallRecord struct {
	mu    sync.Mutex
	calls []CallInfo
}

// CallInfo is one RoundTrip of a record.
type CallInfo struct {
	ID       CallID
	Provider string
	// Quote is the price of each attempt before it was sent.
	Quote    budget.Quote
	Attempts []AttemptInfo
	// Reason is why the call, or its next attempt, was refused, or would have been by a monitor.
	Reason Reason
	// Waited is the time in the queue and at gates; Delayed the time between attempts.
	Waited, Delayed time.Duration
}

// AttemptInfo is one attempt of a call.
type AttemptInfo struct {
	// Waited is how long it waited for its turn, and WaitedFor why.
	Waited    time.Duration
	WaitedFor Reason
	// Hold is the id of its hold in the ledger, zero if it holds no money. Lists of holds
	// without a known outcome have no other name of the call: keep it beside your own.
	Hold budget.HoldID
	// Status is that of its answer, zero if none came.
	Status int
	// Throttled: the provider asked to slow down.
	Throttled bool
	// State and Cost are how its hold ended; State is StateHeld until then, and StateNone
	// if no budget pays for it: then nobody knows the cost.
	State budget.State
	Cost  budget.Amount
	Unit  string
	// Why is the evidence by which the hold ended, in a word or two.
	Why string
}

// Record returns a context whose calls are recorded. Nothing is recorded without it.
func Record(ctx context.Context) (context.Context, *CallRecord) {
	r := new(CallRecord)
	return context.WithValue(ctx, recordKey{}, r), r
}

// Calls returns what is recorded so far.
func (r *CallRecord) Calls() []CallInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]CallInfo, len(r.calls))
	for i, c := range r.calls {
		c.Attempts = append([]AttemptInfo(nil), c.Attempts...)
		out[i] = c
	}
	return out
}

// Attempts counts the attempts of all calls.
func (r *CallRecord) Attempts() (n int) {
	for _, c := range r.Calls() {
		n += len(c.Attempts)
	}
	return n
}

// Cost sums what the calls cost in each unit; presumed costs count, open holds do not.
func (r *CallRecord) Cost() map[string]budget.Amount {
	sum := map[string]budget.Amount{}
	for _, c := range r.Calls() {
		for _, a := range c.Attempts {
			if a.State == budget.StateSettled || a.State == budget.StatePresumed {
				sum[a.Unit] = plus(sum[a.Unit], a.Cost)
			}
		}
	}
	return sum
}

// recorder writes the part of a record that belongs to one call. The nil recorder
// records nothing.
type recorder struct {
	r *CallRecord
	i int
}

func recorderOf(ctx context.Context, id CallID, provider string) *recorder {
	r, _ := ctx.Value(recordKey{}).(*CallRecord)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, CallInfo{ID: id, Provider: provider})
	return &recorder{r, len(r.calls) - 1}
}

func (w *recorder) call(f func(*CallInfo)) {
	if w == nil {
		return
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	f(&w.r.calls[w.i])
}

// attempt edits attempt n (from 1), which exists or is the next one.
func (w *recorder) attempt(n int, f func(*AttemptInfo)) {
	w.call(func(c *CallInfo) {
		for len(c.Attempts) < n {
			c.Attempts = append(c.Attempts, AttemptInfo{State: budget.StateNone})
		}
		f(&c.Attempts[n-1])
	})
}

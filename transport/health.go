package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// health tells when a store fails, and once when it works again.
type health struct {
	store  string
	down   atomic.Bool
	failed atomic.Int64 // when the last operation failed, in ns since 1970
	writes atomic.Bool  // it fails to write, so that reading proves nothing
}

func (h *health) note(c *call, op string, err error) {
	if err == nil || isExceeded(err) {
		if h.down.Load() && h.down.CompareAndSwap(true, false) {
			c.emit(&Event{Kind: KindStore, Store: h.store, Op: op, Up: true})
		}
		return
	}
	if c.ctx.Err() != nil && isContextEnd(err) {
		return // the caller left
	}
	failed := errors.Is(err, budget.ErrUnavailable) || errors.Is(err, throttle.ErrUnavailable) || errors.Is(err, budget.ErrConflict) || errors.Is(err, budget.ErrUnknownHold)
	if !failed {
		return
	}
	class := storeClass(err)
	if class != "conflict" {
		h.failed.Store(time.Now().UnixNano())
		h.writes.Store(class == "full" || class == "corrupt")
		h.down.Store(true)
	}
	c.emit(&Event{Kind: KindStore, Store: h.store, Op: op, ErrorClass: class})
}

// quiet is how long no call failed before a reading proves that a store answers again:
// reading may work where holding does not.
const quiet = time.Minute

// read notes that the store was read, and reports whether it works again thereby.
func (h *health) read(now time.Time) bool {
	return h.down.Load() && !h.writes.Load() && now.Sub(time.Unix(0, h.failed.Load())).Abs() >= quiet && h.down.CompareAndSwap(true, false)
}

// storeClass is what is wrong with a store, if its error has the word. A conflict is one
// of the configuration: the store works.
func storeClass(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, budget.ErrConflict), errors.Is(err, budget.ErrUnknownHold):
		return "conflict"
	}
	if e, ok := errors.AsType[interface {
		error
		ErrorClass() string
	}](err); ok {
		switch class := e.ErrorClass(); class {
		case "full", "corrupt":
			return class
		}
	}
	return "unavailable"
}

// isExceeded reports whether err is the no of a ledger, which is an answer. That a budget
// or provider is frozen may be remembered while the store is away.
func isExceeded(err error) bool {
	_, ok := errors.AsType[*budget.ExceededError](err)
	return ok
}

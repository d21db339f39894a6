package transport

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// health tells when a store fails, and once when it works again.
type health struct {
	store string
	down  atomic.Bool
}

func (h *health) note(c *call, op string, err error) {
	if err == nil {
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
	class := "unavailable"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		class = "timeout"
	case errors.Is(err, budget.ErrConflict), errors.Is(err, budget.ErrUnknownHold):
		class = "conflict"
	default:
		h.down.Store(true)
		class = storeClass(err)
	}
	c.emit(&Event{Kind: KindStore, Store: h.store, Op: op, ErrorClass: class})
}

// storeClass is what is wrong with a store that does not work, if its error has the word.
func storeClass(err error) string {
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

package transport

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// LedgerStatus tells which books a [Transport] uses. ID, Mode and Skew are what methods
// of the ledger of these names return, without argument, if it has them.
type LedgerStatus struct {
	// ID is the same for all who share the books: eight hexadecimal digits, made of
	// the key of a [budget.Keyed] unless the ledger says otherwise. It is empty without a
	// ledger.
	ID string
	// Kind is memory, sqlite, redis or the name of another ledger's package; Mode is
	// exact unless the ledger says otherwise.
	Kind, Mode string
	// Skew is by how much the local clock is ahead of the ledger's; zero if they are one,
	// and if the ledger does not say.
	Skew time.Duration
	// Took is how long the ledger needed for Status.Budgets.
	Took time.Duration
}

// ledgerStatus reads what the ledger tells of itself. The methods beside those of
// package budget are optional.
func (t *Transport) ledgerStatus() (s LedgerStatus) {
	if t.ledger == nil {
		return s
	}
	s.Kind, s.Mode = kindOf(t.ledger), "exact"
	if m, ok := t.ledger.(interface{ Mode() string }); ok {
		s.Mode = m.Mode()
	}
	if c, ok := t.ledger.(interface{ Skew() time.Duration }); ok {
		s.Skew = c.Skew()
	}
	key := t.aliasKey[:]
	if k, ok := t.ledger.(budget.Keyed); ok {
		key = k.Key()
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte("ledger id"))
	s.ID = hex.EncodeToString(h.Sum(nil)[:4])
	if i, ok := t.ledger.(interface{ ID() string }); ok {
		s.ID = i.ID()
	}
	return s
}

// kindOf is the last word of the path of the ledger's package, without "ledger".
func kindOf(l budget.Ledger) string {
	if _, ok := l.(*budget.Memory); ok {
		return "memory"
	}
	typ := reflect.TypeOf(l)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	path := typ.PkgPath()
	kind := strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], "ledger")
	if kind == "" {
		return "other"
	}
	return kind
}

// readBooks fills in the totals, and returns since when each provider is frozen, as far
// as the ledger knows. It comes back when ctx ends, whatever the ledger does.
func (t *Transport) readBooks(ctx context.Context, set *setup, s *Status) []time.Time {
	if t.ledger == nil {
		return nil
	}
	begin, at := time.Now(), s.Time
	s.Budgets, s.LedgerErr = within(ctx, t, func(ctx context.Context) ([]budget.Totals, error) {
		return t.ledger.Totals(ctx, at, set.budgets()...)
	})
	s.Ledger.Took = time.Since(begin)
	if _, ok := t.ledger.(budget.Operator); !ok || s.LedgerErr != nil {
		return nil
	}
	found, err := within(ctx, t, func(ctx context.Context) (frozen, error) { return t.readFrozen(ctx, set), nil })
	if err != nil {
		s.Budgets, s.LedgerErr = nil, err
		return nil
	}
	for _, n := range found.notices {
		if e, ok := noticeEvent(n); ok {
			t.emit(ctx, e)
		}
	}
	return found.since
}

// frozen is since when each provider is frozen, and what the ledger told beside it.
type frozen struct {
	since   []time.Time
	notices []budget.Notice
}

// readFrozen asks for every provider.
func (t *Transport) readFrozen(ctx context.Context, set *setup) frozen {
	f := frozen{since: make([]time.Time, len(set.providers))}
	for i, p := range set.providers {
		report, err := t.ledger.Hold(ctx, budget.Hold{Provider: p.Name})
		f.notices = append(f.notices, report.Notices...)
		if e, ok := errors.AsType[*budget.FrozenError](err); ok {
			f.since[i] = e.Since
		}
	}
	return f
}

// maxReaders bounds the readings of a ledger that are under way, in case it hangs and
// does not look at the context.
const maxReaders = 16

// within reads from the ledger until ctx ends, also if the ledger does not look at it.
// Then the reading goes on in a goroutine of its own, of which there are at most 16.
func within[T any](ctx context.Context, t *Transport, read func(context.Context) (T, error)) (T, error) {
	var none T
	if t.readers.Add(1) > maxReaders {
		t.readers.Add(-1)
		return none, fmt.Errorf("%w: %d readings have not come back", budget.ErrUnavailable, maxReaders)
	}
	type answer struct {
		v     T
		err   error
		panic any
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			a.panic = recover()
			t.readers.Add(-1)
			answered <- a
		}()
		a.v, a.err = read(ctx)
	}()
	select {
	case a := <-answered:
		if a.panic != nil {
			panic(a.panic)
		}
		return a.v, scrub(a.err)
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", budget.ErrUnavailable, ctx.Err())
	}
}

package transport

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// LedgerStatus tells which books a [Transport] uses.
type LedgerStatus struct {
	// ID is the same for all who share the books: eight hexadecimal digits. It is empty
	// without a ledger.
	ID string
	// Kind is memory, sqlite, redis or the name of another ledger's package; Mode is
	// exact unless the ledger says otherwise.
	Kind, Mode string
	// Skew is by how much the local clock is ahead of the ledger's; zero if they are one.
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

// readBooks fills in what the ledger knows: the totals, and who is frozen.
func (t *Transport) readBooks(ctx context.Context, set *setup, s *Status) {
	if t.ledger == nil {
		return
	}
	begin := time.Now()
	s.Budgets, s.LedgerErr = t.ledger.Totals(ctx, s.Time, set.budgets()...)
	s.Ledger.Took = time.Since(begin)
	if _, ok := t.ledger.(budget.Operator); !ok || s.LedgerErr != nil {
		return
	}
	for i := range s.Providers {
		p := &s.Providers[i]
		report, err := t.ledger.Hold(ctx, budget.Hold{Provider: p.Name})
		for _, n := range report.Notices {
			if e, ok := noticeEvent(n); ok {
				t.emit(ctx, e)
			}
		}
		if f, ok := errors.AsType[*budget.FrozenError](err); ok {
			p.Frozen = f.Since
		}
	}
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
)

// limitsEvery is how often the limits of programs that share a ledger are compared.
const limitsEvery = 10 * time.Second

// limits watches for another program that configures the same budget otherwise: one limit
// holds for all who share the books, that of whoever configured it last, and nobody may
// have meant it.
type limits struct {
	ledger sharedLedger // nil: it is nobody else's, or cannot tell
	log    *slog.Logger
	asked  time.Time // when look asked the ledger last

	mu    sync.Mutex // guards found
	found []string
}

// sharedLedger is what sqliteledger tells of a file.
type sharedLedger interface {
	Others(ctx context.Context) (int, error)
	Budgets(ctx context.Context, now time.Time) ([]budget.Totals, error)
}

// look compares the limits of the running configuration with those in the ledger. One
// goroutine at a time may call it.
func (l *limits) look(f *gateway.File, now time.Time) {
	if l.ledger == nil || now.Sub(l.asked) < limitsEvery && !l.asked.IsZero() {
		return
	}
	l.asked = now
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	n, err := l.ledger.Others(ctx)
	if err != nil {
		return // calls tell that the ledger does not answer
	}
	var all []budget.Totals
	if n > 0 {
		if all, err = l.ledger.Budgets(ctx, now); err != nil {
			return
		}
	}
	found := differences(f.Budgets(), all)
	l.mu.Lock() // not while the ledger is read: pages must not wait for it
	before := l.found
	l.found = found
	l.mu.Unlock()
	for _, text := range found {
		if !slices.Contains(before, text) {
			l.log.Warn("two configurations share the ledger and differ", "problem", text)
		}
	}
}

// differences are the limits that another program has configured otherwise.
func differences(ours map[string]budget.Budget, theirs []budget.Totals) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		b := ours[name]
		for _, t := range theirs {
			if t.Budget.Name == name && t.Budget.Limit != b.Limit {
				all = append(all, fmt.Sprintf("Budget %s: this configuration says %s %s, and another program that shares the ledger has configured %s. "+
					"One limit holds for both, that of whoever configured it last: write the same in both files.", name, b.Limit, b.Unit, t.Budget.Limit))
			}
		}
	}
	return all
}

// told are the sentences for people.
func (l *limits) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.found)
}

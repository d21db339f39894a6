package redisledger

import (
	"context"
	"maps"

	"github.com/outlay-go/outlay/budget"
)

// What is frozen is kept in a hash by these fields, with the server's milliseconds since.
func frozenProvider(name string) string { return "p" + name }
func frozenBudget(name string) string   { return "b" + name }

// seeFrozen notes what the store says is frozen: fields and values. It holds while the
// store is away, and is said again to a store that lost it.
func (l *Ledger) seeFrozen(pairs []any) {
	seen := make(map[string]int64, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		seen[text(pairs[i])] = number(pairs[i+1])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = seen
}

// setFrozen notes that one is, or (since 0) is no more.
func (l *Ledger) setFrozen(field string, since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since == 0 {
		delete(l.frozen, field)
		return
	}
	if l.frozen == nil {
		l.frozen = map[string]int64{}
	}
	if l.frozen[field] == 0 {
		l.frozen[field] = since
	}
}

// noteFrozen notes what the store said of a hold: i is 0 for its provider.
func (l *Ledger) noteFrozen(h *budget.Hold, charges []charge, i, since int64) {
	field := frozenProvider(h.Provider)
	if i > 0 {
		field = frozenBudget(charges[i-1].name)
	}
	l.setFrozen(field, since)
}

// knownFrozen refuses what is frozen as far as this instance knows. The caller holds the
// lock.
func (l *Ledger) knownFrozen(h *budget.Hold, charges []charge) error {
	if since := l.frozen[frozenProvider(h.Provider)]; since != 0 {
		return frozen(h, charges, 0, since)
	}
	for i := range charges {
		if since := l.frozen[frozenBudget(charges[i].name)]; since != 0 {
			return frozen(h, charges, int64(i)+1, since)
		}
	}
	return nil
}

// freezeAgain freezes what was frozen in books that were lost. Should it have been
// released meanwhile, it is frozen until it is released once more.
func (l *Ledger) freezeAgain(ctx context.Context) error {
	l.mu.Lock()
	known := maps.Clone(l.frozen)
	l.mu.Unlock()
	for field := range known {
		if err := l.operate(ctx, "freeze", field[1:], field, budget.By{Who: "outlay", Why: "the books were lost"}); err != nil {
			return err
		}
	}
	return nil
}

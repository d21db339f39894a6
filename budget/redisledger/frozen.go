package redisledger

import (
	"context"
	"maps"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// What is frozen is kept in a hash by these fields, with the server's milliseconds since.
// Beside it the limit that people set for a budget is kept, in the field "l" and its name,
// with the one that was configured then.
func frozenProvider(name string) string { return "p" + name }
func frozenBudget(name string) string   { return "b" + name }

// seeFrozen notes what the store says that people did: fields and values. It holds while the
// store is away, and is said again to a store that lost it.
func (l *Ledger) seeFrozen(pairs []any) {
	seen, limits := make(map[string]int64, len(pairs)/2), map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := strings.CutPrefix(text(pairs[i]), "l"); ok {
			limits[name] = text(pairs[i+1])
		} else {
			seen[text(pairs[i])] = number(pairs[i+1])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen, l.limits = seen, limits
}

// keepLimit notes what the store keeps of a limit; empty: people set none.
func (l *Ledger) keepLimit(name, kept string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limits := maps.Clone(l.limits)
	if delete(limits, name); kept != "" {
		if limits == nil {
			limits = map[string]string{}
		}
		limits[name] = kept
	}
	l.limits = limits
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

// operateAgain freezes what was frozen in books that were lost, and sets limits. Should it
// have been released meanwhile, it is frozen until it is released once more.
func (l *Ledger) operateAgain(ctx context.Context) error {
	l.mu.Lock()
	known, limits := maps.Clone(l.frozen), maps.Clone(l.limits)
	l.mu.Unlock()
	by := budget.By{Who: "outlay", Why: "the books were lost"}
	for field := range known {
		if _, err := l.operate(ctx, "freeze", field[1:], field, by); err != nil {
			return err
		}
	}
	for name, kept := range limits {
		if _, err := l.operate(ctx, "again", name, kept, by); err != nil {
			return err
		}
	}
	return nil
}

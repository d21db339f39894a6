package budget

import (
	"cmp"
	"errors"
	"fmt"
)

// Validate returns an error that wraps [ErrConflict] if h is no hold that a ledger may
// take: it needs a Provider, and with legs an ID that is not zero; each leg needs a valid
// budget with a name, once, and an amount that is not negative; all money is of one unit.
// All ledgers refuse by it, before they look at their books.
func (h *Hold) Validate() error {
	for i := range h.Legs {
		b := &h.Legs[i].Budget
		if err := b.Validate(); err != nil {
			return fmt.Errorf("%w: budget %s: %w", ErrConflict, b.shown(), err)
		}
	}
	return h.check()
}

// check is Validate for budgets that are valid.
func (h *Hold) check() error {
	switch {
	case h.Provider == "" || !printable(h.Provider):
		return fmt.Errorf("%w: a hold needs a provider, a name of at most 200 printable characters", ErrConflict)
	case h.ID == (HoldID{}) && len(h.Legs) > 0:
		return fmt.Errorf("%w: a hold of %s without an id", ErrConflict, h.Provider)
	}
	unit := ""
	for i := range h.Legs {
		l := &h.Legs[i]
		switch u := cmp.Or(l.Budget.Unit, USD); {
		case l.Budget.Name == "":
			return fmt.Errorf("%w: a budget without a name", ErrConflict)
		case l.Amount < 0:
			return fmt.Errorf("%w: budget %s: a negative amount", ErrConflict, l.Budget.shown())
		case u == Calls:
		case unit == "":
			unit = u
		case unit != u:
			return fmt.Errorf("%w: one hold in %s and %s", ErrConflict, unit, u)
		}
		for j := range i {
			if h.Legs[j].Budget.Name == l.Budget.Name {
				return fmt.Errorf("%w: budget %s twice in one hold", ErrConflict, l.Budget.shown())
			}
		}
	}
	return nil
}

// shown is the name that leaves the ledger.
func (b *Budget) shown() string { return cmp.Or(b.Label, b.Name) }

// Validate returns an error unless t names a provider or a budget, and not both.
func (t Target) Validate() error {
	if (t.Provider == "") == (t.Budget == "") {
		return errors.New("budget: name either a provider or a budget")
	}
	return nil
}

// Validate returns an error unless b says who: a change of the books that nobody made
// could not be asked about later. Why may be empty.
func (b By) Validate() error {
	if b.Who == "" {
		return errors.New("budget: say who does it (By.Who)")
	}
	return nil
}

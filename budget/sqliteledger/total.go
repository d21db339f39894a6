package sqliteledger

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// A Total is what an invoice says about all calls of one provider in one window.
type Total struct {
	Provider string
	// Window is its ID. Budget is whose; it may be empty if the provider has calls in
	// one budget only that has such a window.
	Budget, Window string
	Amount         budget.Amount
}

// A TotalDifference is what correcting by a total changes.
type TotalDifference struct {
	Total
	Unit string
	// Settled is what the books have settled for the provider in the window, and
	// Presumed what they presume.
	Settled, Presumed budget.Amount
	// Shares is what each presumed call is corrected to: what the invoice has above
	// Settled is spread over them by what they are presumed to have cost.
	Shares []Share
	// Rest is what is left then, and booked as one entry; it may be negative.
	Rest budget.Amount

	win, provider int64
	forgotten     budget.Amount // presumed for calls whose holds are forgotten
	last          int64
}

// Share is the part of a total that falls to one presumed call.
type Share struct {
	Hold     budget.HoldID
	Was, Now budget.Amount
}

// CompareTotal says what correcting by a total would change, and changes nothing.
func (l *Ledger) CompareTotal(ctx context.Context, t Total) (TotalDifference, error) {
	var d TotalDifference
	var wrong error
	err := l.view(ctx, func(b *books) {
		if d, wrong = b.locateTotal(t); wrong == nil {
			b.readTotal(&d)
		}
	})
	if err == nil {
		err = wrong
	}
	return d, err
}

// CorrectTotal makes the books agree with a total: presumed calls of the provider in the
// window are corrected, and the rest is booked as one entry of kind adjusted.
func (l *Ledger) CorrectTotal(ctx context.Context, t Total, by budget.By) (TotalDifference, error) {
	if err := by.Validate(); err != nil {
		return TotalDifference{}, err
	}
	d, err := l.CompareTotal(ctx, t)
	if err != nil {
		return d, err
	}
	err = l.do(ctx, func(b *books) error {
		b.readTotal(&d)
		for _, s := range d.Shares {
			_, _ = b.resolve(s.Hold, budget.Corrected(s.Now, by.Why), by.Who) // b.err fails the group
		}
		b.adjust(d, by)
		return b.err
	})
	return d, err
}

// locateTotal finds window and provider.
func (b *books) locateTotal(t Total) (TotalDifference, error) {
	d := TotalDifference{Total: t, provider: b.provider(t.Provider)}
	if t.Amount < 0 || t.Amount > huge {
		return d, fmt.Errorf("the amount %v is out of range", t.Amount)
	}
	var found []string
	b.query(func(s *sqlite3.Stmt) {
		d.win, d.Budget, d.Unit = s.ColumnInt64(0), s.ColumnText(1), s.ColumnText(2)
		found = append(found, d.Budget)
	}, `SELECT w.id, name, unit FROM win w JOIN budget b ON b.id=w.budget WHERE key=? AND (?2 IS NULL OR name=?2)
		AND unit<>'calls' AND EXISTS (SELECT 1 FROM entry e WHERE e.win=w.id AND e.provider=?3)`, t.Window, t.Budget, d.provider)
	switch {
	case b.err != nil:
		return d, b.err
	case len(found) == 0:
		return d, fmt.Errorf("no budget with money of provider %q has a window %q", t.Provider, t.Window)
	case len(found) > 1:
		return d, fmt.Errorf("several budgets have calls of %s in a window %s: %s; name one of them", t.Provider, t.Window, strings.Join(found, ", "))
	}
	return d, nil
}

// readTotal adds up what was booked since the last time, and spreads the amount.
func (b *books) readTotal(d *TotalDifference) {
	last := d.last
	b.query(func(s *sqlite3.Stmt) {
		d.Settled, d.Presumed = d.Settled+budget.Amount(s.ColumnInt64(0)), d.Presumed+budget.Amount(s.ColumnInt64(1))
		d.last = max(d.last, s.ColumnInt64(2))
	}, "SELECT sum(settled), sum(presumed), max(id) FROM entry WHERE id>? AND win=? AND provider=?", last, d.win, d.provider)
	d.Shares = nil
	d.forgotten = d.Presumed
	b.query(func(s *sqlite3.Stmt) {
		was := budget.Amount(s.ColumnInt64(2))
		d.Shares = append(d.Shares, Share{budget.HoldID{Boot: uint64(s.ColumnInt64(0)), Seq: uint64(s.ColumnInt64(1))}, was, 0})
		d.forgotten -= was
	}, `SELECT h.boot, h.seq, max(e.held, h.amount) FROM hold h JOIN entry e ON e.id BETWEEN h.first AND h.first+h.legs-1
		WHERE h.state=? AND h.provider=? AND e.win=? ORDER BY h.first`, int(budget.StatePresumed), d.provider, d.win)
	d.Rest = spread(d.Shares, d.Amount-d.Settled)
}

// spread divides an amount, as far as it goes, in proportion and without losing a nano,
// and returns what is left.
func spread(shares []Share, amount budget.Amount) (rest budget.Amount) {
	var all, sum, given budget.Amount
	for _, s := range shares {
		all += s.Was
	}
	give := max(0, min(amount, all))
	for i := range shares {
		sum += shares[i].Was
		hi, lo := bits.Mul64(uint64(give), uint64(sum))
		upTo, _ := bits.Div64(hi, lo, uint64(max(all, 1))) // give <= all, so that it is an Amount
		shares[i].Now = budget.Amount(upTo) - given
		given = budget.Amount(upTo)
	}
	return amount - given
}

// adjust books what no single call explains.
func (b *books) adjust(d TotalDifference, by budget.By) {
	if d.Rest == 0 && d.forgotten == 0 {
		return
	}
	p, change := b.page(d.win), sums{settled: d.Rest, presumed: -d.forgotten}
	if b.err != nil {
		return
	}
	b.change(p, change)
	b.lastEntry++
	b.exec(`INSERT INTO entry(id, at, kind, budget, win, provider, settled, presumed, who, why) VALUES(?,?,'adjusted',?,?,?,?,?,?,?)`,
		b.lastEntry, b.now.UnixMilli(), p.account.id, p.id, d.provider, int64(change.settled), int64(change.presumed), by.Who, by.Why)
	b.alert(p)
}

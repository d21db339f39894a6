package sqliteledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// A Line is what an invoice says about one call.
type Line struct {
	// Hold names the call by its hold; if it is zero, Ref does by the vendor's own id
	// (budget.Outcome.Ref).
	Hold budget.HoldID
	Ref  string
	// Amount is what it cost.
	Amount budget.Amount
}

// A Difference is what correcting by a line changes.
type Difference struct {
	Line
	Provider, Unit string
	// State is how the books have the call so far, and Booked for how much.
	State  budget.State
	Booked budget.Amount
	// Problem says why the line cannot be applied; empty: it can.
	Problem string
}

// ErrProblems is what [Ledger.CorrectLines] returns if a line cannot be applied. Then
// none was.
var ErrProblems = errors.New("sqliteledger: some lines cannot be applied; nothing was changed")

// CompareLines says what correcting by the lines would change, and changes nothing.
// Calls are found as long as their entries are kept, 400 days, also when their holds are
// forgotten.
func (l *Ledger) CompareLines(ctx context.Context, lines []Line) ([]Difference, error) {
	_, all, err := l.compare(ctx, lines)
	return all, err
}

// CorrectLines puts the costs of calls at what the lines of an invoice say: all of them,
// or none and [ErrProblems]. Either way it returns the differences.
func (l *Ledger) CorrectLines(ctx context.Context, lines []Line, by budget.By) ([]Difference, error) {
	if err := by.Validate(); err != nil {
		return nil, err
	}
	past, all, err := l.compare(ctx, lines)
	if err != nil {
		return nil, err
	}
	err = l.do(ctx, func(b *books) error {
		past.read(b)
		all = past.differences(lines)
		for _, d := range all {
			if d.Problem != "" {
				return ErrProblems
			}
		}
		for _, d := range all {
			b.correct(past.calls[d.Hold], d.Amount, by)
		}
		return b.err
	})
	return all, err
}

func (l *Ledger) compare(ctx context.Context, lines []Line) (*past, []Difference, error) {
	past := newPast(lines)
	err := l.view(ctx, func(b *books) {
		past.readRefs(b)
		past.read(b)
	})
	if err != nil {
		return nil, nil, err
	}
	return past, past.differences(lines), nil
}

// past is what the entries tell about the calls of some lines.
type past struct {
	calls map[budget.HoldID]*call
	refs  map[string][]budget.HoldID
	last  int64 // the newest entry that was read
}

// call is one hold, as the entries have it.
type call struct {
	id         budget.HoldID
	providerID int64
	provider   string
	kind       string // of its newest entry; empty: it has none
	legs       []pastLeg
	partly     bool // the first of its entries are compacted
}

type pastLeg struct {
	win  int64
	unit string
	held budget.Amount
	sums
}

func newPast(lines []Line) *past {
	p := &past{calls: map[budget.HoldID]*call{}, refs: map[string][]budget.HoldID{}}
	for _, line := range lines {
		if line.Hold != (budget.HoldID{}) {
			p.calls[line.Hold] = &call{id: line.Hold}
		} else {
			p.refs[line.Ref] = nil
		}
	}
	return p
}

// readRefs finds the calls that have the references.
func (p *past) readRefs(b *books) {
	if len(p.refs) == 0 {
		return
	}
	b.query(func(s *sqlite3.Stmt) {
		ids, wanted := p.refs[s.ColumnText(2)]
		id := budget.HoldID{Boot: uint64(s.ColumnInt64(0)), Seq: uint64(s.ColumnInt64(1))}
		if !wanted || (len(ids) > 0 && ids[len(ids)-1] == id) {
			return
		}
		p.refs[s.ColumnText(2)] = append(ids, id)
		if p.calls[id] == nil {
			p.calls[id] = &call{id: id}
		}
	}, "SELECT DISTINCT boot, seq, ref FROM entry WHERE ref IS NOT NULL AND boot IS NOT NULL ORDER BY ref, boot, seq")
}

// read reads the entries since the last time.
func (p *past) read(b *books) {
	b.query(func(s *sqlite3.Stmt) {
		p.last = s.ColumnInt64(0)
		c := p.calls[budget.HoldID{Boot: uint64(s.ColumnInt64(1)), Seq: uint64(s.ColumnInt64(2))}]
		if c == nil {
			return
		}
		c.kind, c.provider, c.providerID = s.ColumnText(3), s.ColumnText(4), s.ColumnInt64(5)
		c.add(s.ColumnInt64(6), s.ColumnText(7), sums{
			settled: budget.Amount(s.ColumnInt64(8)), presumed: budget.Amount(s.ColumnInt64(9)), held: budget.Amount(s.ColumnInt64(10)),
			overrun: budget.Amount(s.ColumnInt64(11)), floor: budget.Amount(s.ColumnInt64(12)),
		})
	}, `SELECT e.id, boot, seq, kind, p.name, e.provider, win, unit, settled, presumed, held, overrun, floor
		FROM entry e JOIN provider p ON p.id=e.provider JOIN budget b ON b.id=e.budget
		WHERE e.id>? AND boot IS NOT NULL ORDER BY e.id`, p.last)
}

func (c *call) add(win int64, unit string, s sums) {
	for i := range c.legs {
		if c.legs[i].win == win {
			c.legs[i].sums, _ = c.legs[i].add(s) // parts of a page, which is an Amount
			return
		}
	}
	c.partly = c.partly || c.kind != budget.StateHeld.String()
	c.legs = append(c.legs, pastLeg{win, unit, s.held, s})
}

// differences compares the lines with what was read.
func (p *past) differences(lines []Line) []Difference {
	all := make([]Difference, len(lines))
	seen := map[budget.HoldID]bool{}
	for i, line := range lines {
		all[i] = p.difference(line)
		d := &all[i]
		if d.Problem == "" && seen[d.Hold] {
			d.Problem = "another line is about the same call"
		}
		seen[d.Hold] = true
	}
	return all
}

func (p *past) difference(line Line) Difference {
	d := Difference{Line: line}
	if line.Hold == (budget.HoldID{}) {
		ids := p.refs[line.Ref]
		if len(ids) != 1 {
			d.Problem = fmt.Sprintf("%d calls have this reference", len(ids))
			return d
		}
		d.Hold = ids[0]
	}
	c := p.calls[d.Hold]
	switch {
	case c == nil || len(c.legs) == 0:
		d.Problem = "the ledger does not know this call"
		return d
	case c.partly:
		d.Problem = "the call is too long ago: its entries are compacted"
		return d
	case line.Amount < 0 || line.Amount > huge:
		d.Problem = "the amount is out of range"
	case c.kind == "held":
		d.Problem = "the call is still in flight"
	}
	money := c.money()
	d.Provider, d.State, d.Booked, d.Unit = c.provider, c.state(), money.used(), money.unit
	return d
}

func (c *call) money() pastLeg {
	for _, leg := range c.legs {
		if leg.unit != budget.Calls {
			return leg
		}
	}
	return c.legs[0]
}

func (c *call) state() budget.State {
	for s := range budget.StateHeld + 1 {
		if s.String() == c.kind {
			return s
		}
	}
	return budget.StatePresumed
}

// correct books what a call cost, also if its hold is forgotten.
func (b *books) correct(c *call, a budget.Amount, by budget.By) {
	o := budget.Corrected(a, by.Why)
	if b.row(c.id) != nil {
		_, _ = b.resolve(c.id, o, by.Who) // b.err fails the group
		return
	}
	for _, leg := range c.legs {
		was := leg.sums
		if c.state() == budget.StatePresumed {
			was.unknown = 1
		}
		p, change := b.page(leg.win), share(leg.held, leg.unit, o).minus(was)
		if b.err != nil {
			return
		}
		b.change(p, change)
		b.entry(o, c.state(), &holdRow{id: c.id, provider: c.providerID}, p, change, by.Who)
		b.alert(p)
	}
}

package sqliteledger

import (
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// How long ids are remembered.
const (
	keepClosed   = 15 * time.Minute    // ended holds: commands sent again, double settles
	keepPresumed = 35 * 24 * time.Hour // presumed holds, from the end of their windows
)

// holdRow is a row of the table hold.
type holdRow struct {
	id          budget.HoldID
	provider    int64
	flags       int
	first, legs int64
	state       budget.State // never StateCorrected: that is settled, with a correction
	ended       time.Time    // when it was first settled or voided; zero: not yet
	outcome     outcome
}

// outcome is what is known about a hold that is not in flight any more.
type outcome struct {
	said       budget.State  // what ended it, corrections left out
	amount     budget.Amount // of that
	corrected  bool
	correction budget.Amount
}

// present is the outcome that counts.
func (h *holdRow) present() budget.Outcome {
	switch {
	case h.state == budget.StateHeld:
		return budget.Outcome{State: budget.StateHeld}
	case h.outcome.corrected:
		return budget.Outcome{State: budget.StateCorrected, Amount: h.outcome.correction}
	default:
		return budget.Outcome{State: h.outcome.said, Amount: h.outcome.amount}
	}
}

// row reads a hold, or nil if its id is not known (any more).
func (b *books) row(id budget.HoldID) *holdRow {
	var h *holdRow
	b.query(func(s *sqlite3.Stmt) {
		h = &holdRow{
			id: id, provider: s.ColumnInt64(0), flags: s.ColumnInt(1), first: s.ColumnInt64(2), legs: s.ColumnInt64(3),
			state: budget.State(s.ColumnInt(4)), ended: instant(s, 5),
			outcome: outcome{said: budget.State(s.ColumnInt(6)), amount: budget.Amount(s.ColumnInt64(7)),
				corrected: s.ColumnType(8) != sqlite3.NULL, correction: budget.Amount(s.ColumnInt64(8))},
		}
	}, `SELECT provider, flags, first, legs, state, ended, said, amount, correction FROM hold WHERE boot=? AND seq=?`,
		int64(id.Boot), int64(id.Seq))
	if h != nil && !h.ended.IsZero() && b.now.Sub(h.ended) >= keepClosed {
		b.exec("DELETE FROM hold WHERE boot=? AND seq=?", int64(id.Boot), int64(id.Seq))
		return nil
	}
	return h
}

// legRow is what a hold set aside in one window.
type legRow struct {
	page *page
	unit string
	held budget.Amount
}

// legsOf reads the legs of a hold; none if b.err says why.
func (b *books) legsOf(h *holdRow) []legRow {
	legs := make([]legRow, 0, min(max(h.legs, 0), 16))
	b.query(func(s *sqlite3.Stmt) {
		p := b.page(s.ColumnInt64(0))
		if p.account != nil {
			legs = append(legs, legRow{p, p.account.budget.Unit, budget.Amount(s.ColumnInt64(1))})
		}
	}, `SELECT win, held FROM entry WHERE id BETWEEN ? AND ?`, h.first, h.first+h.legs-1)
	b.verify(int64(len(legs)) == h.legs, "hold", h.id.String())
	if b.err != nil {
		return nil
	}
	return legs
}

// sameHold reports whether the hold is known with the same content.
func (b *books) sameHold(h budget.Hold) (bool, error) {
	row := b.row(h.ID)
	if row == nil || b.err != nil {
		return false, b.err
	}
	legs := b.legsOf(row)
	if b.err != nil {
		return false, b.err
	}
	same := len(legs) == len(h.Legs) && row.provider == b.provider(h.Provider) && row.flags == flags(h)
	for i := 0; same && i < len(legs); i++ {
		same = legs[i].held == h.Legs[i].Amount && legs[i].page.account.budget.Name == h.Legs[i].Budget.Name
	}
	if !same {
		return false, fmt.Errorf("%w: hold %v was another one", budget.ErrConflict, h.ID)
	}
	return true, b.err
}

// resolve ends a hold, or changes how it ended. Who is empty but for operators.
func (b *books) resolve(id budget.HoldID, o budget.Outcome, who string) (budget.Report, error) {
	h := b.row(id)
	if b.err != nil {
		return budget.Report{}, b.err
	}
	if h == nil {
		return budget.Report{}, fmt.Errorf("%w: %v", budget.ErrUnknownHold, id)
	}
	news, err := h.outcome.accepts(id, h.state, o)
	if err != nil {
		return budget.Report{}, err
	}
	legs := b.legsOf(h)
	if b.err != nil {
		return budget.Report{}, b.err
	}
	if !news {
		_, over := counts(legs, h.present())
		return budget.Report{Overrun: over}, b.err
	}
	return b.end(h, legs, o, who)
}

// accepts reports whether an outcome says anything new about a hold, or contradicts
// what is known.
func (was *outcome) accepts(id budget.HoldID, state budget.State, o budget.Outcome) (news bool, err error) {
	switch {
	case o.Amount < 0:
		return false, fmt.Errorf("%w: hold %v: a negative cost", budget.ErrConflict, id)
	case o.State > budget.StateCorrected:
		return false, fmt.Errorf("%w: hold %v: %v ends no hold", budget.ErrConflict, id, o.State)
	case state == budget.StateHeld && o.State == budget.StateCorrected:
		return false, fmt.Errorf("%w: hold %v is in flight, there is nothing to correct", budget.ErrConflict, id)
	case state == budget.StateHeld:
		return true, nil
	case o.State == budget.StateCorrected:
		return !was.corrected || was.correction != o.Amount, nil
	case o.State == was.said && (o.Amount == was.amount || o.State == budget.StateVoided):
		return false, nil
	case state == budget.StatePresumed && (o.State != budget.StatePresumed || o.Amount > was.amount):
		return true, nil
	}
	return false, fmt.Errorf("%w: hold %v was %v at %v, not %v at %v", budget.ErrConflict, id, was.said, was.amount, o.State, o.Amount)
}

// counts is what a hold adds to what is used, by its first money leg, since all of them
// count the same call; and how far its cost is above what was held.
func counts(legs []legRow, o budget.Outcome) (used, over budget.Amount) {
	money := false
	for i, l := range legs {
		c := cost(l.held, l.unit, o)
		if i == 0 || (!money && l.unit != budget.Calls) {
			used, money = c, l.unit != budget.Calls
		}
		over = max(over, c-l.held)
	}
	return used, over
}

// end books an outcome that says something new.
func (b *books) end(h *holdRow, legs []legRow, o budget.Outcome, who string) (budget.Report, error) {
	was := h.present()
	if err := fits(legs, was, o); err != nil {
		return budget.Report{}, err
	}
	report := b.endReport(legs, was, o)
	h.note(o, b.now)
	b.saveHold(h, o.Ref)
	b.move(h, legs, was, o, who)
	return report, b.err
}

// fits says whether the totals can take the outcome.
func fits(legs []legRow, was, o budget.Outcome) error {
	for _, l := range legs {
		if _, err := l.page.sums.add(l.by(was, o)); err != nil {
			return err
		}
	}
	return nil
}

// by is what the outcome adds to the window of a leg.
func (l legRow) by(was, o budget.Outcome) sums {
	return share(l.held, l.unit, o).minus(share(l.held, l.unit, was))
}

// move changes the totals of the windows.
func (b *books) move(h *holdRow, legs []legRow, was, o budget.Outcome, who string) {
	for _, l := range legs {
		by := l.by(was, o)
		b.change(l.page, by)
		b.entry(o, was.State, h, l.page, by, who)
		b.trend(l, was, o)
		b.alert(l.page)
	}
}

func (b *books) endReport(legs []legRow, was, o budget.Outcome) budget.Report {
	before, _ := counts(legs, was)
	after, over := counts(legs, o)
	r := budget.Report{Delta: after - before, Overrun: over, Late: was.State == budget.StatePresumed}
	for _, l := range legs {
		r.Late = r.Late || !b.now.Before(l.page.ends)
	}
	return r
}

// note makes the outcome that of the hold.
func (h *holdRow) note(o budget.Outcome, now time.Time) {
	if o.State != budget.StatePresumed && h.ended.IsZero() {
		h.ended = now
	}
	if o.State == budget.StateCorrected {
		h.state, h.outcome.corrected, h.outcome.correction = budget.StateSettled, true, o.Amount
		return
	}
	h.state, h.outcome.said, h.outcome.amount = o.State, o.State, o.Amount
}

func (b *books) saveHold(h *holdRow, ref string) {
	var correction any
	if h.outcome.corrected {
		correction = int64(h.outcome.correction)
	}
	b.exec("UPDATE hold SET state=?, said=?, amount=?, correction=?, ended=?, ref=coalesce(?, ref) WHERE boot=? AND seq=?",
		int(h.state), int(h.outcome.said), int64(h.outcome.amount), correction, millis(h.ended), ref,
		int64(h.id.Boot), int64(h.id.Seq))
}

// entry writes the line of the audit trail for an outcome. It has the state before, which
// amounts do not tell of a call that cost nothing; none: in flight.
func (b *books) entry(o budget.Outcome, was budget.State, h *holdRow, p *page, by sums, who string) {
	var before any
	if was != budget.StateHeld {
		before = int(was)
	}
	b.lastEntry++
	b.exec(`INSERT INTO entry(id, at, kind, budget, win, provider, boot, seq, settled, presumed, held, overrun, floor, was, who, why, ref)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, b.lastEntry, b.now.UnixMilli(), o.State.String(), p.account.id, p.id,
		h.provider, int64(h.id.Boot), int64(h.id.Seq), int64(by.settled), int64(by.presumed), int64(by.held),
		int64(by.overrun), int64(by.floor), before, who, o.Why, o.Ref)
}

// trend counts what a hold turned out to cost when it first ended.
func (b *books) trend(l legRow, was, o budget.Outcome) {
	a := l.page.account
	if was.State != budget.StateHeld || o.State == budget.StateVoided || a.current == nil {
		return
	}
	p := a.current.page()
	p.trend.Add(b.now, cost(l.held, l.unit, o), o.State == budget.StateSettled)
	b.touch(p)
}

// settle writes an outcome that waited in memory. As a rule the hold is as we left it.
// If something was written meanwhile that the outcome contradicts, what is written stays.
func (b *books) settle(w waiting) {
	h := &holdRow{id: w.id, provider: b.provider(w.provider), state: budget.StateHeld}
	was, legs := h.present(), make([]legRow, len(w.legs))
	for i, l := range w.legs {
		legs[i] = legRow{b.page(l.page), l.unit, l.held}
	}
	o := *w.outcome
	h.note(o, b.now)
	if b.err != nil {
		return
	}
	if fits(legs, was, o) != nil || !b.endLive(h, o.Ref) {
		_, _ = b.resolve(w.id, o, "") // b.err fails the group
		return
	}
	b.move(h, legs, was, o, "")
}

// endLive is saveHold for a hold that should be in flight; false if it is not.
func (b *books) endLive(h *holdRow, ref string) bool {
	return 0 < b.exec("UPDATE hold SET state=?, said=?, amount=?, ended=?, ref=? WHERE boot=? AND seq=? AND state=?",
		int(h.state), int(h.outcome.said), int64(h.outcome.amount), millis(h.ended), ref,
		int64(h.id.Boot), int64(h.id.Seq), int(budget.StateHeld))
}

// A live hold was taken by this handle and is not resolved in the file: its outcome
// needs no look at the file, so that a call does not wait for the disk when it ends.
type live struct {
	provider string
	legs     []liveLeg
	outcome  *budget.Outcome // nil: in flight; else it waits to be written
}

type liveLeg struct {
	page int64
	held budget.Amount
	unit string
	ends time.Time
}

// report is what resolving the hold does.
func (h *live) report(o budget.Outcome, now time.Time) (r budget.Report) {
	legs := make([]legRow, len(h.legs))
	for i, l := range h.legs {
		legs[i] = legRow{held: l.held, unit: l.unit}
		r.Late = r.Late || !now.Before(l.ends)
	}
	before, _ := counts(legs, budget.Outcome{State: budget.StateHeld})
	after, over := counts(legs, o)
	r.Delta, r.Overrun = after-before, over
	return r
}

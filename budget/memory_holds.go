package budget

import (
	"fmt"
	"strings"
	"time"
)

// record is one hold in a Memory. What it takes to forget it comes first: by then it
// is long out of the processor's caches.
type record struct {
	id                HoldID
	chain             *record // in its slot of the table
	prev, next        *record // in its list
	ended             int64   // in Unix nanoseconds; zero: it is held or presumed
	state             State   // never StateCorrected: that is settled, and corrected set
	said              State   // the outcome that ended it, corrections left out
	corrected         bool
	critical, assumed bool

	legs          []leg
	amount        Amount // of the outcome that ended it
	correction    Amount
	provider, ref string
	at            time.Time
}

// leg is what a record takes from one window.
type leg struct {
	account *account
	book    *book // nil, before the hold is booked: the window is new
	held    Amount
	counted Amount // settled or presumed
}

func (l *leg) money() bool { return l.account.budget.Unit != Calls }

// refusal says why the leg does not fit. An error says that a monitored budget, which
// takes it all the same, cannot count that far.
func (l *leg) refusal(w *Window, critical bool) (*ExceededError, error) {
	a := l.account
	if l.book != nil && w.Oldest == w.ID { // the common case, without sums
		used, top := l.book.spent()+l.book.held, a.limit()
		if !critical {
			top -= a.budget.Keep
		}
		if fits(used, l.held, top) {
			return nil, nil
		}
	}
	t := a.totals(*w)
	e := t.Refusal(l.held, critical)
	if _, err := t.Used().Add(l.held); err != nil && (e == nil || a.budget.Monitor) {
		return nil, fmt.Errorf("%w: budget %s: %w", ErrConflict, a.budget.Label, err)
	}
	if e != nil && !e.RetryAt.IsZero() && w.Oldest != w.ID {
		e.RetryAt = l.frees(&t, critical)
	}
	return e, nil
}

// frees says when enough buckets of a rolling period will have left.
func (l *leg) frees(t *Totals, critical bool) time.Time {
	used, top := t.Used(), t.top(critical)
	for _, b := range l.account.counted(t.Window) {
		used -= b.spent() + b.held
		if fits(used, l.held, top) {
			return b.ends
		}
	}
	return t.Window.End
}

// cost is what the leg counts for by an outcome.
func (l *leg) cost(o Outcome) Amount {
	switch {
	case o.State == StateVoided:
		return 0
	case !l.money():
		return l.held
	case o.State == StatePresumed:
		return max(l.held, o.Amount)
	default:
		return o.Amount
	}
}

// check says whether the totals can take the outcome.
func (l *leg) check(was State, o Outcome) error {
	used := l.book.spent() + l.book.held - l.counted
	if was == StateHeld {
		used -= l.held
	}
	if _, err := used.Add(l.cost(o)); err != nil {
		return fmt.Errorf("%w: budget %s: %w", ErrConflict, l.account.budget.Label, err)
	}
	return nil
}

// take removes what the leg counted for in a state.
func (l *leg) take(was State, floor Amount) {
	b := l.book
	switch was {
	case StateHeld:
		b.held -= l.held
		b.openHolds--
		return
	case StatePresumed:
		b.presumed -= l.counted
		b.presumedHolds--
		if l.money() {
			b.floor -= floor
		}
	default:
		b.settled -= l.counted
	}
	b.overrun -= max(0, l.counted-l.held)
}

// give adds what it counts for now.
func (l *leg) give(o Outcome, first bool, now time.Time) {
	b := l.book
	l.counted = l.cost(o)
	b.overrun += max(0, l.counted-l.held)
	switch {
	case o.State == StatePresumed:
		b.presumed += l.counted
		b.presumedHolds++
		if l.money() {
			b.floor += o.Amount
		}
	default:
		b.settled += l.counted
	}
	if first && o.State != StateVoided {
		l.account.trend.Add(now, l.counted, o.State == StateSettled)
	}
}

// begin makes r the record of an admitted hold; its legs are set.
func (r *record) begin(h *Hold, now time.Time) {
	*r = record{
		id: h.ID, critical: h.Critical, assumed: h.Assumed, state: StateHeld,
		legs: r.legs, provider: h.Provider, at: now,
	}
}

// same reports whether h is what r was made from.
func (r *record) same(h *Hold) bool {
	if r.provider != h.Provider || r.critical != h.Critical || r.assumed != h.Assumed || len(r.legs) != len(h.Legs) {
		return false
	}
	for i := range r.legs {
		if r.legs[i].account.budget.Name != h.Legs[i].Budget.Name || r.legs[i].held != h.Legs[i].Amount {
			return false
		}
	}
	return true
}

// accepts reports whether an outcome says anything new, or contradicts what ended
// the hold.
func (r *record) accepts(o Outcome) (news bool, err error) {
	switch {
	case o.Amount < 0:
		return false, fmt.Errorf("%w: hold %v: a negative cost", ErrConflict, r.id)
	case o.State > StateCorrected:
		return false, fmt.Errorf("%w: hold %v: %v ends no hold", ErrConflict, r.id, o.State)
	case r.state == StateHeld && o.State == StateCorrected:
		return false, fmt.Errorf("%w: hold %v is in flight, there is nothing to correct", ErrConflict, r.id)
	case r.state == StateHeld:
		return true, nil
	case o.State == StateCorrected:
		return !r.corrected || r.correction != o.Amount, nil
	case o.State == r.said && (o.Amount == r.amount || o.State == StateVoided):
		return false, nil
	case r.state == StatePresumed && (o.State != StatePresumed || o.Amount > r.amount):
		return true, nil
	}
	return false, fmt.Errorf("%w: hold %v was %v at %v, not %v at %v", ErrConflict, r.id, r.said, r.amount, o.State, o.Amount)
}

// end notes the outcome, after the legs took it.
func (r *record) end(o Outcome) {
	r.state = o.State
	if o.State == StateCorrected {
		r.state, r.corrected, r.correction = StateSettled, true, o.Amount
		return
	}
	r.said, r.amount = o.State, o.Amount
	if o.State == StatePresumed && o.Ref != "" {
		r.ref = strings.Clone(o.Ref)
	}
}

// floor is what a presumed hold cost at least.
func (r *record) floor() Amount {
	if r.state != StatePresumed {
		return 0
	}
	return r.amount
}

// counts is what r adds to what is used: by its first money leg, since all of them
// count the same call.
func (r *record) counts() Amount {
	first := &r.legs[0]
	for i := range r.legs {
		if r.legs[i].money() {
			first = &r.legs[i]
			break
		}
	}
	if r.state == StateHeld {
		return first.held
	}
	return first.counted
}

// overrun is how far the cost is above the hold.
func (r *record) overrun() Amount {
	if r.state == StateHeld {
		return 0
	}
	over := Amount(0)
	for i := range r.legs {
		over = max(over, r.legs[i].counted-r.legs[i].held)
	}
	return over
}

func (r *record) lastEnd() time.Time {
	end := r.legs[0].book.ends
	for i := range r.legs {
		if e := r.legs[i].book.ends; e.After(end) {
			end = e
		}
	}
	return end
}

// find returns the hold of this id, unless it is forgotten, and forgets some of the
// closed ones that are due.
func (m *Memory) find(id HoldID, now time.Time) *record {
	due := now.Add(-keepClosed).UnixNano()
	for range 4 { // a call adds at most one, so the rest shrinks
		r := m.closed.first
		if r == nil || (m.closed.n <= m.maxClosed() && r.ended > due) {
			break
		}
		m.forgetHold(&m.closed, r)
	}
	r := m.holds.get(id)
	if r != nil && r.ended != 0 && r.ended <= due {
		m.forgetHold(&m.closed, r)
		return nil
	}
	return r
}

// file puts a hold whose state changed into the list where it belongs.
func (m *Memory) file(r *record, was State, now time.Time) {
	open := was == StateHeld || was == StatePresumed
	if !open || r.state == StatePresumed {
		return
	}
	for i := range r.legs {
		r.legs[i].book.pins--
	}
	m.open.remove(r)
	r.ended = now.UnixNano()
	m.closed.push(r)
}

func (m *Memory) forgetHold(from *list, r *record) {
	from.remove(r)
	m.holds.remove(r)
	if from == &m.open {
		for i := range r.legs {
			r.legs[i].book.pins--
		}
	}
	m.recycle(r)
}

// maxFree bounds the records kept for use again, as they are: see begin.
const maxFree = 1024

// A new Memory makes its records, with room for two legs each, by the chunk.
const recordChunk, usualLegs = 32, 2

func (m *Memory) blank() *record {
	if len(m.free) == 0 {
		records, legs := make([]record, recordChunk), make([]leg, recordChunk*usualLegs)
		for i := range records {
			records[i].legs = legs[i*usualLegs : i*usualLegs : (i+1)*usualLegs]
			m.free = append(m.free, &records[i])
		}
	}
	n := len(m.free) - 1
	r := m.free[n]
	m.free = m.free[:n]
	return r
}

func (m *Memory) recycle(r *record) {
	if len(m.free) < maxFree {
		m.free = append(m.free, r)
	}
}

// table finds records by id. Ids of one process are a counter, and neighbours in
// time are neighbours here, which a map would scatter over all of its memory.
type table struct {
	slots []*record // a power of two of them
	n     int
}

func (t *table) slot(id HoldID) **record {
	return &t.slots[(id.Boot*0x9e3779b97f4a7c15>>20+id.Seq)&uint64(len(t.slots)-1)]
}

func (t *table) get(id HoldID) *record {
	if t.n == 0 {
		return nil
	}
	r := *t.slot(id)
	for r != nil && r.id != id {
		r = r.chain
	}
	return r
}

func (t *table) add(r *record) {
	if t.n == len(t.slots) {
		old := t.slots
		t.slots = make([]*record, max(64, 2*len(old)))
		for _, o := range old {
			for o != nil {
				next := o.chain
				t.link(o)
				o = next
			}
		}
	}
	t.link(r)
	t.n++
}

func (t *table) link(r *record) {
	s := t.slot(r.id)
	r.chain, *s = *s, r
}

func (t *table) remove(r *record) {
	s := t.slot(r.id)
	for *s != r {
		s = &(*s).chain
	}
	*s, r.chain = r.chain, nil
	t.n--
}

// list is a queue of records from which any can be taken out.
type list struct {
	first, last *record
	n           int
}

func (l *list) push(r *record) {
	r.prev, r.next = l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.n++
}

func (l *list) remove(r *record) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
	l.n--
}

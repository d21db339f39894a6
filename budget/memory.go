package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How long and how much a Memory remembers.
const (
	keepClosed   = 15 * time.Minute     // ended holds: commands sent again, double settles
	maxClosed    = 100_000              // ended holds, at most
	keepPresumed = 35 * 24 * time.Hour  // presumed holds, from the end of their windows
	keepWindows  = 400 * 24 * time.Hour // totals, from the end of their windows
	maxBuckets   = 1000                 // windows of one budget: short rolling periods have many
	maxWindows   = 1 << 18              // windows of all budgets together
	sweepPause   = time.Minute          // between two attempts to forget some
)

// Memory is the Ledger of one process. Its books are right under any concurrency, but
// it forgets them when the process ends: a restart opens every window anew. The zero
// Memory is ready; it is safe for concurrent use and must not be copied after its first
// use. It implements [Operator], [Historian], [Auditor] and [Keyed], and keeps who and
// why of an operator's last 1,000 changes.
//
// Ended holds are known for 15 minutes and at most 100,000 of them, presumed ones
// until 35 days after their window, totals for 400 days. At most 262,144 windows are
// kept: beyond that the oldest that have ended are forgotten, and a clock set back
// into a forgotten window finds it closed ([ErrUnavailable]), never new.
type Memory struct {
	// Clock is where the time comes from. Nil: the system. It is set before the first
	// use.
	Clock *Clock

	mu       sync.Mutex // guards all below
	own      Clock      // in use if Clock is nil
	accounts map[string]*account
	holds    table
	open     list                 // held or presumed, by age
	closed   list                 // settled or voided, by their end
	free     []*record            // records to use again
	frozen   map[Target]time.Time // since when
	charged  []*Window            // the windows of the legs of the hold at work
	windows  int                  // kept, of all accounts
	dropped  time.Time            // until when forgotten budgets had windows
	swept    time.Time            // when what is too old was looked for
	notices  []Notice             // to be told
	key      []byte               // see Key
	watched  map[string]bool      // budgets whose windows are remembered, see History
	audit    audit
	bounds   bounds // other ones than above, for tests
}

type bounds struct{ windows, closed int }

var (
	_ Ledger   = (*Memory)(nil)
	_ Operator = (*Memory)(nil)
	_ Keyed    = (*Memory)(nil)
)

// Hold implements [Ledger]. It never waits, and looks at no context. A hold without
// legs asks only whether its provider is frozen; nothing is kept of it.
func (m *Memory) Hold(_ context.Context, h Hold) (Report, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read()
	if known := m.find(h.ID, now.Now); known != nil {
		if !known.same(&h) {
			return m.tell(Report{}), fmt.Errorf("%w: hold %v was another one", ErrConflict, h.ID)
		}
		return m.tell(Report{}), nil
	}
	r := m.blank()
	would, ahead, err := m.admit(r, &h, now)
	if err != nil || len(h.Legs) == 0 {
		m.recycle(r)
		return m.tell(Report{}), err
	}
	m.book(r, &h, now.Now, ahead)
	return m.tell(Report{WouldRefuse: would}), nil
}

// admit fills r with the legs of h, if all of them may be taken. It changes nothing
// but the limits that h configures. The refusal it returns beside a nil error is
// one that monitored budgets did not make; ahead says that the hold belongs to a window
// of a clock that nobody has confirmed.
func (m *Memory) admit(r *record, h *Hold, now Reading) (would *ExceededError, ahead bool, err error) {
	refused, would, err := m.try(r, h, now.Now)
	over := refused != nil && !refused.Busy || errors.Is(err, ErrUnavailable)
	if over && !now.Unproven.IsZero() {
		later, wouldLater, errLater := m.try(r, h, now.Unproven)
		if later == nil && errLater == nil {
			return wouldLater, true, nil
		}
	}
	if err == nil && refused != nil {
		err = refused
	}
	return would, false, err
}

// try is admit at one instant. A refusal and an error exclude each other.
func (m *Memory) try(r *record, h *Hold, at time.Time) (refused, would *ExceededError, err error) {
	if err := m.prepare(r, h, at); err != nil {
		return nil, nil, err
	}
	if err := m.stopped(r, h.Provider); err != nil {
		return nil, nil, err
	}
	for i := range r.legs {
		l := &r.legs[i]
		e, err := l.refusal(m.charged[i], h.Critical)
		if err != nil {
			return nil, nil, err
		}
		if e == nil {
			continue
		}
		e.Provider = h.Provider
		if l.account.budget.Monitor {
			would = would.Binding(e)
		} else {
			refused = refused.Binding(e)
		}
	}
	return refused, would, nil
}

// prepare finds account and window of every leg.
func (m *Memory) prepare(r *record, h *Hold, at time.Time) error {
	r.legs, m.charged = r.legs[:0], m.charged[:0]
	if err := h.check(); err != nil {
		return err
	}
	for i := range h.Legs {
		from := &h.Legs[i]
		a, err := m.account(&from.Budget)
		if err != nil {
			return err
		}
		b, w, err := m.locate(a, at)
		if err != nil {
			return err
		}
		r.legs = append(r.legs, leg{account: a, book: b, held: from.Amount})
		m.charged = append(m.charged, w)
	}
	return nil
}

// book takes the amounts of an admitted hold. A window that only a clock nobody has
// confirmed is in (ahead) does not become the current one: the step may be denied.
func (m *Memory) book(r *record, h *Hold, now time.Time, ahead bool) {
	r.begin(h, now)
	for i := range r.legs {
		l := &r.legs[i]
		if l.book == nil {
			l.book = m.addWindow(l.account, *m.charged[i], now)
		}
		if !ahead {
			l.account.current = l.book
		}
		l.book.held += l.held
		l.book.openHolds++
		l.book.pins++
		if t := l.book.tally; t != nil {
			t.taken(r, l.held)
		}
	}
	m.holds.add(r)
	m.open.push(r)
}

// Resolve implements [Ledger]. It never waits, and looks at no context.
func (m *Memory) Resolve(_ context.Context, id HoldID, o Outcome) (Report, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock().Seen(o.Seen)
	now := m.read().Now
	r := m.find(id, now)
	if r == nil {
		return m.tell(Report{}), fmt.Errorf("%w: %v", ErrUnknownHold, id)
	}
	news, err := r.accepts(o)
	if err != nil {
		return m.tell(Report{}), err
	}
	if !news {
		return m.tell(Report{Overrun: r.overrun()}), nil
	}
	report, err := m.apply(r, o, now)
	return m.tell(report), err
}

// apply moves the amounts of r to where evidence says they belong.
func (m *Memory) apply(r *record, o Outcome, now time.Time) (Report, error) {
	for i := range r.legs {
		if err := r.legs[i].check(r.state, o); err != nil {
			return Report{}, err
		}
	}
	was := r.state
	report := Report{Delta: r.counts(), Late: was == StatePresumed}
	for i := range r.legs {
		l := &r.legs[i]
		before := l.book.sums
		l.take(was, r.floor())
		l.give(o, was == StateHeld, now)
		if t := l.book.tally; t != nil {
			t.moved(r, l, before, was, o, now)
		}
		report.Late = report.Late || !now.Before(l.book.ends)
	}
	r.end(o)
	report.Delta = r.counts() - report.Delta
	report.Overrun = r.overrun()
	m.file(r, was, now)
	for i := range r.legs {
		m.alert(&r.legs[i])
	}
	return report, nil
}

// Totals implements [Ledger].
func (m *Memory) Totals(_ context.Context, at time.Time, budgets ...Budget) ([]Totals, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Totals, 0, len(budgets))
	for _, b := range budgets {
		if err := b.Validate(); err != nil {
			return nil, fmt.Errorf("budget %s: %w", b.Label, err)
		}
		b = b.Normal()
		a := m.accounts[b.Name]
		if a == nil {
			a = &account{budget: b}
		}
		if err := a.conflict(&b); err != nil {
			return nil, err
		}
		t := a.totals(b.Window(at))
		t.Budget, t.Limit = b, a.limitFor(b.Limit)
		t.Frozen = !m.frozen[Target{Budget: b.Name}].IsZero()
		all = append(all, t)
	}
	return all, nil
}

// Key implements [Keyed]: the key is drawn once and forgotten with the books.
func (m *Memory) Key() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.key == nil {
		m.key = []byte(rand.Text())
	}
	return m.key
}

func (m *Memory) maxWindows() int { return cmp.Or(m.bounds.windows, maxWindows) }

func (m *Memory) maxClosed() int { return cmp.Or(m.bounds.closed, maxClosed) }

func (m *Memory) clock() *Clock {
	if m.Clock != nil {
		return m.Clock
	}
	return &m.own
}

func (m *Memory) read() Reading {
	var r Reading
	if m.Clock == nil {
		r = m.own.look() // m.mu guards it
	} else {
		r = m.Clock.Read()
	}
	if r.Step != 0 {
		m.notices = append(m.notices, Notice{Kind: NoticeClock, Skew: r.Step})
	}
	return r
}

// tell hands the notices over that nobody was told yet.
func (m *Memory) tell(r Report) Report {
	r.Notices, m.notices = m.notices, nil
	return r
}

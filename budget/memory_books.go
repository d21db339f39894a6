package budget

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// account is one budget in a Memory.
type account struct {
	given    Budget    // as the last hold brought it, to see changes at a glance
	budget   Budget    // the same, normal, and with nothing of the caller's in it
	override Amount    // an operator's limit; zero: none
	known    bool      // it is in the map
	current  *book     // charged last
	books    []*book   // by time
	dropped  time.Time // until when windows counted that are forgotten
	trend    Trend
}

// book holds the totals of one window, or of one bucket of a rolling period.
type book struct {
	Window
	from, ends time.Time // when it is charged first, and when it counts no more

	sums
	pins  int    // holds without evidence
	fired int    // the highest percentage told
	tally *tally // nil: nobody asked how the window came about
}

func (b *book) spent() Amount { return b.settled + b.presumed }

// account returns the account of a budget, a new one that is not in the map yet if
// there is none. It takes over what was configured anew.
func (m *Memory) account(b *Budget) (*account, error) {
	a := m.accounts[b.Name]
	if a != nil && a.asGiven(b) {
		return a, nil
	}
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("%w: budget %s: %w", ErrConflict, b.shown(), err)
	}
	n := b.Normal()
	if a == nil {
		a = new(account)
	} else if err := a.conflict(&n); err != nil {
		return nil, err
	}
	if a.known && n.Limit != a.budget.Limit {
		m.notices = append(m.notices, Notice{Kind: NoticeLimit, Budget: n.Label, Was: a.limit(), Limit: n.Limit, Unit: n.Unit})
		m.note(Audited{Action: "configured", Target: Target{Budget: n.Name}, From: a.limit().String(), To: n.Limit.String()})
		a.override = 0
	}
	n.Name, n.Label, n.Unit = strings.Clone(n.Name), strings.Clone(n.Label), strings.Clone(n.Unit)
	n.Alerts = slices.Clone(n.Alerts)
	a.budget, a.given = n, n
	a.given.Zone, a.given.Label, a.given.Unit = b.Zone, keep(b.Label, n.Label), keep(b.Unit, n.Unit)
	a.given.Alerts = slices.Clone(b.Alerts)
	return a, nil
}

// keep returns ours unless theirs was empty.
func keep(theirs, ours string) string {
	if theirs == "" {
		return ""
	}
	return ours
}

func (a *account) asGiven(b *Budget) bool {
	g := &a.given
	return g.Limit == b.Limit && g.Keep == b.Keep && g.Monitor == b.Monitor && g.Every == b.Every && g.Zone == b.Zone &&
		g.Unit == b.Unit && g.Label == b.Label && (g.Alerts == nil) == (b.Alerts == nil) && slices.Equal(g.Alerts, b.Alerts)
}

// conflict says whether b, which is normal, is another budget of the same name.
func (a *account) conflict(b *Budget) error {
	old := &a.budget
	if old.Name == "" || (old.Unit == b.Unit && old.Every == b.Every && old.Zone.String() == b.Zone.String()) {
		return nil
	}
	return fmt.Errorf("%w: budget %s is in %s per %v in %v, not in %s per %v in %v",
		ErrConflict, b.Label, old.Unit, old.Every, old.Zone, b.Unit, b.Every, b.Zone)
}

// limitFor is the limit in force if configured is what is configured now.
func (a *account) limitFor(configured Amount) Amount {
	if a.override != 0 && configured == a.budget.Limit {
		return a.override
	}
	return configured
}

func (a *account) limit() Amount { return a.limitFor(a.budget.Limit) }

// locate returns the window of a that a hold at this instant is charged to, and its
// book if there is one.
func (m *Memory) locate(a *account, at time.Time) (*book, *Window, error) {
	c := a.current
	if c != nil && !at.Before(c.from) && at.Before(c.End) {
		return c, &c.Window, nil
	}
	w := a.budget.Window(at)
	if c != nil {
		w = c.Window.Advance(w)
	}
	if i := a.search(w.ID); i < len(a.books) && a.books[i].ID == w.ID {
		return a.books[i], &w, nil
	}
	forgotten := a.dropped
	if !a.known {
		forgotten = m.dropped
	}
	if !w.End.After(forgotten) {
		return nil, nil, fmt.Errorf("%w: budget %s: the window %s is too long ago", ErrUnavailable, a.budget.Label, w.ID)
	}
	if m.windows >= m.maxWindows() {
		if at.Sub(m.swept).Abs() >= sweepPause {
			m.sweep(at)
		}
		if m.windows >= m.maxWindows() {
			return nil, nil, fmt.Errorf("%w: %d windows are open", ErrUnavailable, m.windows)
		}
	}
	return nil, &w, nil
}

// search returns the index of the first book that is not before id.
func (a *account) search(id string) int {
	return sort.Search(len(a.books), func(i int) bool { return a.books[i].ID >= id })
}

// counted returns the books that count against the same limit as w.
func (a *account) counted(w Window) []*book {
	i := a.search(w.Oldest)
	j := i
	for j < len(a.books) && a.books[j].ID <= w.ID {
		j++
	}
	return a.books[i:j]
}

// totals sums what counts in w.
func (a *account) totals(w Window) Totals {
	t := Totals{Budget: a.budget, Window: w, Limit: a.limit(), Trend: a.trend}
	for _, b := range a.counted(w) {
		room := math.MaxInt64 - t.Used() // the sum of many buckets may not fit
		t.Settled += min(b.settled, room)
		t.Presumed += min(b.presumed, room-min(b.settled, room))
		t.Held += min(b.held, room-min(b.spent(), room))
		t.Overrun += min(b.overrun, math.MaxInt64-t.Overrun)
		t.Floor += min(b.floor, math.MaxInt64-t.Floor)
		t.OpenHolds += b.openHolds
		t.PresumedHolds += b.presumedHolds
	}
	return t
}

// know puts an account into the map.
func (m *Memory) know(a *account) {
	if a.known {
		return
	}
	if m.accounts == nil {
		m.accounts = make(map[string]*account)
	}
	a.known, a.dropped = true, m.dropped
	m.accounts[a.budget.Name] = a
}

// addWindow opens a window, and the account with it.
func (m *Memory) addWindow(a *account, w Window, now time.Time) *book {
	if now.Sub(m.swept) >= 24*time.Hour {
		m.sweep(now)
	}
	m.know(a)
	b := &book{Window: w, from: w.Start, ends: w.End}
	if p := a.budget.Every; p.kind == kindRolling {
		b.from, b.ends = w.End.Add(-p.bucketLen()), w.End.Add(buckets*p.bucketLen())
	}
	a.books = slices.Insert(a.books, a.search(w.ID), b)
	m.windows++
	if m.watched[a.budget.Name] {
		a.rotate(w)
		b.tally = newTally(a, b, time.Time{})
	}
	return b
}

// alert notes the thresholds that were crossed in the window of a leg.
func (m *Memory) alert(l *leg) {
	b := &l.account.budget
	if len(b.Alerts) == 0 {
		return
	}
	spent, fired := l.book.spent(), l.book.fired
	if l.book.Oldest != l.book.ID {
		spent = 0
		for _, c := range l.account.counted(l.book.Window) {
			spent += min(c.spent(), math.MaxInt64-spent)
			fired = max(fired, c.fired)
		}
	}
	limit := l.account.limit()
	percent := int(min(mulDiv(uint64(max(spent, 0)), 100, uint64(limit)), maxPercent))
	for _, p := range b.Alerts {
		if fired < p && p <= percent {
			l.book.fired = max(l.book.fired, p)
			m.notices = append(m.notices, Notice{
				Kind: NoticeThreshold, Budget: b.Label, Window: l.book.ID, Percent: p, Used: spent, Limit: limit, Unit: b.Unit,
			})
		}
	}
}

// sweep forgets what is too old, and the oldest windows that have ended if there are
// too many.
func (m *Memory) sweep(now time.Time) {
	m.swept = now
	for r := m.open.first; r != nil; {
		next := r.next
		if r.state == StatePresumed && !now.Before(r.lastEnd().Add(keepPresumed)) {
			m.forgetHold(&m.open, r)
		}
		r = next
	}
	var ended []time.Time
	for _, a := range m.accounts {
		for i, b := range a.books {
			if now.Before(b.ends) || b.pins > 0 {
				continue
			}
			if len(a.books)-i <= maxBuckets {
				ended = append(ended, b.ends)
			}
		}
	}
	before := now.Add(-keepWindows)
	if excess := m.windows - m.maxWindows()*3/4; m.windows >= m.maxWindows() && len(ended) > 0 {
		slices.SortFunc(ended, time.Time.Compare)
		if t := ended[min(excess, len(ended)-1)]; t.After(before) {
			before = t
		}
	}
	for name, a := range m.accounts {
		m.trim(a, now, before)
		if len(a.books) == 0 && a.override == 0 {
			a.known = false
			if a.dropped.After(m.dropped) {
				m.dropped = a.dropped
			}
			delete(m.accounts, name)
		}
	}
}

// trim drops the windows of a that ended by before, or are too many.
func (m *Memory) trim(a *account, now, before time.Time) {
	many := len(a.books) - maxBuckets
	kept := a.books[:0]
	for i, b := range a.books {
		if b.pins > 0 || now.Before(b.ends) || (i >= many && b.ends.After(before)) {
			kept = append(kept, b)
			continue
		}
		m.windows--
		if b.ends.After(a.dropped) {
			a.dropped = b.ends
		}
		if a.current == b {
			a.current = nil
		}
	}
	clear(a.books[len(kept):])
	a.books = kept
}

package sqliteledger

import (
	"math"
	"math/bits"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// notice is something to be told. A threshold is in the table alert from the commit
// that crossed it until the commit after it was told: when its process dies between
// them another one tells it, rather twice than never.
type notice struct {
	budget.Notice
	win int64 // of a threshold
}

// alert notes the thresholds that were crossed in the window of a page.
func (b *books) alert(p *page) {
	a := p.account
	spent, fired := b.spent(a, p)
	for _, percent := range a.budget.Alerts {
		if percent <= fired || spent < threshold(a.limit(), percent) {
			continue
		}
		p.fired = max(p.fired, percent)
		b.exec("INSERT OR IGNORE INTO alert(win, percent, used, top, owner) VALUES(?,?,?,?,?)",
			p.id, percent, int64(spent), int64(a.limit()), b.owner)
		b.notices = append(b.notices, notice{budget.Notice{Kind: budget.NoticeThreshold, Budget: a.budget.Label,
			Window: p.key, Percent: percent, Used: spent, Limit: a.limit(), Unit: a.budget.Unit}, p.id})
	}
}

// spent is what was settled and presumed in the window of a page, and the highest
// threshold of it that was crossed.
func (b *books) spent(a *account, p *page) (spent budget.Amount, fired int) {
	sp := a.current
	if sp == nil || sp.page() != p {
		sp = b.span(a, b.window(p.id))
	}
	for _, q := range sp.pages {
		fired = max(fired, q.fired)
	}
	total := sp.sums(sp.Oldest)
	return total.settled + total.presumed, fired
}

// threshold is that many percent of limit, rounded up.
func threshold(limit budget.Amount, percent int) budget.Amount {
	hi, lo := bits.Mul64(uint64(limit), uint64(percent))
	lo, carry := bits.Add64(lo, 99, 0)
	hi += carry
	if hi >= 100 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 100)
	return budget.Amount(min(q, math.MaxInt64))
}

// mark says how near a window is to its next threshold, so that the outcome that
// crosses it is written, and the crossing told, at once.
type mark struct{ spent, next budget.Amount }

// marks are those of the pages of a group that was committed.
func (b *books) marks(failed error) map[int64]*mark {
	marks := make(map[int64]*mark, len(b.touched))
	for _, p := range b.touched {
		if failed == nil {
			marks[p.id] = b.mark(p.account, p)
		}
	}
	_ = b.take() // without a mark a threshold is told a little later
	return marks
}

func (b *books) mark(a *account, p *page) *mark {
	spent, fired := b.spent(a, p)
	m := &mark{spent, math.MaxInt64}
	for _, percent := range a.budget.Alerts {
		if percent > fired {
			m.next = min(m.next, threshold(a.limit(), percent))
		}
	}
	return m
}

// crosses reports whether an outcome crosses a threshold. l.mu is held.
func (l *Ledger) crosses(h *live, o budget.Outcome) bool {
	for _, leg := range h.legs {
		if m := l.marks[leg.page]; m != nil && cost(leg.held, leg.unit, o) >= m.next-m.spent {
			return true
		}
	}
	for _, leg := range h.legs {
		if m := l.marks[leg.page]; m != nil {
			m.spent += cost(leg.held, leg.unit, o)
		}
	}
	return false
}

// takeNotices returns what is to be told of the group that is durable now.
func (b *books) takeNotices() []notice {
	news := b.notices
	b.notices = nil
	return news
}

// told takes thresholds from the table of those that nobody was told of.
func (b *books) told(news []notice) {
	for _, n := range news {
		b.exec("DELETE FROM alert WHERE win=? AND percent=?", n.win, n.Percent)
	}
}

// inherit takes over what a dead owner did not tell.
func (b *books) inherit(owner int64) {
	b.query(func(s *sqlite3.Stmt) {
		b.notices = append(b.notices, notice{budget.Notice{
			Kind: budget.NoticeThreshold, Budget: s.ColumnText(0), Window: s.ColumnText(1), Percent: s.ColumnInt(2),
			Used: budget.Amount(s.ColumnInt64(3)), Limit: budget.Amount(s.ColumnInt64(4)), Unit: s.ColumnText(5),
		}, s.ColumnInt64(6)})
	}, `SELECT label, key, percent, used, top, unit, win.id FROM alert JOIN win ON win.id=alert.win
		JOIN budget ON budget.id=win.budget WHERE owner=?`, owner)
	b.exec("UPDATE alert SET owner=? WHERE owner=?", b.owner, owner)
}

// readClock reads the clock, and notes a step that it found.
func (l *Ledger) readClock() budget.Reading {
	r := l.clock.Read()
	if r.Step != 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notices = append(l.notices, notice{Notice: budget.Notice{Kind: budget.NoticeClock, Skew: r.Step}})
	}
	return r
}

// news hands out the notices, each once.
func (l *Ledger) news() []budget.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.notices) == 0 {
		return nil
	}
	news := make([]budget.Notice, len(l.notices))
	for i, n := range l.notices {
		news[i] = n.Notice
	}
	l.told = append(l.told, slices.DeleteFunc(l.notices, func(n notice) bool { return n.win == 0 })...)
	l.notices = nil
	return news
}

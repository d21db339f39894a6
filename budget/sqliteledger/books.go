package sqliteledger

import (
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

// books is what the committer works with: its connection, and what it has read so far.
// What was read stays true until another connection commits, which SQLite tells for the
// price of one statement: the usual group reads nothing but the holds it is about.
type books struct {
	*conn
	dir   string // of the presence files
	owner int64
	now   time.Time // of the group
	maybe time.Time // what an unproven clock says; zero: nothing

	version   int64 // of the file, as far as other connections changed it
	accounts  map[string]*account
	pages     map[int64]*page
	providers map[string]int64
	frozen    map[budget.Target]time.Time
	dirty     []*page
	touched   []*page                  // in the group that was committed last
	lastEntry int64                    // the id of the newest entry
	given     map[string]budget.Budget // how this handle configured each budget last
	fresh     []string                 // of given, by the group that is under way
	looked    time.Time                // when dead owners were looked for
	behind    bool                     // there are more closed holds to forget

	// What is told once the group is durable, and forgotten if it is not.
	notices []notice
	kept    []func()
}

// account is a row of the table budget.
type account struct {
	id           int64 // 0: not written yet
	budget       budget.Budget
	period, zone string
	override     budget.Amount // zero: none
	current      *span         // nil: never used
}

// span is what counts against a limit together: one window, or the buckets of a rolling
// one. Buckets that were never charged have no page.
type span struct {
	budget.Window
	pages []*page // oldest first
}

// page returns the page that is charged, or nil if it was never charged.
func (s *span) page() *page {
	if n := len(s.pages); n > 0 && s.pages[n-1].key == s.ID {
		return s.pages[n-1]
	}
	return nil
}

// trend is kept on the page that is charged last.
func (s *span) trend() budget.Trend {
	if p := s.page(); p != nil {
		return p.trend
	}
	return budget.Trend{}
}

// sums adds up the pages from the bucket oldest on.
func (s *span) sums(oldest string) (total sums) {
	for _, p := range s.pages {
		if p.key < oldest {
			continue
		}
		sum, err := total.add(p.sums)
		if err != nil {
			return sums{settled: math.MaxInt64} // more than can be said: nothing fits
		}
		total = sum
	}
	return total
}

// page is a row of the table win: the totals of one window, or of one bucket.
type page struct {
	id      int64
	account *account
	key     string
	ends    time.Time // when it counts no more
	sums
	fired int          // the highest threshold that was crossed
	trend budget.Trend // of the whole budget, while this is the page charged last
	dirty bool
}

// forget drops everything that was read.
func (b *books) forget() {
	b.accounts, b.pages, b.providers = map[string]*account{}, map[int64]*page{}, map[string]int64{}
	b.dirty, b.touched, b.notices, b.kept, b.version = nil, nil, nil, nil, -1
}

// maxCached bounds what is kept in memory of what was read.
const maxCached = 100_000

// begin takes the write lock, and drops what other connections have made untrue.
func (b *books) begin(r budget.Reading) error {
	b.exec("BEGIN IMMEDIATE")
	for name := range b.given { // any of them: one that comes again is configured anew
		if len(b.given) <= maxCached {
			break
		}
		delete(b.given, name)
	}
	if v := b.number("PRAGMA data_version"); v != b.version || len(b.pages) > maxCached || len(b.providers) > maxCached {
		b.forget()
		b.version, b.lastEntry = v, b.number("SELECT max(id) FROM entry")
		b.readFrozen()
	}
	b.now, b.maybe = r.Now, r.Unproven
	b.upkeep()
	if err := b.take(); err != nil {
		b.rollback()
		return err
	}
	return nil
}

// commit makes the group durable. If it fails nothing of the group happened, as far as
// anyone can know.
func (b *books) commit() error {
	for _, p := range b.dirty {
		b.save(p)
		p.dirty = false
	}
	b.dirty, b.touched = b.touched[:0], b.dirty
	b.exec("COMMIT")
	if err := b.take(); err != nil {
		b.rollback()
		return err
	}
	for _, f := range b.kept {
		f()
	}
	clear(b.kept)
	b.kept, b.fresh = b.kept[:0], b.fresh[:0]
	return nil
}

// give remembers how this handle configures a budget. What a group that fails has
// configured is forgotten; what was before is not, or a limit that another process or a
// person set since would be configured away.
func (b *books) give(bud budget.Budget) {
	b.given[bud.Name] = bud
	b.fresh = append(b.fresh, bud.Name)
}

func (b *books) rollback() {
	b.exec("ROLLBACK")
	_ = b.take() // SQLite may have rolled back by itself
	for _, name := range b.fresh {
		delete(b.given, name)
	}
	b.fresh = b.fresh[:0]
	b.forget()
}

// account returns the row of a budget, or nil if it has none.
func (b *books) account(name string) *account {
	if a := b.accounts[name]; a != nil {
		return a
	}
	var a *account
	var current int64
	b.query(func(s *sqlite3.Stmt) {
		a = &account{id: s.ColumnInt64(0), period: s.ColumnText(3), zone: s.ColumnText(4),
			override: budget.Amount(s.ColumnInt64(7))}
		a.budget = budget.Budget{Name: name, Label: s.ColumnText(1), Unit: s.ColumnText(2),
			Limit: budget.Amount(s.ColumnInt64(6)), Alerts: parseAlerts(s.ColumnText(5))}
		current = s.ColumnInt64(8)
		b.verify(a.crc(current) == s.ColumnInt64(9), "budget", name)
	}, `SELECT id, label, unit, period, zone, alerts, configured, override, current, crc FROM budget WHERE name=?`, name)
	if a == nil || b.err != nil {
		return nil
	}
	b.accounts[name] = a // its pages need it
	if current != 0 {
		a.current = b.span(a, b.window(current))
		b.verify(a.current.page() != nil, "budget", name)
	}
	if b.err != nil {
		return nil
	}
	return a
}

// window reads the boundaries of a window. They stay what they were when it was first
// charged, whatever the zone rules say since.
func (b *books) window(id int64) (w budget.Window) {
	b.query(func(s *sqlite3.Stmt) {
		w = budget.Window{ID: s.ColumnText(0), Oldest: s.ColumnText(1), Start: instant(s, 2), End: instant(s, 3)}
	}, `SELECT key, oldest, start, "end" FROM win WHERE id=?`, id)
	return w
}

// span reads the pages of a window.
func (b *books) span(a *account, w budget.Window) *span {
	sp := &span{Window: w}
	if a.id == 0 {
		return sp
	}
	var ids []int64
	b.query(func(s *sqlite3.Stmt) { ids = append(ids, s.ColumnInt64(0)) },
		`SELECT id FROM win WHERE budget=? AND key BETWEEN ? AND ? ORDER BY key`, a.id, w.Oldest, w.ID)
	for _, id := range ids {
		sp.pages = append(sp.pages, b.page(id))
	}
	return sp
}

// page reads a page by its id. There is one copy of each in memory. It has no account
// only if b.err says why.
func (b *books) page(id int64) *page {
	if p := b.pages[id]; p != nil {
		return p
	}
	p, name, sound := &page{id: id}, "", false
	b.query(func(s *sqlite3.Stmt) {
		name, p.key, p.ends = s.ColumnText(0), s.ColumnText(1), instant(s, 2)
		p.sums = sums{
			settled: budget.Amount(s.ColumnInt64(3)), presumed: budget.Amount(s.ColumnInt64(4)),
			held: budget.Amount(s.ColumnInt64(5)), overrun: budget.Amount(s.ColumnInt64(6)),
			floor: budget.Amount(s.ColumnInt64(7)), open: s.ColumnInt64(8), unknown: s.ColumnInt64(9),
		}
		p.fired, p.trend = s.ColumnInt(10), parseTrend(s.ColumnText(11))
		sound = p.crc() == s.ColumnInt64(12)
	}, `SELECT name, key, ends, settled, presumed, held, overrun, floor, open_holds, presumed_holds, fired, trend, win.crc
		FROM win JOIN budget ON budget.id=win.budget WHERE win.id=?`, id)
	b.verify(sound, "window", p.key)
	b.pages[id] = p
	p.account = b.account(name)
	return p
}

// change adds to a page; the row is written once per group.
func (b *books) change(p *page, by sums) {
	sum, err := p.sums.add(by)
	if err != nil {
		b.err = err
		return
	}
	p.sums = sum
	b.touch(p)
}

func (b *books) touch(p *page) {
	if !p.dirty {
		p.dirty = true
		b.dirty = append(b.dirty, p)
	}
}

func (b *books) save(p *page) {
	b.exec(`UPDATE win SET settled=?, presumed=?, held=?, overrun=?, floor=?, open_holds=?, presumed_holds=?,
		fired=?, trend=?, crc=? WHERE id=?`, int64(p.settled), int64(p.presumed), int64(p.held), int64(p.overrun),
		int64(p.floor), p.open, p.unknown, p.fired, formatTrend(p.trend), p.crc(), p.id)
}

// provider returns the id of a provider; 0 if it has none yet.
func (b *books) provider(name string) int64 {
	id, ok := b.providers[name]
	if !ok {
		id = b.number("SELECT id FROM provider WHERE name=?", name)
		b.providers[name] = id
	}
	return id
}

// readFrozen reads what operators have stopped: little, if anything.
func (b *books) readFrozen() {
	b.frozen = map[budget.Target]time.Time{}
	b.query(func(s *sqlite3.Stmt) {
		b.frozen[budget.Target{Provider: s.ColumnText(0), Budget: s.ColumnText(1)}] = instant(s, 2)
	}, "SELECT provider, budget, since FROM frozen")
}

// instant reads milliseconds since 1970; NULL is the zero time.
func instant(s *sqlite3.Stmt, col int) time.Time {
	if s.ColumnType(col) == sqlite3.NULL {
		return time.Time{}
	}
	return time.UnixMilli(s.ColumnInt64(col)).UTC()
}

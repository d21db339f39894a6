package sqliteledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// hold takes the money of every leg, or changes nothing but the limits that it
// configures. The outcome of a new hold with legs will want what it returns as live.
func (b *books) hold(h budget.Hold) (report budget.Report, mine *live, err error) {
	charges, would, err := b.admit(h)
	switch {
	case b.err != nil:
		return report, nil, b.err
	case err != nil: // known holds are not refused
		if known, conflict := b.sameHold(h); known || conflict != nil {
			return report, nil, conflict
		}
		return report, nil, err
	case len(charges) == 0:
		return report, nil, nil
	case !b.writeHold(h):
		_, err := b.sameHold(h)
		return report, nil, err
	}
	report.WouldRefuse = would
	return report, b.writeLegs(h, charges), b.err
}

// admit decides, at the time that is sure, and if nothing but a window that is used up
// refuses, at the time of a clock that nobody has confirmed.
func (b *books) admit(h budget.Hold) (charges []charge, would *budget.ExceededError, err error) {
	charges, refused, would, err := b.try(h, b.now)
	if refused != nil && refused.Busy && time.Since(b.looked) > recoverPause && b.recoverDead() {
		charges, refused, would, err = b.try(h, b.now) // no less is used, but it lasts
	}
	if refused != nil && !refused.Busy && !b.maybe.IsZero() {
		later, no, wouldLater, errLater := b.try(h, b.maybe)
		if no == nil && errLater == nil {
			for i := range later {
				later[i].ahead = true
			}
			return later, wouldLater, nil
		}
	}
	if err == nil && refused != nil {
		err = refused
	}
	return charges, would, err
}

// A charge is what a hold does to one budget, decided before anything is written.
type charge struct {
	leg     budget.Leg
	account *account // id 0: the first use of this budget
	span    *span
	ahead   bool // of a clock that nobody has confirmed: the span does not become current
}

// try finds out what refuses the hold at an instant.
func (b *books) try(h budget.Hold, at time.Time) (charges []charge, refused, would *budget.ExceededError, err error) {
	if since, ok := b.frozen[budget.Target{Provider: h.Provider}]; ok {
		return nil, nil, nil, &budget.FrozenError{Provider: h.Provider, Since: since}
	}
	charges = make([]charge, len(h.Legs))
	for i, leg := range h.Legs {
		c, err := b.charge(leg, at)
		if err != nil {
			return nil, nil, nil, err
		}
		charges[i] = c
		if since, ok := b.frozen[budget.Target{Budget: c.leg.Budget.Name}]; ok {
			return nil, nil, nil, &budget.FrozenError{Provider: h.Provider, Budget: c.leg.Budget.Label, Since: since}
		}
		e, err := c.refusal(h.Critical)
		if err != nil {
			return nil, nil, nil, err
		}
		if e == nil {
			continue
		}
		e.Provider = h.Provider
		if leg.Budget.Monitor {
			would = would.Binding(e)
		} else {
			refused = refused.Binding(e)
		}
	}
	return charges, refused, would, b.err
}

// charge finds account and window of a leg.
func (b *books) charge(leg budget.Leg, at time.Time) (charge, error) {
	leg.Budget = leg.Budget.Normal()
	leg.Budget.Alerts = slices.Clone(leg.Budget.Alerts)
	a, err := b.configure(leg.Budget)
	if err != nil {
		return charge{}, err
	}
	return charge{leg: leg, account: a, span: b.current(a, leg.Budget, at)}, b.err
}

// configure returns the account of a budget, and books what is configured anew.
func (b *books) configure(bud budget.Budget) (*account, error) {
	a := b.account(bud.Name)
	if a == nil {
		return newAccount(bud), b.err
	}
	if err := a.conflict(bud); err != nil {
		return nil, err
	}
	if given, ok := b.given[bud.Name]; ok && sameConfig(given, bud) {
		return a, nil // another process may have configured it since: the last one wins
	}
	b.give(bud)
	if sameConfig(a.budget, bud) {
		return a, nil
	}
	if a.budget.Limit != bud.Limit {
		was := a.limit()
		a.override = 0
		b.notices = append(b.notices, notice{Notice: budget.Notice{
			Kind: budget.NoticeLimit, Budget: bud.Label, Was: was, Limit: bud.Limit, Unit: bud.Unit}})
		b.event("configured", budget.Target{Budget: bud.Name}, was, bud.Limit, budget.By{Why: fmt.Sprintf("the limit was %v", was)})
	}
	a.budget.Limit, a.budget.Label, a.budget.Alerts = bud.Limit, bud.Label, bud.Alerts
	b.saveAccount(a)
	return a, b.err
}

// sameConfig compares what the file keeps of a configuration beside the identity.
func sameConfig(a, b budget.Budget) bool {
	return a.Limit == b.Limit && a.Label == b.Label && slices.Equal(a.Alerts, b.Alerts)
}

func newAccount(bud budget.Budget) *account {
	return &account{budget: bud, period: bud.Every.String(), zone: bud.Zone.String()}
}

// conflict checks that a name still means the same budget.
func (a *account) conflict(b budget.Budget) error {
	if a.budget.Unit == b.Unit && a.period == b.Every.String() && a.zone == b.Zone.String() {
		return nil
	}
	return fmt.Errorf("%w: budget %s is in %s per %s in %s, not in %s per %v in %v",
		budget.ErrConflict, b.Label, a.budget.Unit, a.period, a.zone, b.Unit, b.Every, b.Zone)
}

// current returns the span that a hold at this instant is charged to. A window that is
// known keeps its boundaries, and clocks that differ a little do not go back and forth.
func (b *books) current(a *account, bud budget.Budget, at time.Time) *span {
	c := a.current
	if c == nil {
		return b.span(a, bud.Window(at))
	}
	calendar := c.Oldest == c.ID
	if calendar && !at.Before(c.Start) && at.Before(c.End) {
		return c
	}
	next := c.Advance(bud.Window(at))
	if next.ID == c.ID {
		return c
	}
	return b.span(a, next)
}

// limit is the one in force.
func (a *account) limit() budget.Amount { return a.limitFor(a.budget.Limit) }

// limitFor is the one in force if configured is what is configured.
func (a *account) limitFor(configured budget.Amount) budget.Amount {
	if a.override != 0 && configured == a.budget.Limit {
		return a.override
	}
	return configured
}

// totals is the state of a span, for a budget as the caller configures it.
func (a *account) totals(bud budget.Budget, sp *span) budget.Totals {
	s := sp.sums(sp.Oldest)
	t := budget.Totals{
		Budget: bud, Window: sp.Window, Limit: a.limit(),
		Settled: s.settled, Presumed: s.presumed, Held: s.held, Overrun: s.overrun, Floor: s.floor,
		OpenHolds: int(s.open), PresumedHolds: int(s.unknown),
	}
	if a.current != nil {
		t.Trend = a.current.trend()
	}
	return t
}

// refusal says why the leg does not fit. An error says that it cannot be counted.
func (c *charge) refusal(critical bool) (*budget.ExceededError, error) {
	t := c.account.totals(c.leg.Budget, c.span)
	e := t.Refusal(c.leg.Amount, critical)
	if _, err := t.Used().Add(c.leg.Amount); err != nil && (e == nil || c.leg.Budget.Monitor) {
		return nil, fmt.Errorf("%w: budget %s: %w", budget.ErrConflict, c.leg.Budget.Label, err)
	}
	if e != nil && !e.RetryAt.IsZero() {
		e.RetryAt = c.frees(t, critical)
	}
	return e, nil
}

// frees is the first start of a window, or of a bucket, at which the leg fits if nothing
// else happens.
func (c *charge) frees(t budget.Totals, critical bool) time.Time {
	for at := c.span.End; ; {
		next := c.leg.Budget.Window(at)
		t.Settled, t.Presumed, t.Held = c.span.sums(next.Oldest).used(), 0, 0
		if t.Refusal(c.leg.Amount, critical) == nil {
			return at
		}
		at = next.End
	}
}

// writeHold writes the row of a hold; false if its id is known.
func (b *books) writeHold(h budget.Hold) bool {
	prov := b.provider(h.Provider)
	if prov == 0 {
		prov = b.insert("INSERT INTO provider(name) VALUES(?)", h.Provider)
		b.providers[h.Provider] = prov
	}
	added := func() bool {
		return 0 < b.exec(`INSERT INTO hold(boot, seq, owner, provider, flags, at, first, legs, state) VALUES(?,?,?,?,?,?,?,?,?)
			ON CONFLICT DO NOTHING`, int64(h.ID.Boot), int64(h.ID.Seq), b.owner, prov, flags(h), b.now.UnixMilli(),
			b.lastEntry+1, len(h.Legs), int(budget.StateHeld))
	}
	return added() || (b.row(h.ID) == nil && added()) // an id that is forgotten is free again
}

// writeLegs takes the money.
func (b *books) writeLegs(h budget.Hold, charges []charge) *live {
	mine := &live{provider: h.Provider, legs: make([]liveLeg, len(charges))}
	for i, c := range charges {
		p := b.open(&c)
		b.change(p, share(c.leg.Amount, c.leg.Budget.Unit, budget.Outcome{State: budget.StateHeld}))
		b.lastEntry++
		b.exec("INSERT INTO entry(id, at, kind, budget, win, provider, boot, seq, held) VALUES(?,?,'held',?,?,?,?,?,?)",
			b.lastEntry, b.now.UnixMilli(), c.account.id, p.id, b.provider(h.Provider),
			int64(h.ID.Boot), int64(h.ID.Seq), int64(c.leg.Amount))
		mine.legs[i] = liveLeg{p.id, c.leg.Amount, c.leg.Budget.Unit, p.ends}
	}
	return mine
}

// flags are the parts of a hold that tell two holds of one id apart.
func flags(h budget.Hold) (f int) {
	if h.Critical {
		f |= 1
	}
	if h.Assumed {
		f |= 2
	}
	return f
}

// open returns the page of a charge; account and page are in the file then.
func (b *books) open(c *charge) *page {
	a := c.account
	b.addAccount(a)
	p := c.span.page()
	if p == nil {
		p = b.addPage(a, c.leg.Budget, c.span)
	}
	if a.current != c.span && !(c.ahead && a.current != nil) {
		if a.current != nil {
			p.trend = a.current.trend()
		}
		a.current = c.span
		b.saveAccount(a)
	}
	return p
}

// addAccount writes the row of a budget that has none yet.
func (b *books) addAccount(a *account) {
	if a.id != 0 {
		return
	}
	a.id = b.insert("INSERT INTO budget(name, label, unit, period, zone, alerts, configured) VALUES(?,?,?,?,?,?,?)",
		a.budget.Name, a.budget.Label, a.budget.Unit, a.period, a.zone, formatAlerts(a.budget.Alerts), int64(a.budget.Limit))
	b.accounts[a.budget.Name] = a
	b.give(a.budget)
}

func (b *books) addPage(a *account, bud budget.Budget, sp *span) *page {
	p := &page{account: a, key: sp.ID, ends: ends(bud, sp.Window)}
	p.id = b.insert(`INSERT INTO win(budget, key, oldest, start, "end", ends) VALUES(?,?,?,?,?,?)`,
		a.id, p.key, sp.Oldest, sp.Start.UnixMilli(), sp.End.UnixMilli(), p.ends.UnixMilli())
	b.pages[p.id] = p
	sp.pages = append(sp.pages, p)
	return p
}

// ends is when a window, or a bucket of a rolling one, counts no more.
func ends(bud budget.Budget, w budget.Window) time.Time {
	at := w.End
	for next := bud.Window(at); next.Oldest <= w.ID; next = bud.Window(at) {
		at = next.End
	}
	return at
}

func (b *books) saveAccount(a *account) {
	var current int64
	if a.current != nil {
		current = a.current.page().id
	}
	b.exec("UPDATE budget SET label=?, alerts=?, configured=?, override=?, current=?, crc=? WHERE id=?",
		a.budget.Label, formatAlerts(a.budget.Alerts), int64(a.budget.Limit), int64(a.override),
		current, a.crc(current), a.id)
}

// millis is what instant reads.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

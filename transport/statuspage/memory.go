package statuspage

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

const (
	maxDecisions = 200
	maxChanges   = 20
	maxNames     = 1000 // providers and budgets; they come from the configuration
)

// memory is what a page keeps of the events.
type memory struct {
	began time.Time

	mu        sync.Mutex // guards all below
	boot      uint64
	decisions ring
	changes   ring
	providers map[string]*hour
	pays      map[string][]string // labels of the budgets of each provider
	budgets   map[string]*history
	frozenBy  map[string]string // provider: who
	ledger    outage
	limiter   outage
}

// outage is since when a store is down; zero if it is up.
type outage struct {
	since time.Time
	last  time.Time // when it failed last
	class string
}

func newMemory(now time.Time) *memory {
	return &memory{
		began: now, decisions: ring{max: maxDecisions}, changes: ring{max: maxChanges},
		providers: map[string]*hour{}, pays: map[string][]string{}, budgets: map[string]*history{}, frozenBy: map[string]string{},
	}
}

// ring keeps the newest events.
type ring struct {
	max  int
	next int
	all  []transport.Event
}

func (r *ring) add(e transport.Event) {
	if len(r.all) < r.max {
		r.all = append(r.all, e)
		return
	}
	r.all[r.next] = e
	r.next = (r.next + 1) % r.max
}

// newest returns the events, the newest first.
func (r *ring) newest() []transport.Event {
	out := make([]transport.Event, 0, len(r.all))
	for i := range r.all {
		out = append(out, r.all[(r.next+len(r.all)-1-i)%len(r.all)])
	}
	return out
}

// observe takes in one event.
func (m *memory) observe(e transport.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Call.Boot != 0 {
		m.boot = e.Call.Boot
	}
	if isDecision(&e) {
		m.decisions.add(e)
	}
	switch e.Kind {
	case transport.KindRefused:
		if h := m.budgets[e.Budget]; h != nil {
			h.refused(e)
		}
	case transport.KindChanged:
		m.changed(e)
	case transport.KindStore:
		m.store(e)
	case transport.KindThreshold:
		if h := m.budgets[e.Budget]; h != nil {
			h.crossed(e)
		}
	case transport.KindResolved:
		m.resolved(e)
	}
	if h := m.hour(e.Provider); h != nil {
		h.observe(e)
	}
}

// isDecision reports whether an event is one that people ask about.
func isDecision(e *transport.Event) bool {
	switch e.Kind {
	case transport.KindRefused, transport.KindWouldRefuse, transport.KindThrottled, transport.KindRetrying, transport.KindUnclosed:
		return true
	case transport.KindResolved:
		return e.Outcome == "presumed" || e.Outcome == "corrected" || e.Overrun > 0
	case transport.KindWaiting:
		return e.Expected >= time.Second
	case transport.KindFinished:
		return e.Reason == transport.ReasonUnmatched
	}
	return false
}

func (m *memory) changed(e transport.Event) {
	e.Actor, e.Action, e.From, e.To = clip(e.Actor), clip(e.Action), clip(e.From), clip(e.To)
	m.changes.add(e)
	switch e.Action {
	case "freeze":
		if len(m.frozenBy) < maxNames {
			m.frozenBy[e.Provider] = e.Actor
		}
	case "release":
		delete(m.frozenBy, e.Provider)
	}
}

// clip bounds a name that people write, and takes out what is no printable character.
func clip(s string) string { return clipTo(s, 80) }

func clipTo(s string, most int) string {
	if r := []rune(printable(s)); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return printable(s)
}

// printable has a blank for what controls a terminal or turns the direction of writing.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

func (m *memory) store(e transport.Event) {
	o := &m.limiter
	if e.Store == "ledger" {
		o = &m.ledger
	}
	switch {
	case e.Up:
		*o = outage{}
	case o.since.IsZero() && e.ErrorClass != "conflict" && e.ErrorClass != "learning":
		*o = outage{since: e.Time, last: e.Time, class: e.ErrorClass}
	case !o.since.IsZero():
		o.last = e.Time
	}
}

// resolved adds what this process spent to the histories of the budgets that pay for it.
// The next reading puts them right. What came late may belong to a window that is over, or
// be in the books already as presumed: that is left to the reading.
func (m *memory) resolved(e transport.Event) {
	if e.Evidence == "recovery" || e.Late || e.Outcome == "corrected" {
		return
	}
	for _, label := range m.pays[e.Provider] {
		h := m.budgets[label]
		if h == nil {
			continue
		}
		cost := e.Cost
		switch h.budget.Unit {
		case e.Unit:
		case budget.Calls:
			cost = budget.Unit
		default:
			continue
		}
		switch e.Outcome {
		case "settled":
			h.add(e.Time, cost, 0)
		case "presumed":
			h.add(e.Time, 0, cost)
		}
	}
}

func (m *memory) hour(provider string) *hour {
	h := m.providers[provider]
	if h == nil && provider != "" && len(m.providers) < maxNames {
		h = new(hour)
		m.providers[provider] = h
	}
	return h
}

// read takes over what the ledger says.
func (m *memory) read(s transport.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range s.Providers {
		m.pays[s.Providers[i].Name] = s.Providers[i].Budgets
	}
	switch {
	case s.LedgerErr == nil && s.LedgerUp:
		m.ledger = outage{}
	case m.ledger.since.IsZero():
		m.ledger = outage{since: s.Time, last: s.Time, class: classOf(s.LedgerErr)}
	}
	for i := range s.Budgets {
		t := &s.Budgets[i]
		h := m.budgets[t.Budget.Label]
		if h == nil {
			if len(m.budgets) >= maxNames {
				continue
			}
			h = new(history)
			m.budgets[t.Budget.Label] = h
		}
		h.set(s.Time, t)
	}
}

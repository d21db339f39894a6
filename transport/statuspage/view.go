package statuspage

import (
	"cmp"
	"slices"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// instant is written as RFC 3339 in UTC, and as null if it is not known.
type instant time.Time

func (i instant) MarshalJSON() ([]byte, error) {
	if time.Time(i).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + time.Time(i).UTC().Format(time.RFC3339Nano) + `"`), nil
}

// IsZero reports whether the instant is not known.
func (i instant) IsZero() bool { return time.Time(i).IsZero() }

// level is how bad something is.
type level string

const (
	levelOK   level = "ok"
	levelBusy level = "busy"
	levelWarn level = "warn"
	levelBad  level = "bad"
)

var severity = map[level]int{levelOK: 0, levelBusy: 1, levelWarn: 2, levelBad: 3}

// view is the page, and with its tags the JSON.
type view struct {
	Schema    string         `json:"schema"`
	At        instant        `json:"at"`
	Level     level          `json:"level"`
	Process   processView    `json:"process"`
	Providers []providerView `json:"providers"`
	Budgets   []budgetView   `json:"budgets"`
	Stores    []storeView    `json:"stores"`
	Decisions []decisionView `json:"decisions"`
	Changes   []changeView   `json:"changes"`
	Notices   []string       `json:"notices"`

	Title     string    `json:"-"`
	Now       []finding `json:"-"` // what needs a look, the worst first
	Quiet     []string  `json:"-"` // the names of the providers that are well
	Charts    []chart   `json:"-"`
	Uncharted int       `json:"-"` // budgets without a chart, to keep the page small
	Ledger    storeView `json:"-"`
	Audited   bool      `json:"-"` // the changes are the ledger's, of all processes
	at        time.Time
}

type processView struct {
	ID      string  `json:"id"`
	Version string  `json:"version"`
	Started instant `json:"started"`
}

// finding is a line of NOW.
type finding struct {
	Level     level
	Word      string
	Name, Say string
	Link      string
}

type conditionView struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Say  string `json:"say"`
}

type queueView struct {
	Length   int     `json:"length"`
	Critical int     `json:"critical"`
	Normal   int     `json:"normal"`
	Bulk     int     `json:"bulk"`
	OldestS  float64 `json:"oldest_s"`
	NextTurn instant `json:"next_turn"`
	EmptyAt  instant `json:"empty_at"`
}

type slotsView struct {
	Used  int `json:"used"`
	Limit int `json:"limit"`
}

type rateView struct {
	Rate      string  `json:"rate"`
	Tokens    float64 `json:"tokens"`
	Effective float64 `json:"effective"`
	perSecond float64
}

type gateView struct {
	Scope string  `json:"scope"`
	Until instant `json:"until"`
	Cause string  `json:"cause"`
}

type minuteView struct {
	At    instant `json:"at"`
	Queue int     `json:"queue"`
	WaitS float64 `json:"wait_s"`
}

type hourView struct {
	Calls     int                   `json:"calls"`
	Attempts  int                   `json:"attempts"`
	Throttled int                   `json:"throttled"`
	Refused   map[string]int        `json:"refused"`
	WaitP99S  float64               `json:"wait_p99_s"`
	Minutes   []minuteView          `json:"minutes"`
	Refusals  int                   `json:"-"`
	lately    [len(reasonNames)]int // refused in the last minutes
	Spark     *sparkline            `json:"-"`
}

type providerView struct {
	Name       string          `json:"name"`
	Level      level           `json:"level"`
	State      string          `json:"state"`
	Until      instant         `json:"until"`
	Say        string          `json:"say"`
	Monitor    bool            `json:"monitor"`
	Budgets    []string        `json:"budgets"`
	Conditions []conditionView `json:"conditions"`
	Queue      queueView       `json:"queue"`
	Slots      slotsView       `json:"slots"`
	Rates      []rateView      `json:"rates"`
	Scopes     int             `json:"scopes"`
	Gates      []gateView      `json:"gates"`
	GatesMore  int             `json:"gates_more"`
	Frozen     instant         `json:"frozen"`
	Degraded   bool            `json:"degraded"`
	Hour       hourView        `json:"hour"`

	about string // the budget that Say is about, if there is one
	mild  bool   // Say concerns some calls alone
}

type windowView struct {
	ID    string  `json:"id"`
	Start instant `json:"start"`
	End   instant `json:"end"`
	Zone  string  `json:"zone"`
}

type holdsView struct {
	Held     int `json:"held"`
	Presumed int `json:"presumed"`
}

type paceView struct {
	ShouldBe budget.Amount  `json:"should_be"`
	PerHour  *budget.Amount `json:"per_hour"`
}

type forecastView struct {
	State string  `json:"state"` // none, lasts, runs_out, exhausted
	At    instant `json:"at"`
}

type pointView struct {
	At       instant       `json:"at"`
	Settled  budget.Amount `json:"settled"`
	Presumed budget.Amount `json:"presumed"`
}

type historyView struct {
	StepS  float64     `json:"step_s"`
	From   string      `json:"from"` // ledger: of all processes; process: what this one saw
	Points []pointView `json:"points"`
}

type budgetView struct {
	Name       string           `json:"name"`
	Ledger     string           `json:"ledger"`
	Unit       string           `json:"unit"`
	Level      level            `json:"level"`
	Say        string           `json:"say"`
	Monitor    bool             `json:"monitor"`
	Frozen     bool             `json:"frozen"`
	Window     windowView       `json:"window"`
	Limit      budget.Amount    `json:"limit"`
	Settled    budget.Amount    `json:"settled"`
	Presumed   budget.Amount    `json:"presumed"`
	Held       budget.Amount    `json:"held"`
	Left       budget.Amount    `json:"left"`
	Overrun    budget.Amount    `json:"overrun"`
	Between    [2]budget.Amount `json:"between"`
	Holds      holdsView        `json:"holds"`
	Pace       paceView         `json:"pace"`
	Forecast   forecastView     `json:"forecast"`
	Thresholds []crossing       `json:"thresholds"`
	History    historyView      `json:"history"`

	Percent int    `json:"-"`
	Ends    string `json:"-"`
	Outlook string `json:"-"`
	totals  *budget.Totals
	by      budget.By // who froze it
}

type storeView struct {
	Store string  `json:"store"`
	ID    string  `json:"id"`
	Kind  string  `json:"kind"`
	Mode  string  `json:"mode"`
	Up    bool    `json:"up"`
	Since instant `json:"since"`
	SkewS float64 `json:"skew_s"`
	Error string  `json:"error"`
	Say   string  `json:"say"`
}

type decisionView struct {
	At       instant       `json:"at"`
	Call     string        `json:"call"`
	Provider string        `json:"provider"`
	Kind     string        `json:"kind"`
	Reason   string        `json:"reason"`
	Budget   string        `json:"budget"`
	Attempt  int           `json:"attempt"`
	Amount   budget.Amount `json:"amount"`
	Unit     string        `json:"unit"`
	Say      string        `json:"say"`
	Why      string        `json:"why"`
	Level    level         `json:"-"`
}

type changeView struct {
	ID     string  `json:"id"`
	At     instant `json:"at"`
	Actor  string  `json:"actor"`
	Action string  `json:"action"`
	Target string  `json:"target"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	Reason string  `json:"reason"`
	Result string  `json:"result"` // done or denied
}

// newView joins the state with what is remembered, here and by the ledger.
func newView(s *transport.Status, m *memory, told past) *view {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &view{
		Schema: "outlay.status/1", At: instant(s.Time), Level: levelOK, at: s.Time,
		Process:   processView{ID: bootName(m.boot), Version: version(), Started: instant(m.began)},
		Providers: []providerView{}, Budgets: []budgetView{}, Decisions: []decisionView{}, Changes: []changeView{},
	}
	v.stores(s, m)
	for i := range s.Budgets {
		v.Budgets = append(v.Budgets, newBudget(&s.Budgets[i], m.budgets[s.Budgets[i].Budget.Label], told, s))
	}
	byLabel := map[string]*budgetView{}
	for i := range v.Budgets {
		byLabel[v.Budgets[i].Name] = &v.Budgets[i]
	}
	for i := range s.Providers {
		v.Providers = append(v.Providers, newProvider(&s.Providers[i], s, m, byLabel, told))
	}
	for _, e := range m.decisions.newest() {
		v.Decisions = append(v.Decisions, newDecision(&e))
	}
	v.Changes, v.Audited = told.changes(m), told.audited
	v.order()
	return v
}

// order puts the worst first, and finds how bad it is altogether.
func (v *view) order() {
	slices.SortStableFunc(v.Providers, func(a, b providerView) int {
		return cmp.Or(severity[b.Level]-severity[a.Level], cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(v.Budgets, func(a, b budgetView) int {
		return cmp.Or(severity[b.Level]-severity[a.Level], b.Percent-a.Percent, cmp.Compare(a.Name, b.Name))
	})
	worst := func(l level) {
		if severity[l] > severity[v.Level] {
			v.Level = l
		}
	}
	for _, s := range v.Stores {
		if !s.Up {
			worst(levelBad)
		}
	}
	for _, p := range v.Providers {
		worst(p.Level)
	}
	for _, b := range v.Budgets {
		worst(b.Level)
	}
}

func (v *view) stores(s *transport.Status, m *memory) {
	if s.Ledger.ID != "" {
		l := storeView{
			Store: "ledger", ID: s.Ledger.ID, Kind: s.Ledger.Kind, Mode: s.Ledger.Mode, Up: s.LedgerErr == nil && s.LedgerUp,
			Since: instant(m.began), SkewS: s.Ledger.Skew.Seconds(),
		}
		l.Say = saySkew(s.Ledger.Skew)
		if l.Kind == "memory" {
			l.Say = "It forgets on exit."
		}
		if !l.Up {
			l.Since, l.Error = instant(m.ledger.since), m.ledger.class
			l.Say = sayAway(s, m)
		}
		v.Stores = append(v.Stores, l)
		v.Ledger = l
	}
	l := storeView{Store: "limiter", Kind: "local", Mode: "exact", Up: s.LimiterUp, Since: instant(m.began), Say: "Turns are counted in this process."}
	if s.LimiterShared {
		l.Kind, l.Say = "shared", "Turns are counted for all processes that share it; slots and queues are those of this one."
	}
	if s.Degraded {
		l.Mode, l.Say = "degraded", "The shared limiter does not answer: this process uses its own share."
	}
	if !s.LimiterUp {
		l.Since, l.Error, l.Say = instant(m.limiter.since), m.limiter.class, "The limiter does not answer."
	}
	v.Stores = append(v.Stores, l)
}

// filter leaves what the query asks for, and fills in what only the page shows.
func (v *view) filter(q query) {
	if q.Provider != "" {
		v.Providers = slices.DeleteFunc(v.Providers, func(p providerView) bool { return p.Name != q.Provider })
	}
	if q.Budget != "" {
		v.Budgets = slices.DeleteFunc(v.Budgets, func(b budgetView) bool { return b.Name != q.Budget })
	}
	v.Decisions = slices.DeleteFunc(v.Decisions, func(d decisionView) bool {
		return q.Call != "" && d.Call != q.Call || q.Provider != "" && d.Provider != q.Provider || q.Budget != "" && d.Budget != q.Budget
	})
	v.findings()
	for i := range v.Budgets {
		if len(v.Charts) == maxCharts {
			v.Uncharted = len(v.Budgets) - i
			break
		}
		v.Charts = append(v.Charts, newChart(&v.Budgets[i], v.at, i))
	}
}

// maxCharts bounds the charts of one page; the fullest budgets come first.
const maxCharts = 6

// findings are what a person who was woken reads.
func (v *view) findings() {
	for _, s := range v.Stores {
		if !s.Up {
			v.Now = append(v.Now, finding{levelBad, "away", s.Store, s.Say, ""})
		}
	}
	for _, p := range v.Providers {
		if p.Level == levelOK {
			v.Quiet = append(v.Quiet, p.Name)
			continue
		}
		word := stateWords[p.State]
		if p.State == "ok" {
			word = "refused"
		}
		v.Now = append(v.Now, finding{p.Level, word, p.Name, p.Say, "?provider=" + escape(p.Name)})
	}
	shown := map[string]bool{}
	for _, p := range v.Providers {
		if p.State == "exhausted" || p.State == "busy" {
			shown[p.about] = true
		}
	}
	for _, b := range v.Budgets {
		if b.Level != levelOK && !shown[b.Name] {
			v.Now = append(v.Now, finding{b.Level, b.word(), b.Name, b.Say, "?budget=" + escape(b.Name)})
		}
	}
	slices.SortStableFunc(v.Now, func(a, b finding) int { return severity[b.Level] - severity[a.Level] })
}

package statuspage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// billView is where the money of the present windows went, and with its tags the JSON.
type billView struct {
	Schema  string       `json:"schema"`
	At      instant      `json:"at"`
	Ledger  string       `json:"ledger"`
	Budgets []billBudget `json:"budgets"`
	Windows []billWindow `json:"windows"` // the last 35 days, without the present windows

	Notes []string `json:"notes"` // what is not known, and why

	Title   string `json:"-"`
	partial bool   // the ledger did not tell all that it could
	at      time.Time
	process time.Time
}

// billBudget is the present window of one budget.
type billBudget struct {
	Name     string        `json:"name"`
	Unit     string        `json:"unit"`
	Window   windowView    `json:"window"`
	Limit    budget.Amount `json:"limit"`
	Sum      billSum       `json:"sum"`
	Stopped  stopped       `json:"stopped"`
	By       []billSum     `json:"providers"`
	ByLedger bool          `json:"by_provider"` // false: the ledger does not tell providers apart

	Say, Ends string `json:"-"`
	Percent   int    `json:"-"`
	Level     level  `json:"-"`
	ShowSum   bool   `json:"-"` // it says more than the lines above it
	length    time.Duration
}

// billSum is what calls come to. The invoice should lie between its two bounds once
// nothing is in flight.
type billSum struct {
	Provider string           `json:"provider"`
	Settled  budget.Amount    `json:"settled"`
	Presumed budget.Amount    `json:"presumed"`
	Held     budget.Amount    `json:"held"`
	Up       budget.Amount    `json:"corrected_up"`
	Down     budget.Amount    `json:"corrected_down"`
	Invoice  [2]budget.Amount `json:"invoice"`
	Calls    int              `json:"calls"`
	Open     int              `json:"in_flight"`
	Unknown  int              `json:"without_evidence"`

	Share int           `json:"-"` // of what the budget used, in percent
	Mean  budget.Amount `json:"-"` // of a call that has ended
}

// stopped is what a budget refused in its window, as this process saw it.
type stopped struct {
	window string
	Calls  int           `json:"calls"`
	Amount budget.Amount `json:"amount"`
}

// billWindow is a window that is over.
type billWindow struct {
	Budget   string           `json:"budget"`
	Unit     string           `json:"unit"`
	Window   windowView       `json:"window"`
	Limit    budget.Amount    `json:"limit"`
	Settled  budget.Amount    `json:"settled"`
	Presumed budget.Amount    `json:"presumed"`
	Held     budget.Amount    `json:"held"`
	Overrun  budget.Amount    `json:"overrun"`
	Invoice  [2]budget.Amount `json:"invoice"`
	Percent  int              `json:"-"`
}

// maxPast is how many past windows of a budget are shown, and of how many days.
const maxPast = 35

// bill reads where the money went.
func (p *Page) bill(ctx context.Context, q query) (*billView, error) {
	t := p.source.Load()
	if t == nil {
		return nil, errUnwatched
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	s, err := t.Status(ctx)
	if err != nil {
		return nil, err
	}
	p.mem.read(s)
	b := &billView{
		Schema: "outlay.bill/1", At: instant(s.Time), Ledger: s.Ledger.ID, Budgets: []billBudget{}, Windows: []billWindow{}, Notes: []string{},
		Title: p.o.Title, at: s.Time, process: p.mem.began,
	}
	if s.LedgerErr != nil {
		b.partial = true
		b.Notes = append(b.Notes, "The ledger does not answer: nothing is known of the money, which is not the same as nothing spent.")
		return b, nil
	}
	spending, err := t.Spending(ctx)
	b.note(err, "what each provider spent")
	past, errPast := t.Windows(ctx, s.Time.AddDate(0, 0, -maxPast), s.Time)
	b.note(errPast, "past windows")
	for i := range s.Budgets {
		if q.Budget == "" || q.Budget == s.Budgets[i].Budget.Label {
			b.Budgets = append(b.Budgets, p.mem.billBudget(&s.Budgets[i], spending, err == nil, q.Provider, s.Time))
		}
	}
	if q.Provider != "" && len(past) > 0 { // what is not of the one asked for would be added to it
		b.Notes = append(b.Notes, "Past windows are known of all providers together only: show all to see them.")
		past = nil
	}
	slices.SortStableFunc(b.Budgets, func(a, b billBudget) int {
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Name, b.Name))
	})
	b.past(past, s.Time, q.Budget)
	return b, nil
}

// note tells what could not be read. A ledger that hides it by nature is no fault.
func (b *billView) note(err error, what string) {
	switch {
	case errors.Is(err, transport.ErrUnsupported):
		b.Notes = append(b.Notes, "This ledger does not tell "+what+".")
	case err != nil:
		b.partial = true
		b.Notes = append(b.Notes, "The ledger did not tell "+what+" in time.")
	}
}

// billBudget joins the totals of a budget with what each provider spent.
func (m *memory) billBudget(t *budget.Totals, all []budget.Spending, known bool, provider string, now time.Time) billBudget {
	v := billBudget{
		Name: t.Budget.Label, Unit: t.Budget.Unit, Limit: t.Limit, ByLedger: known, By: []billSum{},
		Window:  windowView{t.Window.ID, instant(t.Window.Start), instant(t.Window.End), t.Budget.Zone.String()},
		Ends:    at(t.Window.End.In(t.Budget.Zone), now),
		Percent: percent(t.Used(), t.Limit), length: t.Window.End.Sub(t.Window.Start),
		Sum: billSum{
			Settled: t.Settled, Presumed: t.Presumed, Held: t.Held, Open: t.OpenHolds, Unknown: t.PresumedHolds,
			Invoice: [2]budget.Amount{t.Settled + t.Floor, t.Settled + t.Presumed},
		},
	}
	for i := range all {
		s := &all[i]
		if s.Budget != t.Budget.Name {
			continue
		}
		v.Sum.Up, v.Sum.Down, v.Sum.Calls = v.Sum.Up+s.Up, v.Sum.Down+s.Down, v.Sum.Calls+s.Calls
		if provider != "" && provider != s.Provider {
			continue
		}
		row := billSum{
			Provider: clip(s.Provider), Settled: s.Settled, Presumed: s.Presumed, Held: s.Held, Up: s.Up, Down: s.Down,
			Invoice: [2]budget.Amount{s.Settled + s.Floor, s.Settled + s.Presumed}, Calls: s.Calls, Open: s.Open, Unknown: s.PresumedCalls,
			Share: percent(s.Used(), t.Used()),
		}
		if ended := s.Calls - s.Open; ended > 0 {
			row.Mean = roundTo((s.Settled+s.Presumed)/budget.Amount(ended), budget.Unit/10_000)
		}
		v.By = append(v.By, row)
	}
	m.mu.Lock()
	if h := m.budgets[t.Budget.Label]; h != nil {
		v.Stopped = h.stoppedIn(t.Window)
	}
	m.mu.Unlock()
	v.judge()
	if provider != "" && known {
		one := v
		one.Sum, one.Stopped = billSum{}, stopped{}
		if len(v.By) > 0 {
			one.Sum = v.By[0]
		}
		v.Say = "Of " + clip(provider) + " alone: " + one.say()
	}
	return v
}

// judge says how the budget stands.
func (v *billBudget) judge() {
	v.Level = levelOK
	switch {
	case v.Percent >= 100:
		v.Level = levelBad
	case v.Percent >= 80, v.Sum.Presumed > (v.Sum.Settled+v.Sum.Presumed)/10:
		v.Level = levelWarn
	}
	v.ShowSum = len(v.By) != 1 && (v.Sum.Settled|v.Sum.Presumed|v.Sum.Held) != 0
	v.Say = v.say()
}

// say tells what the invoice should be.
func (v *billBudget) say() string {
	if v.Unit == budget.Calls {
		return fmt.Sprintf("%s of %s calls.", money(v.Sum.Settled+v.Sum.Presumed+v.Sum.Held), money(v.Limit))
	}
	low, high := v.Sum.Invoice[0], v.Sum.Invoice[1]
	if high == 0 && v.Sum.Open == 0 && v.Stopped.Calls == 0 {
		return "Nothing was spent."
	}
	s := fmt.Sprintf("The books say %s %s. Expect the same on the invoice: every cost is known.", money(high), v.Unit)
	if low != high {
		s = fmt.Sprintf("The books say %s %s. Expect between %s and %s on the invoice: the outcome of %s is unknown, so that it may be up to %s lower.",
			money(high), v.Unit, money(low), money(high), count(v.Sum.Unknown, "call"), money(high-low))
	}
	if v.Sum.Open > 0 {
		s += fmt.Sprintf(" %s in flight may add up to %s.", count(v.Sum.Open, "call"), money(v.Sum.Held))
	}
	if v.Stopped.Calls > 0 {
		s += fmt.Sprintf(" The limit stopped %s of %s that this process would have sent.", count(v.Stopped.Calls, "call"), money(v.Stopped.Amount))
	}
	return s
}

// past lists windows that are over, the newest first. Those of rolling periods are left
// out: they are buckets.
func (b *billView) past(all []budget.Totals, now time.Time, only string) {
	seen := map[string]int{}
	for i := range slices.Backward(all) {
		t := &all[i]
		name := t.Budget.Label
		if t.Window.End.After(now) || t.Window.Oldest != t.Window.ID || only != "" && only != name || seen[name] == maxPast {
			continue
		}
		seen[name]++
		b.Windows = append(b.Windows, billWindow{
			Budget: name, Unit: t.Budget.Unit, Window: windowView{t.Window.ID, instant(t.Window.Start), instant(t.Window.End), zoneOf(t.Budget)},
			Limit: t.Limit, Settled: t.Settled, Presumed: t.Presumed, Held: t.Held, Overrun: t.Overrun,
			Invoice: [2]budget.Amount{t.Settled + t.Floor, t.Settled + t.Presumed}, Percent: percent(t.Used(), t.Limit),
		})
	}
	slices.SortStableFunc(b.Windows, func(x, y billWindow) int {
		return time.Time(y.Window.Start).Compare(time.Time(x.Window.Start))
	})
}

func zoneOf(b budget.Budget) string { return b.Normal().Zone.String() }

// renderBill never fails: the view holds nothing that cannot be written.
func renderBill(b *billView, q query, kind string) (body []byte, contentType string) {
	var out bytes.Buffer
	switch kind {
	case "csv":
		b.writeCSV(&out)
		return out.Bytes(), "text/csv; charset=utf-8; header=present"
	case "json":
		e := json.NewEncoder(&out)
		e.SetIndent("", " ")
		if err := e.Encode(b); err != nil {
			return []byte(`{"schema":"outlay.bill/1"}`), "application/json"
		}
		return out.Bytes(), "application/json"
	}
	if err := pages.ExecuteTemplate(&out, "bill", struct {
		*billView
		Query query
	}{b, q}); err != nil {
		return []byte("The page cannot be written."), "text/plain; charset=utf-8"
	}
	return out.Bytes(), "text/html; charset=utf-8"
}

var csvHead = []string{"budget", "window", "from", "until", "provider", "unit", "limit", "settled", "presumed", "held",
	"corrected_up", "corrected_down", "calls", "in_flight", "without_evidence", "invoice_from", "invoice_to"}

// writeCSV writes a line per provider of each present window, and one per window that is
// over. No two of them tell of the same money of one budget. What is not known is empty.
func (b *billView) writeCSV(out *bytes.Buffer) {
	w := csv.NewWriter(out)
	w.UseCRLF = true // RFC 4180
	write := func(name, unit string, v windowView, limit budget.Amount, s *billSum, unknown ...string) {
		cells := []string{name, v.ID, rfc3339(v.Start), rfc3339(v.End), s.Provider, unit, limit.String(), s.Settled.String(),
			s.Presumed.String(), s.Held.String(), s.Up.String(), s.Down.String(), strconv.Itoa(s.Calls), strconv.Itoa(s.Open),
			strconv.Itoa(s.Unknown), s.Invoice[0].String(), s.Invoice[1].String()}
		for i, c := range cells {
			cells[i] = cell(c)
			if slices.Contains(unknown, csvHead[i]) {
				cells[i] = ""
			}
		}
		_ = w.Write(cells) // a Buffer takes everything
	}
	_ = w.Write(csvHead)
	for i := range b.Budgets {
		v := &b.Budgets[i]
		for j := range v.By {
			write(v.Name, v.Unit, v.Window, v.Limit, &v.By[j])
		}
		if !v.ByLedger {
			write(v.Name, v.Unit, v.Window, v.Limit, &v.Sum, "corrected_up", "corrected_down", "calls")
		}
	}
	for i := range b.Windows {
		p := &b.Windows[i]
		write(p.Budget, p.Unit, p.Window, p.Limit, &billSum{Settled: p.Settled, Presumed: p.Presumed, Held: p.Held, Invoice: p.Invoice},
			"corrected_up", "corrected_down", "calls", "in_flight", "without_evidence")
	}
	w.Flush()
}

func rfc3339(i instant) string { return time.Time(i).UTC().Format(time.RFC3339) }

// cell makes a text that no spreadsheet takes for a formula: those begin with = + - @ or
// their wide forms, and some programs skip what is blank before them.
func cell(s string) string {
	s = printable(s)
	if t := strings.TrimLeft(s, " "); t != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(t)[0]) {
		return "'" + s
	}
	return s
}

package statuspage

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

func bootName(boot uint64) string {
	if boot == 0 {
		return ""
	}
	return fmt.Sprintf("%04x", boot&0xffff)
}

// version is that of the module in the program.
func version() string {
	const module = "github.com/outlay-go/outlay"
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if b.Main.Path == module {
		return b.Main.Version
	}
	for _, d := range b.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return ""
}

// maxGates bounds the closed gates that are listed per provider.
const maxGates = 10

// newProvider tells how a provider stands.
func newProvider(p *transport.ProviderStatus, s *transport.Status, m *memory, budgets map[string]*budgetView, told past) providerView {
	v := providerView{
		Name: p.Name, Monitor: p.Monitor, Budgets: append([]string{}, p.Budgets...), Rates: []rateView{}, Gates: []gateView{},
		Scopes: max(0, len(p.Scopes)-1), Frozen: instant(p.Frozen), Degraded: s.Degraded,
	}
	v.Queue = queueView{
		Length: p.Queue.Critical + p.Queue.Normal + p.Queue.Bulk, Critical: p.Queue.Critical, Normal: p.Queue.Normal, Bulk: p.Queue.Bulk,
	}
	if !p.Queue.Oldest.IsZero() {
		v.Queue.OldestS = round(max(0, s.Time.Sub(p.Queue.Oldest)))
	}
	v.limits(p)
	v.gates(p, s.Time)
	v.Hour = newHour(m.providers[p.Name], s.Time)
	v.turns(s.Time)
	v.decide(&scene{p: p, s: s, m: m, budgets: budgets, told: told})
	return v
}

// limits are the provider's own rates and slots.
func (v *providerView) limits(p *transport.ProviderStatus) {
	if len(p.Scopes) == 0 {
		return
	}
	whole := &p.Scopes[0]
	v.Slots = slotsView{Used: whole.InUse, Limit: whole.Slots}
	for _, r := range whole.Rates {
		v.Rates = append(v.Rates, rateView{
			Rate: fmt.Sprintf("%d/%s", r.N, short(r.Per)), Tokens: math.Round(whole.Tokens*100) / 100, Effective: whole.Effective,
			perSecond: float64(r.N) / r.Per.Seconds() * whole.Effective,
		})
	}
}

// gates lists what is closed: the provider first, then as many scopes as there is room.
func (v *providerView) gates(p *transport.ProviderStatus, now time.Time) {
	for i := range p.Scopes {
		sc := &p.Scopes[i]
		until, cause := sc.GateUntil, string(sc.GateCause)
		if until.IsZero() && !sc.CapUntil.IsZero() && sc.CapLeft == 0 {
			until, cause = sc.CapUntil, string(sc.CapCause)
		}
		if !until.After(now) {
			continue
		}
		if len(v.Gates) == maxGates {
			v.GatesMore++
			continue
		}
		name := sc.Scope
		if sc.Alias != "" {
			name += " " + clip(sc.Alias)
		}
		v.Gates = append(v.Gates, gateView{Scope: name, Until: instant(until), Cause: cause})
	}
}

// turns forecasts when the queue moves and when it is empty.
func (v *providerView) turns(now time.Time) {
	if v.Queue.Length == 0 {
		return
	}
	next := now
	for _, g := range v.Gates {
		if g.Scope == "" {
			next = time.Time(g.Until)
		}
	}
	slowest := math.Inf(1)
	for _, r := range v.Rates {
		slowest = min(slowest, r.perSecond)
	}
	v.Queue.NextTurn = instant(next)
	if seconds := float64(v.Queue.Length) / slowest; seconds < 400*24*3600 {
		v.Queue.EmptyAt = instant(next.Add(time.Duration(seconds * float64(time.Second))))
	}
}

func newHour(h *hour, now time.Time) hourView {
	v := hourView{Refused: map[string]int{}, Minutes: []minuteView{}}
	if h == nil {
		return v
	}
	var waits [len(waitBounds)]int
	last := h.last(now)
	total := 0
	for age, m := range last {
		if m == nil {
			continue
		}
		v.Calls += int(m.calls)
		v.Attempts += int(m.attempts)
		v.Throttled += int(m.throttled)
		for i, n := range m.refused {
			if n > 0 {
				v.Refused[string(reasonNames[i])] += int(n)
				v.Refusals += int(n)
				if age >= minutes-recent {
					v.lately[i] += int(n)
				}
			}
		}
		for i, n := range m.waits {
			waits[i] += int(n)
			total += int(n)
		}
		v.Minutes = append(v.Minutes, minuteView{instant(time.Unix(m.number*60, 0)), m.queue, round(m.wait)})
	}
	v.WaitP99S = quantile99(waits, total, last)
	v.Spark = newSparkline(last)
	return v
}

// quantile99 is the bound below which 99 % of the waits lie, or the longest if that is less.
func quantile99(waits [len(waitBounds)]int, total int, last [minutes]*minute) float64 {
	longest := time.Duration(0)
	for _, m := range last {
		if m != nil {
			longest = max(longest, m.wait)
		}
	}
	seen := 0
	for i, n := range waits {
		seen += n
		if n > 0 && seen*100 >= total*99 {
			return round(min(waitBounds[i], longest))
		}
	}
	return 0
}

func round(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// newBudget tells how a budget stands.
func newBudget(t *budget.Totals, h *history, told past, s *transport.Status) budgetView {
	v := budgetView{
		Name: t.Budget.Label, Ledger: s.Ledger.ID, Unit: t.Budget.Unit, Monitor: t.Budget.Monitor, Frozen: t.Frozen,
		Window: windowView{t.Window.ID, instant(t.Window.Start), instant(t.Window.End), t.Budget.Zone.String()},
		Limit:  t.Limit, Settled: t.Settled, Presumed: t.Presumed, Held: t.Held, Left: t.Available(), Overrun: t.Overrun,
		Between: [2]budget.Amount{t.Settled + t.Floor, t.Used()}, Holds: holdsView{t.OpenHolds, t.PresumedHolds},
		Thresholds: []crossing{}, History: historyView{Points: []pointView{}}, totals: t,
	}
	v.Percent = percent(t.Used(), t.Limit)
	v.Pace.ShouldBe = share(t.Limit, s.Time.Sub(t.Window.Start), t.Window.End.Sub(t.Window.Start))
	if h != nil {
		v.Thresholds = append(v.Thresholds, h.thresholds...)
		v.History.StepS, v.History.From = h.step.Seconds(), "process"
		for _, p := range h.points {
			v.History.Points = append(v.History.Points, pointView{instant(time.Unix(0, p.at)), p.settled, p.presumed})
		}
	}
	v.recall(told.histories[t.Budget.Name], s.Time)
	v.by = told.whoFroze(budget.Target{Budget: t.Budget.Name}, budget.Target{Budget: t.Budget.Label})
	v.pace()
	v.Forecast = forecast(t, s.Time)
	v.judge(s.Time)
	return v
}

// forecast puts the one rule of [budget.Totals.Forecast] into a word.
func forecast(t *budget.Totals, now time.Time) forecastView {
	at, ok := t.Forecast(now)
	switch {
	case ok && !at.After(now):
		return forecastView{"exhausted", instant(now)}
	case ok:
		return forecastView{"runs_out", instant(at)}
	case t.Trend.Settled < 10 || now.Sub(t.Window.Start) < t.Window.End.Sub(t.Window.Start)/24:
		return forecastView{"none", instant{}}
	}
	return forecastView{"lasts", instant{}}
}

// percent is a share in whole percent, for display.
func percent(used, limit budget.Amount) int {
	if limit <= 0 {
		return 0
	}
	return int(min(float64(used)/float64(limit)*100, 999))
}

// share is the part of an amount that belongs to a part of a time, for display.
func share(a budget.Amount, part, whole time.Duration) budget.Amount {
	if whole <= 0 {
		return 0
	}
	f := min(max(float64(part)/float64(whole), 0), 1)
	return roundTo(budget.Amount(f*float64(a)), budget.Unit/10_000)
}

func roundTo(a, step budget.Amount) budget.Amount { return a / step * step }

// judge says how bad it is, and why.
func (v *budgetView) judge(now time.Time) {
	t := v.totals
	v.Ends = at(t.Window.End.In(t.Budget.Zone), now)
	v.Outlook = map[string]string{
		"none": "too early to tell", "lasts": "lasts", "exhausted": "used up",
		"runs_out": "ends at " + at(time.Time(v.Forecast.At).In(t.Budget.Zone), now),
	}[v.Forecast.State]
	spent := t.Settled + t.Presumed
	switch {
	case v.Frozen:
		v.Level = levelBad
	case v.Monitor && t.Used() >= t.Limit: // it refuses nothing
		v.Level = levelWarn
	case spent >= t.Limit:
		v.Level = levelBad
	case v.Left <= 0:
		v.Level = levelBusy
	case v.Forecast.State == "runs_out", v.Percent >= 80, spent > 0 && t.Presumed > spent/10 && v.Percent >= 5:
		v.Level = levelWarn
	default:
		v.Level = levelOK
	}
	v.Say = v.say(now)
}

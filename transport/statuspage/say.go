package statuspage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// stateWords are what the states of a provider are called on the page.
var stateWords = map[string]string{
	"frozen": "frozen", "ledger": "refused", "limiter": "slow", "gate": "paused", "exhausted": "refused", "busy": "short",
	"slots": "waiting", "rate": "waiting", "unpriced": "unpriced", "ok": "ok",
}

// word is what the state of a budget that needs a look is called on the page.
func (v *budgetView) word() string {
	switch {
	case v.Frozen:
		return "frozen"
	case v.Level == levelBad:
		return "used up"
	case v.Monitor && v.totals.Used() >= v.Limit:
		return "over"
	case v.Level == levelBusy:
		return "held"
	case v.Forecast.State == "runs_out":
		return "runs out"
	case v.Percent >= 80:
		return "nearly"
	}
	return "unsure"
}

// scene is all that the state of a provider follows from.
type scene struct {
	p       *transport.ProviderStatus
	s       *transport.Status
	m       *memory
	budgets map[string]*budgetView
	told    past
}

// rule is one thing that may hold calls up; say is empty if it does not.
type rule struct {
	state string
	level level
	fine  string
	say   func(*providerView, *scene) (say string, until time.Time)
}

// rules in the order in which they decide: the first that applies is the state.
var rules = []rule{
	{"frozen", levelBad, "not frozen", sayFrozen},
	{"ledger", levelBad, "the ledger answers", sayLedger},
	{"limiter", levelWarn, "the limiter answers", sayLimiter},
	{"gate", levelWarn, "no pause", sayGate},
	{"exhausted", levelBad, "no budget is used up", sayExhausted},
	{"busy", levelBusy, "no budget is held up by calls in flight", sayBusy},
	{"slots", levelBusy, "slots are free", saySlots},
	{"rate", levelBusy, "no call waits for its turn", sayRate},
	{"unpriced", levelWarn, "every call has a price", sayUnpriced},
}

// decide finds what holds calls up, and says it: what, until when, what helps.
func (v *providerView) decide(sc *scene) {
	v.State, v.Level, v.Say = "ok", levelOK, "Calls leave at once."
	decided := false
	for _, r := range rules {
		say, until := r.say(v, sc)
		c := conditionView{What: r.state, OK: say == "", Say: r.fine}
		if say != "" {
			c.Say = say
		}
		v.Conditions = append(v.Conditions, c)
		if say != "" && !decided {
			decided = true
			v.State, v.Level, v.Say, v.Until = r.state, r.level, say, instant(until)
		}
	}
	if !decided {
		v.refused()
	}
	if v.State == "exhausted" && v.mild {
		v.Level = levelWarn
	}
	if decided && v.Monitor && v.State != "frozen" {
		if v.Level == levelBad {
			v.Level = levelWarn
		}
		v.Say += " The provider is only monitored: its calls go all the same."
	}
}

func sayFrozen(v *providerView, sc *scene) (string, time.Time) {
	if sc.p.Frozen.IsZero() {
		return "", time.Time{}
	}
	who, why := words(sc.told.whoFroze(budget.Target{Provider: v.Name}), sc.m.frozenBy[v.Name])
	return fmt.Sprintf("%s froze %s at %s%s. All its calls are refused until someone releases it.", who, v.Name, at(sc.p.Frozen, sc.s.Time), why), time.Time{}
}

func sayLedger(_ *providerView, sc *scene) (string, time.Time) {
	if sc.s.Ledger.ID == "" || sc.s.LedgerErr == nil && sc.s.LedgerUp || len(sc.p.Budgets) == 0 && !sc.p.BudgetsFor {
		return "", time.Time{}
	}
	if errors.Is(sc.s.LedgerErr, budget.ErrConflict) {
		return contradicted + " Calls that it pays for are refused.", time.Time{}
	}
	return fmt.Sprintf("The ledger has not answered since %s (%s). Calls that cost money are refused; nothing is sent unpaid.",
		at(sc.m.ledger.since, sc.s.Time), sc.m.ledger.class), time.Time{}
}

// contradicted is said of a ledger that answers, but means something else by a name.
const contradicted = "The configuration contradicts the ledger: it has a budget of one of the names with another unit, period or zone."

// sayAway tells what is known while the ledger is not all right.
func sayAway(s *transport.Status, m *memory) string {
	since := at(m.ledger.since, s.Time)
	switch {
	case errors.Is(s.LedgerErr, budget.ErrConflict):
		return contradicted
	case s.LedgerErr == nil:
		return fmt.Sprintf("Calls cannot be paid since %s (%s), although totals can be read; they are refused.", since, m.ledger.class)
	}
	return "Totals are unknown since " + since + "; calls that cost money are refused."
}

// classOf is what is wrong with a ledger that was read.
func classOf(err error) string {
	switch {
	case errors.Is(err, budget.ErrConflict):
		return "conflict"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "unavailable"
}

func sayLimiter(_ *providerView, sc *scene) (string, time.Time) {
	switch {
	case sc.s.Degraded:
		return "The shared limiter does not answer. This process uses its own share of the rate.", time.Time{}
	case !sc.s.LimiterUp:
		if last := sc.m.limiter.last; sc.s.Time.Sub(last) >= time.Minute {
			return "The limiter did not answer when it was asked last, at " + at(last, sc.s.Time) + ". Whether it does now shows with the next call.", time.Time{}
		}
		return "The limiter has not answered since " + at(sc.m.limiter.since, sc.s.Time) + ". Calls are refused.", time.Time{}
	}
	return "", time.Time{}
}

var gateCauses = map[string]string{
	"throttled": "The provider asked for a pause until %s",
	"remaining": "The provider said that nothing is left until %s",
	"operator":  "An operator closed it until %s",
}

func sayGate(v *providerView, sc *scene) (string, time.Time) {
	if len(v.Gates) == 0 {
		return "", time.Time{}
	}
	g := v.Gates[0]
	until := time.Time(g.Until)
	what := fmt.Sprintf(cmp.Or(gateCauses[g.Cause], "It is closed until %s")+" (in %s).", at(until, sc.s.Time), span(until.Sub(sc.s.Time)))
	if g.Scope != "" {
		what = fmt.Sprintf("%s for %s.", strings.TrimSuffix(what, "."), g.Scope)
		if more := len(v.Gates) + v.GatesMore - 1; more > 0 {
			what += fmt.Sprintf(" So are %d other scopes.", more)
		}
	}
	return queued(v.Queue.Length, "") + what + v.then(sc.s.Time), until
}

// queued begins a sentence about those who wait.
func queued(n int, after string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 call waits" + after + ". "
	}
	return fmt.Sprintf("%d calls wait%s. ", n, after)
}

// then tells how the queue goes on.
func (v *providerView) then(now time.Time) string {
	if v.Queue.Length == 0 || v.Queue.EmptyAt.IsZero() || len(v.Rates) == 0 {
		return ""
	}
	return fmt.Sprintf(" Then calls leave at %s; the last one at about %s.", v.perSecond(), at(time.Time(v.Queue.EmptyAt), now))
}

// perSecond is the slowest rate in effect.
func (v *providerView) perSecond() string {
	slowest := math.Inf(1)
	for _, r := range v.Rates {
		slowest = min(slowest, r.perSecond)
	}
	switch {
	case math.IsInf(slowest, 1):
		return "any rate"
	case slowest >= 1:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", slowest), ".0") + " a second"
	case slowest*60 >= 1:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", slowest*60), ".0") + " a minute"
	}
	return fmt.Sprintf("%.1f an hour", slowest*3600)
}

func sayExhausted(v *providerView, sc *scene) (string, time.Time) {
	for _, name := range v.Budgets {
		switch b := sc.budgets[name]; {
		case b == nil:
		case b.Frozen:
			v.about = name
			return b.Say, time.Time{}
		case b.Level == levelBad && !b.Monitor:
			v.about = name
			return b.Say, time.Time(b.Window.End)
		}
	}
	return v.sayShort(sc)
}

func sayBusy(v *providerView, sc *scene) (string, time.Time) {
	for _, name := range v.Budgets {
		if b := sc.budgets[name]; b != nil && b.Level == levelBusy && !b.Monitor {
			v.about = cmp.Or(v.about, name)
			return b.Say, time.Time{}
		}
	}
	return v.sayHeld(sc)
}

func saySlots(v *providerView, _ *scene) (string, time.Time) {
	if v.Slots.Limit == 0 || v.Slots.Used < v.Slots.Limit {
		return "", time.Time{}
	}
	say := fmt.Sprintf("%d of %d slots are in use. ", v.Slots.Used, v.Slots.Limit) + queued(v.Queue.Length, " for a slot")
	return say + "A slot is free again when a body is read to its end or closed.", time.Time{}
}

func sayRate(v *providerView, sc *scene) (string, time.Time) {
	if v.Queue.Length == 0 {
		return "", time.Time{}
	}
	say := queued(v.Queue.Length, ", for "+v.perSecond())
	if !v.Queue.EmptyAt.IsZero() && len(v.Rates) > 0 {
		say += fmt.Sprintf("The last leaves in about %s. ", span(time.Time(v.Queue.EmptyAt).Sub(sc.s.Time)))
	}
	if v.Queue.Critical+v.Queue.Bulk > 0 {
		say += fmt.Sprintf("%d critical, %d normal, %d bulk.", v.Queue.Critical, v.Queue.Normal, v.Queue.Bulk)
	}
	return strings.TrimSpace(say), time.Time{}
}

func sayUnpriced(v *providerView, _ *scene) (string, time.Time) {
	n := v.Hour.Refused[string(transport.ReasonUnpriced)]
	if n == 0 {
		return "", time.Time{}
	}
	return fmt.Sprintf("%d calls of the last hour had no price and were refused. Add a rule or an assumed price.", n), time.Time{}
}

// say tells how a budget stands: what, until when, what helps.
func (v *budgetView) say(now time.Time) string {
	t := v.totals
	amounts := fmt.Sprintf("%s of %s %s", money(t.Used()), money(t.Limit), v.Unit)
	switch {
	case v.Frozen:
		who, why := words(v.by, "")
		return fmt.Sprintf("%s froze budget %s%s. Its calls are refused until someone releases it.", who, v.Name, why)
	case v.Monitor && t.Used() >= t.Limit:
		return fmt.Sprintf("Budget %s is over its limit: %s (settled %s, presumed %s). It is only monitored: calls go all the same.", v.Name, amounts, money(t.Settled), money(t.Presumed))
	case v.Level == levelBad:
		say := fmt.Sprintf("Budget %s is used up: %s (settled %s, presumed %s). Nothing helps before %s (in %s) but a higher limit.",
			v.Name, amounts, money(t.Settled), money(t.Presumed), v.Ends, span(t.Window.End.Sub(now)))
		if t.Window.Oldest != t.Window.ID {
			say = fmt.Sprintf("Budget %s is used up: %s (settled %s, presumed %s). It counts the last %s: what is older leaves bit by bit, at %s (in %s) at the earliest. Before that only a higher limit helps.",
				v.Name, amounts, money(t.Settled), money(t.Presumed), rollingOf(t.Budget.Every), v.Ends, span(t.Window.End.Sub(now)))
		}
		if t.PresumedHolds > 0 {
			say += fmt.Sprintf(" %s of unknown outcome count for %s %s; correcting them may free some.", count(t.PresumedHolds, "call"), money(t.Presumed), v.Unit)
		}
		return say
	case v.Level == levelBusy:
		return fmt.Sprintf("Budget %s has nothing left: %s in flight hold %s %s. This clears as they end.", v.Name, count(t.OpenHolds, "call"), money(t.Held), v.Unit)
	case v.Forecast.State == "runs_out":
		return fmt.Sprintf("Budget %s has used %s. At the present pace it ends at %s, before its window does (%s).",
			v.Name, amounts, at(time.Time(v.Forecast.At).In(t.Budget.Zone), now), v.Ends)
	case v.Percent >= 80:
		return fmt.Sprintf("Budget %s has used %s. The window ends at %s.", v.Name, amounts, v.Ends)
	case v.Level == levelWarn:
		return fmt.Sprintf("Budget %s: %s %s are presumed, not known (%s without an answer). Compare with the invoice and correct them.",
			v.Name, money(t.Presumed), v.Unit, count(t.PresumedHolds, "call"))
	}
	return fmt.Sprintf("Budget %s has used %s.", v.Name, amounts)
}

// rollingOf is the length of a rolling period.
func rollingOf(p budget.Period) string {
	words := strings.TrimPrefix(p.String(), "rolling ")
	if d, err := time.ParseDuration(words); err == nil {
		return span(d)
	}
	return words
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func saySkew(d time.Duration) string {
	if d == 0 {
		return "Its clock is ours."
	}
	return fmt.Sprintf("Our clock is %s ahead of its.", d.Round(time.Millisecond))
}

// at is an instant as people read it: without the date if it is today's.
func at(t, now time.Time) string {
	if t.Location() == time.Local {
		t = t.UTC()
	}
	zone := t.Location()
	format := "15:04:05 MST"
	if t.Second() == 0 || t.Sub(now) > time.Hour {
		format = "15:04 MST"
	}
	if y, m, d := t.Date(); t.Sub(now).Abs() > 18*time.Hour {
		if y2, m2, d2 := now.In(zone).Date(); y != y2 || m != m2 || d != d2 {
			format = "2 Jan " + format
		}
	}
	return t.Format(format)
}

// span is a duration as people read it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// money is an amount with at least two decimal places.
func money(a budget.Amount) string {
	s := a.String()
	_, fraction, point := strings.Cut(s, ".")
	switch {
	case !point:
		return s + ".00"
	case len(fraction) < 2:
		return s + "0"
	}
	return s
}

func escape(s string) string { return url.QueryEscape(s) }

// short writes "1m" for what Duration writes as "1m0s".
func short(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

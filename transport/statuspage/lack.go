package statuspage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

const (
	recent   = 5 // how many minutes make "lately"
	maxLacks = 8 // budgets remembered that refused calls of one provider
)

// lack is a budget that refused calls of a provider.
type lack struct {
	budget string
	last   transport.Event
	counts [recent]struct {
		minute int64 // since 1970
		calls  int
	}
}

// ranShort takes in a refusal of a budget. The budgets are few: those of the
// configuration, and one label for all that requests name unless they have labels.
func (h *hour) ranShort(e transport.Event) {
	if !isMoney(e.Reason) || e.Budget == "" {
		return
	}
	i := slices.IndexFunc(h.lacks, func(s lack) bool { return s.budget == e.Budget })
	if i < 0 {
		if len(h.lacks) == maxLacks {
			oldest := slices.MinFunc(h.lacks, func(a, b lack) int { return a.last.Time.Compare(b.last.Time) })
			h.lacks = slices.DeleteFunc(h.lacks, func(s lack) bool { return s.budget == oldest.budget })
		}
		h.lacks = append(h.lacks, lack{budget: e.Budget})
		i = len(h.lacks) - 1
	}
	s := &h.lacks[i]
	s.last = e
	minute := e.Time.Unix() / 60
	c := &s.counts[uint64(minute)%recent]
	if c.minute != minute {
		c.minute, c.calls = minute, 0
	}
	c.calls++
}

func isMoney(r transport.Reason) bool {
	return r == transport.ReasonExhausted || r == transport.ReasonBusy || r == transport.ReasonFloor
}

// shortage is what a budget refused lately.
type shortage struct {
	lack
	calls int
	of    *budgetView // nil: requests name it
}

// shortages are those of a provider for the reasons given: of configured budgets first,
// then those that refused the most.
func (sc *scene) shortages(reasons ...transport.Reason) (out []shortage) {
	h := sc.m.providers[sc.p.Name]
	if h == nil {
		return nil
	}
	for _, s := range h.lacks {
		x := shortage{lack: s}
		for _, c := range s.counts {
			if age := sc.s.Time.Unix()/60 - c.minute; age >= 0 && age < recent {
				x.calls += c.calls
			}
		}
		if x.calls == 0 || !slices.Contains(reasons, s.last.Reason) {
			continue
		}
		if slices.Contains(sc.p.Budgets, s.budget) {
			x.of = sc.budgets[s.budget]
			if x.of == nil || x.of.totals.Refusal(s.last.Need, s.last.Priority.String() == "critical") == nil {
				continue // it would pay now
			}
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b shortage) int {
		if (a.of == nil) != (b.of == nil) {
			return cmp.Compare(map[bool]int{true: 1}[a.of == nil], map[bool]int{true: 1}[b.of == nil])
		}
		return cmp.Compare(b.calls, a.calls)
	})
	return out
}

// sayShort tells of a budget that is not used up, but had too little for some calls.
func (v *providerView) sayShort(sc *scene) (string, time.Time) {
	all := sc.shortages(transport.ReasonExhausted, transport.ReasonFloor)
	if len(all) == 0 {
		return "", time.Time{}
	}
	s := &all[0]
	e := &s.last
	refused := fmt.Sprintf("Refused in the last %d minutes", recent)
	calls := count(s.calls, "call")
	if s.of == nil {
		v.mild = true
		return fmt.Sprintf("Some calls have a budget of their own (%s) that had too little: %s %s used. %s: %s; the last needed %s. Others still go.",
			s.budget, amountsOf(e.Used, e.Limit), e.Unit, refused, calls, money(e.Need)), e.RetryAt
	}
	v.about = s.budget
	b := s.of
	used := amountsOf(b.totals.Used(), b.Limit)
	switch keep := b.totals.Budget.Keep; {
	case e.Need > b.Limit:
		return fmt.Sprintf("Budget %s never pays for a call of %s %s: its limit is %s. %s for that: %s. A higher limit helps, or another price; cheaper calls still go.",
			b.Name, money(e.Need), b.Unit, money(b.Limit), refused, calls), time.Time{}
	case e.Reason == transport.ReasonFloor:
		return fmt.Sprintf("Budget %s has %s %s left and keeps %s for critical calls (%s used). %s: %s. The window ends at %s; critical calls still go.",
			b.Name, money(b.Left), b.Unit, money(keep), used, refused, calls, b.Ends), time.Time(b.Window.End)
	}
	return fmt.Sprintf("Budget %s has %s %s left (%s used). %s because they needed more: %s. The window ends at %s; cheaper calls still go.",
		b.Name, money(b.Left), b.Unit, used, refused, calls, b.Ends), time.Time(b.Window.End)
}

func amountsOf(used, limit budget.Amount) string { return money(used) + " of " + money(limit) }

// sayHeld tells of a budget that has something left, but too little while calls in flight
// hold the rest.
func (v *providerView) sayHeld(sc *scene) (string, time.Time) {
	all := sc.shortages(transport.ReasonBusy)
	if len(all) == 0 {
		return "", time.Time{}
	}
	s := &all[0]
	if s.of == nil {
		return fmt.Sprintf("Some calls have a budget of their own (%s) that calls in flight hold: %s refused in the last %d minutes. This clears as they end; others still go.",
			s.budget, count(s.calls, "call"), recent), time.Time{}
	}
	v.about = s.budget
	return fmt.Sprintf("Budget %s has %s %s left, and %s held by %s in flight. Refused in the last %d minutes: %s. This clears as they end; cheaper calls still go.",
		s.of.Name, money(s.of.Left), s.of.Unit, money(s.of.Held), count(s.of.totals.OpenHolds, "call"), recent, count(s.calls, "call")), time.Time{}
}

// others are refusals that no state of a provider explains: it may be well while callers
// that cannot wait, or that do something wrong, are refused.
var others = map[transport.Reason]struct {
	level level
	why   string
}{
	transport.ReasonNever:     {levelWarn, "they weigh more than a rate ever gives"},
	transport.ReasonRepeated:  {levelWarn, "the same call came too often: look for a loop"},
	transport.ReasonQueueFull: {levelWarn, "too many waited already"},
	transport.ReasonDeadline:  {levelBusy, "callers allowed less time than the wait would have taken"},
	transport.ReasonRate:      {levelBusy, "no turn came within what callers may wait"},
	transport.ReasonSlots:     {levelBusy, "no slot was free within what callers may wait"},
}

// refused tells of calls that were refused lately although the provider is well.
func (v *providerView) refused() {
	var said []string
	for i, n := range v.Hour.lately {
		o, ok := others[reasonNames[i]]
		if n == 0 || !ok {
			continue
		}
		if severity[o.level] > severity[v.Level] {
			v.Level = o.level
		}
		said = append(said, fmt.Sprintf("%s (%s: %s)", count(n, "call"), reasonNames[i], o.why))
	}
	if len(said) > 0 {
		v.Say = fmt.Sprintf("Refused in the last %d minutes: %s. Others leave at once.", recent, strings.Join(said, ", "))
	}
}

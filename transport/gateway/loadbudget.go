package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// per is what a budget is kept for, beside everything.
type per string

const (
	perAll         per = ""
	perTenant      per = "tenant"
	perCaller      per = "caller"
	perDestination per = "destination"
)

// divided is a budget of which every tenant, caller or destination has one.
type divided struct {
	budget.Budget
	per per
}

// budgets reads the budgets of a section: those for everything, and those divided.
func (l *loading) budgets(s *section, owner string) (whole []budget.Budget, parts []divided) {
	s.each("budgets", "budget", func(name, value *node) {
		l.named(name, "budget")
		path := s.of("budgets." + brief(name.text))
		sub := l.section(value, path, name.place)
		b := l.budget(sub, "budget "+brief(name.text), name.text)
		kind, at := field(sub, "per", oneOf("everything", "tenant", "caller", "destination"))
		sub.done()
		if at, taken := l.file.places["budget "+name.text]; taken {
			l.errorf(name.place, "budget %s is the name of another one in line %d: every budget needs a name of its own", show(name.text), at.line)
			return
		}
		l.keep(sub, "budget "+name.text, "zone", "every", "limit")
		l.file.places["budget "+name.text] = name.place
		switch {
		case kind == "" || kind == "everything":
			whole = append(whole, b)
		case owner == "":
			l.errorf(at, "budget %s: per %s is for budgets of one provider: move it to providers.NAME.budgets", brief(name.text), kind)
		default:
			parts = append(parts, divided{b, per(kind)})
		}
	})
	return whole, parts
}

// budget reads one limit. What names it in messages.
func (l *loading) budget(s *section, what, name string) budget.Budget {
	b := budget.Budget{Name: name}
	amount := func(key string) money {
		m, _ := field(s, key, func(key, text string) (money, error) { return parseMoney(what+": "+key, text) })
		return m
	}
	limit := amount("limit")
	b.Limit, b.Unit = limit.amount, limit.unit
	switch {
	case !s.has("limit"):
		l.errorf(s.at, "%s has no limit: write limit: 50 USD, or limit: 1000 calls", what)
	case limit.unit != "" && b.Limit <= 0:
		l.errorf(s.whereIs("limit"), "%s: a limit of nothing: write an amount, or frozen: true at the provider", what)
	case b.Unit == budget.Calls && b.Limit%budget.Unit != 0:
		l.errorf(s.whereIs("limit"), "%s: calls are counted in whole numbers: write limit: 1000 calls", what)
	}
	b.Every = l.period(s, what)
	b.Zone, _ = field(s, "zone", parseZone)
	if b.Zone == nil {
		b.Zone = time.UTC
	}
	if s.has("alerts") {
		b.Alerts = append([]int{}, fields(s, "alerts", parsePercent)...)
	} else {
		s.get("alerts")
	}
	b.Keep = l.kept(s, what, b)
	mode, _ := field(s, "mode", oneOf("enforce", "monitor"))
	b.Monitor = mode == "monitor"
	return b
}

// period reads every, and when its windows begin.
func (l *loading) period(s *section, what string) budget.Period {
	text, at := field(s, "every", parseText)
	clock, clockAt := field(s, "reset_at", parseClock)
	day, dayAt := field(s, "anchor_day", wholeFrom(1, 31))
	var p budget.Period
	switch length, rolling := strings.CutPrefix(text, "rolling "); {
	case !s.has("every"):
		l.errorf(s.at, "%s has no period: write every: day, week, month, or rolling 24h", what)
	case text == "day":
		p = budget.Day
	case text == "week":
		p = budget.Week
	case text == "month":
		p = budget.Month
	case rolling:
		d, err := positive("every: rolling", length)
		if err == nil && d < time.Minute {
			err = fmt.Errorf("every: rolling %s is shorter than a minute: that is a rate", show(length))
		}
		if err == nil && d > 366*24*time.Hour {
			err = fmt.Errorf("every: rolling %s is longer than a year: write rolling 8784h at most, or month", show(length))
		}
		if err != nil {
			l.errorf(at, "%s: %s", what, err)
			return budget.Day
		}
		p = budget.Rolling(d)
	case text != "":
		hint := suggestion(text, []string{"day", "week", "month"}, map[string]string{"daily": "day", "weekly": "week", "monthly": "month", "24h": "day"})
		if hint != "" {
			hint = fmt.Sprintf("did you mean %q?", hint)
		}
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			hint = fmt.Sprintf("write rolling %s for any %s, or day for a calendar day in a zone", text, text)
		} else if rateUnits[text] == "hour" || text == "hour" || text == "hourly" {
			hint = "write rolling 1h"
		}
		l.errorf(at, "%s: every %s is no period: %s", what, show(text), cmpOr(hint, "write day, week, month, or rolling 24h"))
	}
	if s.has("reset_at") {
		if p != budget.Day && p != budget.Week && p != budget.Month {
			l.errorf(clockAt, "%s: reset_at is for days, weeks and months", what)
		} else {
			p = p.At(clock)
		}
	}
	if s.has("anchor_day") && day != 0 {
		if text != "month" {
			l.errorf(dayAt, "%s: anchor_day is the day on which months begin, and every is not month", what)
		} else {
			p = p.From(day)
		}
	}
	return p
}

// kept reads the part of a limit that is kept for critical calls.
func (l *loading) kept(s *section, what string, b budget.Budget) budget.Amount {
	sub := s.sub("keep")
	percent, at := field(sub, "critical", parsePercent)
	if percent >= 100 {
		l.errorf(at, "%s: with everything kept for critical calls no other call is ever paid for: write less than 100%%", what)
	}
	if !sub.empty && !sub.has("critical") {
		l.errorf(sub.at, "%s: keep says what for: write keep: {critical: 20%%}", what)
	}
	sub.done()
	return b.Limit / 100 * budget.Amount(percent)
}

// currencies are the units of money in which budgets are, in the order of the list.
func currencies(all []budget.Budget) []budget.Budget {
	return slices.DeleteFunc(slices.Clone(all), func(b budget.Budget) bool { return b.Unit == budget.Calls || b.Unit == "" })
}

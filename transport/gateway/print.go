package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// Print returns what is in force, presets expanded and secrets masked, for people to read.
func (f *File) Print() string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		fmt.Fprintf(&b, strings.Repeat("  ", depth)+format+"\n", args...)
	}
	line(0, "# %s, hash %s", f.Path, f.Hash)
	for _, x := range f.Listen {
		line(0, "listen %s: tls %t, token %t%s", x.Address, x.Cert != "", x.Token, ifSet(", provider ", x.Provider))
	}
	line(0, "admin %s: token %t", cmpOr(f.Admin.Address, "off"), f.Admin.TokenSHA256 != [32]byte{})
	line(0, "ledger %s%s", f.Ledger.Kind, ifSet(" ", f.Ledger.Path))
	line(0, "limiter %s", f.Limiter.Kind)
	for _, c := range f.Config.Callers {
		line(0, "caller %s: providers %s, priority %s, may set %s%s", c.Name, all(c.Providers), priorities[c.Priority], none(c.MaySet), ifSet(", tenant ", c.Tenant))
	}
	for _, x := range f.Config.Budgets {
		line(0, "budget %s", budgetLine(x))
	}
	for i := range f.Config.Providers {
		printProvider(line, &f.Config.Providers[i])
	}
	line(0, "log: level %s, format %s, calls %s", f.Log.Level, f.Log.Format, f.Log.Calls)
	line(0, "shutdown: %s", short(f.Shutdown))
	return b.String()
}

var priorities = map[throttle.Priority]string{throttle.Normal: "normal", throttle.Critical: "critical", throttle.Bulk: "bulk"}

func printProvider(line func(int, string, ...any), p *Provider) {
	line(0, "provider %s:", p.Name)
	line(1, "/%s -> %s", pathName(p), p.Upstream)
	line(1, "routes: %s", all(p.Routes))
	line(1, "credential: %s", slotName(p.Credential.Slot))
	line(1, "rates: %s", rateList(p.Rates))
	for _, s := range p.Scopes {
		rates := rateList(s.Rates)
		if s.RatesFor != nil {
			rates = "by plan"
		}
		line(1, "scope %s: rates %s%s", s.Name, rates, ifSet(", in flight ", number(s.Max)))
	}
	line(1, "max in flight: %s, max wait: %s", cmpOr(number(p.MaxInFlight), "no limit"), waitName(p.MaxWait))
	line(1, "price: %s", priceName(p.Price))
	for _, b := range p.Budgets {
		line(1, "budget %s", budgetLine(b))
	}
	if p.BudgetsFor != nil {
		line(1, "budgets by plan, tenant, caller or destination")
	}
	attempts := p.Retry.Attempts
	if attempts == 0 {
		attempts = 3
	}
	line(1, "attempts: %d%s", attempts, ifSet(", idempotency header ", p.IdempotencyHeader))
	if p.Timeouts.Response > 0 {
		line(1, "timeout of the response: %s", short(p.Timeouts.Response))
	}
	for name, set := range map[string]bool{"frozen": p.Stopped, "monitor": p.Monitor, "allow_private": p.AllowPrivate} {
		if set {
			line(1, "%s: true", name)
		}
	}
}

func ifSet(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func all(names []string) string  { return cmpOr(strings.Join(names, ", "), "all") }
func none(names []string) string { return cmpOr(strings.Join(names, ", "), "nothing") }

func pathName(p *Provider) string { return cmpOr(strings.Trim(p.Path, "/"), p.Name) }

func slotName(s Slot) string {
	kinds := []string{"none: the program's own key passes", "bearer (secret)", "basic (secret)", "header " + s.Name + " (secret)", "query " + s.Name + " (secret)"}
	return kinds[s.In]
}

func rateList(rates []throttle.Rate) string {
	var list []string
	for _, r := range rates {
		list = append(list, rateName(r))
	}
	return cmpOr(strings.Join(list, ", "), "no limit")
}

// rateName writes a rate as a file does.
func rateName(r throttle.Rate) string {
	unit := short(r.Per)
	for name, d := range periods {
		if d == r.Per {
			unit = name
		}
	}
	s := fmt.Sprintf("%d/%s", r.N, unit)
	if r.Burst > 0 {
		s += fmt.Sprintf(" burst %d", r.Burst)
	}
	if r.Strict {
		s += " strict"
	}
	return s
}

func waitName(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d == 0:
		return "20s"
	}
	return short(d)
}

func priceName(p transport.Pricer) string {
	if p == nil {
		return "none"
	}
	if p == transport.Pricer(price.Free) {
		return "free"
	}
	if u, ok := p.(interface{ Unit() string }); ok {
		return "in " + cmpOr(u.Unit(), budget.USD)
	}
	return "set"
}

func budgetLine(b budget.Budget) string {
	b = b.Normal()
	s := fmt.Sprintf("%s: %s %s per %s in %s, alerts %s", b.Name, b.Limit, b.Unit, b.Every, b.Zone, percents(b.Alerts))
	if b.Keep > 0 {
		s += fmt.Sprintf(", %s kept for critical calls", b.Keep)
	}
	if b.Monitor {
		s += ", monitor"
	}
	return s
}

func percents(all []int) string {
	var list []string
	for _, p := range slices.Sorted(slices.Values(all)) {
		list = append(list, fmt.Sprintf("%d%%", p))
	}
	return none(list)
}

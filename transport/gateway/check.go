package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

// check looks at what only the whole file shows.
func (l *loading) check() {
	l.checkNames()
	l.checkListeners()
	for _, p := range l.providers {
		l.checkMoney(p)
		l.checkWaits(p)
	}
	// From here on nothing of the file is read any more.
	t := l.tenants
	for i, p := range l.providers {
		t.apply(&l.file.Config.Providers[i], p.parts)
	}
	for name, x := range t.plans {
		for provider, a := range x {
			if l.provided(provider) == nil {
				l.errorf(a.at, "plan %s names the provider %s, which is not there%s", show(name), show(provider), maybe(suggestion(provider, l.names(), nil)))
			}
		}
	}
}

func (l *loading) names() (all []string) {
	for _, p := range l.providers {
		all = append(all, p.Name)
	}
	return all
}

func (l *loading) provided(name string) *loadedProvider {
	for _, p := range l.providers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// checkNames finds paths and callers that contradict each other.
func (l *loading) checkNames() {
	paths := map[string]place{}
	for _, p := range l.providers {
		if at, taken := paths[p.Path]; taken {
			l.errorf(p.path, "two providers share the path /%s (lines %d and %d)", p.Path, at.line, p.path.line)
			continue
		}
		paths[p.Path] = p.path
	}
	tokens := map[[32]byte]string{}
	for _, c := range l.file.Config.Callers {
		at := l.file.places["callers."+brief(c.Name)]
		if other, taken := tokens[c.TokenSHA256]; taken && c.TokenSHA256 != [32]byte{} {
			l.errorf(at, "callers %s and %s have the same token: nobody could tell them apart", other, c.Name)
		}
		tokens[c.TokenSHA256] = c.Name
		if c.TokenSHA256 == l.file.Admin.TokenSHA256 && c.TokenSHA256 != [32]byte{} {
			l.errorf(at, "caller %s has the token of admin: whoever calls could change limits", c.Name)
		}
		for _, name := range c.Providers {
			if l.provided(name) == nil {
				l.errorf(l.file.places["callers."+brief(c.Name)+".providers"], "caller %s names the provider %s, which is not there%s", c.Name, show(name), maybe(suggestion(name, l.names(), nil)))
			}
		}
	}
}

// checkListeners finds ways in that are open to others, or lead nowhere.
func (l *loading) checkListeners() {
	var keys []string
	for _, p := range l.providers {
		if p.Credential.Slot.In != InNone {
			keys = append(keys, p.Name)
		}
	}
	slices.Sort(keys)
	own := map[string]bool{}
	var addresses []string
	for _, x := range l.file.Listen {
		own[x.Provider] = true
		local := isLoopback(x.Address)
		at := l.file.places["auth "+x.Address]
		switch {
		case x.Provider != "" && l.provided(x.Provider) == nil:
			l.errorf(l.file.places["listen provider "+x.Address], "listen names the provider %s, which is not there%s", show(x.Provider), maybe(suggestion(x.Provider, l.names(), nil)))
		case slices.ContainsFunc(addresses, func(a string) bool { return overlap(a, x.Address) }):
			l.errorf(l.file.places["listen address "+x.Address], "two listeners share the address %s: give each a port of its own", x.Address)
		case overlap(x.Address, l.file.Admin.Address):
			if at = l.file.places["admin.address"]; at == (place{}) {
				at = l.file.places["listen address "+x.Address]
			}
			l.errorf(at, "listen (%s) and admin (%s) share an address: give one of them another port", x.Address, l.file.Admin.Address)
		case !local && !x.Token && len(keys) > 0:
			l.errorf(at, "%s can be reached from other machines and providers %s add our keys, but auth is none: anyone on the network could spend. Set auth: token, or listen on 127.0.0.1", x.Address, strings.Join(keys, ", "))
		case x.Token && !l.namesCallers():
			l.errorf(at, "%s asks callers for a token, and no caller has one: write callers: {NAME: {token: env:NAME}}", x.Address)
		case !local && len(l.file.Config.Hosts) == 0 && isEveryAddress(x.Address):
			l.warnf(at, "%s is every address of this machine, but a call must name one of its addresses: write hosts: [NAME] if programs use a name, such as that of a container", x.Address)
		}
		addresses = append(addresses, x.Address)
	}
	for _, p := range l.providers {
		if p.preset != nil && p.preset.ownListener != "" && !own[p.Name] {
			l.warnf(p.named, "%s: SDKs for %s drop a path prefix; add a listener with provider: %s", p.Name, p.preset.ownListener, p.Name)
		}
	}
}

// namesCallers reports whether the file has callers that need a token. Whether they have a
// good one was told where they stand.
func (l *loading) namesCallers() bool {
	n := l.top.node.find("callers")
	switch {
	case n == nil || n.form == absent:
		return false
	case n.form != table:
		return true
	}
	return slices.ContainsFunc(n.keys, func(e entry) bool { return e.key.text != localName })
}

// overlap reports whether only one of two addresses can be listened on.
func overlap(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	ip := func(host string) netip.Addr {
		if host == "localhost" {
			host = "127.0.0.1"
		}
		addr, _ := netip.ParseAddr(host) // checked before
		return addr.Unmap()
	}
	return ip(hostA) == ip(hostB) || ip(hostA).IsUnspecified() || ip(hostB).IsUnspecified()
}

// checkMoney finds budgets that nothing can be paid from.
func (l *loading) checkMoney(p *loadedProvider) {
	all := currencies(slices.Concat(p.Budgets, l.file.Config.Budgets))
	for _, part := range p.parts {
		l.file.divided = append(l.file.divided, part.Budget)
		l.file.owners[part.Name] = p.Name
		all = append(all, currencies([]budget.Budget{part.Budget})...)
	}
	for _, x := range l.tenants.plans {
		if b := x[p.Name].budget; b != nil {
			all = append(all, currencies([]budget.Budget{*b})...)
		}
	}
	if p.has("preset") && p.preset == nil {
		return
	}
	if len(all) == 0 {
		if p.pricing != nil && p.Price != nil && p.Price != transport.Pricer(price.Free) {
			l.warnf(p.keyAt("price"), "%s has a price and no budget: nothing limits what it spends. Write budgets: {%s-day: {limit: 50 USD, every: day}}", p.Name, p.Name)
		}
		return
	}
	if p.Price == nil {
		if p.pricing == nil {
			l.errorf(p.named, "budget %s is in money, and %s has no price: write price: %s", cmpOr(all[0].Name, "of a plan"), p.Name, priceHint(p.preset))
		}
		return
	}
	unit := budget.USD
	if u, ok := p.Price.(interface{ Unit() string }); ok {
		unit = cmpOr(u.Unit(), budget.USD)
	}
	if p.Price != transport.Pricer(price.Free) {
		for _, b := range all {
			if b.Unit != unit {
				l.errorf(l.budgetPlace(b, p), "budget %s is in %s but provider %s is priced in %s: one currency per budget", cmpOr(b.Name, "of a plan"), b.Unit, p.Name, unit)
			}
		}
	}
	if x := p.pricing; x != nil && x.kind == perToken && !x.written {
		l.warnf(l.budgetPlace(all[0], p), "budget %s is armed and only %s has a price: calls for any other model will be refused as unpriced. Add them to price.models, or set unpriced", cmpOr(all[0].Name, "of a plan"), strings.Join(x.models, ", "))
	}
}

func (l *loading) budgetPlace(b budget.Budget, p *loadedProvider) place {
	if at, ok := l.file.places["budget "+b.Name]; ok && b.Name != "" {
		return at
	}
	return p.named
}

// priceHint shows how a vendor's price is written.
func priceHint(p *preset) string {
	kind := perCall
	if p != nil {
		kind = p.per
	}
	switch kind {
	case perSegment:
		return `{per: sms_segment, table: {"+1": 0.0083 USD, default: refuse}}`
	case perToken:
		return "{per: token, models: {NAME: {input: 0.15 USD per 1M, output: 0.60 USD per 1M}}}"
	case perCall, "":
		return "0.005 USD, or price: free"
	}
	return "{per: " + kind + ", amount: 0.001 USD}"
}

func (l *loading) checkWaits(p *loadedProvider) {
	if x := p.preset; x != nil && x.sdkWait > 0 && p.MaxWait >= x.sdkWait {
		l.warnf(p.whereIs("max_wait"), "max_wait %s is longer than %s waits (%s): callers would leave while queued", short(p.MaxWait), x.sdk, short(x.sdkWait))
	}
	if wait := cmp.Or(p.MaxWait, defaultMaxWait); wait > 0 && p.Retry.MaxRetryAfter > wait {
		l.warnf(p.whereIs("retry"), "max_retry_after %s is longer than max_wait (%s), which bounds all waiting", short(p.Retry.MaxRetryAfter), short(wait))
	}
}

// short writes a duration without zero parts: 45s, 10m.
func short(d fmt.Stringer) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Restart lists what differs between a running configuration and a new file that cannot be
// changed while the gateway runs. If there is anything, nothing of the new file may be
// applied.
func (f *File) Restart(running *File) []Problem {
	r := &reader{file: f.Path}
	changed := func(key, was, is string) {
		if was != is {
			r.errorf(f.places[key], "%s changed%s: this needs a restart; nothing of the new file was applied", key, from(was))
		}
	}
	changed("ledger.kind", running.Ledger.Kind, f.Ledger.Kind)
	changed("ledger.path", running.Ledger.Path, f.Ledger.Path)
	changed("limiter.kind", running.Limiter.Kind, f.Limiter.Kind)
	changed("limiter.on_unavailable", fmt.Sprint(running.Limiter.Fallback), fmt.Sprint(f.Limiter.Fallback))
	for _, x := range []struct {
		key     string
		was, is any
	}{{"redis", running.Redis, f.Redis}, {"admin", running.Admin, f.Admin}} {
		if x.was != x.is {
			changed(x.key, "", "changed")
		}
	}
	if !slices.Equal(running.Listen, f.Listen) {
		changed("listen", "", "changed")
	}
	was, is := running.allBudgets(), f.allBudgets()
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if old, ok := was[name]; ok {
			f.tellChanges(r, is[name], old, "; nothing of the new file was applied")
		}
	}
	return r.sorted()
}

func from(was string) string {
	if was == "" {
		return ""
	}
	return " from " + was
}

// Budgets are the budgets that the file names, also those of which every tenant, caller or
// destination has one, by their names.
func (f *File) Budgets() map[string]budget.Budget { return f.allBudgets() }

// allBudgets are the budgets by name, also the divided ones.
func (f *File) allBudgets() map[string]budget.Budget {
	all := map[string]budget.Budget{}
	for _, b := range f.Config.Budgets {
		all[b.Name] = b
	}
	for _, p := range f.Config.Providers {
		for _, b := range p.Budgets {
			all[b.Name] = b
		}
	}
	for _, part := range f.divided {
		all[part.Name] = part
	}
	return all
}

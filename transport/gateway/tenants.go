package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

type rate = throttle.Rate

var errNoMatch = errors.New("no such match")

// tenants are the user's own customers, and what their plans allow.
type tenants struct {
	fallback string            // the plan of tenants that are not members; may be empty
	members  map[string]string // tenant to plan
	plans    map[string]plan
}

// plan is what one plan allows at each provider.
type plan map[string]allowance

type allowance struct {
	rates  []throttle.Rate
	budget *budget.Budget
	at     place
}

// planOf returns the plan of a tenant. Calls without a tenant have the plan of those that
// are not members: leaving the name out is no way around it.
func (t *tenants) planOf(tenant string) plan {
	name, ok := t.members[tenant]
	if !ok {
		name = t.fallback
	}
	return t.plans[name]
}

// readTenants reads the tenants and their plans.
func (l *loading) readTenants() {
	s := l.top.sub("tenants")
	from, at := field(s, "from", parseText)
	kind, name := cutWord(from)
	switch {
	case from == "" || from == "caller":
	case kind == "header" && isToken(name) && (unfitHeader(name) != "" || isTrace(http.CanonicalHeaderKey(name)) || slices.Contains(keyHeaders, http.CanonicalHeaderKey(name)) || strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie") || strings.HasPrefix(http.CanonicalHeaderKey(name), "Content-")):
		l.errorf(at, "tenants.from: %s cannot name a tenant: write a header of your own, such as header Outlay-Tenant", show(name))
	case kind == "header" && isToken(name):
		l.file.Config.TenantHeader = http.CanonicalHeaderKey(name)
	default:
		l.errorf(at, "tenants.from %s: write caller, or header Outlay-Tenant", show(from))
	}
	t := &l.tenants
	t.members, t.plans = map[string]string{}, map[string]plan{}
	p := s.sub("plans")
	for _, e := range p.node.keys {
		p.get(e.key.text)
		l.named(e.key, "plan")
		t.plans[e.key.text] = l.plan(e.key, e.value)
	}
	known := func(n *node, what string) bool {
		if !l.isScalar(n, what) {
			return false
		}
		if _, ok := t.plans[n.text]; !ok {
			l.errorf(n.place, "%s names the plan %s, which is not in tenants.plans%s", what, show(n.text), maybe(suggestion(n.text, planNames(t), nil)))
			return false
		}
		return true
	}
	if n := s.get("default"); n != nil && known(n, "tenants.default") {
		t.fallback = n.text
	}
	s.each("members", "tenant", func(name, value *node) {
		if known(value, "tenants.members") {
			t.members[name.text] = value.text
		}
	})
	if !s.empty && len(t.plans) > 0 && t.fallback == "" && !s.has("default") {
		l.warnf(s.at, "tenants has no default plan: who is no member, or names no tenant, is limited by no plan")
	}
	s.done()
}

func maybe(hint string) string {
	if hint == "" {
		return ""
	}
	return ": did you mean \"" + hint + "\"?"
}

func planNames(t *tenants) (names []string) {
	for name := range t.plans {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// plan reads what a plan allows at each provider.
func (l *loading) plan(name, value *node) plan {
	out := plan{}
	s := l.section(value, "tenants.plans."+brief(name.text), name.place)
	for _, e := range s.node.keys {
		s.get(e.key.text)
		sub := l.section(e.value, s.of(brief(e.key.text)), e.key.place)
		a := allowance{at: e.key.place, rates: fields(sub, "rates", parseRate)}
		if n := sub.get("budget"); n != nil {
			inner := l.section(n, sub.of("budget"), sub.keyAt("budget"))
			b := l.budget(inner, "the budget of plan "+brief(name.text), "")
			inner.done()
			a.budget = &b
		}
		if len(a.rates) == 0 && a.budget == nil {
			l.errorf(sub.at, "plan %s allows nothing special at %s: write rates or budget", show(name.text), show(e.key.text))
		}
		sub.done()
		out[e.key.text] = a
	}
	return out
}

// apply puts plans and divided budgets into a provider.
func (t *tenants) apply(p *Provider, parts []divided) {
	limited, paid := false, false
	for _, x := range t.plans {
		a, ok := x[p.Name]
		limited = limited || ok && len(a.rates) > 0
		paid = paid || ok && a.budget != nil
	}
	if limited {
		// It is never the last: a throttle that names no scope concerns more than a tenant.
		scopes := []transport.Scope{{Name: "plan", Key: keyOfTenant, RatesFor: func(key string) []throttle.Rate {
			return t.planOf(tenantOfKey(key))[p.Name].rates
		}}}
		if len(p.Scopes) == 0 {
			scopes = append(scopes, transport.Scope{Name: "account"})
		}
		p.Scopes = append(scopes, p.Scopes...)
	}
	if !paid && len(parts) == 0 {
		return
	}
	name := p.Name
	p.BudgetsFor = func(r *http.Request, q budget.Quote) []budget.Budget {
		id := identityOf(r.Context())
		var all []budget.Budget
		if a := t.planOf(id.tenant)[name]; a.budget != nil {
			b := *a.budget
			b.Name, b.Label = strings.Join([]string{"tenant", id.tenant, b.Every.String(), b.Zone.String(), b.Unit}, ":"), planLabel(name)
			all = append(all, b)
		}
		for _, part := range parts {
			key := map[per]string{perTenant: id.tenant, perCaller: id.caller, perDestination: q.Destination}[part.per]
			b := part.Budget
			b.Name, b.Label = b.Name+":"+key, b.Name
			all = append(all, b)
		}
		return all
	}
}

// planLabel is what people read of the budget of a tenant's plan.
func planLabel(provider string) string { return provider + "-tenant" }

// keyOfTenant is never empty: who names no tenant is one too.
func keyOfTenant(r *http.Request) string { return "t:" + TenantOf(r) }

func tenantOfKey(key string) string { return key[len("t:"):] }

func cutWord(s string) (first, rest string) {
	for i, c := range s {
		if c == ' ' {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

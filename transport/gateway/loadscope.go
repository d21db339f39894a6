package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

func textError(format string, args ...any) error { return fmt.Errorf(format, args...) }

// routes reads patterns that do not contradict each other.
func (l *loading) routes(nodes []*node) (all []string) {
	mux := http.NewServeMux()
	for _, n := range nodes {
		if !l.isScalar(n, "routes") {
			continue
		}
		route, err := parseRoute("route", n.text)
		switch {
		case err != nil:
			l.errorf(n.place, "%s", err)
		case register(mux, route) != nil:
			l.errorf(n.place, "route %s is there already, or overlaps another one so that neither is the narrower: remove one", show(route))
		default:
			all = append(all, route)
		}
	}
	return all
}

// scopes reads the parts of a provider that have limits of their own. Those of the preset
// that are not named stay, and stand last: a throttle that names no scope concerns the last.
func (l *loading) scopes(p *loadedProvider) {
	n := p.get("scopes")
	if n == nil {
		return
	}
	if n.form != list {
		l.errorf(n.place, "%s must be a list: write - {by: form From, rates: [1/s]}", p.of("scopes"))
		return
	}
	var own []transport.Scope
	for _, item := range n.items {
		s := l.section(item, p.of("scopes"), item.place)
		if scope, ok := l.scope(s, p); ok && slices.ContainsFunc(own, func(o transport.Scope) bool { return o.Name == scope.Name }) {
			l.errorf(s.whereIs("by"), "scope %s is there twice: write all its rates in one", show(scope.Name))
		} else if ok {
			own = append(own, scope)
		}
		s.done()
	}
	preset := slices.DeleteFunc(slices.Clone(p.Scopes), func(s transport.Scope) bool {
		return slices.ContainsFunc(own, func(o transport.Scope) bool { return o.Name == s.Name })
	})
	p.Scopes = append(own, preset...)
}

// scope reads one scope.
func (l *loading) scope(s *section, p *loadedProvider) (out transport.Scope, ok bool) {
	by, at := field(s, "by", parseText)
	rates := fields(s, "rates", parseRate)
	slots, _ := field(s, "max", wholeFrom(1, 1_000_000))
	weight, weightAt := field(s, "weight", oneOf("units"))
	i := slices.IndexFunc(p.Scopes, func(x transport.Scope) bool { return x.Name == by })
	switch {
	case by == "":
		l.errorf(s.at, "a scope does not say by what: write {by: form From, rates: [1/s]}")
		return out, false
	case i >= 0:
		out = p.Scopes[i]
	default:
		key, query, err := matchOf(by)
		if err != nil {
			l.errorf(at, "%s", l.unknownScope(by, p))
			return out, false
		}
		if query != "" {
			p.QueryKeys = append(slices.Clone(p.QueryKeys), query)
		}
		if kind, name, _ := strings.Cut(by, " "); kind == "header" {
			l.scopeHeader(name, at, p)
		}
		out = transport.Scope{Name: by, Key: key}
	}
	if s.has("rates") {
		out.Rates = rates
	}
	if out.Max = slots; len(out.Rates) == 0 && slots == 0 {
		l.errorf(s.at, "scope %s has neither rates nor max: it would limit nothing", show(by))
	}
	if out.Units = weight == "units"; out.Units && slices.ContainsFunc(out.Rates, func(r rate) bool { return r.Burst == 0 && !r.Strict }) {
		l.errorf(weightAt, "scope %s counts units such as tokens: its rates need a burst of at least one call's units, such as 90000/min burst 90000", show(by))
	}
	return out, true
}

// scopeHeader checks the header that tells the keys of a scope apart.
func (l *loading) scopeHeader(name string, at place, p *loadedProvider) {
	name = http.CanonicalHeaderKey(name)
	p.HeaderKeys = append(slices.Clone(p.HeaderKeys), name)
	switch why := unfitHeader(name); {
	case name == cmp.Or(l.file.Config.TenantHeader, "Outlay-Tenant"):
		l.errorf(at, "scope by: header %s names the tenant: write by: tenant", name)
	case isOutlay(name):
		l.errorf(at, "scope by: header %s is a header of the gateway: write by: caller or by: tenant", name)
	case why != "" || isTrace(name):
		l.errorf(at, "scope by: header %s: %s: name a header of the programs' own", name, cmp.Or(why, "it is removed before the call is counted"))
	case p.Credential.Slot.In != InNone && (name == "Authorization" || name == "Cookie" || slices.Contains(keyHeaders, name) || strings.EqualFold(name, p.Credential.Slot.Name)):
		l.errorf(at, "scope by: header %s: it holds the key of the gateway, the same for all: write by: caller", name)
	}
}

func (l *loading) unknownScope(by string, p *loadedProvider) string {
	var names []string
	for _, x := range p.Scopes {
		names = append(names, x.Name)
	}
	hint := ""
	if len(names) > 0 {
		hint = ", or a scope of the preset: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("scope by %s: write form NAME, json NAME, query NAME, header NAME, caller or tenant%s", show(by), hint)
}

// matchOf reads what tells the keys of a scope apart. Query is the parameter that it reads.
func matchOf(by string) (key func(*http.Request) string, query string, err error) {
	kind, name, _ := strings.Cut(by, " ")
	switch {
	case by == "caller":
		return func(r *http.Request) string { return identityOf(r.Context()).caller }, "", nil
	case by == "tenant":
		return orMissing(TenantOf), "", nil
	case name == "" || strings.ContainsAny(name, " \t"):
	case kind == "form" || kind == "json":
		return provider.Field(name), "", nil
	case kind == "header" && isToken(name):
		return orMissing(func(r *http.Request) string { return r.Header.Get(name) }), "", nil
	case kind == "query":
		return orMissing(func(r *http.Request) string { return r.URL.Query().Get(name) }), name, nil
	}
	return nil, "", errNoMatch
}

// orMissing lets all calls that leave a header or a parameter out share one scope: leaving it
// out is no way around the limit. Fields of bodies are no matter of every call, so that those
// without them have no such scope.
func orMissing(key func(*http.Request) string) func(*http.Request) string {
	return func(r *http.Request) string {
		if k := key(r); k != "" {
			return k
		}
		return "\x1d" // no header can hold it
	}
}

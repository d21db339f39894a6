package transport

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport/dialect"
)

// FieldError says what is wrong with one field of a [Config].
type FieldError struct {
	// Path names the field, such as "Providers[1].Rates[0].N".
	Path string
	Err  error
}

// Error is "path: what is wrong".
func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

// checker collects what is wrong with a configuration.
type checker struct{ errs []error }

func (k *checker) add(path string, err error) {
	if err != nil {
		k.errs = append(k.errs, &FieldError{path, err})
	}
}

func (k *checker) addf(path, format string, args ...any) { k.add(path, fmt.Errorf(format, args...)) }

func (k *checker) err() error {
	if len(k.errs) == 0 {
		return nil
	}
	return fmt.Errorf("transport: configuration: %w", errors.Join(k.errs...))
}

// notTypedNil reports a nil pointer in an interface: it would be called, and panic.
func (k *checker) notTypedNil(path string, v any) {
	if isTypedNil(v) {
		k.addf(path, "a nil %T; leave the field nil instead", v)
	}
}

func isTypedNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return false
}

// unusable stands for a price that is reported as wrong.
type unusable struct{}

func (unusable) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{}, budget.ErrUnpriced
}

// compile validates c and fills in its defaults. Providers keep the state that a
// provider of the same name has in old.
func compile(c Config, old *setup) (*setup, error) {
	k := new(checker)
	k.notTypedNil("Base", c.Base)
	k.notTypedNil("Ledger", c.Ledger)
	k.notTypedNil("Limiter", c.Limiter)
	if err := k.err(); err != nil {
		return nil, err // the rest would use them
	}
	k.duration("MaxWait", c.MaxWait, true)
	if c.Unmatched > RefuseAll {
		k.addf("Unmatched", "unknown value %d", c.Unmatched)
	}
	global := k.budgets("Budgets", c.Budgets, "all")
	set := &setup{unmatched: c.Unmatched}
	names := map[string]int{}
	for i := range c.Providers {
		path := fmt.Sprintf("Providers[%d]", i)
		p := k.provider(path, c, c.Providers[i], global)
		if j, taken := names[p.Name]; taken && p.Name != "" {
			k.addf(path+".Name", "%q is the name of Providers[%d] as well", p.Name, j)
		}
		names[p.Name] = i
		p.state = old.stateOf(p.Name)
		set.providers = append(set.providers, p)
	}
	k.identities(set.providers, global)
	set.routes = buildRoutes(set.providers, k.add)
	return set, k.err()
}

func (s *setup) stateOf(name string) *providerState {
	if p := s.named(name); p != nil {
		return p.state
	}
	return new(providerState)
}

// named is the provider of a name, or nil.
func (s *setup) named(name string) *provider {
	if s == nil {
		return nil
	}
	for _, p := range s.providers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (k *checker) provider(path string, c Config, in Provider, global []budget.Budget) *provider {
	p := &provider{Provider: in}
	k.notTypedNil(path+".Dialect", in.Dialect)
	if k.notTypedNil(path+".Price", in.Price); isTypedNil(in.Price) {
		p.Price = unusable{} // it is reported; the checks below need a price
	}
	p.Match, p.Rates, p.Scopes = slices.Clone(in.Match), slices.Clone(in.Rates), slices.Clone(in.Scopes)
	p.Retry.NotTaken = slices.Clone(in.Retry.NotTaken)
	k.name(path+".Name", p.Name)
	if len(p.Match) == 0 {
		k.addf(path+".Match", "empty: nothing belongs to this provider; write a host such as api.example.com")
	}
	k.rates(path+".Rates", p.Rates)
	k.slots(path+".MaxInFlight", p.MaxInFlight)
	k.scopes(path, p)
	k.duration(path+".MaxWait", p.MaxWait, true)
	k.retry(path+".Retry", &p.Retry)
	k.repeat(path+".Repeat", p.Repeat)
	k.header(path+".IdempotencyHeader", p.IdempotencyHeader)
	p.IdempotencyHeader = http.CanonicalHeaderKey(p.IdempotencyHeader)
	p.budgets = slices.Concat(k.budgets(path+".Budgets", in.Budgets, p.Name), global)
	k.money(path, c, p)

	if p.dialect = in.Dialect; p.dialect == nil {
		p.dialect = dialect.Standard{}
	}
	p.metered, _ = p.Price.(Metered)
	for _, d := range []time.Duration{in.MaxWait, c.MaxWait, defaultMaxWait} {
		if d != 0 {
			p.maxWait = d
			break
		}
	}
	if in.MaxWait == 0 && c.MaxWait == 0 && p.Retry.MaxRetryAfter > defaultMaxWait {
		k.addf(path+".Retry.MaxRetryAfter", "%v: MaxWait bounds all waiting, and is %v unless it is set: set it as well", p.Retry.MaxRetryAfter, defaultMaxWait)
	}
	if len(p.Scopes) == 0 && p.Weight == nil {
		p.plain = []throttle.Leg{{Key: p.Name, Rates: p.Rates, Slots: p.MaxInFlight}}
	}
	if p.keyed, _ = c.Ledger.(budget.Keyed); p.keyed == nil && p.BudgetsFor != nil && c.Ledger != nil {
		k.addf(path+".BudgetsFor", "names from requests are stored as keyed hashes, and the ledger (%T) is no budget.Keyed", c.Ledger)
	}
	p.asks = p.plain == nil || p.BudgetsFor != nil || p.Priority != nil || p.Tenant != nil || p.Repeat.Max > 0 || !isConstant(p.Price)
	p.slots = p.MaxInFlight > 0 || slices.ContainsFunc(p.Scopes, func(s Scope) bool { return s.Max > 0 })
	return p
}

func (k *checker) name(path, name string) {
	switch {
	case name == "":
		k.addf(path, "empty: a name is required")
	case len(name) > 100:
		k.addf(path, "longer than 100 bytes")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		k.addf(path, "%q: only printable characters are allowed", name)
	}
}

func (k *checker) rates(path string, rates []throttle.Rate) {
	for i, r := range rates {
		k.add(fmt.Sprintf("%s[%d]", path, i), r.Validate())
	}
}

func (k *checker) scopes(path string, p *provider) {
	seen := map[string]bool{}
	for i, s := range p.Scopes {
		at := fmt.Sprintf("%s.Scopes[%d]", path, i)
		k.name(at+".Name", s.Name)
		if seen[s.Name] {
			k.addf(at+".Name", "%q is taken", s.Name)
		}
		seen[s.Name] = true
		p.Scopes[i].Rates = slices.Clone(s.Rates)
		k.rates(at+".Rates", s.Rates)
		k.slots(at+".Max", s.Max)
	}
	if len(p.Scopes) > maxScopes {
		k.addf(path+".Scopes", "%d of them: at most %d are possible", len(p.Scopes), maxScopes)
	}
}

// maxScopes is what a call may need at once, beside the provider itself.
const maxScopes = 31

func (k *checker) slots(path string, n int) {
	if n < 0 || n > math.MaxInt32 {
		k.addf(path, "%d: must be from 1 to %d; zero means no bound", n, math.MaxInt32)
	}
}

func (k *checker) duration(path string, d time.Duration, noWait bool) {
	if d < 0 && !(noWait && d == NoWait) {
		k.addf(path, "%v: must not be negative", d)
	}
}

func (k *checker) retry(path string, r *Retry) {
	if r.Attempts < 0 || r.Attempts > 100 {
		k.addf(path+".Attempts", "%d: must be from 1 to 100, or zero for 3", r.Attempts)
	}
	k.duration(path+".MaxRetryAfter", r.MaxRetryAfter, false)
	k.duration(path+".Backoff", r.Backoff, false)
	if r.Backoff > backoffCeiling {
		k.addf(path+".Backoff", "%v: must not be above %v", r.Backoff, backoffCeiling)
	}
	if r.Share < 0 || r.Share > 100 {
		k.addf(path+".Share", "%d: must be a percentage from 1 to 100, or zero for 20", r.Share)
	}
	for i, s := range r.NotTaken {
		if s < 400 || s > 599 {
			k.addf(fmt.Sprintf("%s.NotTaken[%d]", path, i), "%d: must be an error status, 400 to 599", s)
		}
	}
	if r.Unknown > ReplayAll {
		k.addf(path+".Unknown", "unknown value %d", r.Unknown)
	}
	if r.Attempts == 0 {
		r.Attempts = 3
	}
	if r.Backoff == 0 {
		r.Backoff = 500 * time.Millisecond
	}
	if r.Share == 0 {
		r.Share = 20
	}
}

func (k *checker) repeat(path string, r Repeat) {
	if r.Max < 0 || r.Max > 1000 {
		k.addf(path+".Max", "%d: must be from 1 to 1000, or zero for no guard", r.Max)
	}
	if r.Max > 0 && r.Per <= 0 {
		k.addf(path+".Per", "%v: must be more than zero", r.Per)
	}
}

// header checks a field name (RFC 9110, section 5.6.2).
func (k *checker) header(path, name string) {
	for _, r := range name {
		if r > unicode.MaxASCII || !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			k.addf(path, "%q is no header name", name)
			return
		}
	}
}

func (k *checker) budgets(path string, in []budget.Budget, owner string) []budget.Budget {
	out := make([]budget.Budget, 0, len(in))
	seen := map[string]bool{}
	for i, b := range in {
		at := fmt.Sprintf("%s[%d]", path, i)
		b = namedBudget(b, owner)
		b.Alerts = slices.Clone(b.Alerts)
		k.add(at, b.Validate())
		k.name(at+".Name", b.Name)
		if seen[b.Name] {
			k.addf(at+".Name", "%q is taken: give one of them a Name", b.Name)
		}
		seen[b.Name] = true
		out = append(out, b)
	}
	return out
}

// money checks that a call can be paid for: a ledger and a price where a budget applies,
// in one currency.
func (k *checker) money(path string, c Config, p *provider) {
	if (len(p.budgets) > 0 || p.BudgetsFor != nil) && c.Ledger == nil {
		k.addf("Ledger", "nil, while %s has budgets; use new(budget.Memory) or a durable ledger", path)
	}
	if p.Price == nil {
		if p.spendsMoney() {
			k.addf(path+".Price", "nil, while a money budget applies; give a price (price.PerCall, price.Free, ...)")
		}
		return
	}
	if v, ok := p.Price.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			k.addf(path+".Price", "%v", err)
		}
	}
	u, ok := p.Price.(interface{ Unit() string })
	if !ok {
		return
	}
	unit := u.Unit()
	if unit == "" {
		unit = "USD"
	}
	for _, b := range p.budgets {
		if b.Unit != budget.Calls && b.Unit != unit {
			k.addf(path+".Price", "is in %s, but budget %q is in %s", unit, b.Name, b.Unit)
		}
	}
}

// identities checks that one budget name means one budget, and that one label does: pages
// and metrics know nothing else of it. The last ones of each provider are those of all; a
// name that is twice in one list is told already.
func (k *checker) identities(ps []*provider, global []budget.Budget) {
	first, labels := map[string]budget.Budget{}, map[string]string{}
	for i, p := range ps {
		path := fmt.Sprintf("Providers[%d].Budgets", i)
		own, seen := p.budgets[:len(p.budgets)-len(global)], map[string]bool{}
		for _, b := range slices.Backward(p.budgets) {
			if seen[b.Name] {
				continue
			}
			seen[b.Name] = true
			if hasName(own, b.Name) && hasName(global, b.Name) {
				k.addf(path, "%q is the name of a budget of all providers as well", b.Name)
			}
			if was, ok := first[b.Name]; ok && !sameBudget(was, b) {
				k.addf(path, "budget %q differs from another of that name: one name is one unit, period, zone and limit", b.Name)
			}
			first[b.Name] = b
			label := cmp.Or(b.Label, b.Name)
			if of, taken := labels[label]; taken && of != b.Name {
				k.addf(path, "budgets %q and %q are both shown as %q: give one of them another Label", of, b.Name, label)
			}
			labels[label] = b.Name
		}
	}
}

func hasName(all []budget.Budget, name string) bool {
	return slices.ContainsFunc(all, func(b budget.Budget) bool { return b.Name == name })
}

func sameBudget(a, b budget.Budget) bool {
	return a.Unit == b.Unit && a.Every == b.Every && zoneName(a.Zone) == zoneName(b.Zone) && a.Limit == b.Limit && a.Keep == b.Keep
}

func zoneName(z *time.Location) string {
	if z == nil {
		return "UTC"
	}
	return z.String()
}

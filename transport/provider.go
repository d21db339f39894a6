package transport

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport/dialect"
)

// provider is a compiled [Provider]: defaults filled in, and what can be known before a
// request is there.
type provider struct {
	Provider
	dialect dialect.Dialect
	metered Metered
	maxWait time.Duration
	// budgets are the provider's own and those of all providers, with their names.
	budgets []budget.Budget
	// plain are the legs of a call when no request changes them; they are only read.
	plain []throttle.Leg
	slots bool // some leg counts calls in flight
	// asks: functions are asked before the wait for a turn, which may take their time.
	asks bool
	// keyed has the key that hides the names that requests give to budgets: asked for each
	// time, for a ledger that was made while its books were lost finds the old one again.
	keyed budget.Keyed
	state *providerState
	// next is the provider of the same name in the configuration that came after.
	next atomic.Pointer[provider]
}

// providerState outlives a change of the configuration.
type providerState struct {
	exhausted exhausted
	looks     looks
	share     retryShare
	backoffs  scopeBackoffs
	keys      seenKeys
	frozen    frozenCache
	repeats   repeats
}

// order says where in the queue a call stands.
func (p *provider) order(ctx context.Context, req *http.Request) (throttle.Priority, string) {
	prio, _ := ctx.Value(priorityKey{}).(throttle.Priority)
	tenant, _ := ctx.Value(tenantKey{}).(string)
	if p.Priority != nil {
		prio = p.Priority(req)
	}
	if p.Tenant != nil {
		tenant = p.Tenant(req)
	}
	return prio, shortKey(tenant)
}

func (p *provider) maxWaitFor(ctx context.Context) time.Duration {
	if d, ok := ctx.Value(maxWaitKey{}).(time.Duration); ok {
		if d < 0 {
			return NoWait
		}
		return d
	}
	return p.maxWait
}

func (p *provider) maxRetryAfter() time.Duration {
	if p.Retry.MaxRetryAfter == 0 {
		return 1<<63 - 1 // what is left of MaxWait decides
	}
	return p.Retry.MaxRetryAfter
}

// legsFor returns the legs of a call: the provider, then its scopes in their order.
func (p *provider) legsFor(req *http.Request, q budget.Quote) []throttle.Leg {
	if p.plain != nil {
		return p.plain
	}
	legs := make([]throttle.Leg, 1, 1+len(p.Scopes))
	legs[0] = throttle.Leg{Key: p.Name, Rates: p.Rates, Weight: weigh(p.Weight, req), Slots: p.MaxInFlight}
	for i := range p.Scopes {
		s := &p.Scopes[i]
		key := ""
		if s.Key != nil {
			if key = s.Key(req); key == "" {
				continue
			}
		}
		legs = append(legs, throttle.Leg{Key: p.scopePrefix(s.Name) + shortKey(key), Rates: s.ratesOf(key), Weight: s.weight(req, q), Slots: s.Max})
	}
	return legs
}

func (s *Scope) ratesOf(key string) []throttle.Rate {
	if s.RatesFor != nil {
		if r := s.RatesFor(key); r != nil {
			return r
		}
	}
	return s.Rates
}

// legOf returns the leg of a scope by its key in the limiter. It is not known which plan a
// key has that was too long to keep.
func (p *provider) legOf(key string) (l throttle.Leg, known bool) {
	l.Key = key
	name, rest, ok := p.splitKey(key)
	for i := range p.Scopes {
		if s := &p.Scopes[i]; ok && s.Name == name {
			if s.RatesFor != nil && strings.HasPrefix(rest, shortened) {
				return l, false
			}
			l.Rates, l.Slots = s.ratesOf(rest), s.Max
		}
	}
	return l, ok
}

func (s *Scope) weight(req *http.Request, q budget.Quote) int {
	if s.Units {
		return int(min(max(1, q.Units), math.MaxInt32))
	}
	return weigh(s.Weight, req)
}

// scopePrefix begins the keys of a scope. Names hold no control characters, so that no
// key of a request can be taken for another scope.
func (p *provider) scopePrefix(scope string) string { return p.Name + "\x1f" + scope + "\x1f" }

func (p *provider) keyOfScope(legs []throttle.Leg, name string) (string, bool) {
	if name == "" {
		return "", false
	}
	prefix := p.scopePrefix(name)
	for _, l := range legs[1:] {
		if strings.HasPrefix(l.Key, prefix) {
			return l.Key, true
		}
	}
	return "", false
}

// shortened begins the keys that stand for longer ones.
const shortened = "\x1e"

// shortKey bounds what a key taken from a request may cost in memory.
func shortKey(key string) string {
	const most = 96
	if len(key) <= most {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return shortened + hex.EncodeToString(sum[:])
}

func weigh(f func(*http.Request) int, req *http.Request) int {
	if f == nil {
		return 1
	}
	return max(1, f(req))
}

// errPricer hides the text of an error that a pricer of the user returned: it may hold
// parts of the request.
type errPricer struct {
	provider string
	err      error
}

func (e *errPricer) Error() string {
	if errors.Is(e.err, budget.ErrUnpriced) {
		return e.provider + ": " + e.err.Error()
	}
	return e.provider + ": " + budget.ErrUnpriced.Error() + ": the pricer failed"
}

func (e *errPricer) Unwrap() []error { return []error{budget.ErrUnpriced, e.err} }

// isConstant reports whether a price is one that looks at nothing. Its package is not
// imported here; to take a price for another kind costs a reading of the clock.
func isConstant(p Pricer) bool {
	t := reflect.TypeOf(p)
	return t == nil || t.PkgPath() == "github.com/outlay-go/outlay/budget/price" && (t.Name() == "Fixed" || t.Name() == "FreeOfCharge")
}

// quote prices one attempt. Without a money budget an unknown price refuses nothing.
func (p *provider) quote(req *http.Request) (budget.Quote, error) {
	if p.Price == nil {
		return budget.Quote{Unit: "USD", Assumed: true}, nil
	}
	q, err := p.Price.Quote(req)
	if q.Unit == "" {
		q.Unit = "USD"
	}
	switch {
	case err != nil && !p.spendsMoney():
		return budget.Quote{Unit: q.Unit, Assumed: true}, nil
	case err != nil:
		return budget.Quote{Unit: q.Unit, Assumed: true}, &errPricer{p.Name, err}
	case q.Amount < 0:
		return budget.Quote{Unit: q.Unit, Assumed: true}, fmt.Errorf("%s: %w: negative price", p.Name, budget.ErrUnpriced)
	}
	return q, nil
}

// spendsMoney reports whether a money budget may apply to a call.
func (p *provider) spendsMoney() bool {
	if p.BudgetsFor != nil {
		return true
	}
	for _, b := range p.budgets {
		if b.Unit != budget.Calls {
			return true
		}
	}
	return false
}

// budgetLegs returns what each budget pays for an attempt with quote q.
func (p *provider) budgetLegs(buf []budget.Leg, req *http.Request, q budget.Quote) ([]budget.Leg, error) {
	legs := buf
	for _, b := range p.budgets {
		legs = append(legs, budget.Leg{Budget: b})
	}
	if p.BudgetsFor != nil {
		for _, b := range p.BudgetsFor(req, q) {
			if b.Label == "" {
				b.Label = "per_call" // the name may hold what is private
			}
			b = namedBudget(b, p.Name)
			b.Name = p.pseudonym(b.Name)
			if err := b.Validate(); err != nil {
				return nil, fmt.Errorf("%s: BudgetsFor: %w: %w", p.Name, budget.ErrUnpriced, err)
			}
			legs = append(legs, budget.Leg{Budget: b})
		}
	}
	for i := range legs {
		l := &legs[i]
		l.Budget.Monitor = l.Budget.Monitor || p.Monitor
		switch {
		case l.Budget.Unit == budget.Calls:
			l.Amount = budget.Unit
		case l.Budget.Unit == q.Unit, q.Amount == 0: // nothing is nothing in any currency
			l.Amount = q.Amount
		default:
			return nil, fmt.Errorf("%s: %w: it costs %s, budget %s is in %s", p.Name, budget.ErrUnpriced, q.Unit, l.Budget.Label, l.Budget.Unit)
		}
	}
	return legs, nil
}

// pseudonym is the name under which the ledger keeps a budget that a request named.
func (p *provider) pseudonym(name string) string {
	h := hmac.New(sha256.New, p.keyed.Key())
	_, _ = h.Write([]byte(name))
	return p.Name + "-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// namedBudget fills in the names and the unit that a budget leaves empty.
func namedBudget(b budget.Budget, owner string) budget.Budget {
	if b.Name == "" {
		b.Name = owner + "-" + b.Every.String()
	}
	if b.Label == "" {
		b.Label = b.Name
	}
	if b.Unit == "" {
		b.Unit = budget.USD
	}
	return b
}

// attemptsFor says how many attempts a call may make, and prepares its idempotency key.
// What a layer above already repeated counts against them.
func (p *provider) attemptsFor(c *call) (n int, nested bool) {
	before := 0
	if v := c.req.Header["X-Stainless-Retry-Count"]; len(v) == 1 {
		before, _ = strconv.Atoi(v[0])
	}
	if name := p.IdempotencyHeader; name != "" && !isSafe(c.req.Method) {
		switch v, present := valuesOf(c.req.Header, name); {
		case !present:
			c.key = rand.Text()
			c.header = c.req.Header.Clone()
			if c.header == nil {
				c.header = http.Header{}
			}
			c.header[name] = []string{c.key}
		case len(v) == 1 && strings.TrimSpace(v[0]) != "":
			c.key = strings.TrimSpace(v[0])
			before = max(before, p.state.keys.seen(shortKey(c.key), c.now))
			c.keySeen = true
		}
	}
	if before <= 0 {
		return p.Retry.Attempts, false
	}
	return max(1, p.Retry.Attempts-before), true
}

// valuesOf returns the values of a field as they go out: under its canonical name and under
// any other spelling that a caller wrote into the map.
func valuesOf(h http.Header, name string) (values []string, present bool) {
	for key, v := range h {
		switch {
		case len(key) != len(name) || !strings.EqualFold(key, name):
		case !present:
			values, present = v, true
		default:
			values = slices.Concat(values, v)
		}
	}
	return values, present
}

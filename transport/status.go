package transport

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// Status is the state of a [Transport] at one instant. It holds nothing of any request:
// scope keys appear as hashes or as what [Provider.ScopeAlias] makes of them.
type Status struct {
	Time      time.Time
	Providers []ProviderStatus
	// Budgets are the windows of all configured budgets that contain Time, each once.
	Budgets []budget.Totals
	// LedgerErr is why Budgets is empty: the ledger did not answer.
	LedgerErr error
	// Ledger tells which books they are.
	Ledger LedgerStatus
	// LedgerUp and LimiterUp tell whether the last operation of a call on the store
	// succeeded. The ledger is up again too once it was read when no call had failed for
	// a minute, unless it could not write.
	LedgerUp, LimiterUp bool
	// LimiterShared: turns are not counted by a [throttle.Bucket] of this process.
	LimiterShared bool
	// Degraded: a local limiter stands in for the shared one.
	Degraded bool
}

// ProviderStatus is the state of one provider, as this process sees it.
type ProviderStatus struct {
	Name    string
	Monitor bool
	// Frozen is since when an operator has stopped the provider; zero if none has.
	Frozen time.Time
	// Budgets are the labels of the budgets that pay for the provider's calls.
	Budgets []string
	// BudgetsFor: requests may name further budgets.
	BudgetsFor bool
	Queue      throttle.QueueStats
	// Scopes are the provider itself (Name ""), then its scopes.
	Scopes []ScopeStatus
	// Overflow counts asks whose scope had no room of its own.
	Overflow uint64
}

// ScopeStatus is the state of a provider or of one of its scopes.
type ScopeStatus struct {
	// Scope is the scope's name in the configuration, Alias which one it is; both are
	// empty for the provider itself.
	Scope, Alias string
	throttle.ScopeStats
}

// Status reads the state of everything. It changes nothing; its only error is the
// context's. It takes time in proportion to the scopes in use.
func (t *Transport) Status(ctx context.Context) (Status, error) {
	if err := ctx.Err(); err != nil {
		return Status{}, err
	}
	set := t.setup.Load()
	s := Status{Time: time.Now(), LedgerUp: !t.ledgerHealth.down.Load(), LimiterUp: !t.limiterHealth.down.Load()}
	_, local := t.limiter.(*throttle.Bucket)
	s.LimiterShared = !local
	if d, ok := t.limiter.(interface{ Degraded() bool }); ok {
		s.Degraded = d.Degraded()
	}
	s.Ledger = t.ledgerStatus()
	since := t.readBooks(ctx, set, &s) // first: the time that ctx leaves is for the ledger
	if t.ledger != nil && s.LedgerErr == nil && t.ledgerHealth.read(time.Now()) {
		s.LedgerUp = true
		t.emit(ctx, Event{Kind: KindStore, Store: "ledger", Op: "totals", Up: true})
	}
	for i, p := range set.providers {
		s.Providers = append(s.Providers, t.providerStatus(p))
		if since != nil {
			s.Providers[i].Frozen = since[i]
		}
	}
	return s, nil
}

// budgets are all configured budgets, each once.
func (s *setup) budgets() (all []budget.Budget) {
	seen := map[string]bool{}
	for _, p := range s.providers {
		for _, b := range p.budgets {
			if !seen[b.Name] {
				seen[b.Name] = true
				all = append(all, b)
			}
		}
	}
	return all
}

func (t *Transport) providerStatus(p *provider) ProviderStatus {
	s := ProviderStatus{Name: p.Name, Monitor: p.Monitor, BudgetsFor: p.BudgetsFor != nil}
	for _, b := range p.budgets {
		s.Budgets = append(s.Budgets, b.Label)
	}
	i, ok := t.limiter.(throttle.Informer)
	if !ok {
		return s
	}
	stats := i.Stats(p.Name)
	s.Queue, s.Overflow = stats.Queue, stats.Overflow
	s.Scopes = make([]ScopeStatus, len(stats.Scopes))
	mac := hmac.New(sha256.New, t.aliasKey[:])
	for j, sc := range stats.Scopes {
		s.Scopes[j] = p.scopeStatus(sc, mac)
	}
	return s
}

func (p *provider) scopeStatus(s throttle.ScopeStats, mac hash.Hash) ScopeStatus {
	out := ScopeStatus{ScopeStats: s}
	if scope, key, ok := p.splitKey(s.Key); ok {
		out.Scope, out.Alias = scope, p.alias(key, mac)
	}
	out.Key = ""
	return out
}

// splitKey takes a limiter key apart into the scope's name and its key.
func (p *provider) splitKey(key string) (scope, rest string, ok bool) {
	tail, ok := strings.CutPrefix(key, p.Name+"\x1f")
	if !ok {
		return "", "", false
	}
	return strings.Cut(tail, "\x1f")
}

// alias is how a scope key may be shown. A plain hash of a phone number could be
// searched, so that the hash has a key of this process.
func (p *provider) alias(key string, mac hash.Hash) string {
	if key == "" {
		return ""
	}
	if p.ScopeAlias != nil {
		return p.ScopeAlias(key)
	}
	mac.Reset()
	_, _ = mac.Write([]byte(key))
	return "s-" + hex.EncodeToString(mac.Sum(nil)[:4])
}

// PlanInfo says what would happen to a request.
type PlanInfo struct {
	// Provider is whose call it would be; empty if it matches none.
	Provider string
	// Scopes are the names of the scopes it would use, beside the provider.
	Scopes []string
	Quote  budget.Quote
	// Budgets are the budgets that would pay, as they stand.
	Budgets []budget.Totals
	// Forecast is when it would start if nobody overtook it; zero if the limiter does
	// not tell.
	Forecast throttle.Forecast
	// Refusal is the error with which it would be refused now, or nil.
	Refusal error
}

// Plan says what would happen to req if it were sent now. It changes nothing, sends
// nothing, and does not close or consume the body.
func (t *Transport) Plan(req *http.Request) (PlanInfo, error) {
	set := t.setup.Load()
	p, named, err := set.routes.match(req)
	if p == nil {
		if set.refuses(named, err) {
			return PlanInfo{Refusal: set.unmatchedError(req, err)}, nil
		}
		return PlanInfo{}, nil
	}
	info := PlanInfo{Provider: p.Name}
	info.refuse(p, p.state.repeats.would(p, req, time.Now()))
	if t.ledger != nil {
		_, err := t.ledger.Hold(req.Context(), budget.Hold{Provider: p.Name}) // it asks only for a freeze
		if isFrozen(err) {
			info.Refusal = err
		}
	}
	q, err := p.quote(req)
	info.Quote = q
	if info.refuse(p, err); err != nil && !p.Monitor {
		return info, nil
	}
	legs := p.legsFor(req, q)
	for _, l := range legs[1:] {
		scope, _, _ := p.splitKey(l.Key)
		info.Scopes = append(info.Scopes, scope)
	}
	money, err := p.budgetLegs(nil, req, q)
	if err != nil {
		info.Refusal = err
		return info, nil
	}
	if err := t.planMoney(req, p, money, &info); err != nil {
		return info, err
	}
	t.planTurn(req, p, legs, &info)
	return info, nil
}

// refuse keeps the first refusal that would be made.
func (i *PlanInfo) refuse(p *provider, err error) {
	if err != nil && i.Refusal == nil && !p.Monitor {
		i.Refusal = err
	}
}

func (t *Transport) planMoney(req *http.Request, p *provider, legs []budget.Leg, info *PlanInfo) error {
	prio, _ := p.order(req.Context(), req)
	for _, l := range legs {
		totals, err := t.ledger.Totals(req.Context(), time.Now(), l.Budget)
		if err != nil {
			return scrub(err)
		}
		info.Budgets = append(info.Budgets, totals...)
		if totals[0].Frozen && info.Refusal == nil {
			info.Refusal = &budget.FrozenError{Provider: p.Name, Budget: l.Budget.Label}
		}
		if e := totals[0].Refusal(l.Amount, prio == throttle.Critical); e != nil && !l.Budget.Monitor {
			e.Provider = p.Name
			info.refuse(p, e)
		}
	}
	return nil
}

func (t *Transport) planTurn(req *http.Request, p *provider, legs []throttle.Leg, info *PlanInfo) {
	i, ok := t.limiter.(throttle.Informer)
	if !ok {
		return
	}
	prio, tenant := p.order(req.Context(), req)
	f, err := i.Forecast(throttle.Ask{Legs: legs, Priority: prio, Tenant: tenant, MaxWait: max(0, p.maxWaitFor(req.Context()))})
	info.Forecast = f
	if err != nil && info.Refusal == nil && !p.Monitor {
		info.Refusal = err
	}
}

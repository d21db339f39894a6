package gateway

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

const (
	defaultMaxWait = 20 * time.Second
	defaultBuffers = 256 << 20
)

// snapshot is a validated configuration. It is immutable; a call keeps the one that it
// began with.
type snapshot struct {
	Config
	upstreams []*upstream
	byName    map[string]*upstream
	byPath    map[string]*upstream
	callers   map[string]*Caller
	hosts     map[string]bool
	local     *Caller
}

// upstream is a compiled [Provider].
type upstream struct {
	Provider
	live *live
	// host stands for the provider in the URLs that the Transport matches. It is made of
	// the name, so that a call that began before a reload never meets another provider.
	host string
	// slots are those of the configuration.
	slots []Slot
	// prefix is the path of Upstream, without a final slash.
	prefix string
	routes *http.ServeMux // nil: all paths
	// strict: the path or the query decide what a call costs, or whether it may be made.
	strict bool
	// decodes: answers are read, so that they must come in an encoding that we know.
	decodes bool
	// plainRate: the provider has one rate and no other, so that what binds is known.
	plainRate bool
	conns     http.RoundTripper
	settings  connSettings
}

// live is what a provider keeps through reloads, until one removes or stops it.
type live struct {
	// queue ends for the calls that wait when the provider is removed or stopped.
	queue context.Context
	end   context.CancelCauseFunc
}

// hostSuffix is a name that no resolver knows (RFC 2606).
const hostSuffix = ".outlay.invalid"

// checker collects what is wrong.
type checker struct{ errs []error }

func (k *checker) addf(path, format string, args ...any) {
	k.errs = append(k.errs, &transport.FieldError{Path: path, Err: fmt.Errorf(format, args...)})
}

func (k *checker) err() error {
	if len(k.errs) == 0 {
		return nil
	}
	return fmt.Errorf("gateway: configuration: %w", errors.Join(k.errs...))
}

// compile validates c and fills in its defaults. Providers keep what a provider of the
// same name has in old.
func (g *Gateway) compile(c Config, old *snapshot) (*snapshot, error) {
	k := new(checker)
	s := &snapshot{
		Config: c, byName: map[string]*upstream{}, byPath: map[string]*upstream{},
		callers: map[string]*Caller{}, hosts: map[string]bool{"localhost": true},
	}
	s.Buffers = cmp.Or(c.Buffers, defaultBuffers)
	s.MaxWait = cmp.Or(c.MaxWait, defaultMaxWait)
	s.TenantHeader = http.CanonicalHeaderKey(cmp.Or(c.TenantHeader, "Outlay-Tenant"))
	k.notNegative("Buffers", c.Buffers)
	for i := range c.Providers {
		g.addProvider(k, s, old, i)
	}
	for i, h := range c.Hosts {
		if h == "" || strings.ContainsAny(h, "/ :*") {
			k.addf(fmt.Sprintf("Hosts[%d]", i), "%q: write a name without scheme and port", h)
		}
		s.hosts[strings.ToLower(strings.TrimSuffix(h, "."))] = true
	}
	s.addCallers(k)
	return s, k.err()
}

func (g *Gateway) addProvider(k *checker, s *snapshot, old *snapshot, i int) {
	at := fmt.Sprintf("Providers[%d]", i)
	p := s.Config.Providers[i]
	k.provider(at, &p)
	u := &upstream{Provider: p, host: hex.EncodeToString([]byte(p.Name)) + hostSuffix}
	u.Path = pathOf(&p)
	u.slots = append(slices.Clone(p.Slots), p.Credential.Slot)
	if other := s.byName[p.Name]; other != nil {
		k.addf(at+".Name", "%q is taken", p.Name)
	}
	if other := s.byPath[u.Path]; other != nil {
		k.addf(at+".Path", "/%s is that of provider %q as well", u.Path, other.Name)
	}
	s.byName[p.Name], s.byPath[u.Path] = u, u
	s.upstreams = append(s.upstreams, u)
	if p.Upstream == nil {
		return
	}
	u.prefix = strings.TrimSuffix(p.Upstream.EscapedPath(), "/")
	u.routes = k.routes(at+".Routes", p.Routes)
	u.strict = p.Price != nil && p.Price != transport.Pricer(price.Free) || u.routes != nil || len(p.QueryKeys) > 0
	_, metered := p.Price.(transport.Metered)
	u.decodes = metered || p.Dialect != nil
	u.plainRate = len(p.Rates) == 1 && !slices.ContainsFunc(p.Scopes, func(s transport.Scope) bool { return len(s.Rates) > 0 || s.RatesFor != nil })
	u.defaults()
	g.connect(u, old)
}

// defaults fills in what is left empty.
func (u *upstream) defaults() {
	t := &u.Timeouts
	t.Connect = cmp.Or(t.Connect, 5*time.Second)
	t.TLS = cmp.Or(t.TLS, 5*time.Second)
	t.Response = cmp.Or(t.Response, time.Minute)
	t.Idle = cmp.Or(t.Idle, 5*time.Minute)
	t.BodyRead = cmp.Or(t.BodyRead, 30*time.Second)
	t.ClientWrite = cmp.Or(t.ClientWrite, time.Minute)
	u.IdempotencyHeader = http.CanonicalHeaderKey(u.IdempotencyHeader)
	u.Body.Max = cmp.Or(u.Body.Max, 32<<20)
	u.Body.Buffer = min(cmp.Or(u.Body.Buffer, 1<<20), u.Body.Max)
	if u.Refusal == nil {
		u.Refusal = provider.MessageRefusal
	}
}

// connect gives the provider its connections: those it has, if nothing about them changed.
func (g *Gateway) connect(u *upstream, old *snapshot) {
	u.settings = connSettings{u.Timeouts, u.AllowPrivate}
	var was *upstream
	if old != nil {
		was = old.byName[u.Name]
	}
	if was != nil && (was.Stopped || !u.Stopped) {
		u.live = was.live
	} else {
		u.live = new(live)
		u.live.queue, u.live.end = context.WithCancelCause(g.queue)
	}
	switch {
	case g.parts.Base != nil:
		u.conns = g.parts.Base
	case was != nil && was.settings == u.settings:
		u.conns = was.conns
	default:
		u.conns = g.newConns(u.settings)
	}
}

// transportConfig is what the Transport is told: each provider owns a host of its own.
func (s *snapshot) transportConfig() transport.Config {
	c := transport.Config{Budgets: s.Budgets, MaxWait: s.MaxWait, Unmatched: transport.RefuseAll}
	for _, u := range s.upstreams {
		p := u.Provider.Provider
		p.Match, p.Refusal = []string{u.host}, nil // refusals are told by errors, which say more
		if p.Priority == nil {
			p.Priority = priorityOf
		}
		if p.Tenant == nil {
			p.Tenant = TenantOf
		}
		c.Providers = append(c.Providers, p)
	}
	return c
}

func (k *checker) notNegative(path string, n int64) {
	if n < 0 {
		k.addf(path, "%d: must not be negative", n)
	}
}

func (k *checker) provider(at string, p *Provider) {
	if len(p.Match) > 0 {
		k.addf(at+".Match", "must be empty: what belongs to a provider is decided by its path")
	}
	if path := pathOf(p); path == "" || strings.Trim(path, pathChars) != "" {
		k.addf(at+".Path", "%q: one segment of letters, digits, dot, dash and underscore is needed", path)
	}
	k.upstream(at+".Upstream", p)
	for i, s := range p.Slots {
		k.slot(fmt.Sprintf("%s.Slots[%d]", at, i), s)
	}
	if p.Credential.Slot.In != InNone {
		k.slot(at+".Credential.Slot", p.Credential.Slot)
		if p.Credential.Secret == nil {
			k.addf(at+".Credential.Secret", "nil: there is nothing to put into the slot")
		}
	}
	for _, t := range []struct {
		name string
		d    time.Duration
	}{
		{"Connect", p.Timeouts.Connect}, {"TLS", p.Timeouts.TLS}, {"Response", p.Timeouts.Response},
		{"Idle", p.Timeouts.Idle}, {"BodyRead", p.Timeouts.BodyRead}, {"ClientWrite", p.Timeouts.ClientWrite},
	} {
		k.notNegative(at+".Timeouts."+t.name, int64(t.d))
	}
	k.notNegative(at+".Body.Buffer", p.Body.Buffer)
	k.notNegative(at+".Body.Max", p.Body.Max)
	if p.MoneyStatus != 0 && (p.MoneyStatus < 400 || p.MoneyStatus > 499) {
		k.addf(at+".MoneyStatus", "%d: must be a client error, 400 to 499", p.MoneyStatus)
	}
	if p.OnDisconnect > FinishOnDisconnect {
		k.addf(at+".OnDisconnect", "unknown value %d", p.OnDisconnect)
	}
}

const pathChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

func (k *checker) upstream(at string, p *Provider) {
	u := p.Upstream
	switch {
	case u == nil:
		k.addf(at, "nil: where do the calls go? Write a URL such as https://api.example.com")
		return
	case u.Scheme != "https" && u.Scheme != "http":
		k.addf(at, "scheme %q: must be https or http", u.Scheme)
	case u.Hostname() == "":
		k.addf(at, "has no host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "", u.Opaque != "":
		k.addf(at, "only scheme, host and path are allowed")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !p.AllowPrivate && !isPublic(ip) {
		k.addf(at, "%s is no public address; set AllowPrivate if that is meant", ip)
	}
}

func (k *checker) slot(at string, s Slot) {
	switch s.In {
	case InBearer, InBasic:
	case InHeader, InQuery:
		if s.Name == "" {
			k.addf(at+".Name", "empty: which one?")
		}
		if s.In == InHeader && strings.Trim(s.Name, pathChars) != "" {
			k.addf(at+".Name", "%q is no header name", s.Name)
		} else if why := unfitSlot(s.Name); s.In == InHeader && why != "" {
			k.addf(at+".Name", "%q cannot hold a key: %s", s.Name, why)
		}
	default:
		k.addf(at+".In", "unknown value %d", s.In)
	}
}

// routes makes the mux that finds the pattern of a path.
func (k *checker) routes(at string, patterns []string) *http.ServeMux {
	if len(patterns) == 0 {
		return nil
	}
	mux := http.NewServeMux()
	for i, p := range patterns {
		_, path, both := strings.Cut(p, " ")
		if !both {
			path = p
		}
		if !strings.HasPrefix(strings.TrimLeft(path, " \t"), "/") {
			k.addf(fmt.Sprintf("%s[%d]", at, i), "%q: write [METHOD ]/path", p)
			continue
		}
		if err := register(mux, p); err != nil {
			k.addf(fmt.Sprintf("%s[%d]", at, i), "%q: %w", p, err)
		}
	}
	return mux
}

// allowed marks the patterns of Routes. The mux has handlers of its own, for paths that it
// would redirect.
type allowed struct{}

func (allowed) ServeHTTP(http.ResponseWriter, *http.Request) {}

// registered is where our own source calls the mux.
var registered = regexp.MustCompile(` \(registered at [^)]*\)`)

// register turns the panic by which the mux refuses a pattern into an error.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			text, _, _ := strings.Cut(fmt.Sprint(r), "\n")
			err = errors.New(registered.ReplaceAllString(text, ""))
		}
	}()
	mux.Handle(pattern, allowed{})
	return nil
}

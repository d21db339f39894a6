package gateway

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
	"github.com/outlay-go/outlay/transport/provider"
)

// loadedProvider is a provider with what the checks of the whole file need.
type loadedProvider struct {
	*section
	Provider
	preset  *preset
	pricing *pricing
	parts   []divided
	// named and path are where its name and its path stand.
	named, path place
}

// readProviders reads all providers, with what the defaults give them.
func (l *loading) readProviders() {
	defaults := l.section(l.top.get("defaults"), "defaults", place{1, 1})
	l.top.each("providers", "provider", func(name, value *node) {
		l.named(name, "provider")
		s := l.section(value, "providers."+brief(name.text), name.place)
		for _, e := range defaults.node.keys {
			if e.key.text == "preset" || e.key.text == "path" || e.key.text == "budgets" {
				continue // reported
			}
			if !s.has(e.key.text) {
				own := *s.node
				own.keys = append(slices.Clone(own.keys), e)
				s.node = &own
			}
		}
		p := l.provider(name, s)
		s.done()
		l.file.places["providers."+name.text] = name.place
		l.providers = append(l.providers, p)
		l.file.Config.Providers = append(l.file.Config.Providers, p.Provider)
	})
	for _, e := range defaults.node.keys {
		switch e.key.text {
		case "preset", "path", "budgets":
			l.errorf(e.key.place, "defaults cannot give a %s: every provider has one of its own", e.key.text)
		}
	}
	if len(l.providers) == 0 {
		l.errorf(l.top.keyAt("providers"), "there are no providers: write providers: {twilio: {preset: twilio}}")
	}
}

// provider reads one provider.
func (l *loading) provider(name *node, s *section) *loadedProvider {
	p := &loadedProvider{section: s, named: name.place}
	p.preset = l.preset(s)
	l.from(p)
	p.Name = name.text
	l.wayIn(p)
	l.limits(p)
	p.pricing = l.price(s, name.text, p.preset)
	if p.pricing != nil {
		p.Price = p.pricing.pricer
	}
	p.Budgets, p.parts = l.budgets(s, name.text)
	header, at := field(s, "idempotency_header", parseText)
	if why := unfitSlot(header); header != "" && (!isToken(header) || why != "" && !strings.HasSuffix(http.CanonicalHeaderKey(header), "Idempotency-Key")) {
		l.errorf(at, "idempotency_header %s is none: write the name that the vendor documents, such as Idempotency-Key", show(header))
	}
	p.IdempotencyHeader = cmpOr(header, p.IdempotencyHeader)
	l.retry(p)
	l.bounds(p)
	l.behaviour(p)
	return p
}

// preset finds the preset that a provider names.
func (l *loading) preset(s *section) *preset {
	name, at := field(s, "preset", parseText)
	if name == "" {
		return nil
	}
	if p, ok := l.presets[name]; ok {
		return &p
	}
	if why := unfit[name]; why != "" {
		l.errorf(at, "preset %s: %s", name, why)
		return nil
	}
	names := presetNames()
	hint := "known are " + strings.Join(names, ", ") + "; or leave it out and write upstream"
	if near := suggestion(name, names, map[string]string{"twilio_sms": "twilio", "vonage_sms": "vonage", "nexmo": "vonage", "google": "google-maps", "googlemaps": "google-maps", "claude": "anthropic", "chatgpt": "openai", "azure": "azure-openai"}); near != "" {
		hint = "did you mean \"" + near + "\"?"
	}
	l.errorf(at, "preset %s is not known: %s", show(name), hint)
	return nil
}

// from begins a provider with its preset.
func (l *loading) from(p *loadedProvider) {
	if p.preset == nil {
		p.Refusal, p.Price = provider.MessageRefusal, nil
		return
	}
	p.Provider.Provider = p.preset.build(costs{})
	upstream := p.preset.upstream
	if n := p.node.find("upstream"); upstream == "" && n != nil {
		upstream = n.text
	}
	p.Routes = routesOf(p.Provider.Provider, upstream)
	p.Match, p.Refusal = nil, p.preset.refusal
	p.Slots, p.QueryKeys = p.preset.slots, p.preset.query
	p.MaxWait, p.Timeouts.Response = p.preset.maxWait, p.preset.response
	if p.preset.per != "" {
		p.Price = nil // that of the preset has no amounts yet
	}
}

// wayIn reads where calls come from and where they go.
func (l *loading) wayIn(p *loadedProvider) {
	p.Path, p.path = field(p.section, "path", parsePath)
	if p.Path == "" {
		p.Path, p.path = p.Name, p.named
	}
	p.AllowPrivate, _ = field(p.section, "allow_private", parseBool)
	if n, ok := p.scalar("upstream"); ok {
		p.Upstream = l.upstream(n, p.AllowPrivate)
	} else if p.preset != nil && p.preset.upstream != "" {
		p.Upstream, _ = url.Parse(p.preset.upstream) // ours
	} else if !p.has("upstream") && (p.preset != nil || !p.has("preset")) {
		what := "neither preset nor upstream"
		if p.preset != nil {
			what = "no upstream, and every customer of this vendor has a host of their own"
		}
		l.errorf(p.named, "%s has %s: write upstream: https://api.example.com", p.Name, what)
	}
	if p.has("routes") {
		p.Routes = l.routes(p.values("routes"))
		if n := p.node.find("routes"); n.form == list && len(n.items) == 0 {
			l.errorf(n.place, "routes is empty, which would allow all paths: leave it out for that, or write patterns such as \"POST /v1/messages\"; frozen: true refuses everything")
		}
	} else {
		p.get("routes")
	}
	if p.Upstream != nil && !p.AllowPrivate {
		if ip, err := netip.ParseAddr(p.Upstream.Hostname()); err == nil && !isPublic(ip) || p.Upstream.Hostname() == "localhost" {
			l.errorf(p.whereIs("upstream"), "upstream %s is no public address: write allow_private: true beside it if that is meant", p.Upstream.Hostname())
		}
	}
	l.credential(p)
	name, at := field(p.section, "dialect", parseText)
	switch {
	case name == "":
	case name == "standard" || name == "none":
		p.Dialect = dialect.Standard{}
	case !slices.ContainsFunc(dialect.Vendors(), func(v string) bool { return letters(v) == letters(name) }):
		hint := suggestion(name, presetNames(), nil)
		l.errorf(at, "dialect %s is not known: %s", show(name), cmpOr(quoteHint(hint), "write standard, or the name of a vendor such as twilio"))
	default:
		p.Dialect = dialect.For(name)
	}
}

// letters are what counts in a vendor's name.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

func quoteHint(hint string) string {
	if hint == "" {
		return ""
	}
	return "did you mean \"" + hint + "\"?"
}

// upstream reads the address of a vendor; private says that it may be one nearby.
func (l *loading) upstream(n *node, private bool) *url.URL {
	u, err := url.Parse(n.text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		hint := "write one such as https://api.example.com"
		if !strings.Contains(n.text, "://") && !looksSecret(n.text) && parseHostOnly(n.text) {
			hint = "write https://" + n.text
		}
		l.errorf(n.place, "upstream %s is no address: %s", show(n.text), hint)
	case !isPort(u.Port()):
		l.errorf(n.place, "upstream %s: the port must be a number from 1 to 65535", show(n.text))
	case u.User != nil:
		l.errorf(n.place, "upstream holds a user or a password: write credential: {basic: {user: ..., password: env:NAME}}")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		l.errorf(n.place, "upstream has a query: write credential: {query: {name: key, value: env:NAME}} for a key")
	case u.Path != "" && u.EscapedPath() != "/"+strings.Trim(u.Path, "/") && u.Path != "/":
		l.errorf(n.place, "upstream has a path that ends with a slash or holds escapes: write it plainly, such as https://api.example.com/v2")
	default:
		u.Path = strings.TrimSuffix(u.Path, "/")
		if u.Scheme == "http" && !private {
			l.warnf(n.place, "upstream %s is not encrypted, so that keys and texts travel in clear: write https", show(n.text))
		}
		return u
	}
	return nil
}

// credential reads the real key and where it belongs.
func (l *loading) credential(p *loadedProvider) {
	s := p.sub("credential")
	if s.empty {
		if n := p.node.find("credential"); n != nil && n.form == absent {
			l.errorf(n.place, "%s.credential has no value: remove it if programs bring their own keys", p.Name)
		}
		return
	}
	path := p.Name + ".credential"
	one := func(slot Slot, n *node) {
		if p.Credential.Slot.In != InNone {
			l.errorf(s.at, "%s: more than one kind: write bearer, basic, header or query", path)
		}
		secret := l.secret(n, path)
		p.Credential.Slot, p.Credential.Secret = slot, secret.Reveal
	}
	if n := s.get("bearer"); n != nil {
		one(Slot{In: InBearer}, n)
		if strings.Contains(p.Credential.Secret(), " ") {
			l.errorf(n.place, "%s.bearer: the secret holds a blank: it must be the key alone, without Bearer", path)
		}
	}
	if basic := s.sub("basic"); !basic.empty {
		p.Credential.User = l.user(basic.get("user"), path)
		one(Slot{In: InBasic}, basic.get("password"))
		if !basic.has("password") {
			l.errorf(basic.at, "%s.basic needs a password: write basic: {user: NAME, password: env:NAME}", path)
		}
		basic.done()
	}
	for key, in := range map[string]Place{"header": InHeader, "query": InQuery} {
		sub := s.sub(key)
		if sub.empty {
			continue
		}
		name, at := field(sub, "name", parseText)
		if name == "" || !isToken(name) {
			l.errorf(at, "%s.%s needs a name, such as {name: X-Api-Key, value: env:NAME}", path, key)
		} else if why := unfitSlot(name); in == InHeader && why != "" {
			l.errorf(at, "%s.header: %s cannot hold a key: %s; write the header that the vendor documents, such as X-Api-Key, or bearer or basic for Authorization", path, name, why)
		} else if in == InHeader && strings.EqualFold(name, cmpOr(p.IdempotencyHeader, "Idempotency-Key")) {
			l.errorf(at, "%s.header: %s tells repeats of a call apart", path, name)
		}
		one(Slot{In: in, Name: name}, sub.get("value"))
		if !sub.has("value") {
			l.errorf(sub.at, "%s.%s needs a value: write value: env:NAME", path, key)
		}
		sub.done()
	}
	if p.Credential.Slot.In == InNone && len(s.node.keys) == 0 {
		l.errorf(s.at, "%s is empty: write bearer, basic, header or query", path)
	}
	s.done()
}

// user reads the user name of a Basic credential, which may be a secret.
func (l *loading) user(n *node, path string) string {
	if n == nil || !l.isScalar(n, path+".basic.user") {
		return ""
	}
	name := n.text
	if kind, _, _ := strings.Cut(name, ":"); kind == "env" || kind == "file" || kind == "plain" {
		name = l.secret(n, path).value
	}
	if strings.ContainsFunc(name, func(c rune) bool { return c == ':' || !unicode.IsPrint(c) }) {
		l.errorf(n.place, "%s.basic.user: the name of a user holds neither a colon nor characters that cannot be seen", path)
	}
	return name
}

// isToken reports whether s can name a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// limits reads rates, scopes and slots.
func (l *loading) limits(p *loadedProvider) {
	if p.has("rates") {
		p.Rates = fields(p.section, "rates", parseRate)
	} else {
		p.get("rates")
	}
	p.MaxInFlight, _ = field(p.section, "max_in_flight", wholeFrom(1, 1_000_000))
	if d, _ := field(p.section, "max_wait", parseWait); d != 0 {
		p.MaxWait = d
	}
	fixed, _ := field(p.section, "fixed_rate", parseBool)
	p.FixedRate = fixed
	l.scopes(p)
}

func (l *loading) retry(p *loadedProvider) {
	s := p.sub("retry")
	if n, _ := field(s, "attempts", wholeFrom(1, 100)); n != 0 {
		p.Retry.Attempts = n
	}
	if d, _ := field(s, "max_retry_after", positive); d != 0 {
		p.Retry.MaxRetryAfter = d
	}
	if d, at := field(s, "backoff", positive); d > time.Minute {
		l.errorf(at, "backoff %v is above one minute", d)
	} else if d != 0 {
		p.Retry.Backoff = d
	}
	if n, at := field(s, "share", parsePercent); n > 100 {
		l.errorf(at, "share: at most 100%% of the calls can be retries")
	} else if n != 0 {
		p.Retry.Share = n
	}
	if s.has("not_taken") {
		p.Retry.NotTaken = fields(s, "not_taken", wholeFrom(400, 599))
	} else {
		s.get("not_taken")
	}
	switch word, _ := field(s, "unknown_outcome", oneOf("with_key", "safe", "always")); word {
	case "safe":
		p.Retry.Unknown = transport.ReplaySafe
	case "always":
		p.Retry.Unknown = transport.ReplayAll
	}
	s.done()
}

// bounds reads timeouts and sizes.
func (l *loading) bounds(p *loadedProvider) {
	s := p.sub("timeouts")
	for _, t := range []struct {
		key string
		to  *time.Duration
	}{
		{"connect", &p.Timeouts.Connect}, {"tls", &p.Timeouts.TLS}, {"response", &p.Timeouts.Response},
		{"idle", &p.Timeouts.Idle}, {"body_read", &p.Timeouts.BodyRead}, {"client_write", &p.Timeouts.ClientWrite},
	} {
		if d, _ := field(s, t.key, positive); d != 0 {
			*t.to = d
		}
	}
	s.done()
	s = p.sub("body")
	p.Body.Buffer, _ = field(s, "buffer", parseSize)
	p.Body.Max, _ = field(s, "max", parseSize)
	if most := cmp.Or(p.Body.Max, 32<<20); p.Body.Buffer > most {
		l.warnf(s.whereIs("buffer"), "%s: body.buffer is larger than body.max (%d MiB), beyond which bodies are refused: raise max, or lower buffer", p.Name, most>>20)
	}
	if total := cmp.Or(l.file.Config.Buffers, defaultBuffers); min(cmp.Or(p.Body.Buffer, 1<<20), cmp.Or(p.Body.Max, 32<<20)) > total {
		l.warnf(s.whereIs("buffer"), "%s: body.buffer is larger than buffers, the memory for all bodies: a body of that size is answered with 503", p.Name)
	}
	s.done()
}

func (l *loading) behaviour(p *loadedProvider) {
	switch word, _ := field(p.section, "on_disconnect", oneOf("auto", "cancel", "finish")); word {
	case "cancel":
		p.OnDisconnect = CancelOnDisconnect
	case "finish":
		p.OnDisconnect = FinishOnDisconnect
	}
	word, _ := field(p.section, "upgrade", oneOf("refuse", "allow"))
	p.Upgrades = word == "allow"
	s := p.sub("refusal")
	p.MoneyStatus, _ = field(s, "money_status", wholeFrom(400, 499))
	s.done()
	p.Monitor, _ = field(p.section, "monitor", parseBool)
	p.Stopped, _ = field(p.section, "frozen", parseBool)
	if p.Price == nil && p.pricing == nil && p.preset != nil && p.preset.per == "" {
		p.Price = price.Free
	}
}

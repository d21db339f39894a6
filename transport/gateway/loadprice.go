package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

// pricing is what a price section says.
type pricing struct {
	*section
	what    string // the provider's name
	preset  *preset
	kind    string
	unit    string // the currency of all amounts so far
	pricer  transport.Pricer
	models  []string // those with a price, where tokens are priced
	written bool     // unpriced is
}

// price reads the price of a provider; nil: none is written.
func (l *loading) price(s *section, name string, p *preset) *pricing {
	n := s.get("price")
	if n == nil {
		return nil
	}
	x := &pricing{what: name, preset: p}
	if n.form == scalar {
		x.section = &section{r: l.reader, path: s.of("price"), at: n.place, node: &node{place: n.place, form: table}}
		x.short(n)
		return x
	}
	x.section = l.section(n, s.of("price"), s.keyAt("price"))
	words := []string{perCall, perSegment, perElement, perRecipient, perToken}
	x.kind, _ = field(x.section, "per", oneOf(words...))
	if !x.has("per") && n.form == table {
		l.errorf(x.at, "%s.price does not say for what: write per: %s", name, orList(words))
	}
	x.read()
	x.done()
	return x
}

// short reads a price that is one amount, or free.
func (x *pricing) short(n *node) {
	if n.text == "free" {
		x.pricer = price.Free
		return
	}
	m, err := parsePrice("price", n.text)
	if err != nil {
		x.r.errorf(n.place, "%s", err)
		return
	}
	x.kind = perCall
	x.one(m, n.place)
}

// read reads the amounts of a table, and makes the price.
func (x *pricing) read() {
	amount, amountAt := field(x.section, "amount", parsePrice)
	rows, fallback := x.table()
	count := fields(x.section, "count", parseText)
	tokens := x.tokens()
	x.unitOf(amount, amountAt)
	switch {
	case x.kind != perCall && x.kind != "" && x.preset != nil && x.preset.per != x.kind:
		x.wrongKind()
		return
	case x.kind == perSegment:
		x.segments(amount, rows, fallback)
	case x.kind == perToken:
		x.byTokens(tokens)
	case x.kind == perCall && x.has("table"):
		x.pricer = x.byRoute(rows, fallback)
	case x.kind == "":
	case !x.has("amount"):
		x.r.errorf(x.at, "%s.price has no amount: write amount: 0.005 USD", x.what)
	case len(count) > 0 && amount.unit != "":
		x.pricer = price.Per(amount.amount, price.Values(count...)).In(amount.unit)
	case amount.unit != "":
		x.one(amount, amountAt)
	}
	if x.has("table") && x.kind != perCall && x.kind != perSegment {
		x.r.errorf(x.keyAt("table"), "%s.price.table is for per: call (by route) and per: sms_segment (by prefix)", x.what)
	}
	x.unpriced()
}

// unitOf checks that all amounts of a price are in one currency.
func (x *pricing) unitOf(m money, at place) {
	switch {
	case m.unit == "":
	case x.unit == "":
		x.unit = m.unit
	case x.unit != m.unit:
		x.r.errorf(at, "%s.price mixes %s and %s: a provider bills in one currency", x.what, x.unit, m.unit)
	}
}

// row is a line of a price table.
type row struct {
	key     string
	at      place
	refused bool
	free    bool
	element bool // "per element"
	money
}

// table reads the table by route or by prefix.
func (x *pricing) table() (rows []row, fallback row) {
	fallback.refused = true
	x.each("table", "price key", func(key, value *node) {
		if !x.r.isScalar(value, x.of("table."+brief(key.text))) {
			return
		}
		r := row{key: key.text, at: key.place, refused: value.text == "refuse", free: value.text == "free"}
		text := value.text
		if r.free && x.kind != perCall {
			x.r.errorf(value.place, "price \"free\" is for per: call: write an amount, such as 0.005 USD")
			return
		}
		if !r.refused && !r.free {
			text, r.element = strings.CutSuffix(text, " per element")
			m, err := parsePrice("price", text)
			if err != nil {
				x.r.errorf(value.place, "%s", err)
				return
			}
			r.money = m
			x.unitOf(m, value.place)
		}
		if key.text == "default" {
			fallback = r
			return
		}
		rows = append(rows, r)
	})
	return rows, fallback
}

// one is one amount for each of what the vendor bills.
func (x *pricing) one(m money, at place) {
	p := x.preset
	switch {
	case p != nil && p.per == x.kind && x.kind == perCall && p.whole, x.kind == perCall && (p == nil || p.per != perCall):
		x.pricer = price.PerCall(m.amount).In(m.unit)
	case p == nil || p.per != x.kind:
		x.wrongKind()
	case p.currency != "" && p.currency != m.unit:
		x.r.errorf(at, "%s bills in %s, and its price is in %s", x.what, p.currency, m.unit)
	default:
		x.pricer = p.build(costs{amount: m.amount, currency: m.unit}).Price
	}
	x.unit = m.unit
}

func (x *pricing) wrongKind() {
	at := x.whereIs("per")
	switch {
	case x.preset == nil:
		x.r.errorf(at, "%s has no preset, so that nobody knows what to count: write per: call, or count: [names of the fields]", x.what)
	case x.preset.per == "":
		x.r.errorf(at, "%s bills no calls: leave price out, or write per: call", x.what)
	default:
		x.r.errorf(at, "%s is billed per %s: write per: %s", x.what, x.preset.per, x.preset.per)
	}
}

// segments prices text messages.
func (x *pricing) segments(amount money, rows []row, fallback row) {
	sms := price.SMS{Segment: amount.amount, Prefixes: map[string]budget.Amount{}}
	if !fallback.refused {
		sms.Segment = fallback.amount
	}
	seen := map[string]bool{}
	for _, r := range rows {
		switch digits := strings.TrimPrefix(r.key, "+"); {
		case !isDigits(digits) || len(digits) > 15:
			x.r.errorf(r.at, "price key %s is no beginning of a number: write \"+49\", or default", show(r.key))
		case digits[0] == '0':
			x.r.errorf(r.at, "price key %s begins with a zero, and no number with its country does: write \"+49\" for 0049", show(r.key))
		case seen[digits]:
			x.r.errorf(r.at, "price key %s is there twice, with + and without", show(r.key))
		default:
			seen[digits] = true
		}
		if r.refused || r.element {
			x.r.errorf(r.at, "price of %s must be an amount: only the default may be refuse", show(r.key))
			continue
		}
		sms.Prefixes[r.key] = r.amount
	}
	switch p := x.preset; {
	case len(rows) == 0 && sms.Segment == 0 && x.r.failed():
	case len(rows) == 0 && sms.Segment == 0:
		x.r.errorf(x.at, "%s.price has no amounts: write table: {\"+1\": 0.0083 USD, default: refuse}", x.what)
	case p != nil && p.currency != "" && x.unit != "" && p.currency != x.unit:
		x.r.errorf(x.at, "%s bills in %s, and its price is in %s", x.what, p.currency, x.unit)
	case p != nil:
		sms.Currency = x.unit
		x.pricer = p.sms(sms)
	default:
		sms.Currency = x.unit
		x.pricer = sms
	}
}

// tokens reads the prices of models.
func (x *pricing) tokens() (t price.Tokens) {
	t.Models = map[string]price.Model{}
	x.each("models", "model", func(name, value *node) {
		s := x.r.section(value, x.of("models."+brief(name.text)), name.place)
		var m price.Model
		amount := func(key string) budget.Amount {
			a, at := field(s, key, perMillion)
			x.unitOf(a, at)
			return a.amount
		}
		m.Input, m.CachedInput, m.Output = amount("input"), amount("cached_input"), amount("output")
		m.CacheWrite, m.CacheWrite1h = amount("cache_write"), amount("cache_write_1h")
		context, _ := field(s, "context", wholeFrom(1, 1<<30))
		m.Context = int64(context)
		if m.Input == 0 && m.Output == 0 && !x.r.failed() {
			x.r.errorf(s.at, "model %s has no price: write input: 0.15 USD per 1M and output: 0.60 USD per 1M", show(name.text))
		}
		for _, key := range []string{"input", "output"} {
			if !s.has(key) {
				x.r.warnf(s.at, "model %s has no price of its %s, which costs nothing then: write %s: 0 USD per 1M if that is so", show(name.text), key, key)
			}
		}
		s.done()
		t.Models[name.text] = m
		x.models = append(x.models, name.text)
	})
	most, _ := field(x.section, "max_output", wholeFrom(1, 1<<30))
	t.MaxOutput = int64(most)
	bytes, _ := field(x.section, "bytes_per_token", wholeFrom(1, 16))
	t.BytesPerToken = int64(bytes)
	return t
}

func (x *pricing) byTokens(t price.Tokens) {
	t.Currency = x.unit
	switch {
	case len(t.Models) == 0 && !x.r.failed():
		x.r.errorf(x.at, "%s.price has no models: write models: {NAME: {input: 0.15 USD per 1M, output: 0.60 USD per 1M}}", x.what)
	case x.preset != nil:
		x.pricer = x.preset.build(costs{tokens: t}).Price
	default:
		x.pricer = t
	}
}

// unpriced says what becomes of calls that no price fits.
func (x *pricing) unpriced() {
	n, ok := x.scalar("unpriced")
	if !ok {
		return
	}
	x.written = true
	switch n.text {
	case "refuse":
		return
	case "allow":
		x.or(price.Assume(0).In(cmpOr(x.unit, budget.USD)))
		return
	}
	m, err := parsePrice("unpriced", n.text)
	if err != nil {
		x.r.errorf(n.place, "unpriced %s: write refuse, allow, or an amount that is assumed, such as 0.01 USD", show(n.text))
		return
	}
	x.unitOf(m, n.place)
	x.or(price.Assume(m.amount).In(m.unit))
}

func (x *pricing) or(fallback transport.Pricer) {
	if x.pricer != nil {
		x.pricer = price.Or(x.pricer, fallback)
	}
}

// byRoute makes a price by method and path.
func (x *pricing) byRoute(rows []row, fallback row) transport.Pricer {
	p := routePrices{mux: http.NewServeMux(), rows: map[string]transport.Pricer{}, unit: cmpOr(x.unit, budget.USD)}
	cells := price.Cells("origins", "destinations")
	pricer := func(r row) transport.Pricer {
		switch {
		case r.refused:
			return nil
		case r.free:
			return price.PerCall(0).In(p.unit)
		case r.element:
			return price.Per(r.amount, cells).In(r.unit)
		}
		return price.PerCall(r.amount).In(r.unit)
	}
	for _, r := range rows {
		if err := addPattern(p.mux, r.key); err != nil {
			x.r.errorf(r.at, "price key %s: %s", show(r.key), err)
			continue
		}
		p.rows[r.key] = pricer(r)
	}
	p.other = pricer(fallback)
	return p
}

// addPattern adds a pattern to a mux.
func addPattern(mux *http.ServeMux, pattern string) error {
	method, path, two := strings.Cut(pattern, " ")
	if !two {
		path = method
	}
	if !strings.HasPrefix(path, "/") {
		return errors.New("it is no route: write one such as \"GET /maps/api/geocode/json\"")
	}
	if two && !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}, method) {
		return errors.New("its method is not known: write GET, POST, PUT, PATCH or DELETE before the path")
	}
	if strings.ContainsAny(path, "?# ") {
		return errors.New("a route is a path, without query, fragment and blanks: no call would have it")
	}
	if register(mux, pattern) != nil {
		return errors.New("it is malformed, or overlaps another one")
	}
	return nil
}

// routePrices prices calls by method and path.
type routePrices struct {
	mux   *http.ServeMux
	rows  map[string]transport.Pricer // nil: refused
	other transport.Pricer
	unit  string
}

// Unit is the currency of the prices.
func (p routePrices) Unit() string { return p.unit }

// Quote gives the price of the route.
func (p routePrices) Quote(r *http.Request) (budget.Quote, error) {
	q := *r.URL
	q.RawPath, q.Host = "", ""
	_, pattern := p.mux.Handler(&http.Request{Method: r.Method, URL: &q})
	pricer, known := p.rows[pattern]
	if !known {
		pricer = p.other
	}
	if pricer == nil {
		return budget.Quote{Unit: p.unit}, fmt.Errorf("%w: its route has no price", budget.ErrUnpriced)
	}
	return pricer.Quote(r)
}

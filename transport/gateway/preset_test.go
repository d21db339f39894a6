package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// Every preset is usable by its name, with its upstream, a price in the words of its vendor
// and a budget.
func TestEveryPresetLoads(t *testing.T) {
	prices := map[string]string{
		perSegment: `{per: sms_segment, table: {"+1": 0.01 CUR, default: 0.1 CUR}}`, perToken: `{per: token, models: {m: {input: 1 CUR per 1M, output: 2 CUR per 1M}}, unpriced: refuse}`,
		perCall: "0.005 CUR", perElement: "{per: element, amount: 0.005 CUR}", perRecipient: "{per: recipient, amount: 0.001 CUR}",
	}
	for name, p := range presets() {
		unit := cmpOr(p.currency, "USD")
		text := "version: 1\nledger: {kind: memory, allow_forgetting: true}\nproviders:\n  it:\n    preset: " + name + "\n    budgets: {day: {limit: 10 " + unit + ", every: day}}\n"
		if p.upstream == "" {
			text += "    upstream: https://customer.example.com\n"
		}
		if p.per != "" {
			text += "    price: " + strings.ReplaceAll(prices[p.per], "CUR", unit) + "\n"
		}
		f, problems := told(t, text)
		if assert.NotNil(t, f, "%s: %v", name, problems) {
			_, err := New(f.Config, Parts{Ledger: new(budget.Memory)})
			assert.NoError(t, err, name)
			assert.NotContains(t, f.Print(), "price: none", name)
		}
	}
	assert.Greater(t, len(presets()), 30)
}

// A preset that owns a part of a host does not price the rest of it.
func TestPresetsOfAPartOfAHost(t *testing.T) {
	f, problems := told(t, strings.Replace(small, `upstream: "https://api.example.com"`, "preset: google-geocoding, price: 0.005 USD", 1))
	require.NotNil(t, f, "%v", problems)
	assert.Equal(t, []string{"/maps/api/geocode/"}, f.Config.Providers[0].Routes)
	f, _ = told(t, strings.Replace(small, `upstream: "https://api.example.com"`, "preset: github", 1))
	assert.Empty(t, f.Config.Providers[0].Routes)
}

// Every key of the guide is known.
func TestEveryKeyIsRead(t *testing.T) {
	f, problems := told(t, `version: 1
listen: [{address: "127.0.0.1:0", auth: token, provider: api, insecure_plaintext: false}, {address: "127.0.0.1:0", tls: {cert: a, key: b}}]
hosts: [Gateway.internal]
admin: {address: off, token: env:OUTLAY_ADMIN}
ledger: {kind: sqlite, path: spend.db, allow_forgetting: false}
limiter: {kind: redis, on_unavailable: local}
redis: {url: "redis://host:6379/1", username: me, password: env:OUTLAY_ADMIN, cluster: false, sentinel_master: m, prefix: p}
callers:
  shop: {token: env:OUTLAY_SHOP, providers: [api], tenant: t, priority: critical, may_set: [tenant, priority, max_wait]}
  other: {token_sha256: "`+strings.Repeat("ab", 32)+`"}
tenants: {from: header X-Customer, default: p, members: {t: p}, plans: {p: {api: {rates: [1/s], budget: {limit: 5 calls, every: day}}}}}
budgets: {all: {limit: 50 USD, every: month, zone: UTC, reset_at: "06:00", anchor_day: 15, alerts: [50%], keep: {critical: 20%}, mode: monitor, per: everything}}
defaults: {max_wait: 3s}
providers:
  api:
    path: /a
    upstream: https://api.example.com/v2
    routes: ["GET /x", /y/]
    allow_private: true
    credential: {header: {name: X-Key, value: env:OUTLAY_SHOP}}
    dialect: twilio
    rates: [10/s burst 20, 1000/day strict, 300/15m]
    scopes: [{by: form F, rates: [1/s], max: 2}, {by: json J, rates: [100/min burst 100], weight: units}, {by: query Q, max: 1}, {by: header H, max: 1}, {by: caller, max: 1}, {by: tenant, max: 1}]
    max_in_flight: 5
    fixed_rate: true
    price: {per: call, amount: 0.01 USD, unpriced: 0.02 USD}
    budgets: {d: {limit: 5 USD, every: rolling 24h, per: destination}, c: {limit: 5 USD, every: week, per: caller}, t: {limit: 5 USD, every: day, per: tenant}}
    idempotency_header: Idempotency-Key
    retry: {attempts: 2, max_retry_after: 1m, backoff: 1s, share: 50%, not_taken: [503], unknown_outcome: safe}
    timeouts: {connect: 1s, tls: 1s, response: 1s, idle: 1s, body_read: 1s, client_write: 1s}
    body: {buffer: 1KiB, max: 1GiB}
    on_disconnect: finish
    upgrade: allow
    refusal: {money_status: 429}
    monitor: true
    frozen: true
  counted: {upstream: "https://c.example.com", price: {per: element, amount: 1 USD, count: [ids]}}
  llm: {upstream: "https://l.example.com", credential: {query: {name: k, value: env:OUTLAY_SHOP}}, price: {per: token, max_output: 5, bytes_per_token: 4, unpriced: allow, models: {m: {input: 1 USD per 1M, cached_input: 1 USD per 1M, output: 1 USD per 1M, cache_write: 1 USD per 1M, cache_write_1h: 1 USD per 1M, context: 1000}}}}
  free: {upstream: "https://f.example.com", price: free, credential: {basic: {user: me, password: env:OUTLAY_SHOP}}}
headers: {outlay: false}
buffers: 1GiB
log: {level: debug, format: text, calls: refusals}
shutdown: 5s
`)
	require.NotNil(t, f, "%v", problems)
	_, err := New(f.Config, Parts{Ledger: new(budget.Memory)})
	require.NoError(t, err)
	assert.Equal(t, []string{"gateway.internal"}, f.Config.Hosts)
	assert.True(t, f.Config.HideOutlay)
	assert.Equal(t, throttle.Critical, f.Config.Callers[0].Priority)
	p := f.Config.Providers[0]
	assert.Equal(t, []throttle.Rate{{N: 10, Per: time.Second, Burst: 20}, {N: 1000, Per: 24 * time.Hour, Strict: true}, {N: 300, Per: 15 * time.Minute}}, p.Rates)
	assert.Equal(t, 3*time.Second, p.MaxWait, "by the defaults")
	assert.Equal(t, int64(1<<30), p.Body.Max)
	assert.Equal(t, []string{"Q"}, p.QueryKeys)
	assert.Equal(t, 429, p.MoneyStatus)
	assert.True(t, p.Stopped && p.Monitor && p.Upgrades && p.FixedRate)
	q := budget.Quote{Destination: "+49"}
	names := []string{}
	for _, b := range p.BudgetsFor(httptest.NewRequest(http.MethodGet, "/", nil), q) {
		names = append(names, b.Name)
		assert.NoError(t, b.Validate())
	}
	assert.Equal(t, []string{"tenant::day:UTC:calls", "d:+49", "c:", "t:"}, names)
	print := f.Print()
	for _, secret := range []string{"secret-of", "abababab"} {
		assert.NotContains(t, print, secret)
	}
	assert.Contains(t, print, "rates: 10/s burst 20, 1000/day strict, 300/15m")
}

// A table by route prices what it names, by the most specific pattern, and nothing else.
func TestPricesByRoute(t *testing.T) {
	f, problems := told(t, strings.Replace(small, `com"`, `com", price: {per: call, table: {"GET /a/": 0.001 USD, "GET /a/b": 0.002 USD, "POST /m": 0.01 USD per element, default: refuse}}`, 1))
	require.NotNil(t, f, "%v", problems)
	price := f.Config.Providers[0].Price
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/a/x", "0.001"}, {"GET", "/a/b", "0.002"}, {"POST", "/m?origins=a|b&destinations=c|d|e", "0.06"}, {"POST", "/a/b", ""}, {"GET", "/", ""},
	} {
		q, err := price.Quote(httptest.NewRequest(c.method, c.target, nil))
		if c.want == "" {
			assert.ErrorIs(t, err, budget.ErrUnpriced, c.target)
		} else if assert.NoError(t, err, c.target) {
			assert.Equal(t, c.want, q.Amount.String())
			assert.Equal(t, "USD", q.Unit)
		}
	}
}

package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

const folder = "../../examples/gateway/"

// environment has a value for every variable of the examples, with the word secret in it.
func environment(name string) (string, bool) {
	known := "OUTLAY_ADMIN OUTLAY_SHOP OUTLAY_WORKER OUTLAY_REDIS TWILIO_API_KEY TWILIO_API_SECRET GOOGLE_MAPS_KEY OPENAI_API_KEY STRIPE_API_KEY"
	if name == "OUTLAY_REDIS" {
		return "redis://:secret-of-redis@127.0.0.1:6379", true
	}
	return "secret-of-" + strings.ReplaceAll(strings.ToLower(name), "_", "-"), strings.Contains(known, name)
}

// example reads one of the files that users begin with.
func example(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(folder + name)
	require.NoError(t, err)
	return string(b)
}

// written puts a text into a file of its own.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outlay.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// told loads a text and returns the problems without the folder.
func told(t *testing.T, text string) (*File, []string) {
	t.Helper()
	path := written(t, text)
	f, problems := Load(path, LoadOptions{LookupEnv: environment})
	all := []string{}
	for _, p := range problems {
		all = append(all, strings.TrimPrefix(p.String(), filepath.Dir(path)+"/"))
	}
	return f, all
}

func TestExamplesLoadWithoutWarnings(t *testing.T) {
	for _, name := range []string{"minimal.yaml", "company.yaml", "fleet.yaml"} {
		f, problems := Load(folder+name, LoadOptions{LookupEnv: environment})
		require.NotNil(t, f, "%v", problems)
		assert.Empty(t, problems, name)
		assert.Equal(t, folder+name, f.Path)
		assert.Equal(t, f.Hash, Fingerprint(f))
	}
}

func TestWhatTheCompanyExampleMeans(t *testing.T) {
	f, problems := Load(folder+"company.yaml", LoadOptions{LookupEnv: environment})
	require.NotNil(t, f, "%v", problems)
	assert.Equal(t, []Listen{
		{Address: "127.0.0.1:8787"},
		{Address: "10.0.3.5:8788", Cert: folder + "tls.crt", Key: folder + "tls.key", Listener: Listener{Token: true}},
		{Address: "127.0.0.1:8790", Listener: Listener{Provider: "stripe"}},
	}, f.Listen)
	assert.Equal(t, LedgerChoice{"sqlite", filepath.Clean(folder + "spend.db")}, f.Ledger)
	c := f.Config
	assert.Equal(t, "Outlay-Tenant", c.TenantHeader)
	require.Len(t, c.Providers, 4)
	twilio, google, openai, stripe := c.Providers[0], c.Providers[1], c.Providers[2], c.Providers[3]

	assert.Equal(t, "twilio", twilio.Name)
	assert.Equal(t, "https://api.twilio.com", twilio.Upstream.String())
	assert.Equal(t, []throttle.Rate{{N: 10, Per: time.Second, Burst: 10}}, twilio.Rates)
	assert.Equal(t, 8*time.Second, twilio.MaxWait)
	assert.Equal(t, "secret-of-twilio-api-key", twilio.Credential.User)
	assert.Equal(t, "secret-of-twilio-api-secret", twilio.Credential.Secret())
	require.Len(t, twilio.Scopes, 2)
	assert.Equal(t, "form From", twilio.Scopes[0].Name)
	assert.Equal(t, "sender", twilio.Scopes[1].Name, "that of the preset is last: a throttle closes its gate")
	b := twilio.Budgets[0]
	assert.Equal(t, "twilio-day", b.Name)
	assert.Equal(t, 10*budget.Unit, b.Keep)
	assert.Equal(t, []int{80}, b.Alerts)
	assert.Equal(t, "America/New_York", b.Zone.String())

	assert.Equal(t, "google", google.Path)
	assert.Equal(t, []throttle.Rate{{N: 50, Per: time.Second, Burst: 25}, {N: 100000, Per: 24 * time.Hour, Strict: true}}, google.Rates)
	assert.Equal(t, CancelOnDisconnect, openai.OnDisconnect)
	assert.Equal(t, 10*time.Minute, openai.Timeouts.Response)
	assert.Equal(t, "plan", openai.Scopes[0].Name)
	assert.Equal(t, []throttle.Rate{{N: 200, Per: time.Minute, Burst: 20}}, openai.Scopes[0].RatesFor("t:acme"))
	assert.Equal(t, []throttle.Rate{{N: 20, Per: time.Minute, Burst: 5}}, openai.Scopes[0].RatesFor("t:"), "who names no tenant has the default plan")
	assert.NotNil(t, openai.BudgetsFor)
	assert.Nil(t, twilio.BudgetsFor)
	assert.Equal(t, "Idempotency-Key", stripe.IdempotencyHeader)
	_, err := New(c, Parts{Ledger: new(budget.Memory)})
	assert.NoError(t, err)
}

// change replaces one part of the company example, which must be there once.
type change struct{ old, new, want string }

// The places are those of the company example with that one thing changed.
func TestWrongLines(t *testing.T) {
	text := example(t, "company.yaml")
	for _, c := range []change{
		{"    rates: [10/s burst 10]", "    rate: [10/s burst 10]", `outlay.yaml:38:5: unknown key "rate" in providers.twilio: did you mean "rates"?`},
		{"[10/s burst 10]", "[10]", `outlay.yaml:38:13: rate "10" has no unit: write 10/s, 10/min or 10/day`},
		{`"+1": 0.0083 USD, "+49"`, `+1: 0.0083 USD, "+49"`, `outlay.yaml:44:15: price key 1 is a number to YAML (you wrote +1): put it in quotes, "+1"`},
		{"limit: 50 USD", "limit: 50", `outlay.yaml:46:27: budget twilio-day: limit "50" has no currency: write 50 USD`},
		{"zone: America/New_York", "zone: PST", `outlay.yaml:46:53: zone "PST" is not an IANA name: did you mean America/Los_Angeles?`},
		{"env:TWILIO_API_KEY", "env:NOWHERE", `outlay.yaml:37:32: twilio.credential: environment variable NOWHERE is not set`},
		{"    auth: token\n", "    auth: none\n", `outlay.yaml:7:11: 10.0.3.5:8788 can be reached from other machines and providers google, openai, stripe, twilio add our keys, but auth is none: anyone on the network could spend. Set auth: token, or listen on 127.0.0.1`},
		{"path: /google", "path: /twilio", `outlay.yaml:50:11: two providers share the path /twilio (lines 35 and 50)`},
		{"{kind: sqlite, path: spend.db}", "{kind: memory}", `outlay.yaml:15:9: ledger memory forgets all spending at exit: set allow_forgetting: true if that is meant, or write ledger: {kind: sqlite, path: spend.db}`},
		{"limit: 900 USD", "limit: 900 EUR", `outlay.yaml:32:3: budget all-month is in EUR but provider twilio is priced in USD: one currency per budget`},
		{"preset: twilio ", "preset: twillio ", `outlay.yaml:36:13: preset "twillio" is not known: did you mean "twilio"?`},
		{"[10/s burst 10]", "[10 rps]", `outlay.yaml:38:13: rate "10 rps" is not how a rate is written: write 10/s`},
		{"[10/s burst 10]", "[0/s]", `outlay.yaml:38:13: rate "0/s" lets nothing through: leave it out for no limit; frozen: true blocks everything`},
		{"[10/s burst 10]", "[10/s burst 0]", `outlay.yaml:38:13: rate "10/s burst 0" has a burst that lets nothing start: write burst 1 or more`},
		{"[10/s burst 10]", "10/s", `outlay.yaml:38:12: providers.twilio.rates must be a list: write [10/s]`},
		{"[10/s burst 10]", "[10/sec]", `outlay.yaml:38:13: rate "10/sec" has an unknown period: write 10/s`},
		{"max_wait: 8s ", "max_wait: 8 ", `outlay.yaml:41:15: max_wait "8" has no unit: write 8s, or 8ms`},
		{"limit: 50 USD", "limit: $50", `outlay.yaml:46:27: budget twilio-day: limit "$50" has a sign for its currency: write 50 USD`},
		{"limit: 50 USD", "limit: 1e3 USD", `outlay.yaml:46:27: budget twilio-day: limit "1e3 USD" has an exponent: write it out, such as 0.001 USD`},
		{"limit: 50 USD", "limit: -1 USD", `outlay.yaml:46:27: budget twilio-day: limit "-1 USD" has a sign: write an amount such as 50 USD`},
		{"limit: 50 USD", "limit: 0.0000000001 USD", `outlay.yaml:46:27: budget twilio-day: limit "0.0000000001 USD" cannot be kept: more than 9 decimal places`},
		{"limit: 50 USD", "limit: 50 usd", `outlay.yaml:46:27: budget twilio-day: limit "50 usd" has its currency in small letters: write 50 USD`},
		{"every: day, zone: America/New_York", "every: daily, zone: America/New_York", `outlay.yaml:46:42: budget twilio-day: every "daily" is no period: did you mean "day"?`},
		{"alerts: [80%]", "alerts: [80]", `outlay.yaml:46:103: alert "80" has no unit: write 80%`},
		{"zone: Europe/Berlin", "zone: berlin", `outlay.yaml:32:51: zone "berlin" is not an IANA name: did you mean Europe/Berlin?`},
		{"zone: Europe/Berlin", "zone: UTC+1", `outlay.yaml:32:51: zone "UTC+1" is an offset, which knows no summer time: write a city such as Europe/Berlin, or UTC`},
		{"auth: token\n  -", "auth: tokens\n  -", `outlay.yaml:7:11: auth "tokens" is not known: did you mean "token"?`},
		{"127.0.0.1:8787  ", `":8787"  `, `outlay.yaml:4:14: address ":8787" means every address of this machine: write 0.0.0.0:8787 if that is meant, or 127.0.0.1:8787`},
		{"    tls: {cert: tls.crt, key: tls.key}\n", "", `outlay.yaml:5:14: 10.0.3.5:8788 can be reached from other machines without TLS, so that texts and keys travel in clear: give tls: {cert, key}, or insecure_plaintext: true if the network encrypts`},
		{`{bearer: "env:OPENAI_API_KEY"}`, "{bearer: sk-live-secret-1234567890}", `outlay.yaml:59:26: openai.credential: a secret is written as env:NAME, file:/path or plain:..., and this is none of them`},
		{"providers: [twilio, openai]", "providers: [twilio, opnai]", `outlay.yaml:20:51: caller worker names the provider "opnai", which is not there: did you mean "openai"?`},
		{"globex: premium", "globex: premum", `outlay.yaml:26:36: tenants.members names the plan "premum", which is not in tenants.plans: did you mean "premium"?`},
		{"0.15 USD per 1M", "0.15 USD", `outlay.yaml:67:30: input "0.15 USD" does not say for how many tokens: write it as 0.15 USD per 1M`},
		{`"GET /maps/api/geocode/json"`, `"GET maps/api"`, `outlay.yaml:53:32: price key "GET maps/api": it is no route: write one such as "GET /maps/api/geocode/json"`},
		{"per: sms_segment ", "per: token ", `outlay.yaml:43:12: twilio is billed per sms_segment: write per: sms_segment`},
		{"{by: form From,", "{by: from From,", `outlay.yaml:40:14: scope by "from From": write form NAME, json NAME, query NAME, header NAME, caller or tenant, or a scope of the preset: sender`},
		{"limiter: {kind: local}", "limiter: {kind: redis}", `outlay.yaml:16:17: redis.url is missing, and kind: redis needs it: write redis: {url: redis://host:6379}`},
		{"version: 1\n", "", `outlay.yaml:1:1: version is missing: begin with version: 1`},
		{"version: 1\n", "version: 2\n", `outlay.yaml:1:10: version "2" is not known: this program reads version: 1`},
		{"    max_in_flight: 32\n", "    max_in_flight: 32\n    max_in_flight: 33\n", `outlay.yaml:62:5: key "max_in_flight" is repeated in providers.openai: it stands in line 61 already`},
		{"    max_in_flight: 32\n", "\tmax_in_flight: 32\n", `outlay.yaml:61:1: a tab in the indentation: YAML wants spaces`},
		{"log: {level", "---\nlog: {level", `outlay.yaml:79:1: a second document begins here: one file is one configuration; remove the line ---`},
	} {
		require.Equal(t, 1, strings.Count(text, c.old), "%q", c.old)
		f, problems := told(t, strings.Replace(text, c.old, c.new, 1))
		assert.Nil(t, f, c.new)
		assert.Contains(t, problems, c.want)
		for _, p := range problems {
			assert.NotContains(t, p, "sk-live", c.new)
			assert.NotContains(t, p, "secret-of-", c.new)
		}
	}
}

// One wrong thing is told once: what follows from it is no news.
func TestOneMistakeIsOneProblem(t *testing.T) {
	text := example(t, "company.yaml")
	for _, c := range []change{
		{old: "[10/s burst 10]", new: "[10]"}, {old: "limit: 50 USD", new: "limit: 50"}, {old: "zone: America/New_York", new: "zone: PST"},
		{old: "env:TWILIO_API_KEY", new: "env:NOWHERE"}, {old: "preset: twilio ", new: "preset: twillio "}, {old: "preset: stripe", new: "preset: strip"},
		{old: "0.0083 USD", new: "0.0083"}, {old: "0.15 USD per 1M", new: "0.15 USD"}, {old: "every: month", new: "every: year"},
		{old: "{kind: sqlite, path: spend.db}", new: "{kind: sqllite, path: spend.db}"},
	} {
		_, problems := told(t, strings.Replace(text, c.old, c.new, 1))
		assert.Len(t, problems, 1, "%s: %v", c.new, problems)
	}
}

func TestWarnings(t *testing.T) {
	text := example(t, "company.yaml")
	for _, c := range []change{
		{"      unpriced: refuse               # calls of other models\n", "", `outlay.yaml:70:7: budget openai-day is armed and only gpt-4o-mini has a price: calls for any other model will be refused as unpriced. Add them to price.models, or set unpriced (warning)`},
		{"max_wait: 8s ", "max_wait: 45s ", `outlay.yaml:41:15: max_wait 45s is longer than twilio-go waits (10s): callers would leave while queued (warning)`},
		{"max_wait: 8s ", "retry: {max_retry_after: 1m}\n    max_wait: 8s ", `outlay.yaml:41:12: max_retry_after 1m is longer than max_wait (8s), which bounds all waiting (warning)`},
		{"    max_in_flight: 32\n    max_wait: 30s\n", "    retry: {max_retry_after: 31s}\n", `outlay.yaml:61:12: max_retry_after 31s is longer than max_wait (30s), which bounds all waiting (warning)`},
		{"    provider: stripe\n", "    provider: google\n", `outlay.yaml:74:3: stripe: SDKs for Node and Go drop a path prefix; add a listener with provider: stripe (warning)`},
		{`"env:STRIPE_API_KEY"`, "plain:secret-of-somebody", `outlay.yaml:76:26: stripe.credential: the secret stands in this file itself: write env:NAME or file:/path (warning)`},
	} {
		require.Equal(t, 1, strings.Count(text, c.old), "%q", c.old)
		f, problems := told(t, strings.Replace(text, c.old, c.new, 1))
		assert.NotNil(t, f, "%v", problems)
		assert.Contains(t, problems, c.want)
		assert.NotContains(t, strings.Join(problems, "\n"), "secret-of-somebody")
	}
	_, problems := told(t, strings.Replace(example(t, "fleet.yaml"), "ledger: {kind: redis}", "ledger: {kind: memory, allow_forgetting: true}", 1))
	assert.Equal(t, []string{`outlay.yaml:16:8: only one of ledger and limiter is shared: three replicas may spend three times the budgets (warning)`}, problems)
}

func TestAllErrorsAtOnceInTheirOrder(t *testing.T) {
	text := strings.NewReplacer("[10/s burst 10]", "[10]", "limit: 50 USD", "limit: 50", "zone: Europe/Berlin", "zone: CEST", "max_wait: 8s ", "max_wat: 8s ").Replace(example(t, "company.yaml"))
	_, problems := told(t, text)
	require.Len(t, problems, 4)
	for i, line := range []string{":32:", ":38:", ":41:", ":46:"} {
		assert.Contains(t, problems[i], "outlay.yaml"+line)
	}
	var many strings.Builder
	many.WriteString("version: 1\n")
	for i := range 30 {
		fmt.Fprintf(&many, "key%d: 1\n", i)
	}
	_, problems = told(t, many.String())
	require.Len(t, problems, 21)
	assert.True(t, strings.HasPrefix(problems[20], "outlay.yaml: and "), problems[20])
}

func TestRestart(t *testing.T) {
	text := example(t, "company.yaml")
	path := written(t, text)
	running, _ := Load(path, LoadOptions{LookupEnv: environment})
	require.NotNil(t, running)
	for _, c := range []change{
		{"path: spend.db", "path: other.db", `outlay.yaml:15:30: ledger.path changed from ` + filepath.Dir(path) + `/spend.db: this needs a restart; nothing of the new file was applied`},
		{"zone: America/New_York", "zone: Europe/Berlin", `outlay.yaml:46:53: budget twilio-day: zone changed from America/New_York: one name is one period, zone and currency for ever; give the budget a new name; nothing of the new file was applied`},
		{"every: month", "every: week", `outlay.yaml:32:38: budget all-month: every changed from month: one name is one period, zone and currency for ever; give the budget a new name; nothing of the new file was applied`},
		{"127.0.0.1:8786 ", "127.0.0.1:8785 ", `outlay.yaml:12:3: admin changed: this needs a restart; nothing of the new file was applied`},
		{"127.0.0.1:8790 ", "127.0.0.1:8791 ", `outlay.yaml:4:3: listen changed: this needs a restart; nothing of the new file was applied`},
		{"[10/s burst 10]", "[20/s burst 10]", ""},
		{"limit: 50 USD", "limit: 60 USD", ""},
	} {
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, c.old, c.new, 1)), 0o600))
		f, problems := Load(path, LoadOptions{LookupEnv: environment})
		require.NotNil(t, f, "%v", problems)
		assert.NotEqual(t, running.Hash, f.Hash)
		said := []string{}
		for _, p := range f.Restart(running) {
			said = append(said, strings.TrimPrefix(p.String(), filepath.Dir(path)+"/"))
		}
		if c.want == "" {
			assert.Empty(t, said, c.new)
		} else {
			assert.Equal(t, []string{c.want}, said)
		}
	}
}

// replaceOnce replaces what must be there once.
func replaceOnce(t *testing.T, text, old, with string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, old), "%q", old)
	return strings.Replace(text, old, with, 1)
}

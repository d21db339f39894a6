package gateway

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

const plain = `version: 1
listen: [{address: 127.0.0.1:8787}]
admin: {address: 127.0.0.1:8786}
ledger: {kind: sqlite, path: spend.db}
callers: {shop: {token: env:OUTLAY_SHOP}}
providers:
  api:
    upstream: https://api.example.com
    price: 0.01 USD
    body: {buffer: 1MiB}
    budgets: {day: {limit: 5 USD, every: day}}
`

// What an operator may get wrong is named at its place, with a remedy.
func TestMistakes(t *testing.T) {
	for _, c := range []change{
		{"https://api.example.com", "http://10.0.0.1", `outlay.yaml:8:15: upstream 10.0.0.1 is no public address: write allow_private: true beside it if that is meant`},
		{"https://api.example.com", "http://localhost:9000", `outlay.yaml:8:15: upstream localhost is no public address: write allow_private: true beside it if that is meant`},
		{"https://api.example.com", "http://[::1]:9000", `outlay.yaml:8:15: upstream ::1 is no public address: write allow_private: true beside it if that is meant`},
		{"{address: 127.0.0.1:8786}", "{address: 127.0.0.1:8787}", `outlay.yaml:3:18: listen (127.0.0.1:8787) and admin (127.0.0.1:8787) share an address: give one of them another port`},
		{"{address: 127.0.0.1:8786}", "{address: localhost:8787}", `outlay.yaml:3:18: listen (127.0.0.1:8787) and admin (localhost:8787) share an address: give one of them another port`},
		{"admin: {address: 127.0.0.1:8786}", "log: {level: info}", ""},
		{"[{address: 127.0.0.1:8787}]\nadmin: {address: 127.0.0.1:8786}", "[{address: 127.0.0.1:8786}]", `outlay.yaml:2:20: listen (127.0.0.1:8786) and admin (127.0.0.1:8786) share an address: give one of them another port`},
		{"listen: [{address: 127.0.0.1:8787}]\nadmin: {address: 127.0.0.1:8786}", "admin: {address: 127.0.0.1:8787}", `outlay.yaml:2:18: listen (127.0.0.1:8787) and admin (127.0.0.1:8787) share an address: give one of them another port`},
		{"[{address: 127.0.0.1:8787}]", "[{address: 127.0.0.1:8787}, {address: 0.0.0.0:8787, auth: none, insecure_plaintext: true}]", `outlay.yaml:2:47: two listeners share the address 0.0.0.0:8787: give each a port of its own`},
		{"every: day", "every: 24h", `outlay.yaml:11:42: budget day: every "24h" is no period: write rolling 24h for any 24h, or day for a calendar day in a zone`},
		{"every: day", "every: hour", `outlay.yaml:11:42: budget day: every "hour" is no period: write rolling 1h`},
		{"{shop:", "{local:", `outlay.yaml:5:19: caller local is whoever comes without a token: give the token to a caller of another name`},
		{"price: 0.01 USD", "price: {per: call, table: {\"GET /x\": free, default: 0.01 USD}}", ""},
		{"price: 0.01 USD", "price: {per: sms_segment, table: {\"+1\": free}}", `outlay.yaml:9:45: price "free" is for per: call: write an amount, such as 0.005 USD`},
		{"    budgets: {day: {limit: 5 USD, every: day}}\n", "", `outlay.yaml:9:5: api has a price and no budget: nothing limits what it spends. Write budgets: {api-day: {limit: 50 USD, every: day}} (warning)`},
		{"limit: 5 USD", "limit: 5 calls", `outlay.yaml:9:5: api has a price and no budget: nothing limits what it spends. Write budgets: {api-day: {limit: 50 USD, every: day}} (warning)`},
		{"{buffer: 1MiB}", "{buffer: 64MiB}", `outlay.yaml:10:20: api: body.buffer is larger than body.max (32 MiB), beyond which bodies are refused: raise max, or lower buffer (warning)`},
		{"providers:", "buffers: 512KiB\nproviders:", `outlay.yaml:11:20: api: body.buffer is larger than buffers, the memory for all bodies: a body of that size is answered with 503 (warning)`},
		{"every: day", "every: rolling 9000h", `outlay.yaml:11:42: budget day: every: rolling "9000h" is longer than a year: write rolling 8784h at most, or month`},
		{"every: day", "every: day, keep: {critical: 100%}", `outlay.yaml:11:64: budget day: with everything kept for critical calls no other call is ever paid for: write less than 100%`},
		{"body: {buffer: 1MiB}", "scopes: [{by: caller, max: 1}, {by: caller, max: 2}]", `outlay.yaml:10:41: scope "caller" is there twice: write all its rates in one`},
		{"body: {buffer: 1MiB}", `routes: ["GET /x", "GET /x"]`, `outlay.yaml:10:24: route "GET /x" is there already, or overlaps another one so that neither is the narrower: remove one`},
		{"[{address: 127.0.0.1:8787}]", "[]", `outlay.yaml:2:9: listen is empty, so that nobody could call: leave it out for 127.0.0.1:8787`},
		{"[{address: 127.0.0.1:8787}]", `[{address: "[::]:8787", insecure_plaintext: true}]`, `outlay.yaml:2:20: [::]:8787 is every address of this machine, but a call must name one of its addresses: write hosts: [NAME] if programs use a name, such as that of a container (warning)`},
		{"[{address: 127.0.0.1:8787}]", "[{address: 10.0.0.0:8787, insecure_plaintext: true}]", ""},
		{"token: env:OUTLAY_SHOP", "token: env:OUTLAY_SHOP, providers: []", `outlay.yaml:5:53: callers.shop.providers is empty, which would allow all: leave it out for that, or name some`},
		{"{address: 127.0.0.1:8786}", "{address: 127.0.0.1:8786, token: env:OUTLAY_SHOP}", `outlay.yaml:5:11: caller shop has the token of admin: whoever calls could change limits`},
		{"api.example.com", "api.example.com:99999", `outlay.yaml:8:15: upstream "https://api.example.com:99999": the port must be a number from 1 to 65535`},
		{"kind: sqlite, path: spend.db}", "kind: redis}\nlimiter: {kind: redis}\nredis: {url: \"redis://a:1,b:2\"}", `outlay.yaml:6:14: redis.url is no address: write redis://host:6379, or rediss:// for TLS, or env:NAME`},
		{"kind: sqlite, path: spend.db}", "kind: redis}\nlimiter: {kind: redis}\nredis: {url: \"redis://a:1/main\"}", `outlay.yaml:6:14: redis.url: nothing but the number of a database may follow the host: write redis://host:6379/1`},
		{"kind: sqlite, path: spend.db}", "kind: redis}\nlimiter: {kind: redis}\nredis: {url: \"redis://a/1\"}", ""},
		{"price: 0.01 USD", `price: {per: sms_segment, table: {"0049": 0.5 USD, default: 0.01 USD}}`, `outlay.yaml:9:39: price key "0049" begins with a zero, and no number with its country does: write "+49" for 0049`},
		{"price: 0.01 USD", `price: {per: sms_segment, table: {"+049": 0.5 USD, default: 0.01 USD}}`, `outlay.yaml:9:39: price key "+049" begins with a zero, and no number with its country does: write "+49" for 0049`},
		{"price: 0.01 USD", `price: {per: sms_segment, table: {"+1": 0.5 USD, "1": 0.01 USD}}`, `outlay.yaml:9:54: price key "1" is there twice, with + and without`},
		{"price: 0.01 USD", `price: {per: call, table: {"GET /x?a=1": 0.5 USD, default: 0.01 USD}}`, `outlay.yaml:9:32: price key "GET /x?a=1": a route is a path, without query, fragment and blanks: no call would have it`},
		{"price: 0.01 USD", "price: {per: token, unpriced: refuse, models: {a: {input: 1 USD per 1M}}}", `outlay.yaml:9:55: model "a" has no price of its output, which costs nothing then: write output: 0 USD per 1M if that is so (warning)`},
		{"price: 0.01 USD", "price: {per: token, unpriced: refuse, models: {a: {input: 1 USD per 1M, output: 0 USD per 1M}}}", ""},
		{"https://api.example.com", "http://api.example.com", `outlay.yaml:8:15: upstream "http://api.example.com" is not encrypted, so that keys and texts travel in clear: write https (warning)`},
		{"body: {buffer: 1MiB}", "rates: [10/s burst 5 burst 6]", `outlay.yaml:10:13: rate "10/s burst 5 burst 6" has two bursts: write one`},
		{"body: {buffer: 1MiB}", "routes: []", `outlay.yaml:10:13: routes is empty, which would allow all paths: leave it out for that, or write patterns such as "POST /v1/messages"; frozen: true refuses everything`},
	} {
		f, problems := told(t, replaceOnce(t, plain, c.old, c.new))
		if c.want == "" {
			assert.Empty(t, problems, c.new)
			continue
		}
		assert.Equal(t, []string{c.want}, problems, c.new)
		assert.Equal(t, strings.HasSuffix(c.want, "(warning)"), f != nil)
	}
}

// Keys that a vendor would refuse are told before the first call.
func TestSecretsAsTheyAreSaved(t *testing.T) {
	for _, c := range []struct{ credential, saved, want string }{
		{"{bearer: env:KEY}", "\ufeffsk-1", `outlay.yaml:10:26: api.credential: the secret has characters that cannot be seen, such as a byte order mark: save it as plain text`},
		{"{bearer: env:KEY}", "sk\u200b1", `outlay.yaml:10:26: api.credential: the secret has characters that cannot be seen, such as a byte order mark: save it as plain text`},
		{"{bearer: env:KEY}", `"sk-1"`, `outlay.yaml:10:26: api.credential: the secret stands in quotes, which are sent as a part of it (warning)`},
		{"{bearer: env:KEY}", "Bearer sk-1", `outlay.yaml:10:26: api.credential.bearer: the secret holds a blank: it must be the key alone, without Bearer`},
		{"{header: {name: Authorization, value: env:KEY}}", "Bearer sk-1", ""},
		{"{basic: {user: env:KEY, password: env:KEY}}", "sk-1", ""},
		{"{basic: {user: \"AC1:x\", password: env:KEY}}", "sk-1", `outlay.yaml:10:32: api.credential.basic.user: the name of a user holds neither a colon nor characters that cannot be seen`},
		{"{basic: {user: \"AC1\\n\", password: env:KEY}}", "sk-1", `outlay.yaml:10:32: api.credential.basic.user: the name of a user holds neither a colon nor characters that cannot be seen`},
		{"{basic: {user: \"plain:AC1\", password: env:KEY}}", "sk-1", `outlay.yaml:10:32: api.credential: the secret stands in this file itself: write env:NAME or file:/path (warning)`},
	} {
		path := written(t, replaceOnce(t, plain, "body: {buffer: 1MiB}", "credential: "+c.credential))
		f, problems := Load(path, LoadOptions{LookupEnv: func(name string) (string, bool) {
			if name == "KEY" {
				return c.saved, true
			}
			return environment(name)
		}})
		if c.want == "" {
			assert.Empty(t, problems, c.credential)
			continue
		}
		require.Len(t, problems, 1, c.credential)
		assert.Equal(t, filepath.Dir(path)+"/"+c.want, problems[0].String())
		if f != nil && strings.Contains(c.credential, "plain") {
			assert.Equal(t, "AC1", f.Config.Providers[0].Credential.User)
		}
	}
}

// A row that is free costs nothing, and is no way for the others.
func TestFreeRoutes(t *testing.T) {
	f, problems := told(t, replaceOnce(t, plain, "0.01 USD", `{per: call, table: {"GET /x": free, default: 0.01 USD}}`))
	require.Empty(t, problems)
	for method, want := range map[string]budget.Amount{"GET": 0, "POST": budget.Unit / 100} {
		q, err := f.Config.Providers[0].Price.Quote(request(t, method, "https://api.example.com/x"))
		require.NoError(t, err)
		assert.Equal(t, want, q.Amount)
		assert.False(t, q.Assumed)
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	text := replaceOnce(t, plain, "path: spend.db", "path: nowhere/spend.db")
	text = replaceOnce(t, text, "{address: 127.0.0.1:8787}", "{address: 127.0.0.1:8787, tls: {cert: a.crt, key: a.key}}")
	path := written(t, text)
	for files, want := range map[bool]int{false: 0, true: 3} {
		f, problems := Load(path, LoadOptions{LookupEnv: environment, Files: files})
		require.NotNil(t, f)
		require.Len(t, problems, want)
		if files {
			dir := filepath.Dir(path)
			assert.Equal(t, path+":4:30: ledger.path: the folder "+dir+"/nowhere cannot be found (no such file or directory): make it, or write another path (warning)", problems[2].String())
			assert.Contains(t, problems[0].String(), path+":2:48: tls.cert: the file "+dir+"/a.crt cannot be found")
		}
	}
}

func request(t *testing.T, method, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, target, nil)
	require.NoError(t, err)
	return r
}

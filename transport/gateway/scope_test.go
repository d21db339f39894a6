package gateway

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const scoped = `version: 1
ledger: {kind: memory, allow_forgetting: true}
providers:
  api:
    upstream: https://api.example.com
    scopes: [{by: SCOPE, rates: [1/s]}]
`

// Leaving a header or a parameter out is no way around its limit.
func TestScopesOfWhatIsLeftOut(t *testing.T) {
	for by, set := range map[string]func(*http.Request){
		"header X-Team": func(r *http.Request) { r.Header.Set("X-Team", "a") },
		"query team":    func(r *http.Request) { r.URL.RawQuery = "team=a" },
		"tenant":        nil,
	} {
		f, problems := told(t, replaceOnce(t, scoped, "SCOPE", by))
		require.Empty(t, problems)
		key := f.Config.Providers[0].Scopes[0].Key
		r, err := http.NewRequest("GET", "https://api.example.com/", nil)
		require.NoError(t, err)
		missing := key(r)
		assert.NotEmpty(t, missing, by)
		if set != nil {
			set(r)
			assert.Equal(t, "a", key(r))
		}
	}
	f, problems := told(t, replaceOnce(t, scoped, "SCOPE", "header x-team"))
	require.Empty(t, problems)
	assert.Equal(t, []string{"X-Team"}, f.Config.Providers[0].HeaderKeys)
}

func TestHeadersThatCannotBeUsed(t *testing.T) {
	for by, want := range map[string]string{
		"header Host":            "it says where the request goes and where it ends",
		"header te":              "it is for the next hop alone",
		"header X-Forwarded-For": "it is removed before the call is counted",
		"header Outlay-Tenant":   "write by: tenant",
		"header outlay-token":    "write by: caller or by: tenant",
	} {
		_, problems := told(t, replaceOnce(t, scoped, "SCOPE", by))
		require.Len(t, problems, 1, by)
		assert.Contains(t, problems[0], "outlay.yaml:6:19: ")
		assert.Contains(t, problems[0], want)
	}
	keyed := replaceOnce(t, scoped, "    scopes:", "    credential: {header: {name: NAME, value: env:STRIPE_API_KEY}}\n    scopes:")
	for _, name := range []string{
		"Host", "Content-Length", "content-type", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Expect", "Proxy-Authorization",
		"Outlay-Token", "X-Forwarded-For", "Via", "Accept-Encoding", "Idempotency-Key", "X-HTTP-Method-Override", "Origin", "If-Match",
	} {
		_, problems := told(t, replaceOnce(t, replaceOnce(t, keyed, "NAME", name), "SCOPE", "caller"))
		require.Len(t, problems, 1, name)
		assert.Contains(t, problems[0], "outlay.yaml:6:33: api.credential.header: "+name+" ")
	}
	for _, name := range []string{"X-Api-Key", "Authorization", "Cookie", "apiKey"} {
		_, problems := told(t, replaceOnce(t, replaceOnce(t, keyed, "NAME", name), "SCOPE", "caller"))
		assert.Empty(t, problems, name)
	}
	_, problems := told(t, replaceOnce(t, replaceOnce(t, keyed, "NAME", "X-Key"), "SCOPE", "header x-key"))
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "it holds the key of the gateway")
	_, problems = told(t, replaceOnce(t, replaceOnce(t, scoped, "SCOPE", "caller"), "providers:", "tenants: {from: header Host}\nproviders:"))
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "outlay.yaml:3:17: tenants.from")
	_, problems = told(t, replaceOnce(t, scoped, "    scopes: [{by: SCOPE, rates: [1/s]}]", "    idempotency_header: Content-Length"))
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "outlay.yaml:6:25: idempotency_header")
}

package gateway_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

const (
	shopToken   = "shop-0123456789abcdef"
	workerToken = "worker-0123456789abcdef"
	realKey     = "sk-real/key+1"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// keyed is a provider whose key the gateway has.
func keyed(t testing.TB, to string, slot gateway.Slot) gateway.Provider {
	p := behind(t, "api", to)
	p.Credential = gateway.Credential{Slot: slot, User: "AC1", Secret: func() string { return realKey }}
	p.Slots = []gateway.Slot{{In: gateway.InHeader, Name: "X-Vendor-Key"}, {In: gateway.InQuery, Name: "vendor_key"}}
	return p
}

func twoCallers(c gateway.Config) gateway.Config {
	c.Callers = []gateway.Caller{caller("shop", shopToken), caller("worker", workerToken)}
	return c
}

// TestTokenInTheVendorsSlot: an SDK that can only be given a key is given a token; the
// real key is put in its place, and no vendor ever sees the token.
func TestTokenInTheVendorsSlot(t *testing.T) {
	v := newVendor(t, nil)
	bearer := gateway.Slot{In: gateway.InBearer}
	tests := []struct {
		name   string
		slot   gateway.Slot
		path   string
		header []string
	}{
		{"Outlay-Token", bearer, "/api/x", []string{"Outlay-Token", shopToken}},
		{"bearer", bearer, "/api/x", []string{"Authorization", "Bearer " + shopToken}},
		{"another scheme", bearer, "/api/x", []string{"Authorization", "AccessKey " + shopToken}},
		{"basic, user", gateway.Slot{In: gateway.InBasic}, "/api/x", []string{"Authorization", basic(shopToken, "x")}},
		{"basic, password", gateway.Slot{In: gateway.InBasic}, "/api/x", []string{"Authorization", basic("AC1", shopToken)}},
		{"x-api-key", gateway.Slot{In: gateway.InHeader, Name: "X-Api-Key"}, "/api/x", []string{"X-Api-Key", shopToken}},
		{"goog", gateway.Slot{In: gateway.InHeader, Name: "X-Goog-Api-Key"}, "/api/x", []string{"X-Goog-Api-Key", shopToken}},
		{"a header of the vendor", bearer, "/api/x", []string{"X-Vendor-Key", shopToken}},
		{"query", gateway.Slot{In: gateway.InQuery, Name: "key"}, "/api/x?a=%2B&key=" + shopToken + "&b=", nil},
		{"encoded query", gateway.Slot{In: gateway.InQuery, Name: "key"}, "/api/x?%6bey=%73" + shopToken[1:], nil},
		{"a parameter of the vendor", gateway.Slot{In: gateway.InQuery, Name: "key"}, "/api/x?vendor_key=" + shopToken, nil},
		{"two of them", bearer, "/api/x?key=" + shopToken, []string{"Authorization", "Bearer " + shopToken, "Cookie", "a=" + shopToken, "X-Api-Key", shopToken}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, twoCallers(config(keyed(t, v.URL, tt.slot))), gateway.Listener{Token: true})
			got := r.do(http.MethodGet, tt.path, "", tt.header...)
			require.Equal(t, http.StatusOK, got.status, got.body)
			all := v.requests()
			last := all[len(all)-1]
			requireNowhere(t, last, shopToken)
			requireKey(t, last, tt.slot)
			require.Contains(t, r.log.String(), "caller=shop")
			require.NotContains(t, r.log.String(), shopToken)
			require.NotContains(t, r.log.String(), realKey)
		})
	}
	all := v.requests()
	require.Equal(t, "/x?a=%2B&b=&key=sk-real%2Fkey%2B1", all[8].uri, "the rest stays byte for byte")
}

// requireNowhere searches all of a request, plain, escaped and in base64.
func requireNowhere(t *testing.T, r request, secret string) {
	t.Helper()
	var b strings.Builder
	_ = r.header.Write(&b)
	text := r.method + r.uri + r.host + b.String() + r.body
	require.NotContains(t, text, secret)
	for f := range strings.FieldsSeq(b.String()) {
		plain, _ := base64.StdEncoding.DecodeString(f)
		require.NotContains(t, string(plain), secret)
	}
	require.NotContains(t, text, "Outlay")
}

func requireKey(t *testing.T, r request, slot gateway.Slot) {
	t.Helper()
	switch slot.In {
	case gateway.InBearer:
		require.Equal(t, []string{"Bearer " + realKey}, r.header["Authorization"])
	case gateway.InBasic:
		require.Equal(t, []string{basic("AC1", realKey)}, r.header["Authorization"])
	case gateway.InHeader:
		require.Equal(t, []string{realKey}, r.header[slot.Name])
	case gateway.InQuery:
		require.Contains(t, r.uri, "key=sk-real%2Fkey%2B1")
		require.Equal(t, 1, strings.Count(r.uri, "key="))
	}
}

// TestTokensThatWouldLeak are refused before anything is sent.
func TestTokensThatWouldLeak(t *testing.T) {
	v := newVendor(t, nil)
	open := behind(t, "open", v.URL) // the program's own key passes
	r := start(t, twoCallers(config(open, keyed(t, v.URL, gateway.Slot{In: gateway.InBearer}))), gateway.Listener{})
	for _, call := range [][]string{
		{"/open/x", "Authorization", "Bearer " + shopToken},
		{"/open/x?key=" + shopToken},
		{"/open/x", "X-Api-Key", shopToken},
		{"/api/x", "Outlay-Token", shopToken, "X-Other", "a" + shopToken},
		{"/api/x", "Outlay-Token", shopToken, "X-Other", basic("x", shopToken)},
		{"/api/x?q=" + shopToken, "Outlay-Token", shopToken},
		{"/api/x", "X-Unheard-Of", shopToken},
		{"/api/x?unheard_of=" + shopToken},
		{"/api/x?q=%73" + shopToken[1:], "Outlay-Token", shopToken},
		{"/api/" + shopToken + "/x", "Outlay-Token", shopToken},
	} {
		got := r.do(http.MethodGet, call[0], "", call[1:]...)
		require.Equal(t, http.StatusBadRequest, got.status, "%v %s", call, got.body)
	}
	require.Empty(t, v.requests())
	require.NotContains(t, r.log.String(), shopToken)

	got := r.do(http.MethodGet, "/open/x?key=own", "", "Authorization", "Bearer own", "Outlay-Token", shopToken)
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "Bearer own", v.requests()[0].header.Get("Authorization"), "without a credential the program's own key passes")
	require.Equal(t, "/x?key=own", v.requests()[0].uri)
}

// TestTokensInBodies that are read anyway: they would reach the vendor.
func TestTokensInBodies(t *testing.T) {
	v := newVendor(t, nil)
	p := keyed(t, v.URL, gateway.Slot{In: gateway.InBearer})
	p.Body.Buffer = 10_000
	r := start(t, twoCallers(config(p)), gateway.Listener{})
	for _, body := range []string{
		"api_key=k&api_secret=" + shopToken,
		`{"token":"` + shopToken + `"}`,
		"x" + shopToken + "x", // within a word: its own is found everywhere
	} {
		got := r.do(http.MethodPost, "/api/x", body, "Outlay-Token", shopToken)
		require.Equal(t, http.StatusBadRequest, got.status, body)
		require.Contains(t, got.body, "stands in the body")
	}
	got := r.do(http.MethodPost, "/api/x", "secret="+shopToken+"&a=b") // of whoever shows none
	require.Equal(t, http.StatusBadRequest, got.status)
	require.Empty(t, v.requests())
	require.NotContains(t, r.log.String(), shopToken)
	for _, body := range []string{strings.Repeat("A", 9000), "a=" + shopToken[1:], ""} {
		require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/api/x", body, "Outlay-Token", shopToken).status)
	}
}

// TestStrangers: where a token is needed, whoever has none learns and spends nothing.
func TestStrangers(t *testing.T) {
	v := newVendor(t, nil)
	c := twoCallers(config(keyed(t, v.URL, gateway.Slot{In: gateway.InBearer}), behind(t, "other", v.URL)))
	c.Callers[1].Providers = []string{"other"}
	r := start(t, c, gateway.Listener{Token: true})
	for _, tt := range []struct {
		name   string
		path   string
		header []string
		status int
		scheme string
		text   string
	}{
		{"nothing", "/api/x", nil, 401, `Bearer realm="outlay"`, "and there is none"},
		{"a key of the vendor", "/api/x", []string{"Authorization", "Bearer sk-own"}, 401, `Bearer realm="outlay"`, "the key that was sent is no token of this gateway"},
		{"basic", "/api/x", []string{"Authorization", basic("a", "b")}, 401, `Basic realm="outlay"`, "the key that was sent is no token of this gateway"},
		{"two tokens", "/api/x", []string{"Outlay-Token", shopToken, "Outlay-Token", workerToken}, 401, `Bearer realm="outlay"`, "Outlay-Token holds no token of this gateway"},
		{"empty", "/api/x", []string{"Outlay-Token", ""}, 401, `Bearer realm="outlay"`, "Outlay-Token holds no token of this gateway"},
		{"a wrong one beside a right one", "/api/x", []string{"Outlay-Token", "nobody", "Authorization", "Bearer " + shopToken}, 401, `Bearer realm="outlay"`, "Outlay-Token holds no token of this gateway"},
		{"not this provider", "/api/x", []string{"Authorization", "Bearer " + workerToken}, 403, "", "may not use provider api"},
		{"a key where it is the vendor's", "/other/x", []string{"Authorization", "Bearer sk-own"}, 401, `Bearer realm="outlay"`, "a token of this gateway is needed, in Outlay-Token\""},
		{"no such provider", "/nobody/x", nil, 401, `Bearer realm="outlay"`, "and there is none"},
	} {
		got := r.do(http.MethodGet, tt.path, "", tt.header...)
		require.Equal(t, tt.status, got.status, "%s: %s", tt.name, got.body)
		require.Equal(t, tt.scheme, got.header.Get("WWW-Authenticate"), tt.name)
		require.Contains(t, got.body, tt.text, tt.name)
	}
	require.Empty(t, v.requests())
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/other/x", "", "Outlay-Token", workerToken).status)
}

// TestLocalCallersNeedNoToken: a token that is given counts all the same.
func TestLocalCallersNeedNoToken(t *testing.T) {
	v := newVendor(t, nil)
	c := twoCallers(config(keyed(t, v.URL, gateway.Slot{In: gateway.InBearer}), behind(t, "other", v.URL)))
	c.Callers = append(c.Callers, gateway.Caller{Name: "local", Providers: []string{"api"}, Tenant: "house"})
	r := start(t, c, gateway.Listener{})
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/api/x", "", "Authorization", "Bearer dummy").status)
	require.Equal(t, "Bearer "+realKey, v.requests()[0].header.Get("Authorization"))
	require.Contains(t, r.log.String(), "caller=local tenant=house")
	require.Equal(t, http.StatusForbidden, r.do(http.MethodGet, "/other/x", "").status)
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/other/x", "", "Outlay-Token", shopToken).status)
	require.Contains(t, r.log.String(), "caller=shop")
}

// TestMaySet: what is not allowed is refused; ignored, it would be on the wrong tenant.
func TestMaySet(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	var tenant string
	var priority throttle.Priority
	p.Scopes = []transport.Scope{{Name: "tenant", Key: func(r *http.Request) string { tenant = gateway.TenantOf(r); return tenant }}}
	c := config(p)
	c.TenantHeader, c.DefaultTenant = "X-Customer", "free"
	shop, worker := caller("shop", shopToken), caller("worker", workerToken)
	shop.MaySet, shop.Priority = []string{"tenant", "priority", "max_wait"}, throttle.Bulk
	worker.Tenant = "batch"
	c.Callers = []gateway.Caller{shop, worker}
	r := start(t, c, gateway.Listener{Token: true})
	last := func() throttle.Priority {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.events[len(r.events)-1].Priority
	}
	for _, tt := range []struct {
		token    string
		header   []string
		status   int
		tenant   string
		priority throttle.Priority
	}{
		{shopToken, nil, 200, "free", throttle.Bulk},
		{shopToken, []string{"X-Customer", "acme"}, 200, "acme", throttle.Bulk},
		{shopToken, []string{"Outlay-Priority", "critical"}, 200, "free", throttle.Critical},
		{shopToken, []string{"Outlay-Priority", "Normal"}, 200, "free", throttle.Normal},
		{shopToken, []string{"Outlay-Priority", "urgent"}, 400, "", priority},
		{shopToken, []string{"Outlay-Max-Wait", "1s"}, 200, "free", throttle.Bulk},
		{shopToken, []string{"Outlay-Max-Wait", "soon"}, 400, "", priority},
		{shopToken, []string{"X-Customer", "a", "X-Customer", "b"}, 400, "", priority},
		{shopToken, []string{"Outlay-Priority", "critical", "Outlay-Priority", "bulk"}, 400, "", priority},
		{shopToken, []string{"Outlay-Max-Wait", "1s", "Outlay-Max-Wait", "2s"}, 400, "", priority},
		{workerToken, nil, 200, "batch", throttle.Normal},
		{workerToken, []string{"X-Customer", "batch"}, 200, "batch", throttle.Normal},
		{workerToken, []string{"X-Customer", "acme"}, 403, "", priority},
		{workerToken, []string{"Outlay-Priority", "critical"}, 403, "", priority},
		{workerToken, []string{"Outlay-Max-Wait", "1s"}, 403, "", priority},
	} {
		tenant = ""
		got := r.do(http.MethodGet, "/api/x", "", append([]string{"Outlay-Token", tt.token}, tt.header...)...)
		require.Equal(t, tt.status, got.status, "%v %s", tt.header, got.body)
		if tt.status == 200 {
			require.Equal(t, tt.tenant, tenant, "%v", tt.header)
			require.Equal(t, tt.priority, last(), "%v", tt.header)
			continue
		}
		require.Empty(t, tenant)
	}
	for _, q := range v.requests() {
		require.Empty(t, q.header["X-Customer"], "the names of our customers are nobody's business")
	}
}

// TestPatienceIsOnlyLowered: by what the SDK says of its own timeout, or the caller asks.
func TestPatienceIsOnlyLowered(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Rates, p.MaxWait = []throttle.Rate{throttle.PerMinute(2)}, 10*time.Second // the second turn comes after 30 s
	patient := behind(t, "patient", v.URL)
	patient.Rates, patient.MaxWait = []throttle.Rate{{N: 1, Per: 200 * time.Millisecond}}, 10*time.Second
	nearly := behind(t, "nearly", v.URL)
	nearly.Rates, nearly.MaxWait = []throttle.Rate{{N: 1, Per: 9 * time.Second}}, 20*time.Second
	c := config(p, patient, nearly)
	shop := caller("shop", shopToken)
	shop.MaySet = []string{"max_wait"}
	c.Callers = []gateway.Caller{shop}
	r := start(t, c, gateway.Listener{})
	once(r)
	for _, h := range [][]string{
		{"Outlay-Max-Wait", "1h"}, {"X-Stainless-Timeout", "600"}, {"Prefer", "respond-async, wait=100"},
	} {
		got := r.do(http.MethodGet, "/api/x", "", append(h, "Outlay-Token", shopToken)...)
		require.Equal(t, http.StatusTooManyRequests, got.status, "%v does not raise it", h)
	}
	for _, h := range [][]string{
		{"Outlay-Max-Wait", "0.01"}, {"Outlay-Max-Wait", "10ms"}, {"Outlay-Max-Wait", "0"}, {"X-Stainless-Timeout", "0.01"}, {"Prefer", "wait=0"},
	} {
		r.do(http.MethodGet, "/patient/x", "")
		got := r.do(http.MethodGet, "/patient/x", "", append(h, "Outlay-Token", shopToken)...)
		require.Equal(t, http.StatusTooManyRequests, got.status, "%v", h)
	}
	got := r.do(http.MethodGet, "/nearly/x", "")
	require.Equal(t, http.StatusOK, got.status)
	got = r.do(http.MethodGet, "/nearly/x", "", "X-Stainless-Timeout", "10")
	require.Equal(t, http.StatusTooManyRequests, got.status, "it is answered before it would leave")
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/patient/x", "", "Prefer", "wait=5", "X-Stainless-Timeout", "nonsense").status)
}

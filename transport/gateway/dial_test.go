package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
)

// TestNamesThatLeadInside: a vendor's name that resolves to this machine or its network is
// not dialled, whoever owns the name server.
func TestNamesThatLeadInside(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Upstream.Host = strings.Replace(p.Upstream.Host, "127.0.0.1", "localhost", 1)
	p.AllowPrivate, p.Retry.Attempts = false, 1
	withBudget(cent, nil)(&p)
	r := start(t, config(p), gateway.Listener{})
	got := r.do(http.MethodGet, "/api/x", "")
	require.Equal(t, http.StatusBadGateway, got.status, got.body)
	require.Equal(t, `outlay; error=destination_ip_prohibited; details="upstream_unreachable"`, got.header.Get("Proxy-Status"))
	require.Contains(t, got.body, "set allow_private if that is meant")
	require.Equal(t, false, got.json(t)["sent"])
	require.Empty(t, v.requests())
	require.Zero(t, r.totals(p.Budgets[0]).Used(), "nothing was sent, so nothing is charged")
}

// TestPrivateAddressesAreMeant only if somebody says so.
func TestPrivateAddressesAreMeant(t *testing.T) {
	for _, u := range []string{"http://127.0.0.1:1", "https://169.254.169.254/latest", "http://[::1]", "http://[::ffff:10.0.0.1]"} {
		p := behind(t, "api", u)
		p.AllowPrivate = false
		_, err := gateway.New(config(p), gateway.Parts{Ledger: new(budget.Memory)})
		require.ErrorContains(t, err, "Providers[0].Upstream: ", u)
		require.ErrorContains(t, err, "is no public address", u)
	}
}

// TestLoops: an upstream that leads back to us would multiply every call.
func TestLoops(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Retry.Attempts = 1
	r := start(t, config(p), gateway.Listener{})
	loop := behind(t, "api", r.url)
	loop.Retry.Attempts = 1
	require.NoError(t, r.gw.Reload(config(loop)))
	got := r.do(http.MethodGet, "/api/api/api/x", "")
	require.Equal(t, http.StatusLoopDetected, got.status, got.body)
	require.Equal(t, `outlay; error=proxy_loop_detected; details="loop"`, got.header.Get("Proxy-Status"))
	require.Equal(t, "loop", got.json(t)["reason"])
}

// TestRedirectsAreNotFollowed: they could lead anywhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := r.do(http.MethodGet, "/api/x", "")
	require.Equal(t, http.StatusTemporaryRedirect, got.status)
	require.Len(t, v.requests(), 1)
}

// TestRedirectsOfAProviderToItself lead through the gateway again.
func TestRedirectsOfAProviderToItself(t *testing.T) {
	var status int
	var location string
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", location)
		if r.URL.Path != "/end" {
			w.WriteHeader(status)
		}
	})
	p, q := behind(t, "api", v.URL), behind(t, "sub", v.URL+"/v2")
	r := start(t, config(p, q), gateway.Listener{})
	own := r.listen(gateway.Listener{Provider: "api"})
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r.client.CheckRedirect = noRedirects
	for _, tt := range []struct{ path, location, want string }{
		{"/api/x", "/y%2Fz/?a=%20#f", "/api/y%2Fz/?a=%20#f"},
		{"/api/x", "/y#f?g", "/api/y#f?g"},
		{"/api/x", v.URL + "/y?a=1&b=%zz", "/api/y?a=1&b=%zz"},
		{"/api/x", v.URL, "/api/"},
		{"/api/x", "y?a=1", "y?a=1"},
		{"/api/x", "?a=1", "?a=1"},
		{"/api/x", "//other.example/y", "//other.example/y"},
		{"/api/x", "https" + v.URL[len("http"):] + "/y", "https" + v.URL[len("http"):] + "/y"},
		{"/api/x", "https://other.example/y", "https://other.example/y"},
		{"/sub/x", "/v2/y", "/sub/y"},
		{"/sub/x", "/v22/y", "/v22/y"},
		{"/sub/x", "/other", "/other"},
	} {
		location = tt.location
		for _, status = range []int{301, 302, 303, 307, 308} {
			require.Equal(t, tt.want, r.do(http.MethodGet, tt.path, "").header.Get("Location"), tt.location)
		}
		status = http.StatusCreated
		require.Equal(t, location, r.do(http.MethodGet, tt.path, "").header.Get("Location"), "what was made is named, not where to go")
	}
	r.client.CheckRedirect = nil
	status, location = 302, "/end"
	require.Equal(t, "/end", r.do(http.MethodGet, "/api/x", "").header.Get("Location"))
	all := v.requests()
	require.Empty(t, all[len(all)-1].header["Referer"], "our address is nobody's business")
	status, location, r.url = 307, v.URL+"/y", own
	r.client.CheckRedirect = noRedirects
	require.Equal(t, "/y", r.do(http.MethodGet, "/x", "").header.Get("Location"))
	location = v.URL + "//other.example/y"
	require.Equal(t, location, r.do(http.MethodGet, "/x", "").header.Get("Location"))
}

// TestKeysDoNotComeBack in the URLs of an answer, by which a program would call around us.
func TestKeysDoNotComeBack(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://vendor.example"+r.URL.RequestURI()+"&a=1#x")
		w.Header()["Link"] = []string{"<https://vendor.example/1?key=" + realKey + `>; rel="first"`, `<https://vendor.example/2?b=1>; rel="next"`}
		w.WriteHeader(http.StatusFound)
	})
	r := start(t, config(keyed(t, v.URL, gateway.Slot{In: gateway.InQuery, Name: "key"})), gateway.Listener{})
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := r.do(http.MethodGet, "/api/x?c=1", "")
	require.Contains(t, v.requests()[0].uri, "key=sk-real%2Fkey%2B1")
	require.Equal(t, "https://vendor.example/x?c=1&key=hidden-by-outlay&a=1#x", got.header.Get("Location"))
	require.Equal(t, []string{`<https://vendor.example/1?key=hidden-by-outlay>; rel="first"`, `<https://vendor.example/2?b=1>; rel="next"`}, got.header["Link"])
}

// TestConfigurationErrors name the field.
func TestConfigurationErrors(t *testing.T) {
	good := func() gateway.Config {
		return gateway.Config{
			Providers: []gateway.Provider{behind(t, "a", "http://127.0.0.1:1"), behind(t, "b", "https://api.example.com")},
			Callers:   []gateway.Caller{caller("shop", shopToken), caller("worker", workerToken)},
		}
	}
	for want, edit := range map[string]func(*gateway.Config){
		`Providers[1].Name: "a" is taken`:                          func(c *gateway.Config) { c.Providers[1].Name = "a" },
		`Providers[1].Path: /a is that of provider "a" as well`:    func(c *gateway.Config) { c.Providers[1].Path = "/a" },
		`Providers[0].Path: "a/b"`:                                 func(c *gateway.Config) { c.Providers[0].Path = "a/b" },
		`Providers[0].Match: must be empty`:                        func(c *gateway.Config) { c.Providers[0].Match = []string{"api.example.com"} },
		`Providers[0].Upstream: nil`:                               func(c *gateway.Config) { c.Providers[0].Upstream = nil },
		`Providers[0].Upstream: scheme "ftp"`:                      func(c *gateway.Config) { c.Providers[0].Upstream = parse(t, "ftp://x") },
		`Providers[0].Upstream: has no host`:                       func(c *gateway.Config) { c.Providers[0].Upstream = parse(t, "http:///x") },
		`Providers[0].Upstream: only scheme, host and path`:        func(c *gateway.Config) { c.Providers[0].Upstream = parse(t, "http://u:p@x/") },
		`Providers[0].Routes[0]: "v1"`:                             func(c *gateway.Config) { c.Providers[0].Routes = []string{"v1"} },
		`Providers[0].Routes[1]: "/{x"`:                            func(c *gateway.Config) { c.Providers[0].Routes = []string{"/a", "/{x"} },
		`Providers[0].Credential.Secret: nil`:                      func(c *gateway.Config) { c.Providers[0].Credential.Slot.In = gateway.InBearer },
		`Providers[0].Slots[0].Name: empty`:                        func(c *gateway.Config) { c.Providers[0].Slots = []gateway.Slot{{In: gateway.InQuery}} },
		`Providers[0].Slots[0].In: unknown value 0`:                func(c *gateway.Config) { c.Providers[0].Slots = []gateway.Slot{{}} },
		`Providers[0].Timeouts.Idle: -1`:                           func(c *gateway.Config) { c.Providers[0].Timeouts.Idle = -1 },
		`Providers[0].Body.Max: -1`:                                func(c *gateway.Config) { c.Providers[0].Body.Max = -1 },
		`Providers[0].MoneyStatus: 200`:                            func(c *gateway.Config) { c.Providers[0].MoneyStatus = 200 },
		`Providers[0].OnDisconnect: unknown value 9`:               func(c *gateway.Config) { c.Providers[0].OnDisconnect = 9 },
		`Callers[1].Name: "shop" is taken`:                         func(c *gateway.Config) { c.Callers[1].Name = "shop" },
		`Callers[0].Providers[0]: there is no provider "x"`:        func(c *gateway.Config) { c.Callers[0].Providers = []string{"x"} },
		`Callers[0].MaySet[0]: "all"`:                              func(c *gateway.Config) { c.Callers[0].MaySet = []string{"all"} },
		`Callers[1].TokenSHA256: is that of caller "shop" as well`: func(c *gateway.Config) { c.Callers[1].TokenSHA256 = c.Callers[0].TokenSHA256 },
		`Hosts[0]: "http://x"`:                                     func(c *gateway.Config) { c.Hosts = []string{"http://x"} },
		`Buffers: -1`:                                              func(c *gateway.Config) { c.Buffers = -1 },
		`Providers[0].Rates[0]: `:                                  func(c *gateway.Config) { c.Providers[0].Rates = append(c.Providers[0].Rates, zeroRate) },
	} {
		c := good()
		edit(&c)
		_, err := gateway.New(c, gateway.Parts{})
		require.ErrorContains(t, err, want)
	}
	_, err := gateway.New(good(), gateway.Parts{})
	require.NoError(t, err)
}

package gateway_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

// TestForms: what is no call to us is refused, with what to do about it, and nothing is
// dialled.
func TestForms(t *testing.T) {
	v := newVendor(t, nil)
	r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
	own := strings.TrimPrefix(r.url, "http://")
	_, port, err := net.SplitHostPort(own)
	require.NoError(t, err)
	for _, tt := range []struct{ line, header, status, want string }{
		{"CONNECT api.twilio.com:443", "Host: api.twilio.com:443", "405", "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
		{"CONNECT " + own, "Host: " + own, "405", "HTTPS_PROXY"},
		{"GET http://evil.test/x", "Host: evil.test", "403", "not_a_proxy"},
		{"GET http://evil.test/api/x", "Host: localhost", "403", "not_a_proxy"},
		{"GET https://93.184.216.34/api/x", "Host: 93.184.216.34", "403", "not_a_proxy"},
		{"GET http://" + own + "/api/x", "Host: " + own, "200", ""},
		{"GET http://localhost:" + port + "/api/x", "Host: localhost:" + port, "200", ""},
		{"GET /api/x", "Host: LocalHost.:99", "200", ""},
		{"GET /api/x", "Host: 192.0.2.1", "200", ""}, // an address cannot be rebound
		{"GET /api/x", "Host: [::1]:8787", "200", ""},
		{"GET /api/x", "Host: evil.test", "421", "unknown_host"},
		{"GET /api/x", "Host: localhost.evil.test", "421", "unknown_host"},
		{"GET /api/x", "Host: 127.0.0.1.evil.test", "421", "unknown_host"},
		{"GET /api/x", "Host: ", "421", "unknown_host"},
		{"OPTIONS *", "Host: localhost", "400", "bad_path"},
		{"TRACE /api/x", "Host: localhost", "405", "TRACE"},
		{"GET api/x", "Host: localhost", "400", ""},
		{"GET /api/x", "Host: localhost\r\nOrigin: http://localhost:3000", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nOrigin: null", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Site: cross-site", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Site: none", "200", ""},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Site: none, cross-site", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Site: same-origin", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Site: ", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nReferer: http://evil.test/", "403", "browser_request"},
		{"GET /api/x", "Host: localhost:8787\r\nReferer: http://localhost/", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nReferer: about:blank", "403", "browser_request"},
		{"GET /api/x", "Host: localhost:8787\r\nReferer: http://localhost:8787/api/y\r\nReferer: http://evil.test/", "403", "browser_request"},
		{"GET /api/x", "Host: localhost:8787\r\nReferer: http://localhost:8787/api/y\r\nSec-Fetch-Site: same-origin", "403", "browser_request"},
		{"GET /api/x", "Host: localhost\r\nSec-Fetch-Mode: cors", "200", ""}, // as fetch of Node sends it
		{"OPTIONS /api/x", "Host: localhost\r\nOrigin: http://x.test\r\nAccess-Control-Request-Method: POST", "403", "browser_request"},
		{"OPTIONS /api/x", "Host: localhost", "200", ""},
		{"HEAD /api/x", "Host: localhost", "200", ""},
		{"PROPFIND /api/x", "Host: localhost", "200", ""},
	} {
		before := len(v.requests())
		got := raw(t, r.url, tt.line+" HTTP/1.1\r\n"+tt.header+"\r\nConnection: close\r\n\r\n")
		require.Contains(t, got, "HTTP/1.1 "+tt.status, "%s, %s", tt.line, tt.header)
		require.Contains(t, got, tt.want)
		if tt.status == "200" {
			require.Len(t, v.requests(), before+1, tt.line)
			continue
		}
		require.Len(t, v.requests(), before, tt.line)
	}
}

// TestNamesOfOurs: a name in a network is configured.
func TestNamesOfOurs(t *testing.T) {
	v := newVendor(t, nil)
	c := config(behind(t, "api", v.URL))
	c.Hosts = []string{"Outlay.Internal."}
	r := start(t, c, gateway.Listener{})
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/api/x", "", "Host", "outlay.internal:8787").status)
	require.Equal(t, http.StatusMisdirectedRequest, r.do(http.MethodGet, "/api/x", "", "Host", "x.outlay.internal").status)
}

// TestPathsThatCouldBeReadInTwoWays: what was priced must be what is done.
func TestPathsThatCouldBeReadInTwoWays(t *testing.T) {
	v := newVendor(t, nil)
	open := behind(t, "open", v.URL)
	priced := behind(t, "priced", v.URL)
	priced.Price = price.PerCall(cent)
	free := behind(t, "free", v.URL)
	free.Price = price.Free
	r := start(t, config(open, priced, free), gateway.Listener{})
	for path, want := range map[string][2]string{ // open, priced
		"/a/b":                  {"200", "200"},
		"/a%20b;v=1":            {"200", "200"},
		"/.well-known/x..y/...": {"200", "200"},
		"/a/../b":               {"400", "400"},
		"/a/./b":                {"400", "400"},
		"/..":                   {"400", "400"},
		"/../priced/x":          {"400", "400"},
		"/a/%2e%2E/b":           {"400", "400"},
		"/a/.%2e/b":             {"400", "400"},
		"/a%2f..%2fb":           {"400", "400"},
		"/a/..;x=1/b":           {"400", "400"},
		"/a/%252e%252e/b":       {"400", "400"},
		`/a\b`:                  {"400", "400"},
		"/a%5cb":                {"400", "400"},
		"/a%00b":                {"400", "400"},
		"/a%0d%0aX:y":           {"400", "400"},
		"/a%7fb":                {"400", "400"},
		"/a%zzb":                {"400", "400"},
		"/a//b":                 {"200", "400"},
		"//a":                   {"200", "400"},
		"/a%2Fb":                {"200", "400"},
		"/a%3fb":                {"200", "400"},
		"/a%2523":               {"200", "400"},
	} {
		for i, name := range []string{"open", "priced", "free"} {
			before := len(v.requests())
			got := raw(t, r.url, "GET /"+name+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			require.Contains(t, got, "HTTP/1.1 "+want[i%2], "%s of %s", path, name)
			if want[i%2] == "400" {
				require.Len(t, v.requests(), before)
				continue
			}
			all := v.requests()
			require.Equal(t, path, all[len(all)-1].uri)
		}
	}
}

// TestQueriesThatCouldBeReadInTwoWays: the same for the parameters that a decision reads.
func TestQueriesThatCouldBeReadInTwoWays(t *testing.T) {
	v := newVendor(t, nil)
	open := behind(t, "open", v.URL)
	priced := behind(t, "priced", v.URL)
	priced.Price = price.PerCall(cent)
	priced.QueryKeys = []string{"origins"}
	r := start(t, config(open, priced), gateway.Listener{})
	for query, want := range map[string][2]int{ // open, priced
		"a=1&a=2":                       {200, 200},
		"origins=1|2":                   {200, 200},
		"origins=1&origins=2":           {200, 400},
		"origins=1&Origins=2":           {200, 400},
		"origins=1&%6frigins=2":         {200, 400},
		"a=1;origins=2":                 {200, 400},
		"a=%zz":                         {200, 400},
		"a=%3B&origins=a%26origins%3Db": {200, 200},
	} {
		for i, name := range []string{"open", "priced"} {
			got := r.do(http.MethodGet, "/"+name+"/x?"+query, "")
			require.Equal(t, want[i], got.status, "%s of %s: %s", query, name, got.body)
			if got.status == 200 {
				all := v.requests()
				require.Equal(t, "/x?"+query, all[len(all)-1].uri)
			}
		}
	}
}

// TestConnectionTakesNothingAway that the call depends on, and the path of a call is
// nobody's business.
func TestConnectionTakesNothingAway(t *testing.T) {
	v := newVendor(t, nil)
	p := keyed(t, v.URL, gateway.Slot{In: gateway.InHeader, Name: "X-Vendor"})
	p.IdempotencyHeader = "x-request-key"
	own := behind(t, "own", v.URL)
	r := start(t, config(p, own), gateway.Listener{})
	const hop = "Connection: close, X-Hop, authorization, X-Vendor, content-type, idempotency-key, X-Request-Key, outlay-token\r\n" +
		"X-Hop: 1\r\nAuthorization: Bearer own\r\nContent-Type: text/plain\r\nIdempotency-Key: k\r\nX-Request-Key: r\r\n" +
		"Keep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: Bearer p\r\nTE: trailers, deflate\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n" +
		"X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Anything: 1\r\nForwarded: for=10.0.0.1\r\nVia: 1.1 x\r\nX-Real-IP: 10.0.0.1\r\nOutlay-Anything: 1\r\nX-Keep: a\r\nX-Keep: b\r\n"
	for _, name := range []string{"api", "own"} {
		got := raw(t, r.url, "GET /"+name+"/x HTTP/1.1\r\nHost: localhost\r\n"+hop+"\r\n")
		require.Contains(t, got, "HTTP/1.1 200")
	}
	all := v.requests()
	for i, h := range []http.Header{all[0].header, all[1].header} {
		for _, gone := range []string{
			"X-Hop", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Upgrade", "Http2-Settings",
			"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Anything", "Forwarded", "Via", "X-Real-Ip", "Outlay-Anything",
		} {
			require.Empty(t, h.Values(gone), gone)
		}
		require.Equal(t, "text/plain", h.Get("Content-Type"))
		require.Equal(t, "k", h.Get("Idempotency-Key"))
		require.Equal(t, []string{"r", ""}[i], h.Get("X-Request-Key"), "a provider's own name for it")
		require.Equal(t, []string{"a", "b"}, h["X-Keep"])
		require.Equal(t, "trailers", h.Get("Te"))
		require.Equal(t, []string{"Bearer own", ""}[1-i], h.Get("Authorization"))
	}
	require.Equal(t, realKey, all[0].header.Get("X-Vendor"), "what we put in cannot be taken away")
}

// TestEncodingsThatWeCannotRead are not asked for where the answer is read.
func TestEncodingsThatWeCannotRead(t *testing.T) {
	v := newVendor(t, nil)
	p, _ := twilio(t, v.URL)
	r := start(t, config(p, behind(t, "open", v.URL)), gateway.Listener{})
	for sent, want := range map[string]string{
		"br, gzip;q=0.5": "gzip", "gzip": "gzip", "br": "identity", "*": "gzip", "gzip;q=0, br": "identity", "": "",
		"gzip; Q=0.000, br": "identity", "*, gzip;q=0.0": "identity", "gzip;q=0, *": "identity", "*;q=0": "identity", "br;q=0, gzip;q=0.001": "gzip",
	} {
		for _, name := range []string{"twilio", "open"} {
			req, _ := http.NewRequest(http.MethodGet, r.url+"/"+name+"/2010-04-01/x", nil)
			if sent != "" {
				req.Header.Set("Accept-Encoding", sent)
			}
			require.Equal(t, 200, r.send(req).status)
			all := v.requests()
			if name == "open" {
				want = sent
			}
			require.Equal(t, want, all[len(all)-1].header.Get("Accept-Encoding"), "%s of %s", sent, name)
		}
	}
	require.Equal(t, len(v.requests()), r.count(transport.KindStarted))
}

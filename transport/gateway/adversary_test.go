package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

// TestSmuggling: whatever the lengths say, one request is one call, and what follows it on
// the connection is the next one.
func TestSmuggling(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(1000*cent, nil)(&p)
	r := start(t, config(p), gateway.Listener{})
	const post, inner = "POST /api/x HTTP/1.1\r\nHost: localhost\r\n", "GET /api/inner HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	for name, text := range map[string]string{
		"both lengths":         post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"two lengths":          post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde" + inner,
		"signed length":        post + "Content-Length: +5\r\n\r\nabcde" + inner,
		"space before colon":   post + "Content-Length : 5\r\n\r\nabcde" + inner,
		"odd coding":           post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"two codings":          post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + inner,
		"folded":               post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + inner,
		"line feeds":           strings.ReplaceAll(post+"Content-Length: 0\r\n\r\n"+inner, "\r\n", "\n"),
		"two hosts":            post + "Host: evil\r\nContent-Length: 0\r\n\r\n" + inner,
		"length of a GET":      "GET /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n\r\n" + inner + strings.Repeat("x", 90-len(inner)) + inner,
		"chunk extension":      post + "Transfer-Encoding: chunked\r\n\r\n1;a=\"\r\n\r\n" + inner,
		"carriage return only": post + "X: a\rContent-Length: 90\r\n\r\n" + inner,
	} {
		before := len(v.requests())
		started := r.count(transport.KindStarted)
		raw(t, r.url, text)
		all := v.requests()[before:]
		require.Equal(t, r.count(transport.KindStarted)-started, len(all), "%s: what left was metered", name)
		for _, q := range all {
			require.Contains(t, []string{"/x", "/inner"}, q.uri, name)
			require.Empty(t, q.header["X"], name)
		}
	}
}

// TestAnotherCallThanWasPriced cannot be made of a call on its way.
func TestAnotherCallThanWasPriced(t *testing.T) {
	v := newVendor(t, nil)
	p, _ := twilio(t, v.URL)
	r := start(t, twoCallers(config(p)), gateway.Listener{})
	for _, header := range [][]string{
		{"X-HTTP-Method-Override", "POST"}, {"X-HTTP-Method", "POST"}, {"X-Method-Override", "POST"},
		{"content-type", "application/json"}, // the second one
		{"X_HTTP_Method_Override", "DELETE"}, {"X-Http_Method", "DELETE"}, {"Content_Encoding", "gzip"}, {"Content_Type", "application/json"}, {"Transfer_Encoding", "chunked"},
	} {
		got := r.do(http.MethodPost, messages, sms, header...)
		require.Equal(t, http.StatusBadRequest, got.status, "%v %s", header, got.body)
	}
	const chunked = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
	for _, trailer := range []string{
		"Authorization: x", "Content-Type: application/json", "Outlay-Tenant: acme", "X-HTTP-Method-Override: DELETE", "X-Api-Key: k",
		"X-Forwarded-For: 10.0.0.1", "X-Sum: " + shopToken,
	} {
		got := raw(t, r.url, "POST "+messages+chunked+trailer+"\r\n\r\n")
		require.Contains(t, got, "HTTP/1.1 400", trailer)
	}
	require.Contains(t, raw(t, r.url, "GET /twilio/2010-04-01/%c0%ae%c0%ae/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), "HTTP/1.1 400")
	require.Empty(t, v.requests())
}

// TestBodiesThatAreReadOtherwise: the bytes of a coding can look like one segment, and be a
// thousand to the vendor that decodes them.
func TestBodiesThatAreReadOtherwise(t *testing.T) {
	v := newVendor(t, nil)
	p, b := twilio(t, v.URL)
	other := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&other)
	r := start(t, config(p, other), gateway.Listener{})
	for _, header := range [][]string{
		{"Content-Encoding", "gzip"}, {"Content-Encoding", "identity", "Content-Encoding", "br"}, {"Content-Encoding", "gzip, identity"},
		{"Content-Type", "application/x-www-form-urlencoded; charset=utf-16"}, {"Content-Type", "application/x-www-form-urlencoded; charset=UTF-7"},
		{"Content-Type", "application/x-www-form-urlencoded; charset=utf-16; x"}, {"Content-Type", "application/json; CHARSET=utf-16; charset=utf-8"},
	} {
		got := r.do(http.MethodPost, messages, sms, header...)
		require.Equal(t, http.StatusPaymentRequired, got.status, "%v", header)
		require.Contains(t, got.body, "the body is compressed, or in a charset that is not read")
		if header[0] == "Content-Encoding" { // a price that does not stand in the body is known all the same
			require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/api/x", sms, header...).status)
		}
	}
	require.Len(t, v.requests(), 3)
	require.Zero(t, r.totals(b).Used())
	for _, header := range [][]string{{"Content-Encoding", "identity"}, {"Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"}} {
		require.Equal(t, http.StatusOK, r.do(http.MethodPost, messages, sms, header...).status)
	}
	require.Equal(t, 2*cent, r.totals(b).Used())
}

// TestEncodedBodiesAreRepeated as others are: only prices are not read off them.
func TestEncodedBodiesAreRepeated(t *testing.T) {
	n := 0
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	p := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&p)
	r := start(t, config(p), gateway.Listener{})
	require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/api/x", "zipped", "Content-Encoding", "gzip").status)
	require.Len(t, v.requests(), 2)
	require.Equal(t, "zipped", v.requests()[1].body)
}

// TestHookHearsOfAllRefusals: also of those that the Transport never saw, with a reason of
// a closed list, but of no stranger's provider.
func TestHookHearsOfAllRefusals(t *testing.T) {
	v := newVendor(t, nil)
	r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
	r.do(http.MethodGet, "/api/x", "", "Outlay-Tenant", "acme")
	r.do(http.MethodGet, "/nobody/x", "")
	r.do(http.MethodGet, "/api/x", "")
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for _, e := range r.events {
		if e.Kind == transport.KindFinished {
			got = append(got, e.Provider+" "+e.Outcome+" "+string(e.Reason))
		}
	}
	require.Equal(t, []string{"api refused caller_forbidden", "api answered "}, got)
}

// TestNothingSecretIsSaid: in the log, whatever happens.
func TestNothingSecretIsSaid(t *testing.T) {
	const number, query, header, body = "5550123456", "planted-query", "planted-header", "planted-body"
	v := newVendor(t, moods)
	p := keyed(t, v.URL, gateway.Slot{In: gateway.InQuery, Name: "key"})
	withBudget(3*cent, nil)(&p)
	p.Retry.Attempts = 1
	away := behind(t, "away", closedPort().String())
	away.Retry.Attempts = 1
	r := start(t, twoCallers(config(p, away)), gateway.Listener{})
	for _, path := range []string{"/api/" + number, "/api/drop", "/api/cut", "/api/" + number, "/api/../" + number, "/away/" + number, "/nobody/" + number, "/" + number} {
		req, err := http.NewRequest(http.MethodPost, r.url+path+"?q="+query, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("X-Planted", header)
		req.Header.Set("Outlay-Token", shopToken)
		resp, err := r.client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
	}
	require.NoError(t, r.gw.Shutdown(context.Background()))
	log := r.log.String()
	require.Equal(t, 8, strings.Count(log, "msg=call"))
	for _, secret := range []string{number, query, header, body, shopToken, realKey, "sk-real", "127.0.0.1", "http://"} {
		require.NotContains(t, log, secret)
	}
}

// TestPlan says what a call would meet, and changes nothing.
func TestPlan(t *testing.T) {
	v := newVendor(t, nil)
	p, b := twilio(t, v.URL)
	c := config(p, keyed(t, v.URL, gateway.Slot{In: gateway.InQuery, Name: "key"}))
	c.DefaultTenant = "free"
	r := start(t, c, gateway.Listener{})
	plan := func(method, target, body string) gateway.Plan {
		req, err := http.NewRequest(method, target, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.URL.Scheme, req.URL.Host, req.Host = "", "", "localhost"
		got, err := r.gw.Plan(gateway.Listener{}, req)
		require.NoError(t, err)
		return got
	}
	got := plan(http.MethodPost, messages, sms)
	require.NoError(t, got.Refusal)
	require.Equal(t, "twilio", got.Provider)
	require.Equal(t, cent, got.Quote.Amount)
	require.Equal(t, []string{"sender"}, got.Scopes)
	require.Equal(t, b.Name, got.Budgets[0].Budget.Name)
	require.Equal(t, "local", got.Caller)
	require.Equal(t, "free", got.Tenant)
	require.Equal(t, v.URL+"/2010-04-01/Accounts/AC1/Messages.json", got.Upstream)
	require.Zero(t, got.Status)

	got = plan(http.MethodPost, messages, "nothing=1")
	require.ErrorIs(t, got.Refusal, budget.ErrUnpriced)
	require.Equal(t, http.StatusPaymentRequired, got.Status)
	got = plan(http.MethodGet, "/nobody/x", "")
	require.ErrorContains(t, got.Refusal, "there are: /api, /twilio")
	require.Equal(t, http.StatusNotFound, got.Status)
	got = plan(http.MethodGet, "/api/x?a=1", "")
	require.Equal(t, v.URL+"/x?a=1", got.Upstream, "without the credential")
	require.Empty(t, v.requests())
	require.Zero(t, r.totals(b).Used())
}

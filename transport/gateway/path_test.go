package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// TestCallIsPacedAndPaid: a program in any language calls by a base URL, with its own key.
func TestCallIsPacedAndPaid(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	p, b := twilio(t, fake.URL())
	r := start(t, config(p), gateway.Listener{})

	got := r.do(http.MethodPost, messages, sms, "Authorization", "Basic QUMxOnNlY3JldA==")
	require.Equal(t, http.StatusCreated, got.status, got.body)
	require.Equal(t, "twilio", got.header.Get("Outlay-Provider"))
	require.Equal(t, "1", got.header.Get("Outlay-Attempts"))
	require.NotEmpty(t, got.header.Get("Outlay-Call"))
	require.NotEmpty(t, got.header.Get("Outlay-Waited-Ms"))
	require.Empty(t, got.header.Get("Proxy-Status"), "it is the provider's own answer")
	require.Equal(t, 1, fake.Counts().Accepted)
	require.Equal(t, cent, r.totals(b).Settled)

	line := r.log.String()
	for _, want := range []string{
		"call=" + got.header.Get("Outlay-Call"), "provider=twilio", "caller=local", "method=POST", "status=201", "attempts=1", "cost=0.01", "unit=USD", "resolved=settled",
	} {
		require.Contains(t, line, want)
	}
	for _, secret := range []string{"AC1", "Messages", "5550009", "Hello", "QUMx", "secret"} {
		require.NotContains(t, line, secret)
	}
}

// TestBudgetIsOneForAllPrograms: when the money is spent nothing leaves any more.
func TestBudgetIsOneForAllPrograms(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	p, b := twilio(t, fake.URL())
	p.Budgets[0].Limit = 12 * cent
	r := start(t, config(p), gateway.Listener{})
	refused := 0
	for range 20 {
		got := r.do(http.MethodPost, messages, sms)
		if got.status == http.StatusPaymentRequired {
			refused++
			require.Contains(t, got.body, `"reason":"exhausted"`)
		}
	}
	require.Equal(t, 8, refused)
	require.Equal(t, 12, fake.Counts().Received)
	require.Equal(t, 12*cent, r.totals(b).Settled)
	require.Equal(t, 12, r.count(transport.KindStarted))
}

// TestPathAndQueryPassByteForByte: what the program wrote is what the provider gets.
func TestPathAndQueryPassByteForByte(t *testing.T) {
	v := newVendor(t, nil)
	plain := behind(t, "plain", v.URL)
	based := behind(t, "based", v.URL+"/base/v1/")
	r := start(t, config(plain, based), gateway.Listener{})
	for sent, want := range map[string]string{
		"/plain":                       "/",
		"/plain/":                      "/",
		"/plain/a%2Bb/c%20d;e=1,2":     "/a%2Bb/c%20d;e=1,2",
		"/plain/a%2Fb//c":              "/a%2Fb//c",
		"/plain/%41?x=1;y=2&bad%zz=1":  "/%41?x=1;y=2&bad%zz=1",
		"/plain/x?":                    "/x?",
		"/plain/x?a=1&a=2&b=%2B+%20":   "/x?a=1&a=2&b=%2B+%20",
		"/plain/*?q=%E2%82%AC&r='\"|^": "/*?q=%E2%82%AC&r='\"|^",
		"/based/x/y?z":                 "/base/v1/x/y?z",
		"/based":                       "/base/v1/",
	} {
		got := raw(t, r.url, "GET "+sent+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.Contains(t, got, "HTTP/1.1 200", sent)
		all := v.requests()
		require.Equal(t, want, all[len(all)-1].uri, sent)
		require.Equal(t, strings.TrimPrefix(v.URL, "http://"), all[len(all)-1].host)
	}
}

// TestListenerOfOneProvider: SDKs that keep only host and port of a base URL need no path.
func TestListenerOfOneProvider(t *testing.T) {
	v := newVendor(t, nil)
	r := start(t, config(behind(t, "stripe", v.URL), behind(t, "other", v.URL)), gateway.Listener{Provider: "stripe"})
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/other/v1/charges", "").status)
	require.Equal(t, "/other/v1/charges", v.requests()[0].uri, "the whole path belongs to the provider")

	r.url = r.listen(gateway.Listener{Provider: "nobody"})
	require.Equal(t, http.StatusNotFound, r.do(http.MethodGet, "/v1/charges", "").status)
}

// TestRoutesAreAllThereIs: the configuration may allow some paths only.
func TestRoutesAreAllThereIs(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Routes = []string{"GET /v1/models/{id}", "POST /v1/chat/completions", "/v1/files/"}
	r := start(t, config(p), gateway.Listener{})
	for call, want := range map[string]int{
		"GET /v1/models/gpt": 200, "HEAD /v1/models/gpt": 200, "POST /v1/models/gpt": 404, "GET /v1/models": 404, "GET /v1/models/a/b": 404,
		"POST /v1/chat/completions": 200, "POST /v1/chat/completions/": 404, "POST /v1/chat//completions": 400,
		"GET /v1/files": 404, "GET /v1/files/": 200, "DELETE /v1/files/f1": 200, "GET /": 404, "POST /v1/chat%2Fcompletions": 400,
	} {
		method, path, _ := strings.Cut(call, " ")
		got := r.do(method, "/api"+path, "")
		require.Equal(t, want, got.status, "%s %s", call, got.body)
		if want == 404 {
			require.Contains(t, got.body, `"reason":"no_such_route"`)
		}
	}
	require.Contains(t, r.log.String(), `route="GET /v1/models/{id}"`)
}

// TestUnknownPathNamesTheOthers: a wrong base URL is the first thing that goes wrong.
func TestUnknownPathNamesTheOthers(t *testing.T) {
	v := newVendor(t, nil)
	c := config(behind(t, "twilio", v.URL), behind(t, "openai", v.URL))
	c.Callers = []gateway.Caller{caller("shop", "shop-token-0123456789")}
	r := start(t, c, gateway.Listener{})
	got := r.do(http.MethodGet, "/v1/chat/completions", "")
	require.Equal(t, http.StatusNotFound, got.status)
	require.Contains(t, got.body, "there are: /openai, /twilio")

	r.url = r.listen(gateway.Listener{Token: true})
	got = r.do(http.MethodGet, "/v1/chat/completions", "")
	require.Equal(t, http.StatusUnauthorized, got.status, "strangers learn nothing")
	require.NotContains(t, got.body, "/openai")
	got = r.do(http.MethodGet, "/v1/chat/completions", "", "Outlay-Token", "shop-token-0123456789")
	require.Equal(t, http.StatusNotFound, got.status)
}

// TestPricesKnowNoPathOfTheUpstream: an upstream below a path, such as a mock, is priced as
// the vendor itself.
func TestPricesKnowNoPathOfTheUpstream(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "based", v.URL+"/base/v1")
	var priced string
	p.Price = pricerFunc(func(r *http.Request) (budget.Quote, error) {
		priced = r.URL.EscapedPath()
		return budget.Quote{Unit: "USD"}, nil
	})
	r := start(t, config(p), gateway.Listener{})
	require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/based/send/a%20b", "").status)
	require.Equal(t, "/send/a%20b", priced)
	require.Equal(t, "/base/v1/send/a%20b", v.requests()[0].uri)
}

type pricerFunc func(*http.Request) (budget.Quote, error)

func (f pricerFunc) Quote(r *http.Request) (budget.Quote, error) { return f(r) }

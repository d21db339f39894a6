package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Okta is Okta's API, of any number of orgs. It costs nothing.
//
// Every endpoint has a limit for each minute, which its headers tell: the scope "endpoint"
// of each org. The default MaxInFlight is 75 calls at once, which is what an org may have
// (developer.okta.com, rate limits, read 2026-11). There is no idempotency key.
func Okta() transport.Provider {
	return transport.Provider{
		Name:        "okta",
		Match:       []string{"*.okta.com", "*.oktapreview.com", "*.okta-emea.com"},
		MaxInFlight: 75,
		Scopes:      []transport.Scope{{Name: "endpoint", Key: func(r *http.Request) string { return host(r) + generic(r.URL.Path, 4) }}},
		Dialect:     dialect.For("okta"),
		Price:       price.Free,
	}
}

// OktaRefusal makes Okta's error response of a refusal.
func OktaRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return oktaShape.refuse(r)
}

var oktaShape = shape{members: func(f said) []member {
	code := f.pick("E0000047", "E0000015", "E0000009")
	return []member{{"errorCode", code}, {"errorSummary", f.text}, {"errorCauses", []any{}}}
}}

package provider

import (
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Zendesk is Zendesk's API, of any number of accounts. It costs nothing.
//
// The scope "account" has 400 requests in any minute, the lower of the two numbers that
// plans have; the other is 700 (developer.zendesk.com, rate limits, read 2026-11): set the
// Rates of the scope. Some endpoints have less, which the headers tell: the scope
// "endpoint". There is no idempotency key for all calls.
func Zendesk() transport.Provider {
	return transport.Provider{
		Name:  "zendesk",
		Match: []string{"*.zendesk.com"},
		Scopes: []transport.Scope{
			{Name: "endpoint", Key: func(r *http.Request) string { return host(r) + endpoint(r) }},
			{Name: "account", Key: host, Rates: []throttle.Rate{{N: 400, Per: time.Minute, Strict: true}}},
		},
		Dialect: dialect.For("zendesk"),
		Price:   price.Free,
	}
}

// ZendeskRefusal makes Zendesk's error response of a refusal.
func ZendeskRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return zendeskShape.refuse(r)
}

var zendeskShape = shape{members: func(f said) []member {
	return []member{{"error", f.reason}, {"description", f.text}}
}}

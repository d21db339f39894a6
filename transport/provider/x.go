package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// X is the API of X at perRequest US dollars, which is zero for a plan by the month.
//
// Every endpoint has a limit for each 15 minutes, of the app and of the user, which its
// headers tell, and some have one for the day (docs.x.com/fundamentals/rate-limits, read
// 2026-11): the scope "endpoint". A monthly cap is not repeated. There is no idempotency
// key.
func X(perRequest budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "x",
		Match:   []string{"api.x.com", "api.twitter.com"},
		Scopes:  []transport.Scope{{Name: "endpoint", Key: func(r *http.Request) string { return r.Method + " " + endpoint(r) }}},
		Dialect: dialect.For("x"),
		Price:   price.PerCall(perRequest),
	}
}

// XRefusal makes the error response of X of a refusal.
func XRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return xShape.refuse(r)
}

var xShape = shape{members: func(f said) []member {
	return []member{{"title", http.StatusText(f.status)}, {"detail", f.text}, {"type", "about:blank"}, {"status", f.status}}
}}

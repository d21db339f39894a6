package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// MaxMind is MaxMind's GeoIP web services at perQuery US dollars. Country, City and
// Insights cost differently: give the dearest that you use.
//
// Queries are prepaid: without credit the answer is a 402, which nothing repeats, and
// queries_remaining tells what is left (maxmind/dev-site, read 2026-11). There is no
// documented rate. The free GeoLite service at geolite.info allows 1,000 lookups a day and
// belongs to no preset; neither does minFraud.
func MaxMind(perQuery budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "maxmind",
		Match:   []string{"geoip.maxmind.com"},
		Dialect: dialect.For("maxmind"),
		Price:   price.PerCall(perQuery),
	}
}

// MaxMindRefusal makes MaxMind's error response of a refusal.
func MaxMindRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return maxMindShape.refuse(r)
}

var maxMindShape = shape{members: func(f said) []member {
	return []member{{"code", f.pick("TOO_MANY_REQUESTS", "INSUFFICIENT_FUNDS", "SERVICE_UNAVAILABLE")}, {"error", f.text}}
}}

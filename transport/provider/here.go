package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// HERE is HERE's Geocoding and Search API at perRequest US dollars, all of its hosts:
// geocode, revgeocode, discover, browse, lookup, autosuggest, autocomplete. Routing and
// maps belong to no preset.
//
// No rate with a good source was found: set Rates to your plan's.
func HERE(perRequest budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "here",
		Match:   []string{"*.search.hereapi.com"},
		Dialect: dialect.For("here"),
		Price:   price.PerCall(perRequest),
	}
}

// HERERefusal makes HERE's error response of a refusal.
func HERERefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return hereShape.refuse(r)
}

var hereShape = shape{members: func(f said) []member {
	return []member{{"error", http.StatusText(f.status)}, {"error_description", f.text}}
}}

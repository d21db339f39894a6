package provider

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Mapbox is Mapbox' Geocoding API, versions 5 and 6, at perQuery US dollars for each query
// of a request. The other services of the host belong to no preset, and are refused
// beside this one until they have a provider.
//
// Its headers tell the limit and the reset, not what remains. No rate with a good source
// was found: set Rates to your plan's.
func Mapbox(perQuery budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "mapbox",
		Match:   []string{"api.mapbox.com/geocoding/", "api.mapbox.com/search/geocode/"},
		Dialect: dialect.For("mapbox"),
		Price:   price.Per(perQuery, mapboxQueries),
	}
}

// mapboxQueries counts the queries of a batch: those of version 5 stand in the path, with
// semicolons between them, those of version 6 in the body.
func mapboxQueries(r *http.Request) (int64, error) {
	if strings.HasPrefix(r.URL.Path, "/geocoding/") {
		return 1 + int64(strings.Count(r.URL.Path, ";")), nil
	}
	if r.Method != http.MethodPost {
		return 1, nil
	}
	n, err := jsonElements(r)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: the batch has no queries", budget.ErrUnpriced)
	}
	return n, err
}

// MapboxRefusal makes Mapbox' error response of a refusal.
func MapboxRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return messageShape.refuse(r)
}

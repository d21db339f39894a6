package provider

import (
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// GoogleGeocoding is Google's Geocoding API, the web service and version 4, at perRequest
// US dollars. Prices fall with the month's volume: give the dearest, or set a price.Tiers.
//
// The default rate is 3,000 requests a minute (developers.google.com/maps, Geocoding usage
// and billing, read 2026-11). Refusals come as OVER_QUERY_LIMIT in a 200 and are not
// billed; whether ZERO_RESULTS is, Google does not say, and it is counted. Days of quotas
// end at midnight Pacific. Lookups can be repeated without harm: Retry.Unknown =
// [transport.ReplaySafe] does that, and every attempt is paid for.
//
// googlemaps.github.io/maps lets refusals through, and repeats nothing. Its client errors
// print the URL, with the key in it.
func GoogleGeocoding(perRequest budget.Amount) transport.Provider {
	return transport.Provider{
		Name:      "google-geocoding",
		Match:     []string{"maps.googleapis.com/maps/api/geocode/", "geocode.googleapis.com"},
		Rates:     []throttle.Rate{{N: 3000, Per: time.Minute, Burst: 50}},
		Dialect:   dialect.For("google-maps"),
		QuotaZone: pacific(),
		Price:     price.PerCall(perRequest),
	}
}

// GooglePlaces is Google's Places API, the web services and the new one, at perRequest US
// dollars. What a request costs depends on its fields: give the dearest of those that you
// ask for. Sessions of autocompletion are priced by setting Price to a price.PerSession.
//
// The web service's photos redirect to another host, by an answer that outlay takes for
// unbilled: they have no price here. No rate that holds for everybody was found. Days of
// quotas end at midnight Pacific.
func GooglePlaces(perRequest budget.Amount) transport.Provider {
	each := price.PerCall(perRequest)
	return transport.Provider{
		Name:      "google-places",
		Match:     []string{"maps.googleapis.com/maps/api/place/", "places.googleapis.com"},
		Dialect:   dialect.For("google-places"),
		QuotaZone: pacific(),
		Price:     rules{list: []rule{{"", "/maps/api/place/photo/", nil}, {"", "/", each}}},
	}
}

// GoogleDistanceMatrix is Google's Distance Matrix web service at perElement US dollars
// for each element, origins times destinations. Places given as encoded polylines cannot
// be counted and have no price.
//
// The default rate is 60,000 elements a minute, of which a request takes as many as it
// has, at most 100 (developers.google.com/maps, Distance Matrix usage and billing, read
// 2026-11).
func GoogleDistanceMatrix(perElement budget.Amount) transport.Provider {
	count := price.Cells("origins", "destinations")
	return transport.Provider{
		Name:  "google-distance-matrix",
		Match: []string{"maps.googleapis.com/maps/api/distancematrix/"},
		Rates: []throttle.Rate{{N: 60_000, Per: time.Minute, Burst: 625}}, // 625: 25 by 25
		Weight: func(r *http.Request) int {
			n, _ := count(r) // what cannot be counted has no price
			return int(n)
		},
		Dialect:   dialect.For("google-distance-matrix"),
		QuotaZone: pacific(),
		Price:     price.Per(perElement, count),
	}
}

// GoogleRoutes is Google's Routes API at perRoute US dollars for each computed route and
// perElement for each element of a matrix. The fields asked for decide which price that
// is: give the dearest. No rate that holds for everybody was found.
func GoogleRoutes(perRoute, perElement budget.Amount) transport.Provider {
	return transport.Provider{
		Name:      "google-routes",
		Match:     []string{"routes.googleapis.com"},
		Dialect:   dialect.For("google-routes"),
		QuotaZone: pacific(),
		Price: rules{list: []rule{
			{http.MethodPost, "/directions/v2:computeRoutes", price.PerCall(perRoute)},
			{http.MethodPost, "/distanceMatrix/v2:computeRouteMatrix", price.Per(perElement, price.Cells("origins", "destinations"))},
		}},
	}
}

// GoogleMapsRefusal makes the error response of Google's map web services of a refusal:
// OVER_DAILY_LIMIT is their own word for a cap that the customer set.
func GoogleMapsRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return googleMapsShape.refuse(r)
}

var googleMapsShape = shape{members: func(f said) []member {
	return []member{
		{"status", f.pick("OVER_QUERY_LIMIT", "OVER_DAILY_LIMIT", "UNKNOWN_ERROR")},
		{"error_message", f.text}, {"results", []any{}},
	}
}}

// GoogleRefusal makes the error response of Google's newer APIs (google.rpc) of a refusal.
func GoogleRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return googleShape.refuse(r)
}

var googleShape = shape{members: func(f said) []member {
	return []member{{"error", fields{
		"code": f.status, "message": f.text, "status": f.pick("RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNAVAILABLE"),
	}}}
}}

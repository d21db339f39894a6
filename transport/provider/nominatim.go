package provider

import (
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Nominatim is OpenStreetMap's own geocoder, which is free and run on donated servers.
//
// Its usage policy (operations.osmfoundation.org/policies/nominatim, read 2026-11) allows
// one request a second at the most, from one thread on one machine, and wants a User-Agent
// that names the program: the default rate and MaxInFlight are that policy, and whoever
// goes beyond is blocked. Several machines need a limiter in common. For a server of your
// own set Match, Rates and MaxInFlight.
func Nominatim() transport.Provider {
	return transport.Provider{
		Name:        "nominatim",
		Match:       []string{"nominatim.openstreetmap.org"},
		Rates:       []throttle.Rate{{N: 1, Per: time.Second, Strict: true}},
		MaxInFlight: 1,
		Dialect:     dialect.For("nominatim"),
		Price:       price.Free,
	}
}

// NominatimRefusal makes Nominatim's error response of a refusal.
func NominatimRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return nominatimShape.refuse(r)
}

var nominatimShape = shape{members: func(f said) []member {
	return []member{{"error", fields{"code": f.status, "message": f.text}}}
}}

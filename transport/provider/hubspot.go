package provider

import (
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// HubSpot is HubSpot's API for one account. It costs nothing.
//
// The default rate is 100 requests in any ten seconds (developers.hubspot.com, changelog of
// 2018 and API usage guidelines, read 2026-11); all apps of an account share its day. That
// day ends at midnight in the account's own zone: set QuotaZone. Searches are limited apart
// and tell nothing in their headers. There is no idempotency key.
func HubSpot() transport.Provider {
	return transport.Provider{
		Name:    "hubspot",
		Match:   []string{"api.hubapi.com"},
		Rates:   []throttle.Rate{{N: 100, Per: 10 * time.Second, Strict: true}},
		Dialect: dialect.For("hubspot"),
		Price:   price.Free,
	}
}

// HubSpotRefusal makes HubSpot's error response of a refusal.
func HubSpotRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return hubSpotShape.refuse(r)
}

var hubSpotShape = shape{members: func(f said) []member {
	return []member{{"status", "error"}, {"message", f.text}, {"category", f.pick("RATE_LIMITS", "BILLING", "UNAVAILABLE")}}
}}

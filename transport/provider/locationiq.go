package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// LocationIQ is LocationIQ's API, in both regions, at perRequest US dollars, which may be
// zero. Asking for the balance is free. An address that is not found (404) is counted.
//
// Rates and the day's quota are those of the plan; refusals name the second, the minute or
// the day (docs.locationiq.com/docs/errors, read 2026-11). Set Rates to your plan's.
func LocationIQ(perRequest budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "locationiq",
		Match:   []string{"us1.locationiq.com", "eu1.locationiq.com", "api.locationiq.com"},
		Dialect: dialect.For("locationiq"),
		Price: rules{list: []rule{
			{http.MethodGet, "/v1/balance", price.Free},
			{"", "/", price.PerCall(perRequest)},
		}},
	}
}

// LocationIQRefusal makes LocationIQ's error response of a refusal.
func LocationIQRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return errorShape.refuse(r)
}

// errorShape is that of vendors whose answer has just an "error".
var errorShape = shape{members: func(f said) []member { return []member{{"error", f.text}} }}

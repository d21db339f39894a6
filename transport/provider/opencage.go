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

// OpenCage is OpenCage's geocoding API at perRequest US dollars, which may be zero.
//
// The default rate is that of the free plan, one request a second; its 2,500 requests a
// day end at 00:00 UTC, with a 402 (OpencageData/opencage-ruby and its issue 13, read
// 2026-11). With a paid key set Rates to your plan's. There is no idempotency key, and
// lookups do no harm when repeated.
func OpenCage(perRequest budget.Amount) transport.Provider {
	return transport.Provider{
		Name:      "opencage",
		Match:     []string{"api.opencagedata.com"},
		Rates:     []throttle.Rate{{N: 1, Per: time.Second, Strict: true}},
		Dialect:   dialect.For("opencage"),
		QuotaZone: time.UTC,
		Price:     price.PerCall(perRequest),
	}
}

// OpenCageRefusal makes OpenCage's error response of a refusal.
func OpenCageRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return openCageShape.refuse(r)
}

var openCageShape = shape{members: func(f said) []member {
	return []member{{"status", fields{"code": f.status, "message": f.text}}, {"results", []any{}}, {"total_results", 0}}
}}

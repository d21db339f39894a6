package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// IPGeolocation is ipgeolocation.io at perCredit US dollars for each credit. Only answers
// with status 200 are charged, and X-Credits-Charged tells how many credits they took
// (ipgeolocation.io/documentation/credits-usage.html, read 2026-11).
//
// The hold is one credit for a lookup and four for one with further modules, the dearest
// that is documented; a bulk request has as many lookups as addresses. Rates are those of
// the plan: set Rates to yours.
func IPGeolocation(perCredit budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "ipgeolocation",
		Match:   []string{"api.ipgeolocation.io"},
		Dialect: dialect.For("ipgeolocation"),
		Price:   price.FromAnswer(price.Per(perCredit, credits), price.AnswerCost{Header: "X-Credits-Charged", PerCredit: perCredit}),
	}
}

var bulkAddresses = price.Values("ips", "uaStrings")

// credits are the most that a request may take.
func credits(r *http.Request) (int64, error) {
	each := int64(1)
	if r.URL.Query().Has("include") || strings.Contains(r.URL.Path, "security") || strings.Contains(r.URL.Path, "abuse") {
		each = 4
	}
	if !strings.Contains(r.URL.Path, "bulk") {
		return each, nil
	}
	n, err := bulkAddresses(r)
	return each * n, err
}

// IPGeolocationRefusal makes ipgeolocation.io's error response of a refusal.
func IPGeolocationRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return messageShape.refuse(r)
}

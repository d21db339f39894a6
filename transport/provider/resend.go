package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Resend is Resend's API at perRecipient US dollars for each recipient of an email, copies
// included. Other calls than those that send are free; broadcasts have no price here.
//
// The default rate is two requests a second (resend.com/docs/api-reference/rate-limit, read
// 2026-11). Its Idempotency-Key, which it keeps for 24 hours, is set, so that an email of
// unknown outcome is sent again without harm
// (resend.com/docs/dashboard/emails/idempotency-keys, read 2026-11).
func Resend(perRecipient budget.Amount) transport.Provider {
	each := price.Per(perRecipient, price.Values("to", "cc", "bcc"))
	return transport.Provider{
		Name:    "resend",
		Match:   []string{"api.resend.com"},
		Rates:   []throttle.Rate{throttle.PerSecond(2)},
		Dialect: dialect.For("resend"),
		Price: rules{list: []rule{
			{http.MethodPost, "/emails", each},
			{http.MethodPost, "/emails/batch", each},
			{http.MethodPost, "/broadcasts/*/send", nil},
			{"", "/", price.Free},
		}},
		IdempotencyHeader: "Idempotency-Key",
	}
}

// ResendRefusal makes Resend's error response of a refusal.
func ResendRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return resendShape.refuse(r)
}

var resendShape = shape{members: func(f said) []member {
	name := f.pick("rate_limit_exceeded", "monthly_quota_exceeded", "application_error")
	return []member{{"statusCode", f.status}, {"name", name}, {"message", f.text}}
}}

package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Stripe is Stripe's API. Calls cost nothing; what payments cost is no matter of calls,
// and of no preset.
//
// The default rates are those of live mode, 100 requests a second and 25 for each endpoint
// (docs.stripe.com/rate-limits, read 2026-11); a sandbox has 25 in all. The scope "endpoint"
// is the resource of a path, the scope "object" the one payment or customer in it, whose
// lock one request holds at a time. Stripe-Rate-Limited-Reason tells which limit it was.
//
// Idempotency-Key is set on everything that writes, so that a request of unknown outcome
// is sent again without harm; Stripe keeps keys for a day. stripe-go sets one itself, and
// it is kept.
//
// stripe-go repeats transport errors, also refusals, twice: give its BackendConfig
// MaxNetworkRetries: stripe.Int64(0) and let outlay repeat, or set Refusal to
// [StripeRefusal].
func Stripe() transport.Provider {
	return transport.Provider{
		Name:  "stripe",
		Match: []string{"api.stripe.com", "files.stripe.com"},
		Rates: []throttle.Rate{throttle.PerSecond(100)},
		Scopes: []transport.Scope{
			{Name: "endpoint", Key: stripeResource, Rates: []throttle.Rate{throttle.PerSecond(25)}},
			{Name: "object", Key: stripeObject},
			account(),
		},
		Dialect:           dialect.For("stripe"),
		Price:             price.Free,
		IdempotencyHeader: "Idempotency-Key",
	}
}

// stripeResource is the collection in a path such as /v1/payment_intents/pi_1/confirm.
func stripeResource(r *http.Request) string { return generic(r.URL.Path, 2) }

// stripeObject is the object in such a path.
func stripeObject(r *http.Request) string {
	for s := range strings.SplitSeq(r.URL.Path, "/") {
		if prefix, id, ok := strings.Cut(s, "_"); ok && len(prefix) <= 5 && len(id) >= 8 && strings.ContainsAny(id, "0123456789") {
			return s
		}
	}
	return ""
}

// StripeRefusal makes Stripe's error response of a refusal. For money it is a 429, because
// its SDKs take a 402 for a declined card.
func StripeRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return stripeShape.refuse(r)
}

var stripeShape = shape{money: http.StatusTooManyRequests, members: func(f said) []member {
	kind := f.pick("rate_limit_error", "api_error", "api_error")
	return []member{{"error", fields{"type": kind, "code": f.reason, "message": f.text}}}
}}

package vendortest

import (
	"fmt"
	"net/http"
	"strings"
)

// NewStripe starts a fake of Stripe's API: POST and GET to any path below /v1/.
//
// Calls cost nothing, Options.Price being zero, but what was created is on the invoice.
// A request with the Idempotency-Key of an earlier one gets that one's answer and
// creates nothing; with other content it is refused. It throttles with status 429 and
// the reason in a header.
func NewStripe(o Options) *Fake {
	return start(vendor{
		name: "stripe", hosts: []string{"api.stripe.com"}, unit: "USD",
		answer: stripeAnswer, idempotency: "Idempotency-Key",
		throttle: func(_ call, why refusal) reply {
			reason := "global-rate"
			if why.busy {
				reason = "global-concurrency"
			}
			a := stripeError(http.StatusTooManyRequests, "invalid_request_error", "rate_limit").with("Stripe-Rate-Limited-Reason", reason)
			if why.planned {
				return a.hint(why.after)
			}
			return a
		},
		fail: func(status int) reply {
			kind := "api_error"
			if status == http.StatusBadRequest {
				kind = "idempotency_error" // the only bad request that is no vendor's answer
			}
			return stripeError(status, kind, "")
		},
	}, o)
}

func stripeAnswer(c call) reply {
	resource, ok := strings.CutPrefix(c.URL.Path, "/v1/")
	resource, _, _ = strings.Cut(resource, "/")
	if !ok || resource == "" {
		return stripeError(http.StatusNotFound, "invalid_request_error", "").refuse()
	}
	if c.Method != http.MethodPost {
		return object(http.StatusOK, map[string]any{"object": "list", "data": []any{}, "has_more": false, "url": c.URL.Path})
	}
	f := c.form()
	if (resource == "payment_intents" || resource == "charges") && f.Get("amount") == "" {
		return stripeError(http.StatusBadRequest, "invalid_request_error", "parameter_missing").refuse()
	}
	id := fmt.Sprintf("%.2s_%024d", resource, c.serial())
	created := map[string]any{
		"id": id, "object": strings.TrimSuffix(resource, "s"), "created": c.now.Unix(), "livemode": false, "status": "succeeded",
	}
	for _, k := range []string{"currency", "description", "email", "name"} {
		if f.Has(k) {
			created[k] = f.Get(k)
		}
	}
	return object(http.StatusOK, created).bill(c, id, "", 1)
}

func stripeError(status int, kind, code string) reply {
	e := map[string]any{"type": kind, "message": http.StatusText(status)}
	if code != "" {
		e["code"] = code
	}
	return object(status, map[string]any{"error": e}).with("Request-Id", "req_fake")
}

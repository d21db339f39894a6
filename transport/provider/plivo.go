package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Plivo is Plivo's message API at perUnit US dollars, carrier fees included, for each
// unit of a text to each of its recipients. Plivo charges what was sent, delivered or not,
// and tells the price later, on the message's record (support article 360041352432, read
// 2026-11).
//
// Reading is free; messages with media and calls have no price here. No documented rate
// was found. The scope "sender" is the src of a message. There is no idempotency key.
func Plivo(perUnit budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "plivo",
		Match:   []string{"api.plivo.com"},
		Scopes:  []transport.Scope{{Name: "sender", Key: Field("src", "powerpack_uuid")}},
		Dialect: dialect.For("plivo"),
		Price:   PlivoPrice(price.SMS{Segment: perUnit}),
	}
}

// PlivoPrice is the Price of [Plivo] with other prices for texts, such as by destination.
func PlivoPrice(s price.SMS) transport.Pricer {
	s.To, s.Text, s.Other = []string{"dst"}, []string{"text"}, []string{"media_urls", "media_ids", "template"}
	return rules{reads: true, list: []rule{{http.MethodPost, "/v1/Account/*/Message", s}}}
}

// PlivoRefusal makes Plivo's error response of a refusal.
func PlivoRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return plivoShape.refuse(r)
}

var plivoShape = shape{members: func(f said) []member { return []member{{"error", f.text}, {"api_id", ""}} }}

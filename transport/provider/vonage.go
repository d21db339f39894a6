package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// VonageSMS is Vonage's SMS API at perPart euros for each part of a text; budgets must be
// in EUR. What it really costs is read from message-price in the answer. Of its answers
// to /sms/xml only refusals are read; the cost of other messages stays presumed.
//
// Vonage throttles with status "1" in a 200. It allows 30 requests a second for a key,
// which is the default rate; a US number with 10DLC may send less, and the API for voice
// has limits of its own (support articles 203993598 and 205065817, read 2026-11). The
// scope "sender" is the from of a message. There is no idempotency key.
func VonageSMS(perPart budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "vonage-sms",
		Match:   []string{"rest.nexmo.com"},
		Rates:   []throttle.Rate{throttle.PerSecond(30)},
		Scopes:  []transport.Scope{{Name: "sender", Key: Field("from")}},
		Dialect: dialect.For("vonage-sms"),
		Price:   VonagePrice(price.SMS{Segment: perPart}),
	}
}

// VonagePrice is the Price of [VonageSMS] with other prices for texts, such as by
// destination. They are in euros.
func VonagePrice(s price.SMS) transport.Pricer {
	s.Currency, s.To, s.Text, s.UCS2 = "EUR", []string{"to"}, []string{"text"}, "type=unicode"
	s.Other = []string{"body", "udh"} // binary
	texts := price.FromAnswer(s, price.AnswerCost{Amounts: "messages.message-price", In: "EUR"})
	return rules{list: []rule{
		{"", "/sms/json", texts},
		{"", "/sms/xml", texts},
		{http.MethodGet, "/account/", price.Free},
		{http.MethodGet, "/search/", price.Free},
	}}
}

// VonageRefusal makes Vonage's error response of a refusal: a 200 with status "1" for
// rates, "9" (no credit) for money and "5" (its own error) for the rest.
func VonageRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	_, h, body = vonageShape.refuse(r)
	return http.StatusOK, h, body
}

var vonageShape = shape{members: func(f said) []member {
	return []member{{"message-count", "1"}, {"messages", []fields{{"status": f.pick("1", "9", "5"), "error-text": f.text}}}}
}}

package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// AfricasTalking is Africa's Talking's SMS API at perPart for each part of a text to each
// recipient, in the currency of the account (an ISO 4217 code), which budgets must have
// too. What it really costs is read from the answer, if that is JSON: send
// "Accept: application/json".
//
// Reading is free; airtime, voice and data have no price here. A request that reaches
// some recipients and not others is never sent again. No documented rate was found. The
// Idempotency-Key of the vendor's Node SDK is for airtime and data only (read 2026-11).
// The sandbox costs nothing and has a provider of its own, if you want one.
func AfricasTalking(perPart budget.Amount, currency string) transport.Provider {
	return transport.Provider{
		Name:    "africas-talking",
		Match:   []string{"api.africastalking.com"},
		Scopes:  []transport.Scope{{Name: "sender", Key: Field("from")}},
		Dialect: dialect.For("Africa's Talking"),
		Price:   AfricasTalkingPrice(price.SMS{Segment: perPart, Currency: currency}),
	}
}

// AfricasTalkingPrice is the Price of [AfricasTalking] with other prices for texts, such
// as by destination.
func AfricasTalkingPrice(s price.SMS) transport.Pricer {
	s.To, s.Text = []string{"to"}, []string{"message"}
	texts := price.FromAnswer(s, price.AnswerCost{Amounts: "SMSMessageData.Recipients.cost"})
	return rules{reads: true, list: []rule{{http.MethodPost, "/version1/messaging", texts}}}
}

// AfricasTalkingRefusal makes Africa's Talking's error response of a refusal.
func AfricasTalkingRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return africasTalkingShape.refuse(r)
}

var africasTalkingShape = shape{members: func(f said) []member {
	return []member{{"SMSMessageData", fields{"Message": f.text, "Recipients": []any{}}}}
}}

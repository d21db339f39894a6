package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// ClickSend is ClickSend's SMS API at perPart for each part of each message, in the
// currency of the account (an ISO 4217 code), which budgets must have too. What it really
// costs is read from the answer.
//
// Reading and asking for a price are free. Messages without a number, to a list of
// contacts, have no price here. No documented rate was found, and no idempotency key. The
// scope "sender" is left out: one request may have messages of several.
func ClickSend(perPart budget.Amount, currency string) transport.Provider {
	return transport.Provider{
		Name:    "clicksend",
		Match:   []string{"rest.clicksend.com"},
		Dialect: dialect.For("clicksend"),
		Price:   ClickSendPrice(price.SMS{Segment: perPart, Currency: currency}),
	}
}

// ClickSendPrice is the Price of [ClickSend] with other prices for texts, such as by
// destination.
func ClickSendPrice(s price.SMS) transport.Pricer {
	s.To, s.Text, s.Other = []string{"to"}, []string{"body"}, []string{"list_id"}
	texts := price.FromAnswer(s, price.AnswerCost{Amounts: "data.total_price", Currency: "data._currency.currency_name_short"})
	return rules{reads: true, list: []rule{
		{http.MethodPost, "/v3/sms/send", texts},
		{http.MethodPost, "/v3/sms/price", price.Free},
	}}
}

// ClickSendRefusal makes ClickSend's error response of a refusal.
func ClickSendRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return clickSendShape.refuse(r)
}

var clickSendShape = shape{members: func(f said) []member {
	return []member{
		{"http_code", f.status}, {"response_code", f.pick("TOO_MANY_REQUESTS", "INSUFFICIENT_CREDIT", "UNAVAILABLE")},
		{"response_msg", f.text}, {"data", nil},
	}
}}

package provider

import (
	"net/http"
	"strconv"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Telnyx is Telnyx' messaging API at perPart US dollars for each part of a text. What it
// really costs is read from the answer; where that has no cost, the hold stays presumed.
//
// Reading is free, except number lookups, which have no price here, as have messages with
// media. Telnyx publishes no number for its rate: its headers tell. The scope "sender" is
// the from of a message. Its Idempotency-Key is not for messages
// (team-telnyx/telnyx-python, read 2026-11).
func Telnyx(perPart budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "telnyx",
		Match:   []string{"api.telnyx.com"},
		Scopes:  []transport.Scope{{Name: "sender", Key: Field("from", "messaging_profile_id")}},
		Dialect: dialect.For("telnyx"),
		Price:   TelnyxPrice(price.SMS{Segment: perPart}),
	}
}

// TelnyxPrice is the Price of [Telnyx] with other prices for texts, such as by
// destination.
func TelnyxPrice(s price.SMS) transport.Pricer {
	s.To, s.Text, s.Other = []string{"to"}, []string{"text"}, []string{"media_urls"}
	texts := price.FromAnswer(s, price.AnswerCost{Amounts: "data.cost.amount", Currency: "data.cost.currency"})
	return rules{reads: true, list: []rule{
		{http.MethodPost, "/v2/messages", texts},
		{http.MethodPost, "/v2/messages/long_code", texts},
		{http.MethodPost, "/v2/messages/short_code", texts},
		{http.MethodPost, "/v2/messages/number_pool", texts},
		{"", "/v2/number_lookup/", nil},
	}}
}

// TelnyxRefusal makes Telnyx' error response of a refusal.
func TelnyxRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return telnyxShape.refuse(r)
}

var telnyxShape = shape{members: func(f said) []member {
	code := f.pick("10011", "10015", "10007")
	return []member{{"errors", []fields{{"code": code, "title": http.StatusText(f.status), "detail": f.text, "meta": fields{"status": strconv.Itoa(f.status)}}}}}
}}

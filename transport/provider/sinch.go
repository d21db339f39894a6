package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Sinch is Sinch's SMS API, in every region, at perPart US dollars for each part of a
// text to each recipient.
//
// Reading and dry runs are free; texts with parameters, binary ones and media have no
// price here. The rate is one of messages a second of the service plan, and a batch of 10
// recipients takes 10 of it (developers.sinch.com, SMS rate limits, read 2026-11): so a
// batch weighs its recipients, and a rate needs a Burst of your largest batch. What is
// above it waits at Sinch. A balance of zero is a 402. The scope "sender" is the from of a
// message. There is no idempotency key.
func Sinch(perPart budget.Amount) transport.Provider {
	count := price.Values("to")
	return transport.Provider{
		Name:   "sinch",
		Match:  []string{"*.sms.api.sinch.com"},
		Scopes: []transport.Scope{{Name: "sender", Key: Field("from")}},
		Weight: func(r *http.Request) int {
			n, _ := count(r) // without recipients it is one call
			return int(n)
		},
		Dialect: dialect.For("sinch"),
		Price:   SinchPrice(price.SMS{Segment: perPart}),
	}
}

// SinchPrice is the Price of [Sinch] with other prices for texts, such as by destination.
func SinchPrice(s price.SMS) transport.Pricer {
	s.To, s.Text, s.Other = []string{"to"}, []string{"body"}, []string{"parameters", "udh"}
	return rules{reads: true, list: []rule{
		{http.MethodPost, "/xms/v1/*/batches", s},
		{http.MethodPost, "/xms/v1/*/batches/dry_run", price.Free},
	}}
}

// SinchRefusal makes Sinch's error response of a refusal.
func SinchRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return sinchShape.refuse(r)
}

var sinchShape = shape{members: func(f said) []member { return []member{{"code", f.reason}, {"text", f.text}} }}

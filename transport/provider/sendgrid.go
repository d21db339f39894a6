package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// SendGrid is SendGrid's API, in both regions, at perRecipient US dollars for each
// recipient of an email, copies included.
//
// Reading is free. Emails compressed by the caller, campaigns and the validation of
// addresses have no price here. Limits hold for each endpoint and are told by the headers
// (SendGrid API reference, rate limits, read 2026-11): the scope "endpoint" keeps them
// apart. There is no idempotency key.
//
// sendgrid-go lets refusals through, drops the context of Send, and reports a 429 as a
// result without an error. Its MakeRequestRetry repeats 429s six times: use MakeRequest.
func SendGrid(perRecipient budget.Amount) transport.Provider {
	count := price.Values("personalizations.to.email", "personalizations.cc.email", "personalizations.bcc.email")
	return transport.Provider{
		Name:    "sendgrid",
		Match:   []string{"api.sendgrid.com", "api.eu.sendgrid.com"},
		Scopes:  []transport.Scope{{Name: "endpoint", Key: endpoint}},
		Dialect: dialect.For("sendgrid"),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v3/mail/send", price.Per(perRecipient, count)},
		}},
	}
}

// SendGridRefusal makes SendGrid's error response of a refusal.
func SendGridRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return sendGridShape.refuse(r)
}

var sendGridShape = shape{members: func(f said) []member {
	return []member{{"errors", []fields{{"message": f.text, "field": nil, "help": nil}}}}
}}

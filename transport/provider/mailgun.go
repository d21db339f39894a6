package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Mailgun is Mailgun's API, in both regions, at perRecipient US dollars for each recipient
// of an email, copies included.
//
// Reading is free, except the validation of addresses, which has no price here. No limit
// with a good source was found: its answers tell. There is no idempotency key.
func Mailgun(perRecipient budget.Amount) transport.Provider {
	each := price.Per(perRecipient, price.Values("to", "cc", "bcc"))
	return transport.Provider{
		Name:    "mailgun",
		Match:   []string{"api.mailgun.net", "api.eu.mailgun.net"},
		Dialect: dialect.For("mailgun"),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v3/*/messages", each},
			{http.MethodPost, "/v3/*/messages.mime", each},
			{"", "/v3/address/", nil},
			{"", "/v4/address/", nil},
		}},
	}
}

// MailgunRefusal makes Mailgun's error response of a refusal.
func MailgunRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return messageShape.refuse(r)
}

package provider

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// TwilioSMS is Twilio's Messages API at perSegment US dollars for each segment of a text
// to each recipient.
//
// Reading, changing and deleting messages is free. A message with media, to WhatsApp or
// another channel, of a template, and whatever else the host offers (calls, numbers) has
// no price here. Twilio bills accepted messages, delivered or not; HTTP errors and 429s
// are free (support articles 223181728 and 27502337507483, read 2026-11). Prices by
// destination are set with [TwilioPrice].
//
// There are no default rates: Twilio queues what is above a sender's rate and throttles
// calls under way at once, by a number of the account that it does not publish (error
// 20429). The scope "sender" is the From or the MessagingServiceSid of a message: give its
// Rates what a sender may send. There is no idempotency key, so a message of unknown
// outcome is never sent again.
//
// twilio-go lets refusals through. It drops the context of its callers: use
// [transport.Transport.As], Priority and Tenant. A client of yours has neither its timeout
// of 10 seconds nor its rule about redirects.
func TwilioSMS(perSegment budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "twilio-sms",
		Match:   twilioHosts("api", "/2010-04-01/"),
		Scopes:  []transport.Scope{{Name: "sender", Key: Field("MessagingServiceSid", "From")}},
		Dialect: dialect.For("twilio"),
		Price:   TwilioPrice(price.SMS{Segment: perSegment}),
	}
}

// TwilioPrice is the Price of [TwilioSMS] with other prices for texts, such as by
// destination.
func TwilioPrice(s price.SMS) transport.Pricer {
	s.To, s.Text, s.Other = []string{"To"}, []string{"Body"}, []string{"MediaUrl", "ContentSid", "SendAsMms"}
	const account = "/2010-04-01/Accounts/*"
	return rules{reads: true, list: []rule{
		{http.MethodPost, account + "/Messages.json", twilioTexts{s}},
		{http.MethodPost, account + "/Messages", twilioTexts{s}}, // answers XML
		{http.MethodPost, account + "/Messages/*", price.Free},
	}}
}

// twilioTexts prices texts, and no other channel, whose addresses have a prefix.
type twilioTexts struct{ price.SMS }

var twilioTo = Field("To")

func (t twilioTexts) Quote(r *http.Request) (budget.Quote, error) {
	if to := twilioTo(r); to == several || strings.Contains(to, ":") {
		return budget.Quote{}, fmt.Errorf("%w: it is no text message", budget.ErrUnpriced)
	}
	return t.SMS.Quote(r)
}

// TwilioVerify is Twilio's Verify API at perVerification US dollars for each verification
// that is begun: what it costs in all, the channel's fee included. Twilio charges a part
// of that only if it succeeds, so the books are above the invoice. Checking a code is
// free. Error 60203 and its like stop too many codes to one number.
func TwilioVerify(perVerification budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "twilio-verify",
		Match:   twilioHosts("verify", "/v2/Services/"),
		Dialect: dialect.For("twilio"),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v2/Services/*/Verifications", price.PerCall(perVerification)},
			{http.MethodPost, "/v2/Services/*/Verifications/*", price.Free},
			{http.MethodPost, "/v2/Services/*/VerificationCheck", price.Free},
		}},
	}
}

// TwilioLookup is Twilio's Lookup API at perField US dollars for each of the Fields asked
// for (version 2), or each Type and AddOn (version 1). A lookup without any only formats
// a number and is free. Where their prices differ, give the dearest.
func TwilioLookup(perField budget.Amount) transport.Provider {
	return transport.Provider{
		Name:    "twilio-lookup",
		Match:   twilioHosts("lookups", "/v1/PhoneNumbers/", "/v2/PhoneNumbers/"),
		Dialect: dialect.For("twilio"),
		Price: rules{list: []rule{
			{http.MethodGet, "/v1/PhoneNumbers/*", price.Per(perField, lookupFields)},
			{http.MethodGet, "/v2/PhoneNumbers/*", price.Per(perField, lookupFields)},
		}},
	}
}

func lookupFields(r *http.Request) (n int64, err error) {
	q := r.URL.Query()
	for _, name := range []string{"Fields", "Type", "AddOns"} {
		for _, v := range q[name] {
			if v != "" {
				n += 1 + int64(strings.Count(v, ","))
			}
		}
	}
	return n, nil
}

// twilioHosts are the hosts of a product in all regions, such as api.dublin.ie1.twilio.com.
// Where a region has its hosts below one name, the paths tell the products apart.
// twilio-java's Twilio.java lists the regions (2025-11).
func twilioHosts(product string, paths ...string) []string {
	match := []string{product + ".twilio.com"}
	for _, region := range []string{"us1", "us2", "ie1", "de1", "au1", "br1", "jp1", "jp2", "sg1"} {
		for _, p := range paths {
			match = append(match, "*."+region+".twilio.com"+p)
		}
	}
	return match
}

// TwilioRefusal makes Twilio's error response of a refusal. twilio-go needs none.
func TwilioRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return twilioShape.refuse(r)
}

var twilioShape = shape{members: func(f said) []member {
	code := f.status
	if f.rate {
		code = 20429
	}
	return []member{{"code", code}, {"message", f.text}, {"more_info", "https://www.twilio.com/docs/api/errors"}, {"status", f.status}}
}}

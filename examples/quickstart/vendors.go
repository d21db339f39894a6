package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// The prices and the day's budgets, in US dollars. Text messages cost by segment: the
// sms budget ends after about 250 of the 320.
var (
	smsSegment = budget.MustParse("0.0083")
	smsPerDay  = budget.MustParse("2.65")
	geoLookup  = budget.MustParse("0.005")
	geoPerDay  = budget.MustParse("5")
)

// service is one vendor and the work for it.
type service struct {
	provider transport.Provider
	fake     *vendortest.Fake
	rows     []row
	results  []result
	// request makes the call for a row.
	request func(context.Context, row) (*http.Request, error)
	// read tells whether an answer says that it was done, and the vendor's id of it.
	read func(status int, body []byte) (id string, done bool)
}

// configure is all that outlay has to know.
func configure(services []*service, ledger budget.Ledger) transport.Config {
	c := transport.Config{Ledger: ledger}
	var fakes []*vendortest.Fake
	for _, s := range services {
		c.Providers = append(c.Providers, s.provider)
		fakes = append(fakes, s.fake)
	}
	c.Base = vendortest.Base(fakes...) // without this line the real vendors get the calls
	return c
}

// texts sends messages by Twilio's API, 30 a second.
func texts(o options, rows []row) *service {
	return &service{
		rows: rows, results: make([]result, len(rows)),
		provider: transport.Provider{
			Name:    "twilio-sms",
			Match:   []string{"api.twilio.com"},
			Rates:   []throttle.Rate{throttle.PerSecond(30 * o.speed)},
			Dialect: dialect.For("twilio"),
			Price:   price.SMS{Segment: smsSegment},
			Budgets: []budget.Budget{budget.PerDay(smsPerDay)},
		},
		fake: vendortest.NewSMS(vendortest.Options{
			Price:   smsSegment,
			Latency: 40 * time.Millisecond / time.Duration(o.speed),
			Limit:   vendortest.Limit{Requests: 30 * o.speed, Window: time.Second},
			Faults: vendortest.Faults{
				Seed: o.seed, SlowFor: time.Second / time.Duration(o.speed),
				Throttle429Hint: 12, Throttle429Bare: 6, Unavailable503: 6, Unavailable503Hint: 6,
				Error500: 12, ResetBeforeRead: 9, ResetAfterRead: 12, Cut: 6, Slow: 12,
			},
		}),
		request: func(ctx context.Context, r row) (*http.Request, error) {
			form := url.Values{"To": {r.to}, "From": {"+12025550100"}, "Body": {r.text}}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost,
				"https://api.twilio.com/2010-04-01/Accounts/ACquickstart/Messages.json", strings.NewReader(form.Encode()))
			if err == nil {
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				req.SetBasicAuth("ACquickstart", "no secret")
			}
			return req, err
		},
		read: func(status int, body []byte) (string, bool) {
			var answer struct{ Sid string }
			err := json.Unmarshal(body, &answer)
			return answer.Sid, err == nil && status == http.StatusCreated
		},
	}
}

// places looks up addresses by Google's API, 50 a second. A lookup may be made twice
// without harm, so it is repeated even if the vendor may have billed it already: every
// attempt is paid for.
func places(o options, rows []row) *service {
	return &service{
		rows: rows, results: make([]result, len(rows)),
		provider: transport.Provider{
			Name:    "google-geocoding",
			Match:   []string{"maps.googleapis.com"},
			Rates:   []throttle.Rate{throttle.PerSecond(50 * o.speed)},
			Dialect: dialect.For("google-maps"),
			Price:   price.PerCall(geoLookup),
			Budgets: []budget.Budget{budget.PerDay(geoPerDay)},
			Retry:   transport.Retry{Unknown: transport.ReplaySafe},
		},
		fake: vendortest.NewGeocoder(vendortest.Options{
			Price:   geoLookup,
			Latency: 60 * time.Millisecond / time.Duration(o.speed),
			Limit:   vendortest.Limit{Requests: 50 * o.speed, Window: time.Second},
			Faults: vendortest.Faults{
				Seed: o.seed, SlowFor: time.Second / time.Duration(o.speed),
				Throttle: 9, Throttle429Hint: 6, Unavailable503: 9,
				Error500: 9, ResetBeforeRead: 9, ResetAfterRead: 12, Cut: 6, Slow: 12,
			},
		}),
		request: func(ctx context.Context, r row) (*http.Request, error) {
			q := url.Values{"address": {r.text}, "key": {"no-secret"}}
			return http.NewRequestWithContext(ctx, http.MethodGet,
				"https://maps.googleapis.com/maps/api/geocode/json?"+q.Encode(), nil)
		},
		read: func(_ int, body []byte) (string, bool) {
			var answer struct{ Status string }
			err := json.Unmarshal(body, &answer)
			return "", err == nil && (answer.Status == "OK" || answer.Status == "ZERO_RESULTS")
		},
	}
}

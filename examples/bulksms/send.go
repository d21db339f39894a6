package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/examples/batch"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// account is who sends.
type account struct{ sid, token, from string }

// configure is all that outlay has to know.
func configure(o options, ledger budget.Ledger, base http.RoundTripper) transport.Config {
	sms := provider.TwilioSMS(o.price)
	sms.Rates = []throttle.Rate{throttle.PerSecond(o.rate)}
	sms.Budgets = []budget.Budget{budget.PerDay(o.day)}
	sms.BudgetsFor = func(_ *http.Request, q budget.Quote) []budget.Budget {
		country := budget.PerDay(o.country)
		country.Name = "country " + q.Destination // its calling code
		country.Label = country.Name
		return []budget.Budget{country}
	}
	return transport.Config{Base: base, Ledger: ledger, Providers: []transport.Provider{sms}}
}

// sender sends messages by Twilio's API.
type sender struct {
	client  *http.Client
	account account
}

// longest is how long one message may take. It bounds the wait of the program for what is
// on its way when it is stopped.
const longest = 2 * time.Minute

// send sends the message of a row. Its error says that nothing was sent.
func (s sender) send(ctx context.Context, r batch.Row) (batch.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	ctx, record := transport.Record(ctx)
	req, err := s.request(ctx, r.Values[0], r.Values[1])
	if err != nil {
		return batch.Result{State: batch.Failed, Detail: "it makes no request"}, nil
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if transport.NotSent(err) {
			return batch.Result{}, err
		}
		return batch.Result{State: batch.Unknown, Cost: record.Cost()[budget.USD], Detail: "no answer"}, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close() // the cost is booked by now
	result, err := judge(resp, body, err)
	result.Cost = record.Cost()[budget.USD]
	return result, err
}

func (s sender) request(ctx context.Context, to, text string) (*http.Request, error) {
	form := url.Values{"To": {to}, "From": {s.account.from}, "Body": {text}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://api.twilio.com/2010-04-01/Accounts/"+url.PathEscape(s.account.sid)+"/Messages.json", strings.NewReader(form.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(s.account.sid, s.account.token)
	}
	return req, err
}

// judge says what an answer means for its row.
func judge(resp *http.Response, body []byte, broken error) (batch.Result, error) {
	var answer struct {
		Sid     string
		Code    int
		Message string
	}
	understood := json.Unmarshal(body, &answer) == nil && broken == nil
	switch status := resp.StatusCode; {
	case status == http.StatusCreated && understood && answer.Sid != "":
		return batch.Result{State: batch.Done, Ref: answer.Sid}, nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return batch.Result{}, batch.ErrLater // outlay has tried as often as it may
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return batch.Result{}, fmt.Errorf("the account is refused: status %d", status)
	case status >= 400 && status < 500:
		return batch.Result{State: batch.Failed, Detail: fmt.Sprintf("error %d: %s", answer.Code, answer.Message)}, nil
	}
	return batch.Result{State: batch.Unknown, Detail: fmt.Sprintf("status %d", resp.StatusCode)}, nil
}

// vendor is where the messages go.
type vendor struct {
	base http.RoundTripper
	fake *vendortest.Fake // nil: the real one, or a test's
}

func vendorFor(o options) vendor {
	if o.live || o.base != nil {
		return vendor{base: o.base}
	}
	fake := vendortest.NewSMS(vendortest.Options{
		Price: o.price, Latency: 40 * time.Millisecond,
		Limit: vendortest.Limit{Requests: o.rate, Window: time.Second},
		Faults: vendortest.Faults{
			Seed: o.seed, Throttle429Hint: 12, Throttle429Bare: 6, Unavailable503: 6, Unavailable503Hint: 6,
			Error500: 12, ResetBeforeRead: 9, ResetAfterRead: 12, Cut: 6, Slow: 12,
		},
	})
	return vendor{vendortest.Base(fake), fake}
}

func (v vendor) close() {
	if v.fake != nil {
		v.fake.Close()
	}
}

// report prints what the fake charges for this run.
func (v vendor) report(out io.Writer) {
	if v.fake != nil {
		c := v.fake.Counts()
		fmt.Fprintf(out, "  the fake vendor charges %v USD for %d messages, %d of them sent twice\n",
			v.fake.Invoice().Total, len(v.fake.Invoice().Lines), c.Double)
	}
}

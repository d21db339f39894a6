// Otp sends one-time passwords past a bulk job: the passwords go first, and a
// fifth of the day's money is kept for them. The SDK of this vendor drops the context
// that it is given, so the priority comes from the request itself.
//
//	go run ./examples/otp
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
	"github.com/outlay-go/outlay/transport/vendortest"
)

const (
	bulkMessages = 150
	passwords    = 20
	otpSender    = "+12025550111" // passwords leave from a number of their own
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	fake := vendortest.NewSMS(vendortest.Options{Price: budget.MustParse("0.01"), Limit: vendortest.Limit{Requests: 200, Window: time.Second}})
	defer fake.Close()

	daily := budget.PerDay(budget.MustParse("1.00")) // a hundred messages
	daily.Keep = budget.MustParse("0.20")            // twenty of them are for passwords
	sms := transport.Provider{
		Name:    "twilio-sms",
		Match:   []string{"api.twilio.com"},
		Rates:   []throttle.Rate{throttle.PerSecond(60)},
		Dialect: dialect.For("twilio"),
		Price:   price.SMS{Segment: budget.MustParse("0.01")},
		Budgets: []budget.Budget{daily},
		Priority: func(r *http.Request) throttle.Priority {
			if sentFrom(r) == otpSender {
				return throttle.Critical
			}
			return throttle.Bulk
		},
	}
	rt, err := transport.New(transport.Config{Base: vendortest.Base(fake), Ledger: new(budget.Memory), Providers: []transport.Provider{sms}})
	if err != nil {
		return err
	}
	client := rt.Client()

	bulk, otp := new(tally), new(tally)
	var wg sync.WaitGroup
	for i := range bulkMessages { // the whole job stands in the queue
		wg.Go(func() { bulk.send(client, "+12025550100", fmt.Sprintf("Our winter sale begins, number %d", i)) })
	}
	for i := range passwords { // while passwords come one by one
		otp.send(client, otpSender, fmt.Sprintf("Your code is %06d", 123456+i))
	}
	wg.Wait()
	fmt.Fprintf(out, "passwords  %3d sent, %2d refused, slowest after %v\n", otp.sent, otp.refused, otp.slowest().Round(time.Millisecond))
	fmt.Fprintf(out, "bulk       %3d sent, %2d refused (%s), slowest after %v\n", bulk.sent, bulk.refused, bulk.reason, bulk.slowest().Round(time.Millisecond))
	_, err = fmt.Fprintf(out, "invoice    %v USD of %v\n", fake.Invoice().Total, daily.Limit)
	return err
}

// sentFrom reads the sender of a message without consuming its body.
func sentFrom(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 64<<10))
	if err != nil {
		return ""
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return ""
	}
	return form.Get("From")
}

// tally is what became of one sort of message.
type tally struct {
	mu            sync.Mutex
	sent, refused int
	reason        transport.Reason
	took          []time.Duration
}

func (t *tally) send(client *http.Client, from, text string) {
	form := url.Values{"To": {"+12025550123"}, "From": {from}, "Body": {text}}
	start := time.Now()
	resp, err := client.Post("https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	t.mu.Lock()
	defer t.mu.Unlock()
	if over, ok := errors.AsType[*budget.ExceededError](err); ok {
		t.refused++
		t.reason = transport.Reason(over.Reason)
		return
	}
	if err != nil {
		return
	}
	_ = resp.Body.Close()
	t.sent++
	t.took = append(t.took, time.Since(start))
}

func (t *tally) slowest() time.Duration {
	if len(t.took) == 0 {
		return 0
	}
	return slices.Max(t.took)
}

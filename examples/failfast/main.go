// Failfast shows the two refusals that a program meets which never waits: there is no
// turn now, and the budget is used up. Both come before anything is sent, and both say
// when to try again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/vendortest"
)

func main() {
	if err := show(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// show sends messages until the budget refuses one.
func show(ctx context.Context, out io.Writer) error {
	sms := vendortest.NewSMS(vendortest.Options{})
	defer sms.Close()
	rt, err := transport.New(transport.Config{
		Base:    vendortest.Base(sms),
		Ledger:  new(budget.Memory),
		MaxWait: transport.NoWait, // never queue: start now or fail
		Providers: []transport.Provider{{
			Name:    "twilio-sms",
			Match:   []string{"api.twilio.com"},
			Rates:   []throttle.Rate{throttle.PerSecond(2)},
			Price:   price.SMS{Segment: budget.MustParse("0.0083")},
			Budgets: []budget.Budget{budget.PerDay(budget.MustParse("0.02"))}, // two messages
		}},
	})
	if err != nil {
		return err
	}
	defer rt.CloseIdleConnections()

	for n := 1; ; {
		err := send(ctx, rt.Client(), fmt.Sprintf("Message %d", n))
		var busy *throttle.WaitError
		var over *budget.ExceededError
		switch {
		case err == nil:
			fmt.Fprintf(out, "message %d: sent\n", n)
			n++
		case errors.As(err, &busy): // no turn now
			fmt.Fprintf(out, "message %d: refused: %s: nothing was sent; a turn comes in %v\n",
				n, busy.Reason, time.Until(busy.RetryAt).Round(100*time.Millisecond))
			time.Sleep(time.Until(busy.RetryAt))
		case errors.As(err, &over): // the money of the day is spent
			fmt.Fprintf(out, "message %d: refused: %s: nothing was sent; %v of %v %s are used, %v are needed; the next window begins %s\n",
				n, over.Reason, over.Used, over.Limit, over.Unit, over.Need, over.RetryAt.Format(time.RFC3339))
			return nil
		default: // the network's own trouble: transport.NotSent and OutcomeUnknown tell more
			return err
		}
	}
}

// send makes one call of the vendor's API.
func send(ctx context.Context, client *http.Client, text string) error {
	form := url.Values{"To": {"+12025550123"}, "From": {"+12025550100"}, "Body": {text}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://api.twilio.com/2010-04-01/Accounts/ACfailfast/Messages.json", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

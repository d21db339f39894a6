// Tenants shows how tenants share one provider: each has the rate of its plan,
// and what is scarce is given in fair turns, whatever a greedy tenant asks for.
//
//	go run ./examples/tenants
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// tenant is a customer of ours.
type tenant struct {
	name, plan string
	callers    int // how many calls it makes at once: its greed
	sent       atomic.Int64
}

// plans are the rates that customers pay for. The provider itself lets 200 calls a second
// pass, fewer than the plans promise together.
var plans = map[string][]throttle.Rate{
	"gold": {{N: 160, Per: time.Second, Burst: 5}},
	"free": {{N: 20, Per: time.Second, Burst: 1}},
}

const providerRate = 200

func main() {
	if err := run(os.Stdout, 2*time.Second); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer, d time.Duration) error {
	tenants := []*tenant{
		{name: "acme", plan: "gold", callers: 16},
		{name: "bolt", plan: "gold", callers: 64}, // four times as many callers
		{name: "cask", plan: "gold", callers: 16},
		{name: "dust", plan: "free", callers: 16},
	}
	planOf := map[string]string{}
	for _, t := range tenants {
		planOf[t.name] = t.plan
	}
	fake := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Requests: 2 * providerRate, Window: time.Second}})
	defer fake.Close()
	byHeader := func(r *http.Request) string { return r.Header.Get("X-Tenant") }
	rt, err := transport.New(transport.Config{
		Base: vendortest.Base(fake),
		Providers: []transport.Provider{{
			Name:   "twilio-sms",
			Match:  []string{"api.twilio.com"},
			Rates:  []throttle.Rate{throttle.PerSecond(providerRate)},
			Tenant: byHeader, // fair turns between tenants
			Scopes: []transport.Scope{{ // and each with the rate of its plan
				Name: "tenant", Key: byHeader,
				RatesFor: func(name string) []throttle.Rate { return plans[planOf[name]] },
			}},
		}},
	})
	if err != nil {
		return err
	}
	load(rt.Client(), tenants, d)
	return table(out, tenants, d)
}

// load lets all tenants send as fast as they can.
func load(client *http.Client, tenants []*tenant, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for _, t := range tenants {
		for range t.callers {
			wg.Go(func() {
				for ctx.Err() == nil {
					if send(ctx, client, t.name) == nil {
						t.sent.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
}

func send(ctx context.Context, client *http.Client, tenant string) error {
	form := url.Values{"To": {"+12025550123"}, "From": {"+12025550100"}, "Body": {"hello"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Tenant", tenant)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func table(out io.Writer, tenants []*tenant, d time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "tenant\tplan\tcallers\tsent\tper second")
	var gold []int64
	for _, t := range tenants {
		sent := t.sent.Load()
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.0f\n", t.name, t.plan, t.callers, sent, float64(sent)/d.Seconds())
		if t.plan == "gold" {
			gold = append(gold, sent)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	spread := 100 * float64(slices.Max(gold)-slices.Min(gold)) / float64(max(1, slices.Max(gold)))
	_, err := fmt.Fprintf(out, "gold tenants differ by %.1f %%; free stays at its plan\n", spread)
	return err
}

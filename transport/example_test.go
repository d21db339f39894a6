package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// vendor stands for the network: it answers every request with the next status.
type vendor []int

func (v *vendor) RoundTrip(req *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if len(*v) > 0 {
		status, *v = (*v)[0], (*v)[1:]
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// sms is a provider at a cent a message, and a dollar a day.
func sms() transport.Provider {
	return transport.Provider{
		Name:    "sms",
		Match:   []string{"api.example.com"},
		Rates:   []throttle.Rate{{N: 10, Per: 1e9, Burst: 10}}, // ten a second
		Price:   price.PerCall(budget.MustParse("0.01")),
		Budgets: []budget.Budget{budget.PerDay(1 * budget.Unit)},
	}
}

func mustNew(c transport.Config) *transport.Transport {
	rt, err := transport.New(c)
	if err != nil {
		log.Fatal(err) // names every wrong field
	}
	return rt
}

func get(rt http.RoundTripper, ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/v1/send", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// Wrap the transport of a client: every call waits its turn and is paid for.
func Example() {
	rt := mustNew(transport.Config{
		Base:      new(vendor), // leave it out, and calls go to the network
		Ledger:    new(budget.Memory),
		Providers: []transport.Provider{sms()},
	})
	resp, err := rt.Client().Post("https://api.example.com/v1/send", "text/plain", strings.NewReader("Hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

// Never queue: start now or fail, and say when there is a turn again.
func ExampleWithMaxWait() {
	p := sms()
	p.Rates = []throttle.Rate{throttle.PerMinute(1)}
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{p}})

	ctx := transport.WithMaxWait(context.Background(), transport.NoWait)
	fmt.Println("first:", get(rt, ctx))
	err := get(rt, ctx)
	_, known := transport.RetryAt(err)
	fmt.Println("second:", transport.ReasonOf(err), "- not sent:", transport.NotSent(err), "- knows when to come back:", known)
	// Output:
	// first: <nil>
	// second: rate - not sent: true - knows when to come back: true
}

// What to do after an error depends on whether anything may have been done and billed.
func ExampleOutcomeUnknown() {
	what := func(err error) string {
		var over *budget.ExceededError
		switch {
		case err == nil:
			return "done"
		case errors.As(err, &over):
			return "the money of this window is spent: come back at " + over.RetryAt.Format("15:04")
		case transport.NotSent(err):
			return "nothing was sent: it may be tried again"
		case transport.OutcomeUnknown(err):
			return "it may have been done and billed: look before you send it again"
		}
		return "it was sent and failed"
	}
	rt := mustNew(transport.Config{Base: cutOff{}, Ledger: new(budget.Memory), Providers: []transport.Provider{sms()}})
	fmt.Println(what(get(rt, context.Background())))
	// Output: it may have been done and billed: look before you send it again
}

// cutOff is a connection that dies before an answer comes.
type cutOff struct{}

func (cutOff) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// Ask after a call what it went through and what it cost.
func ExampleRecord() {
	rt := mustNew(transport.Config{Base: &vendor{503, 200}, Ledger: new(budget.Memory), Providers: []transport.Provider{sms()}})
	ctx, record := transport.Record(context.Background())
	fmt.Println(get(rt, ctx))
	for _, call := range record.Calls() {
		for i, a := range call.Attempts {
			fmt.Printf("attempt %d: status %d, %v %v\n", i+1, a.Status, a.State, a.Cost)
		}
	}
	// Output:
	// <nil>
	// attempt 1: status 503, presumed 0.01
	// attempt 2: status 200, settled 0.01
}

// A budget of their own for each tenant, beside the budget of all.
func ExampleProvider_budgetsFor() {
	p := sms()
	p.BudgetsFor = func(r *http.Request, _ budget.Quote) []budget.Budget {
		b := budget.PerMonth(2 * budget.Unit / 100) // two messages
		b.Name, b.Label = "tenant-"+r.Header.Get("X-Tenant"), "tenant-month"
		return []budget.Budget{b}
	}
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{p}})
	for _, tenant := range []string{"acme", "acme", "acme", "globex"} {
		req, _ := http.NewRequest(http.MethodGet, "https://api.example.com/v1/send", nil)
		req.Header.Set("X-Tenant", tenant)
		resp, err := rt.RoundTrip(req)
		if err != nil {
			fmt.Println(tenant, transport.ReasonOf(err))
			continue
		}
		_ = resp.Body.Close()
		fmt.Println(tenant, "sent")
	}
	// Output:
	// acme sent
	// acme sent
	// acme exhausted
	// globex sent
}

// A sender number has a limit of its own beside the account's.
func ExampleScope() {
	p := sms()
	p.Scopes = []transport.Scope{{
		Name:  "sender",
		Key:   func(r *http.Request) string { return r.URL.Query().Get("from") },
		Rates: []throttle.Rate{throttle.PerMinute(1)},
	}}
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{p}, MaxWait: transport.NoWait})
	for _, from := range []string{"1", "1", "2"} {
		resp, err := rt.Client().Get("https://api.example.com/v1/send?from=" + from)
		if err != nil {
			fmt.Println("from", from, transport.ReasonOf(err))
			continue
		}
		_ = resp.Body.Close()
		fmt.Println("from", from, "sent")
	}
	// Output:
	// from 1 sent
	// from 1 rate
	// from 2 sent
}

// Watch first, enforce later: a monitored provider never waits and never refuses.
func ExampleProvider_monitor() {
	p := sms()
	p.Budgets, p.Monitor = []budget.Budget{budget.PerDay(budget.MustParse("0.01"))}, true
	rt := mustNew(transport.Config{
		Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{p},
		OnEvent: func(_ context.Context, e transport.Event) {
			if e.Kind == transport.KindWouldRefuse {
				fmt.Println("would have refused:", e.Reason, e.Budget)
			}
		},
	})
	fmt.Println(get(rt, context.Background()), get(rt, context.Background()))
	// Output:
	// would have refused: exhausted sms-day
	// <nil> <nil>
}

// SDKs that drop the context of their callers get a view that carries it.
func ExampleTransport_As() {
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{sms()}})
	ctx, record := transport.Record(transport.WithPriority(context.Background(), throttle.Critical))
	sdk := &http.Client{Transport: rt.As(ctx)} // hand this to the SDK
	resp, err := sdk.Get("https://api.example.com/v1/send")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	fmt.Println("cost", record.Cost()["USD"])
	// Output: cost 0.01
}

// Change rates and limits while calls are under way.
func ExampleTransport_Update() {
	p := sms()
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{p}})
	p.Rates = []throttle.Rate{throttle.PerSecond(2)}
	p.Budgets = []budget.Budget{budget.PerDay(0)}
	fmt.Println(rt.Update(transport.Config{Providers: []transport.Provider{p}})) // and nothing has changed
	p.Budgets = []budget.Budget{budget.PerDay(5 * budget.Unit)}
	fmt.Println(rt.Update(transport.Config{Providers: []transport.Provider{p}}))
	// Output:
	// transport: configuration: Providers[0].Budgets[0]: Limit must be more than zero, not 0
	// <nil>
}

// Ask what would happen to a request, without sending it.
func ExampleTransport_Plan() {
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{sms()}})
	req, _ := http.NewRequest(http.MethodGet, "https://api.example.com/v1/send", nil)
	plan, err := rt.Plan(req)
	fmt.Println(plan.Provider, plan.Quote.Amount, plan.Quote.Unit, plan.Budgets[0].Available(), plan.Refusal, err)
	// Output: sms 0.01 USD 1 <nil> <nil>
}

// Stop a provider at once, for all processes that share the ledger.
func ExampleTransport_Freeze() {
	rt := mustNew(transport.Config{Base: new(vendor), Ledger: new(budget.Memory), Providers: []transport.Provider{sms()}})
	by := budget.By{Who: "ada", Why: "messages go out twice"}
	ctx := context.Background()
	fmt.Println(rt.Freeze(ctx, "sms", by))
	fmt.Println(transport.ReasonOf(get(rt, ctx)))
	fmt.Println(rt.Release(ctx, "sms", by), get(rt, ctx))
	// Output:
	// <nil>
	// frozen
	// <nil> <nil>
}

package budget_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// A ledger is asked before a call is sent, and told afterwards what became of it.
func Example() {
	var ledger budget.Memory // ready as it is; forgets on exit
	ctx := context.Background()

	day := budget.PerDay(1 * budget.Unit)
	day.Name = "sms-day"
	price := budget.MustParse("0.4")
	hold := func(seq uint64) error {
		_, err := ledger.Hold(ctx, budget.Hold{
			ID:       budget.HoldID{Boot: 1, Seq: seq},
			Provider: "sms",
			Legs:     []budget.Leg{{Budget: day, Amount: price}},
		})
		return err
	}
	resolve := func(seq uint64, o budget.Outcome) {
		if _, err := ledger.Resolve(ctx, budget.HoldID{Boot: 1, Seq: seq}, o); err != nil {
			fmt.Println(err)
		}
	}

	fmt.Println("first:", hold(1))
	resolve(1, budget.Settled(budget.MustParse("0.3"))) // it was cheaper
	fmt.Println("second:", hold(2))
	resolve(2, budget.Presumed(0)) // no answer came: it may have been billed
	err := hold(3)
	if over, ok := errors.AsType[*budget.ExceededError](err); ok {
		fmt.Println("third:", over, "-", over.Reason)
	}

	totals, _ := ledger.Totals(ctx, time.Now(), day)
	fmt.Printf("between %v and %v spent\n", totals[0].Settled, totals[0].Used())
	// Output:
	// first: <nil>
	// second: <nil>
	// third: sms: budget sms-day: 0.7 of 1 USD used, call needs 0.4 - exhausted
	// between 0.3 and 0.7 spent
}

func ExamplePeriod() {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) // clocks go back on that day
	for _, p := range []budget.Period{budget.Day, budget.Day.At(6 * time.Hour), budget.Week, budget.Month.From(15), budget.Rolling(24 * time.Hour)} {
		w := p.Window(at, newYork)
		fmt.Printf("%s: %s, %v\n", p, w.ID, w.End.Sub(w.Start))
	}
	// Output:
	// day: 2026-11-01, 25h0m0s
	// day@6h0m0s: 2026-11-01, 24h0m0s
	// week: 2026-W44, 169h0m0s
	// month from 15: 2026-10-15, 745h0m0s
	// rolling 24h0m0s: 2026-11-01T12:00:00Z, 25h0m0s
}

package sqliteledger_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
)

// What was spent is known after a restart, and what was in flight counts as spent.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ledger, err := sqliteledger.Open(filepath.Join(dir, "spend.db"))
	if err != nil {
		log.Fatal(err)
	}

	day := budget.PerDay(10 * budget.Unit)
	day.Name = "sms-day"
	ctx := context.Background()
	for seq := range uint64(2) { // a transport does this for each call
		id := budget.HoldID{Boot: 1, Seq: seq}
		_, err := ledger.Hold(ctx, budget.Hold{ID: id, Provider: "sms",
			Legs: []budget.Leg{{Budget: day, Amount: budget.MustParse("0.05")}}})
		if err != nil {
			log.Fatal(err)
		}
	}
	if _, err := ledger.Resolve(ctx, budget.HoldID{Boot: 1, Seq: 0}, budget.Settled(budget.MustParse("0.0415"))); err != nil {
		log.Fatal(err)
	}
	if err := ledger.Close(); err != nil { // with one call still in flight
		log.Fatal(err)
	}

	ledger, err = sqliteledger.Open(filepath.Join(dir, "spend.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()
	totals, err := ledger.Totals(ctx, time.Now(), day)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("settled %v, presumed %v\n", totals[0].Settled, totals[0].Presumed)
	// Output: settled 0.0415, presumed 0.05
}

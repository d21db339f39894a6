// Geocode looks up the addresses of a CSV file and writes their coordinates into another.
// It can be stopped at any moment, also by a kill, and started again: what was found is
// not asked again.
//
// Money is limited by the day and by the month. What the budget does not let out waits,
// and the program says when to go on.
//
//	go run ./examples/geocode -results /tmp/places.csv
//	go run ./examples/geocode -results /tmp/places.csv -day 0.1
//
// By default the addresses go to a fake of Google Maps on loopback, which throttles, fails
// and bills. With -live they go to Google, with GOOGLE_MAPS_API_KEY from the environment.
//
// The exit status is 0 if every address was asked for, 1 if some wait, and 2 if the work
// could not begin.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/examples/batch"
	"github.com/outlay-go/outlay/transport"
)

//go:embed addresses.csv
var sample []byte

// options are what the command line and the environment say.
type options struct {
	addresses, results, ledger string
	price, day, month          budget.Amount
	live                       bool
	seed                       uint64
	key                        string
	// base replaces the fake. Tests use it.
	base http.RoundTripper
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(start(ctx, os.Args[1:], nil, os.Stdout, os.Stderr))
}

// start is the program; it returns the exit status.
func start(ctx context.Context, args []string, base http.RoundTripper, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errs, "geocode:", err)
		return 2
	}
	o.base = base
	finished, err := run(ctx, o, out, errs)
	switch {
	case err != nil:
		fmt.Fprintln(errs, "geocode:", err)
		return 2
	case !finished:
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{price: budget.MustParse("0.005"), day: 20 * budget.Unit, month: 200 * budget.Unit}
	f := flag.NewFlagSet("geocode", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.addresses, "addresses", "", "CSV `file` with the column address (default: 60 public places)")
	f.StringVar(&o.results, "results", "", "CSV `file` to write; its journal stands beside it")
	f.StringVar(&o.ledger, "ledger", "", "ledger `file` of what was spent (default: beside the results)")
	f.TextVar(&o.price, "price", o.price, "US dollars that a lookup costs at the most")
	f.TextVar(&o.day, "day", o.day, "US dollars that may be spent in a day")
	f.TextVar(&o.month, "month", o.month, "US dollars that may be spent in a month")
	f.BoolVar(&o.live, "live", false, "ask Google itself")
	f.Uint64Var(&o.seed, "seed", 1, "decides which requests the fake fails")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.ledger == "" {
		o.ledger = o.results + ".db"
	}
	o.key = os.Getenv("GOOGLE_MAPS_API_KEY")
	return o, o.check(f.Args())
}

func (o *options) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.results == "":
		return errors.New("say where the results go: -results FILE")
	case !o.live:
		o.key = "fake"
	case o.key == "":
		return errors.New("-live needs GOOGLE_MAPS_API_KEY")
	}
	return nil
}

// run does the work and reports whether none of it is left.
func run(ctx context.Context, o options, out, errs io.Writer) (finished bool, err error) {
	rows, err := readAddresses(o.addresses, errs)
	if err != nil {
		return false, err
	}
	journal, err := batch.OpenJournal(o.results + ".journal")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	ledger, err := sqliteledger.Open(o.ledger)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	vendor := vendorFor(o)
	defer vendor.close()
	rt, err := transport.New(configure(o, ledger, vendor.base))
	if err != nil {
		return false, err
	}
	defer rt.CloseIdleConnections()

	l := lookup{client: rt.Client(), key: o.key}
	b := &batch.Batch{Name: "geocode", Rows: rows, Journal: journal, Workers: 16, Harmless: true, Do: l.do, Out: out}
	stopped := b.Run(ctx)
	finished = b.Summary(stopped)
	vendor.report(out)
	return finished, b.WriteResults(o.results, columns, "lat", "lng", "place_id", "found")
}

var columns = []string{"address"}

// readAddresses reads the file, or the sample. Rows that make no sense are told to errs.
func readAddresses(path string, errs io.Writer) ([]batch.Row, error) {
	text, name := sample, "addresses.csv"
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		name = path
	}
	rows, bad, err := batch.Read(text, columns, false, func(v []string) error {
		if v[0] = strings.Join(strings.Fields(v[0]), " "); v[0] == "" {
			return errors.New("address is empty")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, b := range bad {
		fmt.Fprintf(errs, "%s:%d: %s: row left out\n", name, b.Line, b.Why)
	}
	return rows, nil
}

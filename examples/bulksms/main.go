// Bulksms sends the text messages of a CSV file, each of them once, and writes what became
// of them into another. It can be stopped at any moment, also by a kill, and started again:
// what was sent is not sent again, and what may have been sent is listed.
//
// Money is limited by the day, and within it for each country. What the budget does not
// let out waits, and the program says when to go on.
//
//	go run ./examples/bulksms -results /tmp/results.csv
//	go run ./examples/bulksms -results /tmp/results.csv -day 1 -country 0.25
//
// By default the messages go to a fake of Twilio on loopback, which throttles, fails and
// bills. With -live they go to Twilio, with TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and
// TWILIO_FROM from the environment.
//
// The exit status is 0 if every message was sent or rejected, 1 if some wait or are of
// unknown outcome, and 2 if the work could not begin.
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
	"regexp"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/examples/batch"
	"github.com/outlay-go/outlay/transport"
)

//go:embed messages.csv
var sample []byte

// options are what the command line and the environment say.
type options struct {
	messages, results, ledger string
	rate                      int
	price, day, country       budget.Amount
	live, again               bool
	seed                      uint64
	account                   account
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
		fmt.Fprintln(errs, "bulksms:", err)
		return 2
	}
	o.base = base
	finished, err := run(ctx, o, out, errs)
	switch {
	case err != nil:
		fmt.Fprintln(errs, "bulksms:", err)
		return 2
	case !finished:
		return 1
	}
	return 0
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{price: budget.MustParse("0.0083"), day: 50 * budget.Unit, country: 10 * budget.Unit}
	f := flag.NewFlagSet("bulksms", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.messages, "messages", "", "CSV `file` with the columns to and text (default: 82 made-up messages)")
	f.StringVar(&o.results, "results", "", "CSV `file` to write; its journal stands beside it")
	f.StringVar(&o.ledger, "ledger", "", "ledger `file` of what was spent (default: beside the results)")
	f.IntVar(&o.rate, "rate", 20, "messages a second that the sender may send")
	f.TextVar(&o.price, "price", o.price, "US dollars that a segment costs at the most")
	f.TextVar(&o.day, "day", o.day, "US dollars that may be spent in a day")
	f.TextVar(&o.country, "country", o.country, "US dollars that may be spent in a day for each country")
	f.BoolVar(&o.live, "live", false, "send to Twilio itself")
	f.BoolVar(&o.again, "again", false, "send messages of unknown outcome again: some will arrive twice")
	f.Uint64Var(&o.seed, "seed", 1, "decides which requests the fake fails")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.ledger == "" {
		o.ledger = o.results + ".db"
	}
	o.account = account{os.Getenv("TWILIO_ACCOUNT_SID"), os.Getenv("TWILIO_AUTH_TOKEN"), os.Getenv("TWILIO_FROM")}
	return o, o.check(f.Args())
}

func (o *options) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.results == "":
		return errors.New("say where the results go: -results FILE")
	case !o.live:
		o.account = account{"ACfake", "fake", "+12025550100"}
	case o.messages == "":
		return errors.New("-live sends nothing made up: name a file with -messages")
	case o.account.sid == "" || o.account.token == "" || o.account.from == "":
		return errors.New("-live needs TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_FROM")
	}
	return nil
}

// run does the work and reports whether none of it is left.
func run(ctx context.Context, o options, out, errs io.Writer) (finished bool, err error) {
	rows, err := readMessages(o.messages, errs)
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
	rt, err := transport.New(configure(o, ledger, journal.Sending(vendor.base)))
	if err != nil {
		return false, err
	}
	defer rt.CloseIdleConnections()

	s := sender{client: rt.Client(), account: o.account}
	b := &batch.Batch{Name: "bulksms", Rows: rows, Journal: journal, Workers: 16, Harmless: o.again, Do: s.send, Out: out}
	stopped := b.Run(ctx)
	finished = b.Summary(stopped)
	vendor.report(out)
	return finished, b.WriteResults(o.results, columns)
}

var columns = []string{"to", "text"}

var phoneNumber = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// readMessages reads the file, or the sample. Rows that make no sense are told to errs.
func readMessages(path string, errs io.Writer) ([]batch.Row, error) {
	text, name := sample, "messages.csv"
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		name = path
	}
	rows, bad, err := batch.Read(text, columns, true, cleanMessage)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, b := range bad {
		fmt.Fprintf(errs, "%s:%d: %s: row left out\n", name, b.Line, b.Why)
	}
	return rows, nil
}

func cleanMessage(v []string) error {
	v[0] = strings.NewReplacer(" ", "", "-", "", ".", "", "(", "", ")", "").Replace(v[0])
	switch n := utf8.RuneCountInString(v[1]); {
	case !phoneNumber.MatchString(v[0]):
		return errors.New("to is no number such as +12025550123")
	case strings.TrimSpace(v[1]) == "":
		return errors.New("text is empty")
	case n > 1600:
		return fmt.Errorf("text has %d characters, the vendor takes 1600", n)
	}
	return nil
}

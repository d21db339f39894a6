// Quickstart sends the text messages of one CSV file and looks up the addresses of
// another, each through its own billed vendor: at the rate that the vendor allows, at
// most once per message, and not beyond the day's budget. In the end it puts the
// vendors' invoices beside the books.
//
// The vendors are fakes on loopback that answer for the real host names. They limit,
// fail and lose answers as the real ones do, and bill what they accept.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -seed 7 -messages mine.csv
//	go run ./examples/quickstart -ledger spend.db
//	go run ./examples/quickstart -hold
//
// Its first line is the address of a status page that shows the work as it goes, for
// browsers on this machine; -hold keeps it up when the work is done.
//
// The exit status is 0 if the books agree with the invoices, 1 if they do not or the
// work was interrupted, and 2 if it could not begin.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/transport"
)

var (
	//go:embed messages.csv
	defaultMessages []byte
	//go:embed addresses.csv
	defaultAddresses []byte
)

// options are what the command line says.
type options struct {
	messages, addresses string
	ledger              string
	seed                uint64
	verbose             bool
	page                string // address of the status page; empty: none
	hold                bool
	// speed multiplies the rates of both sides. Tests use it.
	speed int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := start(ctx, os.Args[1:], 1, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// start is the program; it returns the exit status.
func start(ctx context.Context, args []string, speed int, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2 // the flag package has said why
	}
	o.speed = speed
	messages, err := load(o.messages, defaultMessages, messageFile, errs)
	if err != nil {
		fmt.Fprintln(errs, "quickstart:", err)
		return 2
	}
	addresses, err := load(o.addresses, defaultAddresses, addressFile, errs)
	if err != nil {
		fmt.Fprintln(errs, "quickstart:", err)
		return 2
	}
	services := []*service{texts(o, messages), places(o, addresses)}
	ledger, closeLedger, err := openLedger(o.ledger)
	if err != nil {
		fmt.Fprintln(errs, "quickstart:", err)
		return 2
	}
	agree, err := run(ctx, o, ledger, services, out, errs)
	err = errors.Join(err, closeLedger())
	if err != nil {
		fmt.Fprintln(errs, "quickstart:", err)
	}
	if err != nil || !agree {
		return 1
	}
	return 0
}

// openLedger opens the ledger in the file, or in a fresh one that goes when it is closed.
func openLedger(file string) (*sqliteledger.Ledger, func() error, error) {
	dir := ""
	if file == "" {
		var err error
		if dir, err = os.MkdirTemp("", "quickstart"); err != nil {
			return nil, nil, err
		}
		file = filepath.Join(dir, "spend.db")
	}
	ledger, err := sqliteledger.Open(file)
	if err != nil {
		return nil, nil, err
	}
	return ledger, func() error {
		err := ledger.Close()
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	}, nil
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.messages, "messages", "", "CSV `file` with the columns to and text (default: 320 made-up messages)")
	f.StringVar(&o.addresses, "addresses", "", "CSV `file` with the column address (default: 225 public places)")
	f.StringVar(&o.ledger, "ledger", "", "`file` of the ledger, made if need be; look into it with examples/spend (default: a temporary one)")
	f.Uint64Var(&o.seed, "seed", 1, "decides which requests the vendors fail")
	f.StringVar(&o.page, "page", "127.0.0.1:0", "`address` of the status page and /metrics (empty: none)")
	f.BoolVar(&o.hold, "hold", false, "keep the status page up until interrupted")
	f.BoolVar(&o.verbose, "v", false, "log what happens to standard error")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(errs, "quickstart: unexpected argument %q\n", f.Arg(0))
		return o, errors.New("unexpected argument")
	}
	return o, nil
}

// run does the work and settles the accounts. It reports whether books and invoices
// agree.
func run(ctx context.Context, o options, ledger books, services []*service, out, errs io.Writer) (agree bool, bad error) {
	for _, s := range services {
		defer s.fake.Close()
	}
	config := configure(services, ledger)
	watch := newWatcher()
	config.OnEvent = watch.observe
	if o.verbose {
		config.OnEvent = transport.Tee(watch.observe, transport.LogTo(slog.New(slog.NewTextHandler(errs, nil)), transport.LogOptions{}))
	}
	rt, err := transport.New(config)
	if err != nil {
		return false, err
	}
	defer rt.CloseIdleConnections()
	if o.page != "" {
		if err := watch.serve(ctx, o.page, rt, out); err != nil {
			return false, err
		}
		defer func() { bad = errors.Join(bad, watch.close()) }()
	}

	before, err := openBooks(ctx, ledger, services)
	if err != nil {
		return false, err
	}
	sendAll(ctx, rt.Client(), services, out)

	// The accounts are settled even if the work was interrupted.
	settle := context.WithoutCancel(ctx)
	agree = true
	for i, s := range services {
		agree = s.settleUp(settle, ledger, before[i], out) && agree
	}
	if err := ctx.Err(); err != nil || !o.hold {
		return agree, err
	}
	fmt.Fprintln(out, "\nThe status page stays up until you press Ctrl-C.")
	<-ctx.Done()
	return agree, nil
}

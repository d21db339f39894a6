// Spend is the operator's command over a ledger file: what was spent and what is left,
// which calls have no known outcome, and what people do about it. It may be used while
// services run; every change is an entry that says who made it and why. Report, presumed,
// verify and backup change nothing and need the right to read alone. What a dead process has
// left in flight is held for them, until somebody opens the ledger to change it.
//
//	spend report
//	spend -ledger /var/lib/outlay/spend.db presumed -provider twilio-sms
//	spend correct -file invoice.csv -why "invoice 2026-11" -apply
//	spend freeze -provider twilio-sms -why "duplicate messages"
//
// The exit status is 0 if all is well, 1 if the ledger cannot be used, 2 if the command
// line is wrong, and 3 if something does not agree: entries with totals (verify), or an
// invoice with the books in a way that cannot be applied (correct).
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"os/user"
	"strings"
	_ "time/tzdata" // budgets have zones, and small images have no files of them

	"github.com/outlay-go/outlay/budget/sqliteledger"
)

// The exit statuses.
const (
	done     = 0
	failed   = 1
	misused  = 2
	disagree = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	err := start(ctx, args, out, errs)
	usage := new(usageError)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return done
	case errors.As(err, &usage):
		fmt.Fprintf(errs, "spend: %v\nTry: spend %s\n", usage.err, strings.TrimSpace(usage.command+" -h"))
		return misused
	case errors.Is(err, errDisagree):
		fmt.Fprintf(errs, "spend: %v\n", err)
		return disagree
	default:
		fmt.Fprintf(errs, "spend: %v\n", err)
		return failed
	}
}

// errDisagree: something does not agree; the output says what.
var errDisagree = errors.New("not in agreement")

// usageError is a wrong command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

// start finds the command and runs it.
func start(ctx context.Context, args []string, out, errs io.Writer) error {
	set := flag.NewFlagSet("spend", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	path := set.String("ledger", cmp.Or(os.Getenv("OUTLAY_LEDGER"), "spend.db"), "")
	err := set.Parse(args)
	name := set.Arg(0)
	switch {
	case errors.Is(err, flag.ErrHelp) || name == "help":
		help(out)
		return flag.ErrHelp
	case err != nil:
		return &usageError{"", err}
	case name == "":
		help(errs)
		return &usageError{"", errors.New("which command?")}
	}
	for _, c := range commands {
		if c.name == name {
			return c.start(ctx, *path, set.Args()[1:], out)
		}
	}
	return &usageError{"", fmt.Errorf("there is no command %q", name)}
}

// A command is one thing that spend does.
type command struct {
	name, short, args string
	examples          []string
	// define defines the flags, and returns what runs when they are parsed.
	define func(*flag.FlagSet) action
}

// action is what a command does. It returns a *usageError before it does anything if
// the command line is wrong.
type action func(ctx context.Context, o *operator, args []string) error

var commands = []command{reportCommand, presumedCommand, correctCommand, limitCommand, freezeCommand, releaseCommand, verifyCommand, backupCommand}

func help(w io.Writer) {
	fmt.Fprint(w, "Spend shows and changes the books in a ledger file, also while services use it.\n\n"+
		"Usage: spend [-ledger FILE] COMMAND [ARGUMENTS]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-10s%s\n", c.name, c.short)
	}
	fmt.Fprint(w, "\nWithout -ledger the file is $OUTLAY_LEDGER, or spend.db.\n"+
		"Exit status: 0 all is well, 1 the ledger cannot be used, 2 the command line is wrong, 3 something does not agree.\n\n"+
		"Examples:\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %s\n", c.examples[0])
	}
	fmt.Fprint(w, "\nMore about a command: spend COMMAND -h\n")
}

func (c command) start(ctx context.Context, path string, args []string, out io.Writer) error {
	set := flag.NewFlagSet(c.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&path, "ledger", path, "the ledger `FILE`")
	act := c.define(set)
	args, err := parseMixed(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(out, set)
		return err
	case err != nil:
		return &usageError{c.name, err}
	}
	o := &operator{path: path, out: out}
	defer o.close()
	err = act(ctx, o, args)
	if usage := new(usageError); errors.As(err, &usage) {
		usage.command = c.name
	}
	return err
}

// parseMixed parses flags wherever they stand between the arguments. No flag begins with
// a digit: what looks so is an amount below zero, which the command refuses in its words.
func parseMixed(set *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.ContainsRune(".0123456789", rune(args[0][1])) {
			rest, args = append(rest, args[0]), args[1:]
			continue
		}
		if err := set.Parse(args); err != nil {
			return nil, err
		}
		if set.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, set.Arg(0)), set.Args()[1:]
	}
}

func (c command) help(w io.Writer, set *flag.FlagSet) {
	fmt.Fprintf(w, "%s: %s\n\nUsage: spend %s\n\n", c.name, c.short, strings.TrimSpace(c.name+" "+c.args))
	set.SetOutput(w)
	set.PrintDefaults()
	fmt.Fprintf(w, "\nExamples:\n  %s\n", strings.Join(c.examples, "\n  "))
}

// operator is who works on the ledger.
type operator struct {
	path   string
	out    io.Writer
	ledger *sqliteledger.Ledger
}

// open opens the ledger to change it.
func (o *operator) open() (*sqliteledger.Ledger, error) { return o.openWith(sqliteledger.Options{}) }

// read opens the ledger to read it alone: a report of a newer version must not change the
// file so that the services, of an older one, refuse it.
func (o *operator) read() (*sqliteledger.Ledger, error) {
	return o.openWith(sqliteledger.Options{ReadOnly: true})
}

// openWith makes no file: a new and empty ledger would look like one in which nothing was
// spent.
func (o *operator) openWith(options sqliteledger.Options) (*sqliteledger.Ledger, error) {
	if _, err := os.Stat(o.path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no ledger %s; name it with -ledger FILE or OUTLAY_LEDGER", o.path)
	}
	var err error
	o.ledger, err = options.Open(o.path)
	return o.ledger, err
}

func (o *operator) close() {
	if o.ledger != nil {
		_ = o.ledger.Close() // changes were on the disk when they returned
	}
}

func (o *operator) print(format string, args ...any) { fmt.Fprintf(o.out, format, args...) }

// me is the name under which changes are kept unless -who says another.
func me() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// wrong is an error of the command line; start adds the command.
func wrong(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

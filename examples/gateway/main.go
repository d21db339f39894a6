// Gateway is the egress gateway as a program: one YAML file says which APIs of vendors can
// be reached, how fast, and for how much money; programs in any language are pointed at it
// by the base URL of their SDK.
//
//	go build -o outlay-gateway ./examples/gateway
//	./outlay-gateway -config outlay.yaml            # run; SIGHUP reloads, SIGTERM ends it
//	./outlay-gateway check -config outlay.yaml      # is the file right?
//	./outlay-gateway explain 'POST /twilio/2010-04-01/Accounts/AC1/Messages.json' -d 'To=+1202…&From=+1…&Body=Hi'
//	./outlay-gateway token                          # a new token of a caller, and its hash
//
// README.md beside this file is the guide: base URLs by SDK, what programs see, operation.
//
// The exit status is 0 if all is well, 1 if something failed, 2 if the command line is
// wrong, or, of check -strict, if there are warnings, and 3 if the call that explain was
// asked about would be refused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // budgets have zones, and small images have no files of them

	_ "golang.org/x/crypto/x509roots/fallback" // ... nor certificates of authorities
)

// The exit statuses.
const (
	done        = 0
	failed      = 1
	misused     = 2
	wouldRefuse = 3
)

func main() { os.Exit(start(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// A command is one thing that the program does. Its function returns the exit status; an
// error is printed.
type command struct {
	name, short string
	run         func(ctx context.Context, c *invocation) (int, error)
}

var commands = []command{
	{"run", "serve until SIGTERM (this is what happens without a command)", runCommand},
	{"check", "read the configuration and say what is wrong with it", checkCommand},
	{"explain", "say what would happen to a request: explain 'METHOD /path' [-H header] [-d body]; exits with 3 if it would be refused", explainCommand},
	{"token", "print a new token for a caller, and its hash for the configuration", tokenCommand},
	{"version", "print version, commit and Go version", versionCommand},
	{"healthcheck", "ask a running gateway whether it is healthy, for containers without curl", healthCommand},
}

// invocation is a command line.
type invocation struct {
	set       *flag.FlagSet
	args      []string
	config    string
	out, errs io.Writer
}

// errUsage is a wrong command line, which was told already.
var errUsage = errors.New("wrong command line")

// parse reads flags wherever they stand between the arguments, and returns the arguments.
func (c *invocation) parse() ([]string, error) {
	c.set.SetOutput(c.errs)
	var rest []string
	args := c.args
	for {
		if err := c.set.Parse(args); err != nil {
			return nil, err
		}
		if c.set.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, c.set.Arg(0)), c.set.Args()[1:]
	}
}

// start finds the command and runs it.
func start(ctx context.Context, args []string, out, errs io.Writer) int {
	name := "run"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, args = args[0], args[1:]
	} else if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		name = "help"
	}
	for _, x := range commands {
		if x.name != name {
			continue
		}
		c := &invocation{set: flag.NewFlagSet(name, flag.ContinueOnError), args: args, out: out, errs: errs}
		fallback := os.Getenv("OUTLAY_CONFIG")
		if fallback == "" {
			fallback = "outlay.yaml"
		}
		c.set.StringVar(&c.config, "config", fallback, "the configuration `FILE`; the default is $OUTLAY_CONFIG, or outlay.yaml")
		code, err := x.run(ctx, c)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return done
		case errors.Is(err, errUsage):
			return misused
		case err != nil:
			fmt.Fprintln(errs, "outlay-gateway:", err)
		}
		return code
	}
	help(errs)
	if name == "help" {
		return done
	}
	fmt.Fprintf(errs, "\noutlay-gateway: there is no command %q\n", name)
	return misused
}

func help(w io.Writer) {
	fmt.Fprint(w, "Outlay-gateway paces, pays for and repeats the calls of programs to the APIs of vendors.\n\n"+
		"Usage: outlay-gateway [COMMAND] [-config FILE] [ARGUMENTS]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-13s%s\n", c.name, c.short)
	}
	fmt.Fprint(w, "\nMore about a command: outlay-gateway COMMAND -h\n")
}

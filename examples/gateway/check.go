package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/transport/gateway"
)

// checkCommand reads the configuration and builds the gateway of it. It opens no listener.
// The file of a ledger that is there is opened, to compare the budgets with the books.
func checkCommand(ctx context.Context, c *invocation) (int, error) {
	strict := c.set.Bool("strict", false, "exit with 2 if there are warnings")
	show := c.set.Bool("print", false, "print what is in force, presets expanded and secrets masked")
	noSecrets := c.set.Bool("no-secrets", false, "do not look at env: and file: secrets, for machines that do not have them")
	rest, err := c.parse()
	if err != nil {
		return misused, errors.Join(errUsage, err)
	}
	if len(rest) == 1 {
		c.config = rest[0]
	}
	file, problems := gateway.Load(c.config, gateway.LoadOptions{NoSecrets: *noSecrets, Files: !*noSecrets})
	for _, p := range problems {
		fmt.Fprintln(c.errs, p)
	}
	if file == nil {
		return failed, nil
	}
	if _, err := gateway.New(file.Config, gateway.Parts{Ledger: new(budget.Memory)}); err != nil {
		return failed, err
	}
	conflicts, warning := compareFile(ctx, file)
	if len(conflicts) > 0 {
		return c.refused(conflicts, new(stores))
	}
	if warning != nil {
		problems = append(problems, *warning)
		fmt.Fprintln(c.errs, warning)
	}
	if *show {
		fmt.Fprint(c.out, file.Print())
	}
	fmt.Fprintf(c.out, "%s: good; providers: %d, warnings: %d\n", c.config, len(file.Config.Providers), len(problems))
	if *strict && len(problems) > 0 {
		return misused, nil
	}
	return done, nil
}

// compareFile compares the budgets with the books, if they are in a file that is there.
func compareFile(ctx context.Context, f *gateway.File) (conflicts []gateway.Problem, warning *gateway.Problem) {
	if _, err := os.Stat(f.Ledger.Path); f.Ledger.Kind != "sqlite" || err != nil {
		return nil, nil
	}
	ledger, err := sqliteledger.Options{Wait: 2 * time.Second}.Open(f.Ledger.Path)
	if err == nil {
		s := &stores{ledger: ledger, closers: []func() error{ledger.Close}}
		conflicts, err = s.compare(ctx, f)
		err = errors.Join(err, s.close())
	}
	if err != nil {
		warning = &gateway.Problem{File: f.Path, Warning: true, Text: "the budgets were not compared with the ledger: " + err.Error()}
	}
	return conflicts, warning
}

// headers are those of a request, given by -H as curl takes them.
type headers struct{ http.Header }

func (h headers) String() string { return "" }

func (h headers) Set(line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok || strings.TrimSpace(name) == "" {
		return errors.New("write it as Name: value")
	}
	h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

// explainCommand says what would happen to a request. It asks the ledger how the budgets
// stand, and changes nothing.
func explainCommand(ctx context.Context, c *invocation) (int, error) {
	h := headers{http.Header{}}
	c.set.Var(h, "H", "a `header` of the request, such as 'Outlay-Tenant: acme'; may be repeated")
	body := c.set.String("d", "", "the `body` of the request")
	listener := c.set.String("listener", "", "the request comes in by this `listener`: its address, or the provider to which it belongs; the default is the first one for all providers")
	rest, err := c.parse()
	if err != nil {
		return misused, errors.Join(errUsage, err)
	}
	method, target, two := strings.Cut(strings.Join(rest, " "), " ")
	if !two || method == "" || target == "" || strings.ContainsAny(target, " \r\n") {
		return misused, errors.New("explain takes a method and a path: explain 'POST /twilio/2010-04-01/Accounts/AC1/Messages.json' -d 'To=+12025550123&Body=Hi'")
	}
	file, problems := gateway.Load(c.config, gateway.LoadOptions{})
	if file == nil {
		for _, p := range problems {
			fmt.Fprintln(c.errs, p)
		}
		return failed, nil
	}
	on, err := listenerOf(file, *listener)
	if err != nil {
		return misused, err
	}
	if _, err := os.Stat(file.Ledger.Path); file.Ledger.Kind == "sqlite" && errors.Is(err, fs.ErrNotExist) {
		file.Ledger.Kind = "memory" // nothing was spent, and nothing is written here
	}
	s, err := open(ctx, file)
	if err != nil {
		return failed, err
	}
	defer func() { _ = s.close() }() // it was only read
	if conflicts, _ := s.compare(ctx, file); len(conflicts) > 0 {
		return c.refused(conflicts, s)
	}
	gw, err := gateway.New(file.Config, gateway.Parts{Ledger: s.ledger, Limiter: s.limiter})
	if err != nil {
		return failed, err
	}
	r, err := asSent(ctx, method, target, *body, h.Header)
	if err != nil {
		return misused, err
	}
	plan, err := gw.Plan(on.Listener, r)
	if err != nil {
		return failed, err
	}
	explain(c.out, file, on, plan)
	if plan.Refusal != nil {
		return wouldRefuse, nil
	}
	return done, nil
}

// listenerOf is the way in by which the request comes.
func listenerOf(f *gateway.File, name string) (gateway.Listen, error) {
	for _, l := range f.Listen {
		if l.Provider == name || l.Address == name && name != "" {
			return l, nil
		}
	}
	if name == "" && len(f.Listen) > 0 {
		return f.Listen[0], nil
	}
	return gateway.Listen{}, fmt.Errorf("there is no listener %q: write its address, or the provider to which it belongs", name)
}

// asSent is the request as a server reads it: also OPTIONS *, CONNECT and URLs of others.
func asSent(ctx context.Context, method, target, body string, h http.Header) (*http.Request, error) {
	text := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil, errors.New("the request is malformed: write a method and a path, such as 'GET /google/maps/api/geocode/json?address=x'")
	}
	r.RemoteAddr = "127.0.0.1:1"
	r.Host = or(h.Get("Host"), r.Host)
	h.Del("Host")
	maps.Copy(r.Header, h)
	if r.Header.Get("Content-Type") == "" && body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if strings.HasPrefix(body, "{") {
			r.Header.Set("Content-Type", "application/json")
		}
	}
	return r.WithContext(ctx), nil
}

// explain writes a plan for people.
func explain(w io.Writer, f *gateway.File, on gateway.Listen, p gateway.Plan) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("listener", "%s", on.Address)
	line("provider", "%s", or(p.Provider, "none"))
	line("caller", "%s", or(p.Caller, "unknown"))
	line("tenant", "%s", or(p.Tenant, "none"))
	for _, x := range f.Config.Providers {
		if x.Name == p.Provider {
			line("scopes", "%s", or(strings.Join(p.Scopes, ", "), "none"))
		}
	}
	if p.Upstream != "" {
		line("upstream", "%s", p.Upstream)
	}
	money := slices.ContainsFunc(p.Budgets, func(b budget.Totals) bool { return b.Budget.Unit != budget.Calls })
	switch {
	case p.Quote.Unit == "" || p.Quote.Assumed && p.Quote.Amount == 0 && len(p.Budgets) == 0:
	case p.Quote.Assumed && p.Quote.Amount == 0 && !money:
		line("hold", "1 call; it has no price, and no budget of money asks for one")
	default:
		assumed := ""
		if p.Quote.Assumed {
			assumed = " (assumed: no price fits)"
		}
		line("hold", "%s %s%s", p.Quote.Amount, p.Quote.Unit, assumed)
	}
	for _, b := range p.Budgets {
		line("budget", "%s: %s of %s %s used, %s left", b.Budget.Label, b.Used(), b.Budget.Limit, b.Budget.Unit, b.Available())
	}
	if p.Forecast.Wait > 0 {
		line("starts in", "%s", p.Forecast.Wait.Round(time.Millisecond))
	}
	if p.Refusal != nil {
		line("refused", "%d: %v", p.Status, p.Refusal)
		return
	}
	line("result", "it would be sent")
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
)

var correctCommand = command{
	name: "correct", short: "put costs at what an invoice says; without -apply only show the differences",
	args: "ID AMOUNT | -ref REF AMOUNT | -file CSV | -total AMOUNT -provider NAME -window ID [-budget NAME]; -why REASON -apply",
	examples: []string{
		`spend correct 3f9a-1c 0.0083 -why "invoice 2026-11" -apply`,
		`spend correct -ref SM1f2e 0.0166 -why "invoice 2026-11" -apply`,
		`spend correct -file invoice.csv                               # a header "id,amount" or "ref,amount", then the lines`,
		`spend correct -file invoice.csv -why "invoice 2026-11" -apply # all lines, or none if one fits nothing`,
		`spend correct -total 41.20 -provider twilio-sms -window 2026-11-03`,
	},
	define: defineCorrect,
}

// correction is what the flags of correct say.
type correction struct {
	ref, file, total         string
	provider, window, budget string
	apply                    bool
	by                       *budget.By
}

func defineCorrect(set *flag.FlagSet) action {
	c := &correction{by: byFlags(set)}
	set.StringVar(&c.ref, "ref", "", "the vendor's `REF` of the call, instead of an id")
	set.StringVar(&c.file, "file", "", "a `CSV` file of lines, - is the standard input")
	set.StringVar(&c.total, "total", "", "the `AMOUNT` of all calls of a provider in a window")
	set.StringVar(&c.provider, "provider", "", "with -total: the provider's `NAME`")
	set.StringVar(&c.window, "window", "", "with -total: the window's `ID`, such as 2026-11-03 or 2026-11")
	set.StringVar(&c.budget, "budget", "", "with -total: the budget's `NAME`, if the provider has several with that window")
	set.BoolVar(&c.apply, "apply", false, "change the books")
	return c.run
}

func (c *correction) run(ctx context.Context, o *operator, args []string) error {
	if c.apply {
		if err := checkBy(c.by); err != nil {
			return err
		}
	}
	if c.total != "" {
		return c.runTotal(ctx, o, args)
	}
	lines, err := c.lines(args)
	if err != nil {
		return err
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	found, err := l.CompareLines(ctx, lines)
	if err == nil && c.apply {
		found, err = l.CorrectLines(ctx, lines, *c.by)
	}
	if err != nil && !errors.Is(err, sqliteledger.ErrProblems) {
		return err
	}
	return c.show(o, found)
}

// lines are those of the command line, or of the file.
func (c *correction) lines(args []string) ([]sqliteledger.Line, error) {
	switch {
	case c.file != "" && (c.ref != "" || len(args) > 0):
		return nil, wrong("give either -file or one call")
	case c.file == "-":
		return readLines(os.Stdin)
	case c.file != "":
		f, err := os.Open(c.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readLines(f)
	case c.ref != "" && len(args) == 1:
		line, err := parseLine("ref", c.ref, args[0])
		return []sqliteledger.Line{line}, asUsage(err)
	case c.ref == "" && len(args) == 2:
		line, err := parseLine("id", args[0], args[1])
		return []sqliteledger.Line{line}, asUsage(err)
	}
	return nil, wrong("say which call and what it cost: ID AMOUNT, -ref REF AMOUNT, -file CSV, or -total AMOUNT")
}

func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return wrong("%w", err)
}

// readLines reads a header of id or ref and amount, in any order and among other
// columns, and the lines under it.
func readLines(r io.Reader) ([]sqliteledger.Line, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("the invoice has no header: %w", err)
	}
	kind, key, amount := "", -1, -1
	for i, name := range header {
		switch name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))); name {
		case "id", "ref":
			kind, key = name, i
		case "amount":
			amount = i
		}
	}
	if key < 0 || amount < 0 {
		return nil, fmt.Errorf("the first line of the invoice must name the columns id or ref, and amount; it is %q", strings.Join(header, ","))
	}
	var lines []sqliteledger.Line
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("invoice: %w", err)
		}
		line, err := parseLine(kind, strings.TrimSpace(record[key]), strings.TrimSpace(record[amount]))
		if err != nil {
			n, _ := in.FieldPos(0)
			return nil, fmt.Errorf("invoice, line %d: %w", n, err)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil, errors.New("the invoice has no lines")
	}
	return lines, nil
}

func parseLine(kind, key, amount string) (line sqliteledger.Line, err error) {
	if line.Amount, err = budget.Parse(amount); err != nil {
		return line, err
	}
	if kind == "ref" {
		if line.Ref = key; key == "" {
			err = errors.New("an empty reference")
		}
		return line, err
	}
	line.Hold, err = parseID(key)
	return line, err
}

func parseID(s string) (budget.HoldID, error) {
	id, err := budget.ParseHoldID(s)
	if err != nil {
		return id, fmt.Errorf("%q is no id such as 3f9a-1c, as spend presumed shows them", s)
	}
	return id, nil
}

// show prints the differences and says what became of them.
func (c *correction) show(o *operator, found []sqliteledger.Difference) error {
	r := report{columns: []column{{"id", false}, {"ref", false}, {"provider", false}, {"state", false}, {"booked", true},
		{"invoice", true}, {"difference", true}, {"unit", false}, {"problem", false}}}
	problems, changed := 0, 0
	for _, d := range found {
		if d.Problem != "" {
			problems++
			r.rows = append(r.rows, []any{d.Hold.String(), d.Ref, d.Provider, "", "", d.Amount, "", d.Unit, d.Problem})
			continue
		}
		if d.Booked != d.Amount || d.State == budget.StatePresumed {
			changed++
		}
		r.rows = append(r.rows, []any{d.Hold.String(), d.Ref, d.Provider, d.State.String(), d.Booked, d.Amount, d.Amount - d.Booked, d.Unit, ""})
	}
	if err := r.table(o.out); err != nil {
		return err
	}
	switch {
	case problems > 0:
		return fmt.Errorf("%w: %d of %d lines fit nothing in the books; nothing was changed", errDisagree, problems, len(found))
	case c.apply:
		o.print("\n%d lines applied, %d of them changed the books.\n", len(found), changed)
	default:
		o.print("\n%d of %d lines would change the books. Nothing was changed: add -apply.\n", changed, len(found))
	}
	return nil
}

func (c *correction) runTotal(ctx context.Context, o *operator, args []string) error {
	amount, err := budget.Parse(c.total)
	switch {
	case err != nil:
		return wrong("-total: %w", err)
	case c.provider == "" || c.window == "" || len(args) > 0 || c.file != "" || c.ref != "":
		return wrong("-total needs -provider and -window, and nothing else")
	}
	l, err := o.open()
	if err != nil {
		return err
	}
	total := sqliteledger.Total{Provider: c.provider, Budget: c.budget, Window: c.window, Amount: amount}
	d, err := l.CompareTotal(ctx, total)
	if err == nil && c.apply {
		d, err = l.CorrectTotal(ctx, total, *c.by)
	}
	if err != nil {
		return err
	}
	return c.showTotal(o, d)
}

func (c *correction) showTotal(o *operator, d sqliteledger.TotalDifference) error {
	o.print("%s, budget %s, window %s, in %s\n  invoice     %v\n  settled     %v\n  difference  %v\n  presumed    %v in %d calls\n",
		d.Provider, d.Budget, d.Window, d.Unit, d.Amount, d.Settled, d.Amount-d.Settled, d.Presumed, len(d.Shares))
	r := report{columns: []column{{"id", false}, {"presumed", true}, {"corrected", true}}}
	for _, s := range d.Shares {
		r.rows = append(r.rows, []any{s.Hold.String(), s.Was, s.Now})
	}
	if len(r.rows) > 0 {
		if err := r.table(o.out); err != nil {
			return err
		}
	}
	o.print("  rest        %v as one entry\n", d.Rest)
	if c.apply {
		o.print("\nApplied.\n")
		return nil
	}
	o.print("\nNothing was changed: add -apply.\n")
	return nil
}

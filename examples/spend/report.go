package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/outlay-go/outlay/budget"
)

var reportCommand = command{
	name: "report", short: "what was spent, and what is left",
	args: "[-all | -since DATE [-until DATE]] [-format table|csv|json]",
	examples: []string{
		"spend report",
		"spend report -since 2026-11-01 -until 2026-12-01 -format csv > november.csv",
		"spend report -all -format json | jq '.[] | select(.frozen)'",
	},
	define: func(set *flag.FlagSet) action {
		all := set.Bool("all", false, "all windows that were ever used, not only the current ones")
		since := set.String("since", "", "windows that were open on this `DATE` (UTC) or later")
		until := set.String("until", "", "windows that were open before this `DATE` (UTC)")
		format := formatFlag(set)
		return func(ctx context.Context, o *operator, args []string) error {
			from, err := date("since", *since)
			if err != nil {
				return err
			}
			to, err := date("until", *until)
			if err != nil {
				return err
			}
			if err := checkFormat(*format, args); err != nil {
				return err
			}
			totals, err := o.totals(ctx, *all || *since != "" || *until != "", from, to)
			if err != nil {
				return err
			}
			if *format != "table" {
				return write(o.out, *format, reportOf(totals, time.Now()))
			}
			if err := tableOf(totals, time.Now()).table(o.out); err != nil {
				return err
			}
			if slices.ContainsFunc(totals, isRange) {
				o.print("available A to B: A now; B if no call that is presumed or held cost more than is known of it\n")
			}
			return o.frozen(ctx)
		}
	},
}

func (o *operator) totals(ctx context.Context, windows bool, from, to time.Time) ([]budget.Totals, error) {
	l, err := o.read()
	if err != nil {
		return nil, err
	}
	if windows {
		return l.Windows(ctx, from, to)
	}
	return l.Budgets(ctx, time.Now())
}

// frozen says what is stopped, below the table.
func (o *operator) frozen(ctx context.Context) error {
	all, err := o.ledger.Frozen(ctx)
	for _, f := range all {
		o.print("frozen: %s since %s by %s (%s)\n", named(f.Target), f.Since.Format(time.RFC3339), f.By.Who, f.By.Why)
	}
	return err
}

func named(t budget.Target) string {
	if t.Provider != "" {
		return "provider " + t.Provider
	}
	return "budget " + t.Budget
}

func date(name, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return t, wrong("-%s must be a date such as 2026-11-01, not %q", name, s)
	}
	return t, nil
}

// A report is a table with the same rows in every format.
type report struct {
	columns []column
	rows    [][]any // strings, numbers, booleans, or nil for what is not known
}

type column struct {
	name  string
	right bool // numbers
}

func reportOf(totals []budget.Totals, now time.Time) report {
	r := report{columns: []column{
		{"budget", false}, {"window", false}, {"unit", false}, {"spent", true}, {"presumed", true}, {"held", true},
		{"used_from", true}, {"used_to", true}, {"available_from", true}, {"available_to", true}, {"limit", true},
		{"overrun", true}, {"calls_presumed", true}, {"calls_in_flight", true}, {"until", false}, {"forecast", false}, {"frozen", false},
	}}
	for _, t := range totals {
		least := t.Settled + t.Floor
		r.rows = append(r.rows, []any{
			cmp.Or(t.Budget.Label, t.Budget.Name), t.Window.ID, t.Budget.Unit, t.Settled, t.Presumed, t.Held,
			least, t.Used(), t.Available(), t.Limit - least, t.Limit,
			t.Overrun, t.PresumedHolds, t.OpenHolds, t.Window.End.Format(time.RFC3339), forecast(t, now), t.Frozen,
		})
	}
	return r
}

// tableOf is the report for people: what matters, and ranges in one column.
func tableOf(totals []budget.Totals, now time.Time) report {
	r := report{columns: []column{{"budget", false}, {"window", false}, {"spent", true}, {"presumed", true}, {"held", true},
		{"available", true}, {"limit", true}, {"unit", false}, {"forecast", false}}}
	for _, t := range totals {
		least, most := t.Available(), t.Limit-t.Settled-t.Floor
		available := fmt.Sprint(least)
		if most != least {
			available += " to " + most.String()
		}
		r.rows = append(r.rows, []any{cmp.Or(t.Budget.Label, t.Budget.Name), t.Window.ID, t.Settled, t.Presumed, t.Held,
			available, t.Limit, t.Budget.Unit, forecast(t, now)})
	}
	return r
}

// isRange reports whether what is left depends on what nobody knows yet.
func isRange(t budget.Totals) bool { return t.Presumed+t.Held > t.Floor }

// forecast says when the budget will be used up at the present pace.
func forecast(t budget.Totals, now time.Time) string {
	if !now.Before(t.Window.End) {
		return "ended"
	}
	at, ok := t.Forecast(now)
	switch {
	case !ok && t.Used() == 0:
		return ""
	case !ok:
		return "lasts"
	case !at.After(now):
		return "used up"
	}
	if t.Budget.Zone != nil {
		at = at.In(t.Budget.Zone)
	}
	return "ends " + at.Format("2006-01-02 15:04 MST")
}

var verifyCommand = command{
	name: "verify", short: "check that the totals are the sum of the entries, and the file is sound",
	examples: []string{"spend verify"},
	define: func(*flag.FlagSet) action {
		return func(ctx context.Context, o *operator, args []string) error {
			if len(args) > 0 {
				return wrong("verify has no arguments")
			}
			l, err := o.read()
			if err != nil {
				return err
			}
			problems, err := l.Verify(ctx)
			if err != nil {
				return err
			}
			if len(problems) > 0 {
				o.print("%s\n", strings.Join(problems, "\n"))
				return fmt.Errorf("%w: %d things are wrong; put a backup back, or ask for the entries", errDisagree, len(problems))
			}
			windows, err := l.Windows(ctx, time.Time{}, time.Time{})
			if err == nil {
				o.print("sound: %d windows are the sums of their entries\n", len(windows))
			}
			return err
		}
	},
}

var presumedCommand = command{
	name: "presumed", short: "calls without a known outcome, which count as spent",
	args: "[-provider NAME] [-format table|csv|json]",
	examples: []string{
		"spend presumed",
		"spend presumed -provider twilio-sms -format csv",
	},
	define: func(set *flag.FlagSet) action {
		provider := set.String("provider", "", "only those of this provider `NAME`")
		format := formatFlag(set)
		return func(ctx context.Context, o *operator, args []string) error {
			if err := checkFormat(*format, args); err != nil {
				return err
			}
			l, err := o.read()
			if err != nil {
				return err
			}
			all, err := l.Unresolved(ctx, *provider, 0)
			if err != nil {
				return err
			}
			err = write(o.out, *format, unresolvedOf(all))
			if err == nil && len(all) > 0 && *format == "table" {
				o.print("id: Calls()[i].Attempts[j].Hold of transport.Record in the program that made the call; ref: the vendor's, of an answer\n")
			}
			return err
		}
	},
}

func unresolvedOf(all []budget.Unresolved) report {
	r := report{columns: []column{{"id", false}, {"state", false}, {"provider", false}, {"ref", false}, {"at", false},
		{"budget", false}, {"window", false}, {"amount", true}, {"unit", false}}}
	for _, u := range all {
		for _, leg := range u.Legs {
			r.rows = append(r.rows, []any{u.ID.String(), u.State.String(), u.Provider, u.Ref, u.At.Format(time.RFC3339),
				leg.Budget, leg.Window, leg.Amount, leg.Unit})
		}
	}
	return r
}

func formatFlag(set *flag.FlagSet) *string {
	return set.String("format", "table", "`table`, csv or json")
}

func checkFormat(format string, args []string) error {
	if len(args) > 0 {
		return wrong("what is %q?", args[0])
	}
	if format != "table" && format != "csv" && format != "json" {
		return wrong("-format must be table, csv or json, not %q", format)
	}
	return nil
}

func write(w io.Writer, format string, r report) error {
	switch format {
	case "json":
		return r.json(w)
	case "csv":
		return r.csv(w)
	default:
		return r.table(w)
	}
}

// json writes an array of objects; amounts are strings, so that no digit is lost.
func (r report) json(w io.Writer) error {
	objects := make([]map[string]any, len(r.rows))
	for i, row := range r.rows {
		objects[i] = make(map[string]any, len(row))
		for j, v := range row {
			objects[i][r.columns[j].name] = v
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(objects)
}

func (r report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, len(r.columns))
	for j, c := range r.columns {
		line[j] = c.name
	}
	err := out.Write(line)
	for _, row := range r.rows {
		for j, v := range row {
			line[j] = fmt.Sprint(v)
		}
		if err == nil {
			err = out.Write(line)
		}
	}
	out.Flush()
	return cmp.Or(err, out.Error())
}

// table writes aligned columns, numbers to the right.
func (r report) table(w io.Writer) error {
	if len(r.rows) == 0 {
		_, err := fmt.Fprintln(w, "nothing")
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	widths := make([]int, len(r.columns))
	for j, c := range r.columns {
		widths[j] = len(c.name)
		for _, row := range r.rows {
			widths[j] = max(widths[j], len(fmt.Sprint(row[j])))
		}
	}
	cells := make([]string, len(r.columns))
	for j, c := range r.columns {
		cells[j] = r.cell(j, strings.ReplaceAll(c.name, "_", " "), widths[j])
	}
	fmt.Fprintln(out, strings.Join(cells, "\t"))
	for _, row := range r.rows {
		for j, v := range row {
			cells[j] = r.cell(j, fmt.Sprint(v), widths[j])
		}
		fmt.Fprintln(out, strings.TrimRight(strings.Join(cells, "\t"), " \t"))
	}
	return out.Flush()
}

func (r report) cell(j int, s string, width int) string {
	if r.columns[j].right {
		return fmt.Sprintf("%*s", width, s)
	}
	return s
}

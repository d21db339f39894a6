// Package budget says what may be spent.
//
// A [Budget] is a limit of money, or of calls, per window of time. Before an attempt
// is sent, a [Ledger] sets its price aside on every budget that it concerns; when its
// outcome is known the hold is settled with the real cost, voided by proof that
// nothing was billed, or presumed spent. Time never frees money: only evidence does.
//
// # Amounts
//
// An [Amount] is an integer number of 10^-9 dollars, or whatever the unit is. No
// float takes part in any decision.
//
// # Windows
//
// Days, weeks and months are those of the budget's time zone, by its own rules: a
// day has 23, 24 or 25 hours, and begins with the first instant of its date where
// midnight was skipped or came twice. A call belongs to the window of its hold,
// whenever its cost becomes known. A window is funded once, whatever is done to the
// clock ([Clock], [Window.Advance]).
//
// Around midnight a daily budget may be spent twice in minutes, once for each day.
// Where that matters, a [Rolling] budget beside it prevents it.
//
// # Ledgers
//
// [Memory] keeps the books of one process and forgets them with it. Durable and shared
// ledgers are packages of their own; all pass the suite in budget/ledgertest, and share
// the rules [Totals.Refusal], [ExceededError.Binding], [Window.Advance] and [Clock].
package budget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Budget is a limit per window. It is a plain value: [PerDay] and its siblings make
// one, and its fields are edited by assignment.
type Budget struct {
	// Name identifies the budget in the ledger. One name has one Unit, Every and Zone
	// for ever. Empty: the transport makes one, <provider>-<period> or all-<period>.
	Name string
	// Label is the only name that leaves the ledger: in errors, events, metrics.
	// Empty: Name.
	Label string
	// Limit is how much may be spent per window, in Unit; more than zero.
	Limit Amount
	// Unit is "USD" (also when empty), another ISO 4217 code, or "calls": then every
	// attempt counts as 1 * [Unit].
	Unit string
	// Every is the period; it has no default.
	Every Period
	// Zone is the time zone of days, weeks and months, as time.LoadLocation returns it
	// (programs without zone files import time/tzdata). Nil: UTC. Best is the zone in
	// which the provider's billing day ends. time.Local is refused: it differs from
	// machine to machine under one name.
	Zone *time.Location
	// Keep is a part of Limit that only critical calls may use.
	Keep Amount
	// Alerts are the percentages at which a notice is made, once per window. Nil: 50,
	// 80 and 100. Empty but not nil: none.
	Alerts []int
	// Monitor: this budget records and notices, but never refuses.
	Monitor bool
}

// PerDay returns a budget of limit per calendar day, in US dollars and UTC.
func PerDay(limit Amount) Budget { return Budget{Limit: limit, Every: Day} }

// PerWeek returns a budget of limit per week from Monday, in US dollars and UTC.
func PerWeek(limit Amount) Budget { return Budget{Limit: limit, Every: Week} }

// PerMonth returns a budget of limit per calendar month, in US dollars and UTC.
func PerMonth(limit Amount) Budget { return Budget{Limit: limit, Every: Month} }

// The units that are no currency, or stand for an empty one.
const (
	// USD is what an empty unit means.
	USD = "USD"
	// Calls is the unit of budgets that count attempts.
	Calls = "calls"
)

// Validate returns an error for every field that is wrong, joined by [errors.Join];
// each begins with the field's name. An empty Name is left to the transport.
func (b Budget) Validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf(field+" "+format, args...))
	}
	if !printable(b.Name) {
		wrong("Name", "must be at most 200 printable characters")
	}
	if !printable(b.Label) {
		wrong("Label", "must be at most 200 printable characters")
	}
	if b.Limit <= 0 {
		wrong("Limit", "must be more than zero, not %v", b.Limit)
	}
	if !isUnit(b.Unit) {
		wrong("Unit", "must be a currency code such as USD, or %q, not %q", Calls, b.Unit)
	}
	if b.Unit == Calls && b.Limit%Unit != 0 {
		wrong("Limit", "must be a whole number of calls (100 calls are 100*budget.Unit), not %v", b.Limit)
	}
	if err := b.Every.check(); err != nil {
		wrong("Every", "%w", err)
	}
	if b.Zone == time.Local || (b.Zone != nil && b.Zone.String() == "") {
		wrong("Zone", "must have a name, as time.LoadLocation gives it")
	}
	if b.Keep < 0 || b.Keep > max(b.Limit, 0) {
		wrong("Keep", "must be zero to Limit, not %v", b.Keep)
	}
	for _, percent := range b.Alerts {
		if percent < 1 || percent > maxPercent {
			wrong("Alerts", "must be 1 to %d percent, not %d", maxPercent, percent)
		}
	}
	return errors.Join(errs...)
}

// maxPercent bounds the thresholds of a budget.
const maxPercent = 1000

func printable(s string) bool {
	if len(s) > 200 {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' { // seldom, and looked at for every hold
			return !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
		}
	}
	return true
}

func isUnit(s string) bool {
	if s == "" || s == Calls {
		return true
	}
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Normal returns b with every empty field that has a default set to it: Label, Unit,
// Zone and Alerts, and with the Alerts in order, each once. Ledgers and reports show
// budgets so.
func (b Budget) Normal() Budget {
	if b.Label == "" {
		b.Label = b.Name
	}
	if b.Unit == "" {
		b.Unit = USD
	}
	if b.Zone == nil {
		b.Zone = time.UTC
	}
	if b.Alerts == nil {
		b.Alerts = []int{50, 80, 100}
	}
	for i := 1; i < len(b.Alerts); i++ {
		if b.Alerts[i-1] >= b.Alerts[i] {
			b.Alerts = slices.Compact(slices.Sorted(slices.Values(b.Alerts)))
		}
	}
	return b
}

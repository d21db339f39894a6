// Package budget says what may be spent.
//
// A [Budget] is a limit of money, or of calls, per window of time. Before an attempt
// is sent, a [Ledger] sets its price aside on every budget that it concerns; when its
// outcome is known the hold is settled with the real cost, voided by proof that
// nothing was billed, or presumed spent. Time never frees money: only evidence does.
//
// Amounts are integers. No float takes part in any decision.
package budget

import "time"

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
	// Zone is the time zone of days, weeks and months. Nil: UTC. Best is the zone in
	// which the provider's billing day ends.
	Zone *time.Location
	// Keep is a part of Limit that only critical calls may use.
	Keep Amount
	// Alerts are the percentages at which a notice is made, once per window. Nil: 50,
	// 80 and 100. Empty but not nil: none.
	Alerts []int
	// Monitor: this budget records and notices, but never refuses.
	Monitor bool
}

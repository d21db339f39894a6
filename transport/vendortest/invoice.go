package vendortest

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// Line is one charge.
type Line struct {
	// Ref is the vendor's id of what is charged, which its answer told if the vendor
	// tells one.
	Ref string
	// Time is when the request was taken.
	Time time.Time
	// To is the destination, where the vendor has destinations.
	To string
	// Units is what was counted: segments, lookups, elements, tokens.
	Units  int64
	Amount budget.Amount
}

// Invoice is what a fake charges for all it accepted, in the order in which it did.
type Invoice struct {
	Vendor string
	// Unit is the currency, an ISO 4217 code.
	Unit  string
	Lines []Line
	Total budget.Amount
}

// Invoice returns what was charged so far.
func (f *Fake) Invoice() Invoice {
	f.mu.Lock()
	defer f.mu.Unlock()
	inv := Invoice{Vendor: f.vendor.name, Unit: f.vendor.unit, Lines: slices.Clone(f.lines)}
	for _, l := range inv.Lines {
		inv.Total += l.Amount
	}
	return inv
}

// WriteCSV writes the lines with a heading, and no total: ref, time, to, units,
// amount, unit.
func (i Invoice) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"ref", "time", "to", "units", "amount", "unit"}}
	for _, l := range i.Lines {
		rows = append(rows, []string{
			l.Ref, l.Time.UTC().Format(time.RFC3339Nano), l.To,
			strconv.FormatInt(l.Units, 10), fmt.Sprint(l.Amount), i.Unit,
		})
	}
	return out.WriteAll(rows)
}

// Counts is what a fake saw.
type Counts struct {
	// Received requests arrived whole, whatever became of them.
	Received int
	// Accepted were taken; Throttled were refused for a limit, planned or real;
	// Invalid were refused for what they said.
	Accepted, Throttled, Invalid int
	// Double were accepted although the same content had been accepted before. Reading
	// something for free does not count.
	Double int
	// Replayed were answered as before, and not billed, because of their idempotency
	// key.
	Replayed int
	// Early arrived while a pause that an earlier answer had announced still ran, not
	// counting the quarter of a second after the announcement.
	Early int
	// MaxInWindow is the most that arrived in one window of the limit, MaxInFlight
	// the most that were under way at once.
	MaxInWindow, MaxInFlight int
	// Faults counts what the plan did to requests.
	Faults map[Fault]int
}

// Counts returns what was seen so far.
func (f *Fake) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts
	c.Faults = maps.Clone(c.Faults)
	return c
}

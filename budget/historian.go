package budget

import (
	"context"
	"time"
)

// HistoryParts is into how many equal parts a [History] divides its window: a quarter of
// an hour of a day each.
const HistoryParts = 96

// Historian is a Ledger that tells how the present windows came about. It is optional:
// without it the totals are all that is known. All ledgers of this module have it.
//
// A ledger that keeps no log begins to remember a budget when it is first asked for it,
// so that nobody pays who does not ask; [History.Since] tells when that was.
type Historian interface {
	// History tells how the windows of b that contain the instant at were used through
	// time, in the order of b.
	History(ctx context.Context, at time.Time, b ...Budget) ([]History, error)
	// Spending tells by provider what the windows of b that contain the instant at
	// come to: by budget in the order of b, then by what was used, the most first.
	Spending(ctx context.Context, at time.Time, b ...Budget) ([]Spending, error)
	// Windows returns the totals of all windows that overlap the time from (included)
	// to to (not included), by the name of the budget and by time. Zero times are no
	// bound. Of a rolling period it has the buckets, each alone.
	Windows(ctx context.Context, from, to time.Time) ([]Totals, error)
}

// History is how one window of one budget was used through time.
type History struct {
	// Budget is the Name of the budget: what programs match is a name, what people
	// read (notices, errors, [Audited], [UnresolvedLeg]) is a label.
	Budget string
	Window Window
	// Since is from when on the ledger remembers. Where that is after the window's
	// start, what was booked before is in every point.
	Since time.Time
	// Points are what was booked by the end of each part of the window, from Since to
	// the instant asked for, the oldest first: at most [HistoryParts]. The last one is
	// what the totals say. Of a rolling period they are what the buckets that count
	// now add up to, by their own times.
	Points []Point
}

// Point is what was booked by an instant. What is only held is not in it.
type Point struct {
	At                time.Time
	Settled, Presumed Amount
}

// Parts is what was booked in each part of a window, for ledgers that keep a [History].
// The zero Parts are empty.
type Parts [HistoryParts]struct{ Settled, Presumed Amount }

// Add books a change in the part of w that contains the instant at, or the one next to it.
func (p *Parts) Add(w Window, at time.Time, settled, presumed Amount) {
	part := &p[partOf(w, at)]
	part.Settled, part.Presumed = part.Settled+settled, part.Presumed+presumed
}

// Points are what was booked from the beginning of w by the end of each part from since
// to at.
func (p *Parts) Points(w Window, since, at time.Time) []Point {
	first, last := partOf(w, since), partOf(w, at)
	all := make([]Point, 0, max(0, last-first)+1)
	var sum Point
	for i := range last + 1 {
		sum.Settled, sum.Presumed = sum.Settled+p[i].Settled, sum.Presumed+p[i].Presumed
		sum.At = w.Start.Add(time.Duration(i+1) * partLength(w))
		if i == last {
			sum.At = at
		}
		if n := len(all); n > 0 && !sum.At.After(all[n-1].At) {
			all = all[:n-1] // at is the instant at which the last part begins
		}
		if i >= first || i == last {
			all = append(all, sum)
		}
	}
	return all
}

// partLength is that of a part of w, rounded up.
func partLength(w Window) time.Duration {
	return max(1, (w.End.Sub(w.Start)+HistoryParts-1)/HistoryParts)
}

// partOf is the part of w that contains t, or the one next to it.
func partOf(w Window, t time.Time) int {
	return int(min(max(t.Sub(w.Start)/partLength(w), 0), HistoryParts-1))
}

// Spending is what the calls of one provider come to in one window of one budget. The
// invoice should say something between Settled + Floor and Settled + Presumed, once no
// call is in flight.
type Spending struct {
	// Budget is the Name of the budget, Window the ID of its window.
	Budget, Window string
	// Provider is empty for what was booked before the ledger began to remember.
	Provider string
	// Settled, Presumed, Held and Floor are as in [Totals].
	Settled, Presumed, Held, Floor Amount
	// Up and Down are by how much corrections raised and lowered the cost.
	Up, Down Amount
	// Calls is how many attempts took a hold that was not voided, those in flight
	// included; Open of them are in flight and PresumedCalls without evidence.
	Calls, Open, PresumedCalls int
}

// Add counts what another window or stretch of time has of the same provider.
func (s *Spending) Add(o *Spending) {
	s.Settled, s.Presumed, s.Held, s.Floor = s.Settled+o.Settled, s.Presumed+o.Presumed, s.Held+o.Held, s.Floor+o.Floor
	s.Up, s.Down = s.Up+o.Up, s.Down+o.Down
	s.Calls, s.Open, s.PresumedCalls = s.Calls+o.Calls, s.Open+o.Open, s.PresumedCalls+o.PresumedCalls
}

// Used is what counts against the limit.
func (s Spending) Used() Amount { return s.Settled + s.Presumed + s.Held }

// Auditor is a Ledger that tells what people did. It is optional, as [Historian] is.
type Auditor interface {
	// Audit lists what people did or tried, the oldest first and at most limit (1 to
	// 1000) entries: those after the entry with the id after; the first ones if it is
	// "0"; the newest ones if it is empty.
	Audit(ctx context.Context, after string, limit int) ([]Audited, error)
	// Note adds an entry that changes nothing in the books: a try that was denied, or
	// something done elsewhere. ID and At are the ledger's.
	Note(ctx context.Context, a Audited) error
}

// Audited is one thing that people, or a new configuration, did or tried.
type Audited struct {
	// ID is the ledger's; ids of one ledger sort as they were made.
	ID string
	At time.Time
	By By
	// Action is freeze, release, limit, configured, correct, adjust, or what was noted.
	Action string
	// Target names a provider, or a budget by its Label; an adjustment, which concerns
	// the calls of one provider in one budget, names both. Hold is the one that was
	// corrected, of the provider in Target; else it is zero.
	Target Target
	Hold   HoldID
	// From and To are the limits; of a correction To is by how much it changed the cost
	// in every money budget of the hold. They are empty if they are not known.
	From, To string
	// Denied: it was tried, and nothing was changed.
	Denied bool
}

// bound makes a limit of Audit what it may be.
func bound(limit int) int { return min(max(limit, 1), maxAudit) }

// maxAudit bounds one answer of Audit.
const maxAudit = 1000

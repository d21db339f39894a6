package budget

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ledger keeps the books: what is held, spent and presumed spent in every window of
// every budget. Implementations are safe for concurrent use and pass the suite in
// budget/ledgertest, which says what a ledger must keep.
//
// [Operator], [Historian], [Auditor] and [Keyed] are optional. So is a method
// Admits(Hold) error like that of [Memory], for a ledger that can answer it at once.
type Ledger interface {
	// Hold sets h's amounts aside on every leg or on none, durably in the ledger's
	// class, before anything is sent. The windows are those of the ledger's clock at this
	// instant, and never change afterwards. The same hold twice is one hold and gives the
	// same answer. A hold without legs asks only whether its provider is frozen, and is
	// not kept.
	//
	// It fails with *[ExceededError] (names the binding leg), *[FrozenError] or
	// [ErrConflict]; then nothing changed. After an error that wraps [ErrUnavailable] the
	// hold may exist all the same, its answer lost: resolve it as voided. After any error
	// nothing may be sent. Report.Notices is told beside an error too.
	Hold(ctx context.Context, h Hold) (Report, error)
	// Resolve ends a hold by evidence. It is idempotent: the same outcome twice
	// changes nothing; another outcome for an ended hold is [ErrConflict], except
	// that a presumed hold may still be settled, voided, or presumed at more, and
	// anything that has ended may be corrected: after that only further corrections
	// change it. An id that the ledger no longer knows is [ErrUnknownHold].
	Resolve(ctx context.Context, id HoldID, o Outcome) (Report, error)
	// Totals reads the windows of b that contain the instant at. A window that was
	// never used is all zeros.
	Totals(ctx context.Context, at time.Time, b ...Budget) ([]Totals, error)
}

// Quote is the price of one attempt before it is sent: an upper bound.
type Quote struct {
	// Amount is the upper bound of the cost, in Unit. It is never negative.
	Amount Amount
	// Unit is "USD" (also when empty) or another ISO 4217 code.
	Unit string
	// Units is how many billed things the attempt contains: segments, elements,
	// tokens. Zero: not counted.
	Units int64
	// Destination groups calls by where they go, such as a country calling code. It
	// is never logged.
	Destination string
	// Assumed marks a price that no rule gave.
	Assumed bool
}

// Leg is one budget that a hold takes money from.
type Leg struct {
	Budget Budget
	// Amount is in the budget's unit.
	Amount Amount
}

// HoldID identifies a hold: a number drawn at random when a process starts, and a
// counter. The zero HoldID is that of no hold.
type HoldID struct{ Boot, Seq uint64 }

// String returns the id as "boot-seq" in hexadecimal.
func (id HoldID) String() string { return fmt.Sprintf("%x-%x", id.Boot, id.Seq) }

// ParseHoldID reads what [HoldID.String] writes.
func ParseHoldID(s string) (HoldID, error) {
	boot, seq, _ := strings.Cut(s, "-")
	b, errB := strconv.ParseUint(boot, 16, 64)
	q, errQ := strconv.ParseUint(seq, 16, 64)
	if errB != nil || errQ != nil {
		return HoldID{}, fmt.Errorf("budget: %q is no id of a hold, such as 3f9a-1c", s)
	}
	return HoldID{b, q}, nil
}

// Hold is money set aside for one attempt before it is sent.
type Hold struct {
	ID HoldID
	// Provider is the name in reports and errors.
	Provider string
	// Legs are held together or not at all. Money legs share one unit; legs in calls
	// may stand beside them. Ledgers copy what they keep.
	Legs []Leg
	// Critical calls may use the part of a budget that Keep reserves.
	Critical bool
	// Assumed marks a price that no rule gave.
	Assumed bool
}

// State is how a hold stands. The zero State is StatePresumed: what is not known to
// be cheaper counts as spent.
type State uint8

// The states of a hold, and StateCorrected for a later change of a settled cost. StateNone
// is that of an attempt which no budget pays for: there is no hold.
const (
	StatePresumed State = iota
	StateSettled
	StateVoided
	StateCorrected
	StateHeld
	StateNone
)

// String returns the name used in events, metrics and JSON.
func (s State) String() string {
	switch s {
	case StateSettled:
		return "settled"
	case StateVoided:
		return "voided"
	case StateCorrected:
		return "corrected"
	case StateHeld:
		return "held"
	case StateNone:
		return "none"
	default:
		return "presumed"
	}
}

// Outcome is the evidence that ends a hold. The zero Outcome presumes that all of
// the hold was spent.
type Outcome struct {
	State State
	// Amount is the real cost when settled or corrected, and a floor when presumed:
	// then what was held counts, or the floor if that is more. It is not negative. It
	// concerns the money legs; a leg in calls settles at what was held.
	Amount Amount
	// Why names the evidence in one word or two, such as "not_sent". It must hold
	// nothing secret.
	Why string
	// Ref is the vendor's own id of what was billed. It is stored, never logged.
	Ref string
	// Seen is the Date of the provider's answer, a witness for the ledger's clock.
	Seen time.Time
}

// Settled says that the attempt cost a.
func Settled(a Amount) Outcome { return Outcome{State: StateSettled, Amount: a} }

// Voided says that there is proof that the attempt was not billed.
func Voided(why string) Outcome { return Outcome{State: StateVoided, Why: why} }

// Presumed says that the outcome is unknown: the whole hold counts as spent, and at
// least atLeast really was.
func Presumed(atLeast Amount) Outcome { return Outcome{State: StatePresumed, Amount: atLeast} }

// Corrected says that later evidence, such as an invoice, puts the cost at a. The
// source is kept with the entry.
func Corrected(a Amount, source string) Outcome {
	return Outcome{State: StateCorrected, Amount: a, Why: source}
}

// Report is what an operation did beside what was asked.
type Report struct {
	// Overrun is how far the real cost was above the hold.
	Overrun Amount
	// Delta is by how much a Resolve changed what the call counts for in each money
	// budget: the cost less the hold, or less the cost before. It is zero for the
	// same outcome again.
	Delta Amount
	// Late: the window of the hold had ended, or the hold had been presumed.
	Late bool
	// WouldRefuse is the refusal that a Monitor budget did not make.
	WouldRefuse *ExceededError
	// Notices tells what happened to the ledger since the last operation.
	Notices []Notice
}

// NoticeKind says what a [Notice] is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeThreshold NoticeKind = "threshold" // a share of a budget was crossed
	NoticeRecovery  NoticeKind = "recovery"  // holds of a dead process became presumed
	NoticeClock     NoticeKind = "clock"     // the wall clock jumped
	NoticeLimit     NoticeKind = "limit"     // a configured limit replaced another
	NoticeStore     NoticeKind = "store"     // a shared store may lose books, lost some, went away or came back
)

// Notice is told once by the operation that noticed.
type Notice struct {
	Kind NoticeKind
	// Budget is the Label of the budget, Window its id.
	Budget, Window string
	// Percent is the threshold: settled and presumed together reached it. What is
	// only held crosses none.
	Percent     int
	Used, Limit Amount
	// Was is the limit that was in force before the one that was configured.
	Was  Amount
	Unit string
	// Holds is how many holds a recovery concerned.
	Holds int
	// Skew is the size of a clock jump.
	Skew time.Duration
	// Why says what happened to a store, for people.
	Why string
}

// Totals is the state of one window of one budget. Settled + Presumed + Held is what
// counts against the limit; Settled + Floor is what is known to be spent. Overrun is
// the sum of what single calls cost above their holds, and part of the others.
type Totals struct {
	Budget Budget
	Window Window
	// Limit is the one in force, which an operator may have changed.
	Limit                            Amount
	Settled, Presumed, Held, Overrun Amount
	// Floor is the part of Presumed that is known to be spent: from Settled + Floor
	// to Used is the honest range.
	Floor Amount
	// Holds in flight, and holds without evidence.
	OpenHolds, PresumedHolds int
	Frozen                   bool
	// Trend is what the budget used lately, for [Totals.Forecast].
	Trend Trend
}

// Used is what counts against the limit.
func (t Totals) Used() Amount { return t.Settled + t.Presumed + t.Held }

// Available is what a new hold may take; it is negative after an overrun.
func (t Totals) Available() Amount { return t.Limit - t.Used() }

// Reason says why a budget refused.
type Reason string

// The reasons of this package.
const (
	ReasonExhausted Reason = "exhausted" // spent: only the next window or a higher limit helps
	ReasonBusy      Reason = "busy"      // only calls in flight are in the way; it may clear in seconds
	ReasonFloor     Reason = "floor"     // what is left is kept for critical calls
)

// ExceededError is the refusal of a budget: nothing was sent and nothing was charged.
type ExceededError struct {
	// Provider is whose call it was, Budget the Label of the leg that binds, Window
	// the id of its window.
	Provider, Budget, Window string
	Reason                   Reason
	// Need is what the call may cost; Used is what counts against Limit already, and Held
	// the part of Used that calls in flight hold.
	Need, Used, Held, Limit Amount
	Unit                    string
	// Busy says the same as [ReasonBusy]: what was settled and presumed leaves room, and
	// only holds in flight are in the way.
	Busy bool
	// RetryAt is the start of the next window, when the call could pass; the zero
	// time if it never could.
	RetryAt time.Time
}

// Error reads like "twilio-sms: budget sms-day: 49.99 of 50 USD used, call needs 0.02".
func (e *ExceededError) Error() string {
	s := fmt.Sprintf("%s: budget %s: %v of %v %s used, call needs %v", e.Provider, e.Budget, e.Used, e.Limit, e.Unit, e.Need)
	switch {
	case e.Need > e.Limit:
		s += " (more than the limit: it never passes)"
	case e.Reason == ReasonBusy:
		s += " (calls in flight hold the rest)"
	case e.Reason == ReasonFloor:
		s += " (the rest is kept for critical calls)"
	}
	return s
}

// FrozenError says that an operator stopped the provider or a budget. Nothing was
// sent and nothing was charged.
type FrozenError struct {
	// Provider is whose call it was; Budget the Label of the frozen budget, empty if
	// the provider itself is frozen.
	Provider, Budget string
	Since            time.Time
}

// Error names what is frozen.
func (e *FrozenError) Error() string {
	if e.Budget == "" {
		return e.Provider + ": frozen by an operator"
	}
	return e.Provider + ": budget " + e.Budget + ": frozen by an operator"
}

// Errors to branch on. With any of them from Hold nothing was sent and nothing was
// charged; a Resolve that fails leaves the hold as it was.
var (
	// ErrUnpriced: a money budget applies and nobody can say what the call costs.
	ErrUnpriced = errors.New("budget: no price for this call")
	// ErrUnavailable: the ledger's store did not answer or cannot write.
	ErrUnavailable = errors.New("budget: ledger unavailable")
	// ErrConflict: the same id with other content, one budget name with another unit,
	// period or zone, or what makes no sense ([Hold.Validate]).
	ErrConflict = errors.New("budget: conflict with what the ledger holds")
	// ErrUnknownHold: the ledger does not know the id (any more).
	ErrUnknownHold = errors.New("budget: unknown hold")
)

// Keyed is a Ledger that keeps a secret beside its books: the key of the hashes under
// which names taken from requests are stored. It must be the same for all who share
// the books and after every restart, or a budget would be funded again.
type Keyed interface {
	// Key returns the secret. It is never logged.
	Key() []byte
}

// Target is what an operator stops: a provider by name, or a budget by name. In an
// [Audited] entry Budget is the Label of the budget.
type Target struct{ Provider, Budget string }

// By says who did something and why. Both are kept in the ledger's entries. Who is
// never empty.
type By struct{ Who, Why string }

// Unresolved is a hold that has no evidence yet.
type Unresolved struct {
	ID       HoldID
	Provider string
	Ref      string
	State    State // StateHeld or StatePresumed
	At       time.Time
	Legs     []UnresolvedLeg
}

// UnresolvedLeg is what an unresolved hold pins in one window.
type UnresolvedLeg struct {
	// Budget is the Label of the budget, Window the id of the window.
	Budget, Window, Unit string
	Amount               Amount
}

// Operator is what people may do to a ledger. Memory and the durable ledgers have it;
// every change is an entry that names who and why. Without [By].Who nothing is changed.
type Operator interface {
	// Configure tells the ledger of a budget before its first call, as a hold on it
	// would, so that its limit can be changed. It takes no money, and changes nothing
	// for a budget that is known as it is.
	Configure(ctx context.Context, b Budget) error
	// SetLimit changes the limit of the named budget at once. It stays until the
	// configured limit changes. It fails for a name that neither a hold nor Configure
	// has told the ledger.
	SetLimit(ctx context.Context, budget string, limit Amount, by By) error
	// Freeze refuses every hold of the target until Release.
	Freeze(ctx context.Context, t Target, by By) error
	Release(ctx context.Context, t Target, by By) error
	// Unresolved lists holds without evidence, oldest first, at most limit of them
	// (zero: all) of one provider (empty: of all).
	Unresolved(ctx context.Context, provider string, limit int) ([]Unresolved, error)
	// Correct puts the cost of a presumed or settled hold at a, as an invoice or a
	// person says.
	Correct(ctx context.Context, id HoldID, a Amount, by By) (Correction, error)
}

// Correction is what correcting a hold did.
type Correction struct {
	Report
	// Provider is whose hold it was, Unit what its cost is in.
	Provider, Unit string
}

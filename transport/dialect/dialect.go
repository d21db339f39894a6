// Package dialect reads what a provider's answer says about its limits.
//
// Reading is pure: the same [Answer] gives the same [Reading], nothing is kept,
// nothing is sent. It is total as well: every header and every body, however
// broken, gives a Reading, and no wait in it is negative, overflows, or is longer
// than 400 days.
package dialect

import (
	"net/http"
	"time"
)

// Answer is one response as a dialect sees it.
type Answer struct {
	Status int
	// Header holds the response's header in canonical form. It is only read.
	Header http.Header
	// Body is a prefix of the decoded body if WantsBody asked for it, else nil: at most
	// 64 KiB from package transport.
	Body []byte
	// Cut: the body goes on behind that prefix, or did not come in time.
	Cut bool
	// Now is when the header arrived. The Date header, where it is plausible, takes
	// its place for instants.
	Now time.Time
}

// Dialect reads the answers of one vendor. Implementations keep no state and are
// safe for concurrent use.
type Dialect interface {
	// WantsBody reports whether Read needs a prefix of the body of such an answer.
	WantsBody(status int, h http.Header) bool
	// Read never fails: what it does not understand is absent from the Reading.
	Read(a Answer) Reading
}

// Billed says whether a provider charges for an answer.
type Billed uint8

// BilledUnknown leaves it to the general rules, which package transport tells.
const (
	BilledUnknown Billed = iota
	BilledYes
	BilledNo
)

// Whole is the scope of a limit that holds for the provider as a whole.
const Whole = "*"

// Reading is what an answer says. The zero Reading says nothing.
type Reading struct {
	// Throttled: the provider refused the call because of a limit that time heals.
	Throttled bool
	// Wall: the provider refused the call because of an empty balance, a spend cap or
	// a quota of the plan. Waiting seconds does not help; it is never retried. Together
	// with Throttled it is a quota of an hour, a day or a month whose end the answer does
	// not tell: time heals it, but not within any wait.
	Wall bool
	// RetryAfter is the explicit hint to wait, from Now, if Hinted. It is never
	// negative; zero means "now", which is what a hint in the past amounts to. Beside an
	// error that is no throttle it concerns that call alone.
	RetryAfter time.Duration
	Hinted     bool
	// Window is the limit that binds: the exhausted one if several were told, else
	// the first.
	Window Window
	// Windows lists all limits that the answer told when there are several; else it
	// is nil.
	Windows []Window
	// Scope says which part of the provider the refusal concerns: the name of a scope
	// of the provider ("route", "endpoint", "object"), Whole, or empty when the answer
	// does not tell. A provider without a scope of that name has nothing to close.
	Scope string
	// Policy is the vendor's own name for the limit; a word of its documentation,
	// never a key or an account. "balance" goes with Wall.
	Policy string
	// Billed says whether the vendor charges for this answer.
	Billed Billed
	// Ref is the vendor's own id of what was billed, so that an invoice can be
	// matched. It is stored in the ledger and never logged.
	Ref string
	// Source says where the throttle was read: "status", "headers" or "body".
	Source string
	// Partial: the provider accepted a part of the call (some recipients, some items),
	// so that sending it again would repeat that part.
	Partial bool
	// Final: the provider says that the call is not to be sent again, whatever else it
	// says (X-Should-Retry and Stripe-Should-Retry: false).
	Final bool
}

// Window is the state of one limit.
type Window struct {
	// Name is the vendor's name for it, empty if it has none.
	Name string
	// Limit and Remaining count requests, unless Unit says otherwise.
	Limit, Remaining int64
	// Reset is the time from [Answer].Now until the window is new (or the bucket full).
	Reset time.Duration
	// Known says which of the three were told.
	Known Fields
	// Endpoint: it is the limit of the scope "endpoint", not of all that the answer concerns.
	Endpoint bool
	// Unit is what is counted: empty for requests, else "tokens", "bytes",
	// "concurrent" or "points".
	Unit string
}

// Fields says which numbers of a [Window] are known.
type Fields uint8

// The numbers of a window.
const (
	HasLimit Fields = 1 << iota
	HasRemaining
	HasReset
)

// Exhausted reports whether the window says that nothing is left.
func (w Window) Exhausted() bool { return w.Known&HasRemaining != 0 && w.Remaining <= 0 }

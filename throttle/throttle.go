// Package throttle decides when a call may start.
//
// A [Limiter] hands out turns. A turn is asked for on one or more legs at once
// (a provider, and the scopes inside it), and all legs grant it together or none
// does. [Bucket] is the Limiter of one process: token buckets and strict windows
// with a queue of its own, gates that a provider's answer closes, and slots for
// calls in flight.
//
// The package knows nothing of money or HTTP.
package throttle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rate is "N turns per Per". It is a plain value; the zero Rate is not valid: no
// limit is an empty slice of rates, never a zero in one.
type Rate struct {
	// N is the number of turns per period, at least 1.
	N int
	// Per is the period, more than zero.
	Per time.Duration
	// Burst is how many turns may start at one instant after idle time. Zero means
	// 1 for a token bucket. For a Strict rate zero means N, and any other value
	// paces the turns inside the window as well.
	Burst int
	// Strict admits at most N turns in any window of length Per, wherever the window
	// begins. A token bucket alone admits about Burst more in the worst one: almost 2N
	// with a Burst of N. Use Strict for providers that count fixed windows. With an N
	// above 1,024 turns are counted by 1/1024 of Per, so that a few less may start.
	Strict bool
}

// PerSecond returns a rate of n turns per second, with a burst of 1.
func PerSecond(n int) Rate { return Rate{N: n, Per: time.Second} }

// PerMinute returns a rate of n turns per minute, with a burst of 1.
func PerMinute(n int) Rate { return Rate{N: n, Per: time.Minute} }

// PerHour returns a rate of n turns per hour, with a burst of 1.
func PerHour(n int) Rate { return Rate{N: n, Per: time.Hour} }

// PerDay returns a rate of n turns per 24 hours, with a burst of 1. It is not a
// calendar day: quotas that end at a midnight are budgets in calls.
func PerDay(n int) Rate { return Rate{N: n, Per: 24 * time.Hour} }

// Leg is one scope that a turn needs: a provider, or a part of one that has limits
// of its own.
type Leg struct {
	// Key names the scope. Calls with equal keys share its rates, gate and slots.
	Key string
	// Rates must all admit the turn. Empty means that the scope has no rate, only its
	// gate and slots. The last rates asked with are the ones that hold: a change
	// re-times those who wait, and never refills a bucket.
	Rates []Rate
	// Weight is what one turn takes from every rate of the leg. Zero means 1.
	Weight int
	// Slots bounds the turns of this scope that are not done yet. Zero: no bound.
	Slots int
}

// Priority orders those who wait for the same provider. The zero value is Normal.
type Priority int

// The three priorities. With endless load in every class, Bulk still gets at least
// a tenth of the turns and a Critical call waits for at most two turns of others.
const (
	Normal   Priority = 0
	Critical Priority = 1
	Bulk     Priority = 2
)

// String returns the name used in events, metrics and JSON.
func (p Priority) String() string {
	switch p {
	case Critical:
		return "critical"
	case Bulk:
		return "bulk"
	default:
		return "normal"
	}
}

// Ask is the request for one turn.
type Ask struct {
	// Legs are the scopes the turn needs, the provider first. All grant or none.
	Legs []Leg
	// Priority and Tenant order the queue of the first leg: higher priorities first
	// (with a share for the others), tenants in fair turns.
	Priority Priority
	Tenant   string
	// MaxWait bounds the wait. Zero: a turn now or a refusal.
	MaxWait time.Duration
	// Now is what time.Now said a moment ago, for callers who had to ask it anyway. Zero:
	// the Limiter reads its own clock. It never sets a Limiter's time back.
	Now time.Time
	// OnQueue, if set, is called once, on the caller's goroutine and under no lock,
	// when the turn cannot be had at once and the caller begins to wait.
	OnQueue func(Forecast)
	// Still, if set, is asked once, after OnQueue and like it: with an error the caller
	// leaves the queue, which costs no turn, and Wait returns that error. It spares a
	// wait whose end is known, such as that for a turn that no budget can pay for.
	Still func() error
}

// Forecast is what a waiter may expect if nobody overtakes it.
type Forecast struct {
	// Start is when the turn should come. The zero time means that it depends on a
	// slot, so nobody knows.
	Start time.Time
	// Wait is the time from now to Start.
	Wait time.Duration
	// Ahead is the number of waiters in front.
	Ahead int
	// Cause is what the turn waits for: ReasonGate, ReasonRate or ReasonSlots.
	Cause Reason
}

// Cause says why a gate closed or a cap was set.
type Cause string

// The causes of gates and caps.
const (
	CauseThrottled Cause = "throttled" // the provider refused a call
	CauseRemaining Cause = "remaining" // the provider said that nothing is left
	CauseOperator  Cause = "operator"  // a person did it
)

// Cap is what a provider's answer, or an operator, says about a scope.
type Cap struct {
	// Key is the scope, as in [Leg.Key]. A scope that nobody has asked for yet is
	// created.
	Key string
	// N is how many turns may still start before Until. Zero closes the gate: none.
	N int
	// Until is when the cap ends. Nothing is capped beyond 31 days from now.
	Until time.Time
	// Cause is kept for reports.
	Cause Cause
	// Turn is the turn of the attempt whose answer said so: turns granted after it
	// already count against N. The zero Turn counts from now.
	Turn Turn
	// Slow multiplies the effective rates of the scope by 0.7 (never below 1 % of
	// what is configured). Every second without another Slow gives 2 % of the
	// configured rate back. With Slow and a zero Until only the rate changes.
	Slow bool
	// Reopen drops gate and cap of the scope instead of tightening them. Only
	// operators use it; without it a cap only ever tightens.
	Reopen bool
}

// Limiter hands out turns. Implementations are safe for concurrent use and pass the
// suite in throttle/limitertest. [Informer] and [Tuner] are optional.
type Limiter interface {
	// Wait returns a turn on all legs of a, or none. It fails with a *[WaitError]
	// (nothing was taken; the error says when a turn could be had), with
	// [ErrUnavailable], or with the context's error when the caller gave up. A call
	// whose turn cannot come before its deadline or MaxWait fails at once; a waiter
	// whose forecast worsens past that leaves at that moment.
	Wait(ctx context.Context, a Ask) (Turn, error)
	// Cap tightens what a scope may do. A gate only moves later.
	Cap(ctx context.Context, c Cap) error
}

// Informer is a Limiter that tells its state. [Bucket] is one.
type Informer interface {
	// Stats returns the state of the first leg and of the scopes beside it.
	Stats(firstKey string) Stats
	// Forecast says when the turn of a would come, or why it would be refused. It takes
	// nothing.
	Forecast(a Ask) (Forecast, error)
}

// Tuner is a Limiter that can be told of new limits before the next Ask. [Bucket] is one.
type Tuner interface {
	// Set takes over the rates and slots of l for those who wait already.
	Set(l Leg) error
	// Adjust corrects what the turn took from the rates of one of its scopes, once its
	// real weight is known: the difference is given back, or taken as debt.
	Adjust(t Turn, key string, weight int)
}

// Owner is the part of a Limiter that takes turns back.
type Owner interface {
	// CancelTurn gives a turn back whose call was never sent: its tokens and slots
	// are free again and those who wait move up.
	CancelTurn(id uint64)
	// EndTurn frees the slots of a turn whose call is over.
	EndTurn(id uint64)
}

// Turn is the right to start one call. Exactly one of Cancel and Done must be called
// on it, once. It is a value; the zero Turn is valid and does nothing.
type Turn struct {
	owner Owner
	id    uint64
}

// NewTurn makes a turn for implementations of [Limiter].
func NewTurn(o Owner, id uint64) Turn { return Turn{owner: o, id: id} }

// ID returns the number that the Limiter gave the turn.
func (t Turn) ID() uint64 { return t.id }

// Cancel gives the turn back: nothing was sent.
func (t Turn) Cancel() {
	if t.owner != nil {
		t.owner.CancelTurn(t.id)
	}
}

// Done says that the call was sent and that its body has ended.
func (t Turn) Done() {
	if t.owner != nil {
		t.owner.EndTurn(t.id)
	}
}

// Reason says why a turn was refused, or what a waiter waits for.
type Reason string

// The reasons of this package.
const (
	ReasonGate      Reason = "gate"       // the provider said: not before an instant
	ReasonRate      Reason = "rate"       // the configured rate
	ReasonSlots     Reason = "slots"      // too many calls in flight
	ReasonDeadline  Reason = "deadline"   // the context's deadline comes before the turn
	ReasonQueueFull Reason = "queue_full" // too many wait already
	ReasonNever     Reason = "never"      // heavier than the burst: it can never start
)

// WaitError is the refusal of a turn: nothing was sent, nothing was charged, nothing
// was taken from any rate.
type WaitError struct {
	// Provider is the key of the first leg.
	Provider string
	// Reason says why.
	Reason Reason
	// RetryAt is when a turn could be had, as far as known; else the zero time.
	RetryAt time.Time
}

// Error names the provider, the reason and the instant.
func (e *WaitError) Error() string {
	switch {
	case e.Reason == ReasonSlots:
		return e.Provider + ": no turn (slots): as many calls are in flight as may be; one ends when its response body is closed"
	case e.RetryAt.IsZero():
		return fmt.Sprintf("%s: no turn (%s)", e.Provider, e.Reason)
	}
	return fmt.Sprintf("%s: no turn before %s (%s)", e.Provider, e.RetryAt.UTC().Format(time.RFC3339Nano), e.Reason)
}

// Is reports whether target is [context.DeadlineExceeded] and a deadline was the
// reason, so that callers who look for that find it.
func (e *WaitError) Is(target error) bool {
	return e.Reason == ReasonDeadline && target == context.DeadlineExceeded
}

// ErrUnavailable says that the limiter's shared store did not answer. Nothing was
// sent and nothing was charged.
var ErrUnavailable = errors.New("throttle: limiter unavailable")

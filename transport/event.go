package transport

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// Kind says what an [Event] tells.
type Kind uint8

// The kinds of events. Consumers ignore kinds that they do not know.
const (
	KindWaiting     Kind = iota + 1 // the attempt cannot start at once
	KindStarted                     // turn taken, hold durable, about to send
	KindAnswered                    // header or error of an attempt
	KindThrottled                   // the provider asks to slow down
	KindGate                        // the end of a gate moved later
	KindLearned                     // a stated limit caps a scope
	KindRetrying                    // the attempt will be repeated
	KindResolved                    // a hold ended, or was corrected
	KindRefused                     // our own no
	KindWouldRefuse                 // the no of a monitor
	KindFinished                    // exactly one per RoundTrip
	KindUnclosed                    // a response body was never closed
	KindThreshold                   // a share of a budget was crossed
	KindStore                       // the ledger or the shared limiter failed, or works again
	KindClock                       // a clock jumped
	KindChanged                     // a person or a reload changed something
)

var kindNames = [...]string{"", "waiting", "started", "answered", "throttled", "gate", "learned", "retrying", "resolved",
	"refused", "would_refuse", "finished", "unclosed", "threshold", "store", "clock", "changed"}

// String returns the name used in logs, metrics and JSON.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind_%d", k)
}

// CallID identifies a call: the random number of the process and a counter. It is
// never derived from the request.
type CallID struct{ Boot, Seq uint64 }

// String returns the id like "7f9c-1a22".
func (id CallID) String() string { return fmt.Sprintf("%04x-%x", id.Boot&0xffff, id.Seq) }

// Event is something that happened. It is a value without pointers into the request,
// and holds numbers, instants, words of the closed lists in this package and names
// from the configuration: never a URL, a header, a body, a key or an error's text. A
// zero field does not apply.
//
// Order within a call: waiting? (started answered resolved throttled? gate? learned?
// retrying?)+ finished; resolved may come after finished when the cost is known only
// at the end of the body.
type Event struct {
	Kind     Kind
	Time     time.Time // UTC
	Call     CallID
	Provider string
	// Attempt counts from 1; 0 means that none was begun.
	Attempt  int
	Priority throttle.Priority

	Reason     Reason // refused, would_refuse, finished
	Cause      string // waiting: gate, rate, slots; gate: throttled, remaining, operator; retrying: throttled, unavailable, not_sent, opted_in
	Outcome    string // finished: answered, throttled, refused, failed, cancelled, passed; resolved: settled, voided, presumed, corrected
	Evidence   string // resolved: why
	Source     string // throttled: status, headers, body
	ErrorClass string // answered: dial, tls, timeout, reset, cancelled, other; store: timeout, unavailable, conflict, full, corrupt, learning
	Status     int    // answered, throttled, finished: of the answer

	Budget, Window    string        // refused, would_refuse, threshold: label and window id; changed: label
	Unit              string        // of the amounts
	Hold, Cost        budget.Amount // started: Hold; resolved: both; finished: Cost of all attempts
	Overrun, Delta    budget.Amount // resolved: as in budget.Report
	Need, Used, Limit budget.Amount // refused, would_refuse: as in budget.ExceededError; threshold: Used, Limit
	Late, Assumed     bool          // resolved: as in budget.Report and budget.Quote

	// Wait is how long the attempt (started) or the call (finished) queued, Left how long
	// a call queued that left without a turn (finished), Delay the time between attempts.
	Wait, Left, Delay time.Duration
	// Took is the time of what happened: the attempt (answered), the call (finished),
	// or the operation on the ledger (started: the hold; resolved).
	Took              time.Duration
	Expected          time.Duration // waiting: until its turn; refused: until RetryAt
	RetryAt, Until    time.Time     // refused, throttled, retrying: RetryAt; gate, learned: Until
	Queue             int           // waiting: those in front
	Remaining         int64         // learned: turns that may still start before Until
	Attempts, Pending int           // finished: attempts made, and 1 while a hold is open; resolved: holds that a recovery presumed
	Resends           int           // answered: further transmissions by net/http itself
	Percent           int           // threshold: the share that was reached
	Skew              time.Duration // clock: the jump; resolved: local clock less the answer's Date
	Nested            bool          // finished: a layer above repeats calls as well

	Store, Op               string // store, clock: ledger or limiter; store: the operation
	Up                      bool   // store: it works again
	Actor, Action, From, To string // changed: who did what; From and To are limits or amounts
}

// Tee returns a hook that calls each of hooks in turn.
func Tee(hooks ...func(context.Context, Event)) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		for _, h := range hooks {
			if h != nil {
				h(ctx, e)
			}
		}
	}
}

// LogValue lists the fields that apply, under the names used in logs.
func (e Event) LogValue() slog.Value { return slog.GroupValue(e.attrs()...) }

func (e Event) attrs() []slog.Attr {
	a := make(attrs, 0, 16)
	e.words(&a)
	e.numbers(&a)
	return a
}

// words are who, what and why.
func (e Event) words(a *attrs) {
	a.str("provider", e.Provider)
	if e.Call != (CallID{}) {
		a.str("call", e.Call.String())
	}
	a.num("attempt", e.Attempt)
	if e.Priority != throttle.Normal {
		a.str("priority", e.Priority.String())
	}
	a.str("reason", string(e.Reason))
	a.str("cause", e.Cause)
	a.str("outcome", e.Outcome)
	a.str("evidence", e.Evidence)
	a.num("status", e.Status)
	a.str("source", e.Source)
	a.str("error", e.ErrorClass)
	a.str("budget", e.Budget)
	a.str("window", e.Window)
	a.str("store", e.Store)
	a.str("op", e.Op)
	a.str("actor", e.Actor)
	a.str("action", e.Action)
	a.str("from", e.From)
	a.str("to", e.To)
}

// numbers are how much, how long and when.
func (e Event) numbers(a *attrs) {
	a.num("percent", e.Percent)
	a.money("hold", e.Hold)
	a.money("cost", e.Cost)
	a.money("overrun", e.Overrun)
	a.money("delta", e.Delta)
	a.money("need", e.Need)
	a.money("used", e.Used)
	a.money("limit", e.Limit)
	a.str("unit", e.Unit)
	a.secs("wait_s", e.Wait)
	a.secs("left_s", e.Left)
	a.secs("delay_s", e.Delay)
	a.secs("took_s", e.Took)
	a.secs("expected_s", e.Expected)
	a.at("retry_at", e.RetryAt)
	a.at("until", e.Until)
	a.num("queue", e.Queue)
	a.num("remaining", int(e.Remaining))
	a.num("attempts", e.Attempts)
	a.num("pending", e.Pending)
	a.num("resends", e.Resends)
	a.secs("skew_s", e.Skew)
	a.yes("late", e.Late)
	a.yes("assumed", e.Assumed)
	a.yes("up", e.Up)
	a.yes("nested", e.Nested)
}

// attrs leaves out what is zero: it does not apply.
type attrs []slog.Attr

func (a *attrs) str(key, v string) {
	if v != "" {
		*a = append(*a, slog.String(key, v))
	}
}

func (a *attrs) num(key string, v int) {
	if v != 0 {
		*a = append(*a, slog.Int(key, v))
	}
}

func (a *attrs) money(key string, v budget.Amount) {
	if v != 0 {
		*a = append(*a, slog.String(key, v.String()))
	}
}

func (a *attrs) secs(key string, d time.Duration) {
	if d != 0 {
		*a = append(*a, slog.Float64(key, d.Seconds()))
	}
}

func (a *attrs) at(key string, t time.Time) {
	if !t.IsZero() {
		*a = append(*a, slog.Time(key, t.UTC()))
	}
}

func (a *attrs) yes(key string, v bool) {
	if v {
		*a = append(*a, slog.Bool(key, true))
	}
}

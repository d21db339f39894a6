package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// longestHint is the longest Retry-After of a refusal that is not for money: several SDKs
// sleep as long as they are told. A later instant stands in retry_at.
const longestHint = time.Minute

// member is one member of the JSON object of a refusal.
type member struct {
	name  string
	value any
}

// said is what a refusal says, for the shapes of the vendors.
type said struct {
	status int
	reason string
	text   string
	// money: it is refused for its price. rate: for the number of calls.
	money, rate bool
}

// shape is the error response of a vendor.
type shape struct {
	// money is the status of a refusal for money. Zero: 402.
	money int
	// quiet: no answer has a Retry-After.
	quiet bool
	// kind is the Content-Type. Empty: application/problem+json.
	kind    string
	members func(said) []member
}

// refuse makes the response: one object that is a problem (RFC 9457) and the vendor's own
// error as well. The sentence comes first: some clients show only the first 120 bytes.
func (s shape) refuse(r transport.Refused) (int, http.Header, []byte) {
	f := s.say(r)
	h := http.Header{"Content-Type": {cmp.Or(s.kind, "application/problem+json")}, "Cache-Control": {"no-store"}}
	s.hint(h, f, r)
	all := []member{
		{"detail", f.text}, {"title", title(r, f.status)}, {"status", f.status}, {"type", problemType(r.Reason)},
		{"reason", f.reason}, {"sent", false}, {"charged", false}, {"provider", r.Provider},
	}
	if r.OutcomeUnknown {
		all[5].value, all[6].value = "unknown", "presumed"
	}
	if r.Reason == transport.ReasonRate {
		all = append(all, member{"violated-policies", []string{r.Provider}})
	}
	all = append(all, moneyMembers(r.Err)...)
	if !r.RetryAt.IsZero() {
		all = append(all, member{"retry_at", r.RetryAt.UTC().Format(time.RFC3339)})
	}
	if r.Call != (transport.CallID{}) {
		all = append(all, member{"call", r.Call.String()})
	}
	return f.status, h, object(all, s.members(f))
}

// hint sets Retry-After where a repeat is right, and else says to the SDKs that know such
// a header that it is not. For money it does both: the end of the window is worth knowing.
func (s shape) hint(h http.Header, f said, r transport.Refused) {
	wait := waitFor(r)
	short := 0 < wait && wait <= longestHint && !f.money
	if late := f.status == http.StatusPaymentRequired && wait > 0; !s.quiet && (short || late) {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	if !short || s.quiet {
		h.Set("X-Should-Retry", "false")
		h.Set("Stripe-Should-Retry", "false")
	}
}

// waitFor is how long the caller should wait, zero if nobody knows or a repeat is wrong.
func waitFor(r transport.Refused) time.Duration {
	switch {
	case r.OutcomeUnknown, errors.Is(r.Err, budget.ErrConflict):
		return 0
	case r.Reason == transport.ReasonBusy:
		return time.Second // long before the next window a call that ends may make room
	case !r.RetryAt.IsZero():
		return time.Until(r.RetryAt)
	}
	switch r.Reason {
	case transport.ReasonSlots, transport.ReasonQueueFull:
		return time.Second
	case transport.ReasonLedger, transport.ReasonLimiter:
		return 2 * time.Second
	}
	return 0
}

// say finds the status and the sentence.
func (s shape) say(r transport.Refused) said {
	f := said{status: http.StatusServiceUnavailable, reason: string(r.Reason), text: sentence(r)}
	switch r.Reason {
	case transport.ReasonGate, transport.ReasonRate, transport.ReasonSlots, transport.ReasonDeadline,
		transport.ReasonQueueFull, transport.ReasonBusy, transport.ReasonRepeated:
		f.status, f.rate = http.StatusTooManyRequests, true
	case transport.ReasonNever:
		f.status = http.StatusUnprocessableEntity
	case transport.ReasonExhausted, transport.ReasonFloor, transport.ReasonUnpriced:
		f.status, f.money = cmp.Or(s.money, http.StatusPaymentRequired), true
	}
	f.status = cmp.Or(r.Status, f.status)
	return f
}

// sentence says what happened, in one line for a log or a person.
func sentence(r transport.Refused) string {
	text := "outlay refused this call"
	if r.OutcomeUnknown {
		text = "the outcome of this call is unknown, and it may be billed"
	}
	if r.Err != nil {
		text += ": " + r.Err.Error()
	}
	_, isMoney := errors.AsType[*budget.ExceededError](r.Err)
	if isMoney && !r.RetryAt.IsZero() {
		text += "; the next window begins at " + r.RetryAt.UTC().Format(time.RFC3339)
	}
	return text
}

// moneyMembers tell how the budget stands that refused.
func moneyMembers(err error) []member {
	e, ok := errors.AsType[*budget.ExceededError](err)
	if !ok {
		return nil
	}
	return []member{
		{"budget", e.Budget}, {"window", e.Window}, {"unit", e.Unit}, {"limit", e.Limit.String()},
		{"spent", (e.Used - e.Held).String()}, {"held", e.Held.String()}, {"need", e.Need.String()},
	}
}

// problemType identifies the problem. The one for rates is registered.
func problemType(reason transport.Reason) string {
	if reason == transport.ReasonRate {
		return "https://iana.org/assignments/http-problem-types#quota-exceeded"
	}
	return "urn:outlay:problem:" + string(reason)
}

// titles name the reasons for people.
var titles = map[transport.Reason]string{
	transport.ReasonGate: "The provider asked for a pause", transport.ReasonRate: "Rate limit reached",
	transport.ReasonSlots: "Too many calls in flight", transport.ReasonDeadline: "No turn before the deadline",
	transport.ReasonQueueFull: "Too many calls are waiting", transport.ReasonNever: "Larger than the limit, so never possible",
	transport.ReasonExhausted: "Budget exhausted", transport.ReasonBusy: "Calls in flight hold the rest of the budget",
	transport.ReasonFloor: "The rest of the budget is kept for critical calls", transport.ReasonRepeated: "The same call too often",
	transport.ReasonUnpriced: "No price for this call", transport.ReasonFrozen: "Stopped by an operator",
	transport.ReasonLedger: "The ledger did not answer", transport.ReasonLimiter: "The limiter did not answer",
}

func title(r transport.Refused, status int) string {
	if errors.Is(r.Err, budget.ErrConflict) {
		return "The configuration contradicts the ledger" // which did answer
	}
	return cmp.Or(titles[r.Reason], http.StatusText(status))
}

// pick returns a word for rates, one for money and one for what is out of order.
func (f said) pick(rate, money, other string) string {
	switch {
	case f.rate:
		return rate
	case f.money:
		return money
	}
	return other
}

// object writes the members in their order. One that the vendor has too is the vendor's.
func object(problem, vendor []member) []byte {
	var all []member
	own := map[string]bool{}
	for _, m := range vendor {
		own[m.name] = true
	}
	for _, m := range problem {
		if !own[m.name] {
			all = append(all, m)
		}
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range append(all, vendor...) {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.name)
		value, _ := json.Marshal(m.value) // strings, numbers and maps of them
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// fields are the members of an object inside another.
type fields map[string]any

// MessageRefusal makes an error response with a "message", which is how many vendors say
// what went wrong. The functions named after a vendor do the same in its shape.
func MessageRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return messageShape.refuse(r)
}

var messageShape = shape{members: func(f said) []member { return []member{{"message", f.text}} }}

package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// longestHint is the longest Retry-After that a refusal announces: several SDKs sleep as
// long as they are told. A later instant stands in retry_at.
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
	quiet   bool
	members func(said) []member
}

// refuse makes the response: one object that is a problem (RFC 9457) and the vendor's own
// error as well.
func (s shape) refuse(r transport.Refused) (int, http.Header, []byte) {
	f := s.say(r)
	h := http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}}
	wait := time.Until(r.RetryAt)
	switch {
	case r.RetryAt.IsZero() && f.status == http.StatusTooManyRequests && r.Reason == transport.ReasonBusy:
		wait = time.Second
	case r.RetryAt.IsZero():
		wait = 0
	}
	if short := 0 < wait && wait <= longestHint; short && !f.money && !s.quiet {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	} else {
		h.Set("X-Should-Retry", "false")
		h.Set("Stripe-Should-Retry", "false")
	}
	all := []member{
		{"detail", f.text}, {"title", http.StatusText(f.status)}, {"status", f.status},
		{"reason", f.reason}, {"sent", false}, {"charged", false}, {"provider", r.Provider},
	}
	if !r.RetryAt.IsZero() {
		all = append(all, member{"retry_at", r.RetryAt.UTC().Format(time.RFC3339)})
	}
	return f.status, h, object(all, s.members(f))
}

// say finds the status and the sentence.
func (s shape) say(r transport.Refused) said {
	f := said{status: http.StatusServiceUnavailable, reason: string(r.Reason), text: "refused before it was sent"}
	if r.Err != nil {
		f.text += ": " + r.Err.Error()
	}
	switch r.Reason {
	case transport.ReasonGate, transport.ReasonRate, transport.ReasonSlots, transport.ReasonDeadline,
		transport.ReasonQueueFull, transport.ReasonBusy, transport.ReasonRepeated:
		f.status, f.rate = http.StatusTooManyRequests, true
	case transport.ReasonNever:
		f.status = http.StatusUnprocessableEntity
	case transport.ReasonExhausted, transport.ReasonFloor, transport.ReasonUnpriced:
		f.status, f.money = http.StatusPaymentRequired, true
		if s.money != 0 {
			f.status = s.money
		}
	}
	return f
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

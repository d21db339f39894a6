package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
)

// NewTelnyx starts a fake of Telnyx' messaging API, POST /v2/messages with JSON.
//
// It bills every part of a message, 0.004 USD if Options.Price is zero, and tells parts
// and cost in its answer. It throttles with status 429 and code 10011; its headers tell
// the window, with a reset in seconds from now.
func NewTelnyx(o Options) *Fake {
	return start(vendor{
		name: "telnyx", hosts: []string{"api.telnyx.com"},
		unit: "USD", price: 4_000_000,
		answer: telnyxAnswer, headers: telnyxHeaders,
		throttle: func(_ call, why refusal) reply {
			a := telnyxError(http.StatusTooManyRequests, "10011", "Too many requests")
			if why.planned {
				return a.hint(why.after)
			}
			return a
		},
		fail: func(status int) reply { return telnyxError(status, "10007", http.StatusText(status)) },
	}, o)
}

func telnyxAnswer(c call) reply {
	var m struct{ From, To, Text string }
	switch {
	case c.URL.Path != "/v2/messages" || c.Method != http.MethodPost:
		return telnyxError(http.StatusNotFound, "10005", "Resource not found").refuse()
	case !c.decode(&m) || m.To == "" || m.From == "" || m.Text == "":
		return telnyxError(http.StatusUnprocessableEntity, "10004", "Missing required parameter").refuse()
	}
	n := segments(m.Text, false)
	id := fmt.Sprintf("40385f64-5717-4562-b3fc-%012x", c.serial())
	a := reply{}.bill(c, id, m.To, n)
	line := a.line
	a = object(http.StatusOK, map[string]any{"data": map[string]any{
		"record_type": "message", "direction": "outbound", "id": id, "type": "SMS", "parts": n, "text": m.Text,
		"from": map[string]string{"phone_number": m.From},
		"to":   []any{map[string]string{"phone_number": m.To, "status": "queued"}},
		"cost": map[string]string{"amount": cents(line.Amount), "currency": "USD"},
	}})
	a.line = line
	return a
}

func telnyxHeaders(c call) map[string]string {
	if !c.windowed() {
		return nil
	}
	return map[string]string{
		"x-ratelimit-limit":     strconv.Itoa(c.fake.opts.Limit.Requests),
		"x-ratelimit-remaining": strconv.Itoa(c.remaining),
		"x-ratelimit-reset":     strconv.FormatInt(seconds(c.reset), 10),
	}
}

func telnyxError(status int, code, title string) reply {
	return object(status, map[string]any{"errors": []any{map[string]string{"code": code, "title": title, "detail": title + "."}}})
}

package vendortest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// NewVonage starts a fake of Vonage's SMS API, POST or GET /sms/json with a form, a
// query or JSON.
//
// It bills every part of a message, 0.0333 EUR if Options.Price is zero, and tells the
// price in its answer. "type=unicode" sends any text in UCS-2. It throttles with status
// 200 and message status "1", whose text names the pause in milliseconds.
func NewVonage(o Options) *Fake {
	return start(vendor{
		name: "vonage", hosts: []string{"rest.nexmo.com", "*.nexmo.com"},
		unit: "EUR", price: 33_300_000,
		answer: vonageAnswer, throttle: vonageThrottle,
		fail: func(status int) reply { return reply{status: status, body: http.StatusText(status)} },
	}, o)
}

func vonageAnswer(c call) reply {
	if c.URL.Path != "/sms/json" {
		return reply{status: http.StatusNotFound}.refuse()
	}
	f := vonageFields(c)
	to, text := f.Get("to"), f.Get("text")
	if to == "" || text == "" || f.Get("from") == "" {
		return vonageStatus("2", "Missing params").refuse()
	}
	n := segments(text, f.Get("type") == "unicode")
	ref := fmt.Sprintf("%016X", c.serial())
	price := c.fake.priceOf("+" + to)
	var parts []any
	for i := range n {
		parts = append(parts, map[string]string{
			"to": to, "message-id": fmt.Sprintf("%s%02d", ref, i), "status": "0", "network": "12345",
			"remaining-balance": "100.00000000", "message-price": cents(price),
		})
	}
	a := object(http.StatusOK, map[string]any{"message-count": strconv.FormatInt(n, 10), "messages": parts})
	a.line = Line{Ref: ref + "00", Time: c.now, To: to, Units: n, Amount: price * budget.Amount(n)}
	return a
}

// vonageFields takes the parameters from where they are.
func vonageFields(c call) url.Values {
	var fields map[string]string
	if c.decode(&fields) {
		f := url.Values{}
		for k, v := range fields {
			f.Set(k, v)
		}
		return f
	}
	if len(c.body) > 0 {
		return c.form()
	}
	return c.URL.Query()
}

func vonageThrottle(_ call, why refusal) reply {
	if why.planned {
		return reply{status: http.StatusTooManyRequests}.hint(why.after)
	}
	if why.busy {
		return vonageStatus("10", "Too Many Existing Binds")
	}
	after := why.after.Round(time.Millisecond)
	a := vonageStatus("1", fmt.Sprintf("Throughput Rate Exceeded - please wait [ %d ] and retry", after.Milliseconds()))
	a.pause = after
	return a
}

func vonageStatus(status, text string) reply {
	return object(http.StatusOK, map[string]any{
		"message-count": "1", "messages": []any{map[string]string{"status": status, "error-text": text}},
	})
}

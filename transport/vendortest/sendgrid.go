package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// NewSendGrid starts a fake of SendGrid's mail API, POST /v3/mail/send.
//
// It bills every recipient, 0.001 USD if Options.Price is zero. It throttles with status
// 429; its headers tell the window, with the reset in epoch seconds.
func NewSendGrid(o Options) *Fake {
	return start(vendor{
		name: "sendgrid", hosts: []string{"api.sendgrid.com"},
		unit: "USD", price: 1_000_000,
		answer: sendGridAnswer, headers: sendGridHeaders,
		throttle: func(_ call, why refusal) reply {
			a := sendGridError(http.StatusTooManyRequests, "too many requests")
			if why.planned {
				return a.hint(why.after)
			}
			return a
		},
		fail: func(status int) reply { return sendGridError(status, http.StatusText(status)) },
	}, o)
}

func sendGridAnswer(c call) reply {
	type address struct{ Email string }
	var m struct {
		Personalizations []struct{ To, CC, BCC []address }
	}
	if c.URL.Path != "/v3/mail/send" || c.Method != http.MethodPost {
		return sendGridError(http.StatusNotFound, "not found").refuse()
	}
	if !c.decode(&m) {
		return sendGridError(http.StatusBadRequest, "Bad Request").refuse()
	}
	n := 0
	for _, p := range m.Personalizations {
		n += len(p.To) + len(p.CC) + len(p.BCC)
	}
	if n == 0 {
		return sendGridError(http.StatusBadRequest, "The personalizations field is required and must have at least one personalization.").refuse()
	}
	id := fmt.Sprintf("fake%018d", c.serial())
	return reply{status: http.StatusAccepted}.with("X-Message-Id", id).bill(c, id, "", int64(n))
}

func sendGridHeaders(c call) map[string]string {
	if !c.windowed() {
		return nil
	}
	return map[string]string{
		"X-RateLimit-Limit":     strconv.Itoa(c.fake.opts.Limit.Requests),
		"X-RateLimit-Remaining": strconv.Itoa(c.remaining),
		"X-RateLimit-Reset":     strconv.FormatInt(c.now.Add(c.reset+time.Second-1).Unix(), 10),
	}
}

func sendGridError(status int, message string) reply {
	return object(status, map[string]any{"errors": []any{map[string]any{"message": message, "field": nil, "help": nil}}})
}

package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/outlay-go/outlay/budget"
)

// NewSMS starts a fake of Twilio's Messages API: messages are created with
// POST /2010-04-01/Accounts/{sid}/Messages.json and read with GET
// .../Messages/{sid}.json, where the price appears.
//
// It bills every segment of a message it took, 0.0083 USD if Options.Price is zero,
// or by destination with Options.Prices. It throttles with status 429 and code 20429,
// and tells no pause unless the plan of faults says so.
func NewSMS(o Options) *Fake {
	return start(vendor{
		name: "twilio", hosts: []string{"api.twilio.com", "*.twilio.com"},
		unit: "USD", price: 8_300_000,
		answer: twilioAnswer, throttle: twilioThrottle, headers: twilioHeaders,
		fail: func(status int) reply { return twilioError(status, 20000+status, http.StatusText(status)) },
	}, o)
}

func twilioAnswer(c call) reply {
	account, rest, ok := strings.Cut(strings.TrimPrefix(c.URL.Path, "/2010-04-01/Accounts/"), "/Messages")
	switch {
	case !ok || account == "" || strings.Contains(account, "/"):
		return twilioRefusal(http.StatusNotFound, 20404, "The requested resource was not found")
	case c.Method == http.MethodGet:
		return twilioFetch(c, account, strings.TrimSuffix(strings.TrimPrefix(rest, "/"), ".json"))
	case c.Method != http.MethodPost || rest != ".json":
		return twilioRefusal(http.StatusMethodNotAllowed, 20004, "Method not allowed")
	}
	f := c.form()
	to, text := f.Get("To"), f.Get("Body")
	switch {
	case to == "":
		return twilioRefusal(http.StatusBadRequest, 21604, "A 'To' phone number is required.")
	case f.Get("From") == "" && f.Get("MessagingServiceSid") == "":
		return twilioRefusal(http.StatusBadRequest, 21603, "A 'From' phone number is required.")
	case text == "":
		return twilioRefusal(http.StatusBadRequest, 21602, "Message body is required.")
	case utf8.RuneCountInString(text) > 1600:
		return twilioRefusal(http.StatusBadRequest, 21617, "The concatenated message body exceeds the 1600 character limit.")
	}
	n := segments(text, false)
	m := twilioMessage(account, fmt.Sprintf("SM%032x", c.serial()), to, n, c.now)
	m["from"], m["body"] = f.Get("From"), text
	return object(http.StatusCreated, m).bill(c, m["sid"].(string), to, n)
}

// twilioFetch tells what became of a message, its price included, which is negative:
// it is taken from the account.
func twilioFetch(c call, account, sid string) reply {
	for _, l := range c.fake.lines {
		if l.Ref == sid {
			m := twilioMessage(account, l.Ref, l.To, l.Units, l.Time)
			m["status"], m["price"] = "delivered", "-"+cents(l.Amount)
			return object(http.StatusOK, m)
		}
	}
	return twilioRefusal(http.StatusNotFound, 20404, "The requested resource was not found")
}

func twilioMessage(account, sid, to string, segments int64, at time.Time) map[string]any {
	date := at.UTC().Format(time.RFC1123Z)
	return map[string]any{
		"sid": sid, "account_sid": account, "messaging_service_sid": nil, "api_version": "2010-04-01",
		"to": to, "status": "queued", "direction": "outbound-api",
		"num_segments": strconv.FormatInt(segments, 10), "num_media": "0",
		"price": nil, "price_unit": "USD", "error_code": nil, "error_message": nil,
		"date_created": date, "date_updated": date, "date_sent": nil,
		"uri": "/2010-04-01/Accounts/" + account + "/Messages/" + sid + ".json",
	}
}

func twilioThrottle(_ call, why refusal) reply {
	a := twilioError(http.StatusTooManyRequests, 20429, "Too Many Requests")
	if why.planned {
		return a.hint(why.after)
	}
	return a
}

// twilioHeaders tells the load, which Twilio sends with every answer.
func twilioHeaders(c call) map[string]string {
	return map[string]string{"Twilio-Concurrent-Requests": strconv.Itoa(c.fake.inFlight)}
}

func twilioError(status, code int, message string) reply {
	return object(status, map[string]any{
		"code": code, "message": message, "status": status,
		"more_info": "https://www.twilio.com/docs/errors/" + strconv.Itoa(code),
	})
}

func twilioRefusal(status, code int, message string) reply {
	return twilioError(status, code, message).refuse()
}

// cents writes an amount as a decimal number.
func cents(a budget.Amount) string {
	return fmt.Sprintf("%d.%09d", a/budget.Unit, a%budget.Unit)
}

package dialect

import "strings"

// mail are the vendors of email.
var mail = []vendor{
	// SendGrid API reference, rate limits; one window for each endpoint
	{name: "SendGrid", also: []string{"twiliosendgrid"}, form: EpochSeconds, windows: xRateLimit, refIn: "X-Message-Id", peek: refusals,
		body: balanceCode("errors[].message", "Maximum credits exceeded")},
	// mailgun-go errors.go: the reset is a float
	{name: "Mailgun", form: EpochSeconds, windows: xRateLimit, peek: refusals, body: waitAt("retry-seconds")},
	{name: "Postmark", peek: refusals | answers, body: readPostmark},
	// https://resend.com/docs/api-reference/rate-limit
	{name: "Resend", form: DeltaSeconds, windows: rateLimit, peek: refusals, body: readResend},
	{name: "Brevo", also: []string{"sendinblue"}, form: DeltaSeconds,
		windows: []family{{limit: "X-Sib-Ratelimit-Limit", remaining: "X-Sib-Ratelimit-Remaining", reset: "X-Sib-Ratelimit-Reset"}},
		peek:    refusals, body: balanceCode("code", "not_enough_credits")},
	// https://emailit.com/docs/kb/429-rate-limit-exceeded.md; the day is UTC
	{name: "Emailit", peek: refusals, body: readEmailit},
}

// waitAt returns a reader of a refusal that has the seconds to wait at path.
func waitAt(path string) func(Reading, Answer) Reading {
	return func(r Reading, a Answer) Reading {
		if r.Throttled {
			r.hint(waitSeconds(find(a.Body, path)))
		}
		return r
	}
}

// readPostmark reads the codes of a batch: 0 taken, 429 too many, 405 no credit.
func readPostmark(r Reading, a Answer) Reading {
	var t tally
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "ErrorCode":
			switch v.text() {
			case "0":
				t.taken++
			case "429":
				t.throttled++
			case "405":
				t.unpaid++
			default:
				t.other++
			}
		case "MessageID":
			if r.Ref == "" {
				r.Ref = id(v.text())
			}
		}
	}
	t.judge(&r, &a, "")
	return r
}

func readResend(r Reading, a Answer) Reading {
	switch find(a.Body, "name") {
	case "daily_quota_exceeded":
		r.quota("daily", "body")
	case "monthly_quota_exceeded":
		r.quota("monthly", "body")
	}
	return r
}

func readEmailit(r Reading, a Answer) Reading {
	if !r.Throttled {
		return r
	}
	var w Window
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "error":
			if strings.Contains(lowerASCII(v.text()), "daily") {
				r.Policy = "daily"
			}
		case "limit":
			w.setLimit(v.text())
		case "retry_after":
			r.hint(waitSeconds(v.text()))
		}
	}
	r.add(&w)
	return r
}

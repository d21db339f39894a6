package dialect

import (
	"slices"
	"strings"
	"time"
)

// messaging are the vendors of text messages and voice. Their answers tell what they
// bill for, and the id by which the invoice names it.
var messaging = []vendor{
	// https://www.twilio.com/docs/api/errors/20429, support articles 223181728 and 27502337507483
	{name: "Twilio", peek: refusals | answers, body: readTwilio, billed: freeRefusals},
	// https://developer.vonage.com/api-errors/sms
	{name: "Vonage SMS", also: []string{"vonage", "nexmo", "nexmosms"}, peek: refusals | answers, body: readVonageSMS},
	// https://developer.vonage.com/api-errors/messages
	{name: "Vonage Messages", peek: refusals | answers, ref: "message_uuid", body: readVonageMessages},
	{name: "Bird", also: []string{"messagebird", "birdmessagebird"}, peek: refusals | answers, ref: "id", body: balanceCode("errors[].code", "25")},
	// https://developers.sinch.com errors registry; a balance of zero is a 402
	{name: "Sinch", peek: answers, ref: "id"},
	{name: "Plivo", peek: answers, body: readPlivo},
	// https://developers.telnyx.com/development/api-fundamentals/reliability/rate-limiting
	{name: "Telnyx", form: DeltaSeconds, windows: xRateLimit, peek: refusals | answers, ref: "data.id", body: readTelnyx},
	// https://www.infobip.com/docs/developer-resources/api-fundamentals/rate-limits-and-throttling
	{name: "Infobip", peek: answers, ref: "messages[].messageId", body: readInfobip},
	{name: "ClickSend", peek: answers, body: readClickSend},
	{name: "Africa's Talking", peek: answers, body: readAfricasTalking},
	// http://dev.bandwidth.com/v2-messaging/errors/tooManyReq.html
	{name: "Bandwidth", peek: refusals, body: policyAt("type")},
	{name: "Phone.com", form: EpochSeconds, windows: rateLimit, peek: refusals, body: readPhoneCom},
	{name: "8x8"},
	{name: "SignalWire"},
	{name: "LINE", peek: refusals, body: readLINE},
	{name: "Clickatell", peek: answers, ref: "messages[].apiMessageId", body: readClickatell},
}

// freeRefusals is the rule of vendors that do not bill what they refuse.
func freeRefusals(status int) Billed {
	if status >= 400 && status < 500 {
		return BilledNo
	}
	return BilledUnknown
}

// policyAt returns a reader of a refusal that names the limit at path.
func policyAt(path string) func(Reading, Answer) Reading {
	return func(r Reading, a Answer) Reading {
		if r.Throttled {
			r.Policy = word(find(a.Body, path))
		}
		return r
	}
}

// balanceCode returns a reader of a refusal that has one of the codes at path if there is no
// money left.
func balanceCode(path string, codes ...string) func(Reading, Answer) Reading {
	return func(r Reading, a Answer) Reading {
		if a.Status >= 400 && slices.Contains(codes, find(a.Body, path)) {
			r.wall("balance", "body")
		}
		return r
	}
}

// tally counts the parts of a call that has several.
type tally struct{ taken, throttled, unpaid, other int }

// judge says what the parts amount to. Those that the answer was cut off before may have been
// taken.
func (t tally) judge(r *Reading, a *Answer, policy string) {
	switch {
	case t.unpaid > 0:
		r.wall("balance", "body")
	case t.throttled > 0:
		r.throttle("body")
		r.Policy = policy
	}
	r.Partial = (t.taken > 0 || a.Cut && a.Status < 300) && t.throttled+t.unpaid+t.other > 0
}

// twilioXML is what the elements of its XML, which it sends unless the path ends in
// ".json", are in its JSON.
var twilioXML = map[string]string{"Sid": "sid", "Code": "code", "Status": "status", "ErrorCode": "error_code"}

func readTwilio(r Reading, a Answer) Reading {
	var code, failure, status string
	for path, v := range scalars(a.Body, twilioXML) {
		switch string(path) {
		case "sid":
			r.Ref = id(v.text())
		case "code":
			code = v.text()
		case "status":
			status = v.text()
		case "error_code":
			failure = v.text()
		}
	}
	if a.Status < 300 {
		r.Billed = billedTwilio(status, failure)
		return r
	}
	switch code {
	case "20429": // calls at once, of the whole account
		r.throttle("body")
		r.Policy, r.Scope = "concurrency", Whole
	case "60202", "60203": // the checks of one code, the codes to one number
		r.throttle("body")
		r.Scope = "object"
	case "31429", "60207", "60212", "63017": // voice, verify, verify, 2000 messages per second
		r.throttle("body")
	}
	return r
}

// billedTwilio is the rule of support article 27502337507483: what was handed to a
// carrier is billed, delivered or not; "failed" costs a fee, except for some errors.
func billedTwilio(status, failure string) Billed {
	switch status {
	case "sent", "delivered", "undelivered":
		return BilledYes
	case "failed":
		if failure == "30450" { // stopped as SMS pumping
			return BilledNo
		}
		return BilledYes
	default:
		return BilledUnknown
	}
}

var vonageXML = map[string]string{"status": "messages[].status", "errorText": "messages[].error-text",
	"messageId": "messages[].message-id", "messagePrice": "messages[].message-price"}

func readVonageSMS(r Reading, a Answer) Reading {
	var t tally
	policy, text := "", ""
	for path, v := range scalars(a.Body, vonageXML) {
		switch string(path) {
		case "messages[].status":
			switch v.text() {
			case "0":
				t.taken++
			case "1":
				t.throttled++
				policy = "account-throughput"
			case "9":
				t.unpaid++
			case "10":
				t.throttled++
				policy = "concurrency"
			default:
				t.other++
			}
		case "messages[].error-text":
			text = v.text()
		case "messages[].message-id":
			if r.Ref == "" {
				r.Ref = id(v.text())
			}
		case "messages[].message-price":
			if n, ok := parseNumber(v.text()); ok && n != (number{}) {
				r.Billed = BilledYes
			}
		}
	}
	t.judge(&r, &a, policy)
	if t.throttled > 0 && r.Throttled {
		r.Scope = Whole
		c := &clock{h: a.Header, now: a.Now}
		r.hint(c.waitIn(text, time.Millisecond, "wait"))
	}
	return r
}

func readVonageMessages(r Reading, a Answer) Reading {
	if a.Status < 400 {
		return r
	}
	for path, v := range leaves(a.Body) {
		kind := v.text()
		switch string(path) {
		case "type", "code", "error_code":
			switch {
			case kind == "1070" || v.endsIn("#1070") || v.endsIn("#low-balance"):
				r.wall("balance", "body")
			case kind == "1000" || v.endsIn("#1000"):
				r.throttle("body")
			}
		}
	}
	return r
}

// readPlivo reads an accepted message, or the record of one that is done: it is charged
// once it was sent, delivered or not (support article 360041352432).
func readPlivo(r Reading, a Answer) Reading {
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "message_uuid", "message_uuid[]":
			if r.Ref == "" {
				r.Ref = id(v.text())
			}
		case "message_state":
			switch v.text() {
			case "sent", "delivered", "undelivered":
				r.Billed = BilledYes
			}
		}
	}
	return r
}

func readTelnyx(r Reading, a Answer) Reading {
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "errors[].code":
			switch v.text() {
			case "10011":
				r.throttle("body")
			case "20100": // insufficient funds
				r.wall("balance", "body")
			}
		case "data.cost.amount":
			if n, ok := parseNumber(v.text()); ok && n != (number{}) {
				r.Billed = BilledYes
			}
		}
	}
	return r
}

// readInfobip reads the states of the messages: groups PENDING and so on, or REJECTED.
// https://www.infobip.com/docs/essentials/response-status-and-error-codes
func readInfobip(r Reading, a Answer) Reading {
	var t tally
	for path, v := range leaves(a.Body) {
		if string(path) != "messages[].status.name" {
			continue
		}
		switch name := v.text(); {
		case name == "REJECTED_NOT_ENOUGH_CREDITS":
			t.unpaid++
		case strings.HasPrefix(name, "REJECTED_"):
			t.other++
		default:
			t.taken++
		}
	}
	t.judge(&r, &a, "")
	return r
}

// readClickSend tells a message that was queued from a quote, which has the same shape.
func readClickSend(r Reading, a Answer) Reading {
	var t tally
	queued := false
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "data.queued_count":
			queued = v.text() != "0"
		case "data.messages[].message_id":
			if r.Ref == "" {
				r.Ref = id(v.text())
			}
		case "data.messages[].status":
			switch v.text() {
			case "SUCCESS":
				t.taken++
			case "INSUFFICIENT_CREDIT":
				t.unpaid++
			default:
				t.other++
			}
		}
	}
	t.judge(&r, &a, "")
	if queued && t.taken > 0 {
		r.Billed = BilledYes
	}
	return r
}

// africasTalkingXML: it sends XML unless it is asked for JSON.
var africasTalkingXML = map[string]string{"statusCode": "SMSMessageData.Recipients[].statusCode",
	"messageId": "SMSMessageData.Recipients[].messageId", "cost": "SMSMessageData.Recipients[].cost"}

// readAfricasTalking reads the codes of the recipients: up to 102 taken, 405 no balance.
func readAfricasTalking(r Reading, a Answer) Reading {
	var t tally
	for path, v := range scalars(a.Body, africasTalkingXML) {
		switch string(path) {
		case "SMSMessageData.Recipients[].statusCode":
			switch v.text() {
			case "100", "101", "102":
				t.taken++
			case "405":
				t.unpaid++
			default:
				t.other++
			}
		case "SMSMessageData.Recipients[].messageId":
			if r.Ref == "" && !v.is("None") {
				r.Ref = id(v.text())
			}
		case "SMSMessageData.Recipients[].cost": // "KES 0.8000"
			_, amount, _ := strings.Cut(v.text(), " ")
			if n, ok := parseNumber(amount); ok && n != (number{}) {
				r.Billed = BilledYes
			}
		}
	}
	t.judge(&r, &a, "")
	return r
}

func readPhoneCom(r Reading, a Answer) Reading {
	c := &clock{h: a.Header, now: a.Now}
	var w Window
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "@error.@rateLimit.RateLimit-Limit":
			w.setLimit(v.text())
		case "@error.@rateLimit.RateLimit-Remaining":
			w.setRemaining(v.text())
		case "@error.@rateLimit.RateLimit-Reset":
			w.setReset(c, v.text(), EpochSeconds)
		case "@error.@rateLimit.Retry-After":
			r.hint(waitSeconds(v.text()))
		}
	}
	r.add(&w)
	return r
}

// readLINE tells the monthly quota of messages from the rate; both are 429.
func readLINE(r Reading, a Answer) Reading {
	if r.Throttled && strings.Contains(lowerASCII(find(a.Body, "message")), "monthly limit") {
		r.wall("monthly", "body")
	}
	return r
}

func readClickatell(r Reading, a Answer) Reading {
	var t tally
	for path, v := range leaves(a.Body) {
		if string(path) == "messages[].accepted" {
			if v.kind == 't' {
				t.taken++
			} else {
				t.other++
			}
		}
	}
	t.judge(&r, &a, "")
	return r
}

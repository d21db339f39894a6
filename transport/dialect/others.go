package dialect

import "strings"

// others are vendors of whom little is known but the unit of a header or the shape of a
// refusal.
var others = []vendor{
	{name: "RapidAPI", form: DeltaSeconds, naming: naming{prefix: "X-Ratelimit-"}, windows: []family{
		{name: "requests", limit: "X-Ratelimit-Requests-Limit", remaining: "X-Ratelimit-Requests-Remaining", reset: "X-Ratelimit-Requests-Reset"},
	}},
	{name: "Exact Online", also: []string{"exact"}, form: EpochMillis, limits: []int{503}, windows: []family{
		{name: "daily", limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset"},
		{name: "minutely", limit: "X-Ratelimit-Minutely-Limit", remaining: "X-Ratelimit-Minutely-Remaining", reset: "X-Ratelimit-Minutely-Reset"},
	}},
	// https://developer.prisjakt.nu/docs/sections/rate-limit
	{name: "Prisjakt", form: DeltaMillis, windows: xRateLimitAlt},
	// https://developer.lemlist.com/api-reference/getting-started/rate-limits: a JavaScript date
	{name: "lemlist", windows: xRateLimit},
	{name: "Akamai", windows: []family{{limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Next"}}, peek: refusals, body: readAkamai},
	{name: "Allo", peek: refusals, body: readAllo},
	// https://docs.withpersona.com/rate-limiting
	{name: "Persona", form: DeltaSeconds, windows: rateLimit},
	// https://developer.sine.co/api/api-rate-limiting.md
	{name: "Sine", form: DeltaSeconds, windows: xRateLimit},
	// X-Rate-Limit-Interval is the length of the window
	{name: "Crossref", windows: xRateLimitAlt},
	{name: "Oracle", refusal: oracleWaits},
	{name: "Unkey", peek: refusals | answers, body: readUnkey},
	// https://core.telegram.org/bots/api#responseparameters
	{name: "Telegram", peek: refusals, body: waitAt("parameters.retry_after")},
	{name: "Sendbird", peek: refusals, body: waitAt("retry_after")},
	{name: "Marketo", peek: answers, body: readMarketo},
	{name: "Toggl", form: DeltaSeconds, limits: []int{402}, windows: []family{{remaining: "X-Toggl-Quota-Remaining", reset: "X-Toggl-Quota-Resets-In"}}},
	{name: "CrowdStrike", form: EpochSeconds, windows: xRateLimit, hints: []hint{{"X-Ratelimit-Retryafter", EpochSeconds}}},
	{name: "Help Scout", windows: []family{{limit: "X-Ratelimit-Limit-Minute", remaining: "X-Ratelimit-Remaining-Minute"}},
		hints: []hint{{"X-Ratelimit-Retry-After", DeltaSeconds}}},
	{name: "Datadog", form: DeltaSeconds, windows: xRateLimit, nameIn: "X-Ratelimit-Name"},
	{name: "Perforce", form: DeltaSeconds, windows: xRateLimit},
	{name: "ShipStation", form: DeltaSeconds, windows: xRateLimitAlt},
	{name: "Teamtailor", form: DeltaSeconds, windows: xRateLimitAlt},
	{name: "Mangrove", form: EpochSeconds, windows: rateLimit},
	{name: "Pennylane", form: EpochSeconds, windows: rateLimit},
	{name: "Fathom", form: EpochSeconds, windows: rateLimit},
	{name: "RocketReach"}, // Retry-After is an instant
	{name: "StoreLeads"},
}

// readAkamai reads a refusal that tells its limit in the body.
func readAkamai(r Reading, a Answer) Reading {
	c := &clock{h: a.Header, now: a.Now}
	var w Window
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "rateLimit":
			w.setLimit(v.text())
		case "rateLimitRemaining":
			w.setRemaining(v.text())
		case "rateLimitNext":
			w.setReset(c, v.text(), Auto)
		}
	}
	r.add(&w)
	return r
}

// readAllo reads "limit=1000;type=DAILY;reset_in=3600" in the message of a detail.
func readAllo(r Reading, a Answer) Reading {
	c := &clock{h: a.Header, now: a.Now}
	var w Window
	for part := range strings.SplitSeq(find(a.Body, "details[].message"), ";") {
		switch k, v, _ := strings.Cut(trim(part), "="); k {
		case "limit":
			w.setLimit(v)
		case "remaining":
			w.setRemaining(v)
		case "reset_in":
			w.setReset(c, v, DeltaSeconds)
		case "type":
			w.Name = word(v)
		}
	}
	r.add(&w)
	return r
}

// oracleWaits reads the milliseconds of "RequestLimit-<name>-RetryAfter".
func oracleWaits(r Reading, a Answer) Reading {
	c := &clock{h: a.Header, now: a.Now}
	for key, lines := range a.Header {
		if strings.HasPrefix(key, "Requestlimit-") && strings.HasSuffix(key, "-Retryafter") {
			if d, ok := c.hint(lines, DeltaMillis); ok {
				r.RetryAfter, r.Hinted = max(r.RetryAfter, d), true
			}
		}
	}
	return r
}

func readUnkey(r Reading, a Answer) Reading {
	c := &clock{h: a.Header, now: a.Now}
	var w Window
	for path, v := range leaves(a.Body) {
		switch strings.TrimPrefix(string(path), "data.") {
		case "ratelimit.limit":
			w.setLimit(v.text())
		case "ratelimit.remaining":
			w.setRemaining(v.text())
		case "ratelimit.reset":
			w.setReset(c, v.text(), EpochMillis)
		}
	}
	r.add(&w)
	return r
}

// readMarketo reads the codes of a 200: 606 the rate, 607 the day (US Central), 615 calls
// at once.
func readMarketo(r Reading, a Answer) Reading {
	switch find(a.Body, "errors[].code") {
	case "606":
		r.throttle("body")
	case "607":
		r.quota("daily", "body")
	case "615":
		r.throttle("body")
		r.Policy = "concurrency"
	}
	return r
}

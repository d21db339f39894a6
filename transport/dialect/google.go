package dialect

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// google are the APIs of Google: the older map services with a status word in a 200,
// and those with google.rpc errors.
var google = []vendor{
	// https://developers.google.com/maps/documentation/geocoding/usage-and-billing; the day is Pacific
	{name: "Google Maps", also: []string{"googleplaces", "googlegeocoding", "googledirections", "googleroutes", "googledistancematrix", "maps"},
		peek: refusals | answers, body: readGoogle},
	{name: "Google APIs", also: []string{"google", "gmail", "gmailgoogleapis", "youtube"}, peek: refusals, body: readGoogle},
	// https://ai.google.dev/gemini-api/docs/billing
	{name: "Gemini", also: []string{"geminiapi", "googlegemini", "googleai"}, peek: refusals | answers, body: readGoogle, billed: billedGemini},
	// https://cloud.google.com/vertex-ai/generative-ai/pricing
	{name: "Vertex AI", also: []string{"vertex", "googlevertexai"}, peek: refusals, body: readGoogle, billed: only200},
}

// billedGemini: tokens of a 400 or 500 are free, though the request counts against the
// quota.
func billedGemini(status int) Billed {
	if status == http.StatusBadRequest || status == http.StatusInternalServerError {
		return BilledNo
	}
	return BilledUnknown
}

// googleBody is what a body of Google says.
type googleBody struct {
	status, message   string // of the map services
	code, text        string // of google.rpc
	reason, domain    string
	delay             string
	quota, quotaValue string
	// limit, limitValue are the same of google.rpc.ErrorInfo.
	limit, limitValue       string
	elements, usage, perDay bool
}

func scanGoogle(body []byte) (g googleBody) {
	keep := func(s *string, v leaf) {
		if *s == "" {
			*s = v.text()
		}
	}
	for path, v := range scalars(body, googleXML) {
		switch string(path) {
		case "status":
			keep(&g.status, v)
		case "error_message":
			keep(&g.message, v)
		case "error.status":
			keep(&g.code, v)
		case "error.message":
			keep(&g.text, v)
		case "error.errors[].domain":
			keep(&g.domain, v)
		case "error.errors[].reason":
			keep(&g.reason, v)
		case "error.details[].retryDelay":
			keep(&g.delay, v)
		case "error.details[].violations[].quotaId":
			g.perDay = g.perDay || strings.Contains(v.text(), "PerDay")
			keep(&g.quota, v)
		case "error.details[].violations[].quotaValue":
			keep(&g.quotaValue, v)
		case "error.details[].metadata.quota_limit":
			keep(&g.limit, v)
		case "error.details[].metadata.quota_limit_value":
			keep(&g.limitValue, v)
		case "rows[].elements[].status":
			g.elements = true
		case "usageMetadata.totalTokenCount", "usageMetadata.promptTokenCount":
			g.usage = true
		}
	}
	if g.quota == "" {
		g.quota, g.quotaValue = g.limit, g.limitValue
		g.perDay = strings.Contains(g.limit, "PerDay")
	}
	g.reason = strings.TrimSuffix(g.reason, "Unreg") // of those without a key
	g.elements = g.elements || isXML(body) && bytes.Contains(body, []byte("<element>"))
	return g
}

// googleXML is what the map services write for JSON's; the first status is that of the
// answer.
var googleXML = map[string]string{"status": "status", "error_message": "error_message"}

func readGoogle(r Reading, a Answer) Reading {
	g := scanGoogle(a.Body)
	if a.Status < 400 {
		return g.answer(r)
	}
	if r.Wall { // 402: the prepaid credit is gone, although the status word is that of a rate
		return r
	}
	switch {
	case g.reason == "dailyLimitExceeded":
		r.quota("daily", "body")
	case g.reason == "quotaExceeded" && g.domain == "youtube.quota": // its units of the day
		r.quota("daily", "body")
	case g.reason == "quotaExceeded" && period(g.text) != "": // others may be of one object
		r.quota(period(g.text), "body")
	case g.code == "RESOURCE_EXHAUSTED", g.reason == "rateLimitExceeded", g.reason == "userRateLimitExceeded":
		r.throttle("body")
	case a.Status == http.StatusServiceUnavailable && g.code == "UNAVAILABLE": // overloaded
		r.throttle("body")
	}
	if !r.Throttled {
		return r
	}
	c := &clock{h: a.Header, now: a.Now}
	r.hint(c.wait(g.delay, DeltaSeconds))
	r.hint(c.waitIn(g.text, time.Second, "retry in", "retry after"))
	if strings.HasPrefix(lowerASCII(g.text), "user-rate limit") || g.reason == "userRateLimitExceeded" {
		r.Policy = "user"
	}
	if g.quota != "" {
		r.Policy = word(g.quota)
		w := Window{}
		w.setLimit(g.quotaValue)
		r.add(&w)
		r.Wall = g.perDay && !r.Hinted // with a delay it is not the day that is used up
	}
	return r
}

// answer reads a good answer: a map service's status word, or what was billed.
func (g *googleBody) answer(r Reading) Reading {
	switch {
	case g.status == "OVER_QUERY_LIMIT":
		r.throttle("body")
		if period(g.message) == "daily" {
			r.quota("daily", "body")
		}
	case g.status == "OVER_DAILY_LIMIT": // also a bad key, a dead card or a cap of one's own
		r.wall("daily", "body")
	case g.elements && g.status == "OK", g.usage:
		r.Billed = BilledYes
	}
	return r
}

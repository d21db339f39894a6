package dialect

import (
	"net/http"
	"strings"
	"time"
)

// saas are payments, shops, code, chat and business software.
var saas = []vendor{
	// https://docs.stripe.com/rate-limits
	{name: "Stripe", peek: refusals, refusal: stripeReason, body: readStripe},
	// https://shopify.dev/docs/api/admin-rest/usage/rate-limits
	{name: "Shopify REST", headers: shopifyCalls},
	{name: "Shopify", also: []string{"shopifygraphql"}, peek: refusals | answers, headers: shopifyCalls, body: readShopify},
	// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
	{name: "GitHub", form: EpochSeconds, windows: xRateLimit, peek: refusals | answers, when: isGraphQL, nameIn: "X-Ratelimit-Resource",
		refusal: gitHubRefusal, body: readGitHub, keeps: true},
	// https://docs.slack.dev/apis/web-api/rate-limits; per method, workspace and app
	{name: "Slack", peek: answers, body: readSlack},
	// https://discord.com/developers/docs/topics/rate-limits
	{name: "Discord", form: DeltaSeconds, windows: []family{{limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset-After"}},
		peek: refusals, nameIn: "X-Ratelimit-Bucket", refusal: discordScope, body: readDiscord},
	// https://docs.x.com/fundamentals/rate-limits; 420 is of old
	{name: "X", also: []string{"twitter", "xtwitter"}, form: EpochSeconds, limits: []int{420}, peek: refusals, body: readX, windows: []family{
		families[2],
		{name: "app-24hour", limit: "X-App-Limit-24hour-Limit", remaining: "X-App-Limit-24hour-Remaining", reset: "X-App-Limit-24hour-Reset"},
		{name: "user-24hour", limit: "X-User-Limit-24hour-Limit", remaining: "X-User-Limit-24hour-Remaining", reset: "X-User-Limit-24hour-Reset"},
	}},
	// https://developers.hubspot.com/docs/guides/apps/api-usage/usage-details; the day is the account's
	{name: "HubSpot", peek: refusals, body: readHubSpot, windows: []family{
		{name: "daily", limit: "X-Hubspot-Ratelimit-Daily", remaining: "X-Hubspot-Ratelimit-Daily-Remaining"},
		{name: "interval", limit: "X-Hubspot-Ratelimit-Max", remaining: "X-Hubspot-Ratelimit-Remaining"},
		{name: "secondly", limit: "X-Hubspot-Ratelimit-Secondly", remaining: "X-Hubspot-Ratelimit-Secondly-Remaining"},
	}},
	{name: "Salesforce", peek: refusals, headers: salesforceUsage, body: readSalesforce, keeps: true},
	// https://developer.atlassian.com/cloud/jira/platform/rate-limiting/
	{name: "Jira Cloud", also: []string{"jira", "atlassian"}, windows: xRateLimit, refusal: jiraReason},
	// https://developer.zendesk.com/api-reference/introduction/rate-limits/
	{name: "Zendesk", form: DeltaSeconds, headers: zendeskEndpoints, windows: []family{
		{name: "account", limit: "X-Rate-Limit", remaining: "X-Rate-Limit-Remaining", reset: "Ratelimit-Reset"},
		{name: "account", limit: "Ratelimit-Limit", remaining: "Ratelimit-Remaining", reset: "Ratelimit-Reset"},
	}},
	// https://developer.okta.com/docs/reference/rl-best-practices/: its Date is more reliable than any clock
	{name: "Okta", form: EpochSeconds, windows: xRateLimitAlt},
	// https://developers.notion.com/reference/request-limits; 529 is overload
	{name: "Notion", limits: []int{529}, peek: refusals, body: policyAt("additional_data.rate_limit_reason")},
	{name: "Reddit", form: DeltaSeconds, windows: []family{{remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset"}}},
	// https://developer.monday.com/api-reference/docs/rate-limits
	{name: "monday.com", also: []string{"monday"}, peek: refusals | answers, body: readMonday},
	{name: "Linear", form: EpochMillis, peek: refusals, refusal: linearRefusal, body: readLinear, naming: naming{prefix: "X-Ratelimit-"}, windows: []family{
		{name: "requests", limit: "X-Ratelimit-Requests-Limit", remaining: "X-Ratelimit-Requests-Remaining", reset: "X-Ratelimit-Requests-Reset"},
		{name: "complexity", limit: "X-Ratelimit-Complexity-Limit", remaining: "X-Ratelimit-Complexity-Remaining", reset: "X-Ratelimit-Complexity-Reset", unit: "points"},
	}},
}

func stripeReason(r Reading, a Answer) Reading {
	reason := word(first(a.Header, "Stripe-Rate-Limited-Reason"))
	if !r.Throttled || reason == "" {
		return r
	}
	r.Policy = reason
	switch {
	case strings.HasPrefix(reason, "global-"):
		r.Scope = Whole
	case strings.HasPrefix(reason, "endpoint-"):
		r.Scope = "endpoint"
	case reason == "resource-specific":
		r.Scope = "object"
	}
	return r
}

// readStripe reads the code. A lock_timeout is a 429 of one object that is busy.
func readStripe(r Reading, a Answer) Reading {
	switch code := find(a.Body, "error.code"); {
	case a.Status == http.StatusPaymentRequired: // a customer's card was declined; no money of ours
		r.Wall, r.Policy, r.Scope, r.Source = false, "", "", ""
	case code == "rate_limit":
		r.throttle("body")
	case code == "lock_timeout" && r.Throttled:
		r.Policy, r.Scope = code, "object"
	}
	return r
}

// shopifyCalls reads the pair of used and limit.
func shopifyCalls(r Reading, a Answer) Reading {
	var w Window
	if used, limit, ok := strings.Cut(first(a.Header, "X-Shopify-Shop-Api-Call-Limit"), "/"); ok {
		w.setUsed(used, limit)
		r.add(&w)
	}
	return r
}

// readShopify reads the points of GraphQL. The wait until a refused query fits is
// (cost - available) / restore rate.
func readShopify(r Reading, a Answer) Reading {
	w := Window{Unit: "points"}
	var cost, rate int64
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "errors[].extensions.code":
			if v.is("THROTTLED") {
				r.throttle("body")
			}
		case "extensions.cost.requestedQueryCost":
			cost, _ = parseCount(v.text())
		case "extensions.cost.throttleStatus.maximumAvailable":
			w.setLimit(v.text())
		case "extensions.cost.throttleStatus.currentlyAvailable":
			w.setRemaining(v.text())
		case "extensions.cost.throttleStatus.restoreRate":
			rate, _ = parseCount(v.text())
		}
	}
	r.add(&w)
	missing := cost - w.Remaining
	if r.Throttled && w.Known&HasRemaining != 0 && missing > 0 && rate > 0 && missing < int64(longest/time.Second) {
		r.hint(time.Duration((missing*int64(time.Second)+rate-1)/rate), true)
	}
	return r
}

// gitHubRefusal tells a limit that is used up, and a secondary one, from a permission
// that lacks: all are 403.
func gitHubRefusal(r Reading, a Answer) Reading {
	switch {
	case a.Status == http.StatusUnauthorized: // counts for the address, not for the account
		r.Window = Window{}
	case a.Status == http.StatusForbidden && (r.Window.Exhausted() || r.RetryAfter > 0):
		r.throttle("headers")
	}
	return r
}

// isGraphQL: GitHub refuses a query of GraphQL with a 200.
func isGraphQL(h http.Header) bool { return first(h, "X-Ratelimit-Resource") == "graphql" }

func readGitHub(r Reading, a Answer) Reading {
	secondary := false
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "errors[].type":
			if a.Status < 300 && (v.is("RATE_LIMITED") || v.is("RATE_LIMIT")) {
				r.throttle("body")
			}
		case "message", "errors[].message":
			message := lowerASCII(v.text())
			secondary = secondary || strings.HasPrefix(message, "you have exceeded a secondary rate limit") || strings.HasPrefix(message, "you have triggered an abuse detection")
		case "documentation_url":
			secondary = secondary || v.endsIn("secondary-rate-limits") || v.endsIn("#abuse-rate-limits")
		}
	}
	if secondary && (a.Status < 300 || a.Status == http.StatusForbidden || a.Status == http.StatusTooManyRequests) {
		r.throttle("body")
		r.Policy, r.Scope = "secondary", Whole
		if !r.Window.Exhausted() {
			r.hint(time.Minute, true) // its documentation: at least one minute
		}
	}
	return r
}

func readSlack(r Reading, a Answer) Reading {
	if e := find(a.Body, "error"); e == "ratelimited" || e == "rate_limited" {
		r.throttle("body")
	}
	return r
}

// discordScope reads whom the limit concerns: one route, or the whole bot.
func discordScope(r Reading, a Answer) Reading {
	if !r.Throttled {
		return r
	}
	r.Policy, r.Scope = word(first(a.Header, "X-Ratelimit-Scope")), "route"
	if r.Policy == "global" || first(a.Header, "X-Ratelimit-Global") == "true" {
		r.Policy, r.Scope = "global", Whole
	}
	return r
}

// readDiscord takes the longer of the hints in header and body.
func readDiscord(r Reading, a Answer) Reading {
	if !r.Throttled {
		return r
	}
	if isXML(a.Body) { // a ban by Cloudflare, of the address
		r.Scope = Whole
	}
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "retry_after":
			if d, ok := waitSeconds(v.text()); ok {
				r.RetryAfter, r.Hinted = max(r.RetryAfter, d), true
			}
		case "global":
			if v.kind == 't' {
				r.Policy, r.Scope = "global", Whole
			}
		}
	}
	return r
}

func readX(r Reading, a Answer) Reading {
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "errors[].code":
			if v.text() == "88" {
				r.throttle("body")
			}
		case "type":
			if v.endsIn("usage-capped") {
				r.quota("usage-capped", "body")
			}
		}
	}
	return r
}

func readHubSpot(r Reading, a Answer) Reading {
	policy := word(find(a.Body, "policyName"))
	if !r.Throttled || policy == "" {
		return r
	}
	r.Policy = policy
	r.Wall = policy == "DAILY"
	return r
}

// salesforceUsage reads "api-usage=25/5000; per-app-api-usage=17/250(appName=x)": used
// and limit of a rolling day.
func salesforceUsage(r Reading, a Answer) Reading {
	info := first(a.Header, "Sforce-Limit-Info")
	if info == "" {
		return r
	}
	for part := range strings.SplitSeq(info, ";") {
		name, pair, _ := strings.Cut(trim(part), "=")
		used, limit, _ := strings.Cut(pair, "/")
		limit, _, _ = strings.Cut(limit, "(")
		w := Window{Name: word(name)}
		w.setUsed(used, limit)
		r.add(&w)
	}
	return r
}

// readSalesforce reads REST's array of errors and SOAP's fault (status 500): "Concurrent…
// Limit exceeded" ends with the long calls, "TotalRequests Limit exceeded" with the day.
func readSalesforce(r Reading, a Answer) Reading {
	const code = "REQUEST_LIMIT_EXCEEDED"
	text, found := element(a.Body, "faultstring"), false
	text, found = strings.CutPrefix(text, code+": ")
	found = found || element(a.Body, "errorCode") == code || strings.HasSuffix(element(a.Body, "faultcode"), code)
	if text == "" {
		text = element(a.Body, "message")
	}
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "errorCode":
			found = found || v.is(code)
		case "message":
			text = v.text()
		}
	}
	if !found {
		return r
	}
	r.throttle("body")
	name, _, _ := strings.Cut(text, " ")
	if strings.HasSuffix(name, "Requests") {
		r.Policy = word(name)
		r.Wall = name == "TotalRequests"
	}
	return r
}

func jiraReason(r Reading, a Answer) Reading {
	reason := word(first(a.Header, "Ratelimit-Reason"))
	if !r.Throttled || reason == "" {
		return r
	}
	r.Policy = reason
	switch {
	case strings.Contains(reason, "burst"):
		r.Scope = "endpoint"
	case strings.Contains(reason, "per-issue"):
		r.Scope = "object"
	default:
		r.Scope = Whole
	}
	return r
}

// zendeskEndpoints reads the limits of endpoints, which have the name in the header's
// name: "Zendesk-RateLimit-Tickets-Index: total=100; remaining=99; resets=41".
func zendeskEndpoints(r Reading, a Answer) Reading {
	const prefix = "Zendesk-Ratelimit-"
	if r.Window.Known == 0 && a.Status < 400 {
		return r
	}
	c := &clock{h: a.Header, now: a.Now}
	for key, lines := range a.Header {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok || len(lines) == 0 {
			continue
		}
		w := Window{Name: word(lowerASCII(name)), Endpoint: true}
		for part := range strings.SplitSeq(lines[0], ";") {
			switch k, v, _ := strings.Cut(trim(part), "="); k {
			case "total":
				w.setLimit(v)
			case "remaining":
				w.setRemaining(v)
			case "resets":
				w.setReset(c, v, DeltaSeconds)
			}
		}
		r.add(&w)
		if r.Throttled && w.Exhausted() {
			r.Scope = "endpoint"
		}
	}
	return r
}

// readMonday reads the error of GraphQL that says when to come back.
func readMonday(r Reading, a Answer) Reading {
	code := ""
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "errors[].extensions.code":
			code = word(v.text())
		case "errors[].extensions.retry_in_seconds":
			r.throttle("body")
			r.hint(waitSeconds(v.text()))
		}
	}
	if r.Throttled {
		r.Policy = code
	}
	return r
}

func linearRefusal(r Reading, a Answer) Reading {
	if a.Status == http.StatusBadRequest && r.exhausted() {
		r.throttle("headers")
	}
	return r
}

// readLinear: a limit is a 400.
func readLinear(r Reading, a Answer) Reading {
	for path, v := range leaves(a.Body) {
		if string(path) == "errors[].extensions.code" && v.is("RATELIMITED") {
			r.throttle("body")
		}
	}
	return r
}

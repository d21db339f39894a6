package dialect

import (
	"net/http"
	"strings"
	"time"
)

// llm are the vendors of language models. A good answer that counts its tokens is
// billed.
var llm = []vendor{
	// https://platform.openai.com/docs/guides/rate-limits: a reset is the time until the bucket is full
	{name: "OpenAI", form: DeltaSeconds, windows: silent, peek: refusals | answers, ref: "id", headers: openAIWindows, body: readOpenAI},
	// https://docs.anthropic.com/en/api/rate-limits; 529 is overload
	{name: "Anthropic", also: []string{"claude"}, form: DeltaSeconds, windows: silent, limits: []int{529}, peek: refusals | answers, ref: "id",
		headers: anthropicWindows, body: readAnthropic},
	// https://learn.microsoft.com/azure/ai-foundry/openai/faq
	{name: "Azure OpenAI", also: []string{"azureapimanagement"}, form: DeltaSeconds, windows: silent, peek: refusals | answers, ref: "id",
		headers: openAIWindows, body: readAzure, billed: billedAzure},
	{name: "Mistral", also: []string{"mistralai"}, form: DeltaSeconds, windows: silent, peek: answers, ref: "id", headers: mistralWindows, body: readUsage},
	// DeepLcom/deepl-python translator.py: 456 is the quota of the billing period
	{name: "DeepL", windows: silent, limits: []int{456}, headers: readDeepL},
}

// readUsage takes a good answer that counts tokens as billed.
func readUsage(r Reading, a Answer) Reading {
	if a.Status >= 300 {
		return r
	}
	for path, v := range leaves(a.Body) {
		if strings.HasPrefix(string(path), "usage.") && v.kind == 'n' {
			r.Billed = BilledYes
			return r
		}
	}
	return r
}

func openAIWindows(r Reading, a Answer) Reading {
	if a.Status >= 400 || has(a.Header, "X-Ratelimit-Limit-Requests", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Remaining-Tokens") {
		r.named(&clock{h: a.Header, now: a.Now}, "X-Ratelimit-", true, DeltaSeconds)
	}
	return r
}

func readOpenAI(r Reading, a Answer) Reading {
	if a.Status < 400 {
		return readUsage(r, a)
	}
	var code, kind, message string
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "error.code":
			code = v.text()
		case "error.type":
			kind = v.text()
		case "error.message":
			message = v.text()
		}
	}
	switch {
	case code == "insufficient_quota", kind == "insufficient_quota", code == "billing_hard_limit_reached", code == "billing_not_active":
		r.wall("balance", "body")
		return r
	case code == "resource_unavailable" && r.Throttled: // Flex processing
		r.Billed = BilledNo
	case a.Status == http.StatusServiceUnavailable && (kind != "" || message != ""): // overloaded
		r.throttle("body")
	}
	if r.Throttled {
		c := &clock{h: a.Header, now: a.Now}
		r.hint(c.waitIn(message, time.Second, "try again in", "retry after"))
	}
	return r
}

func anthropicWindows(r Reading, a Answer) Reading {
	if a.Status >= 400 || has(a.Header, "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining",
		"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Limit") {
		r.named(&clock{h: a.Header, now: a.Now}, "Anthropic-Ratelimit-", false, DeltaSeconds)
	}
	return r
}

// readAnthropic tells a spend cap from a rate: it is a 429 as well, of the same type,
// but without retry-after. An empty balance is a 400.
func readAnthropic(r Reading, a Answer) Reading {
	if a.Status < 400 {
		return readUsage(r, a)
	}
	var kind, message string
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "error.type":
			kind = v.text()
		case "error.message":
			message = lowerASCII(v.text())
		}
	}
	switch {
	case kind == "billing_error", strings.Contains(message, "credit balance is too low"):
		r.wall("balance", "body")
	case a.Status == http.StatusTooManyRequests && !r.Hinted && r.Window.Known == 0 && strings.Contains(message, "spend"):
		r.wall("balance", "body")
	case kind == "overloaded_error", kind == "rate_limit_error":
		r.throttle("body")
	}
	return r
}

// billedAzure: what was processed is charged, also if it timed out.
func billedAzure(status int) Billed {
	switch status {
	case http.StatusOK, http.StatusRequestTimeout:
		return BilledYes
	case http.StatusUnauthorized, http.StatusTooManyRequests:
		return BilledNo
	default:
		return BilledUnknown
	}
}

func readAzure(r Reading, a Answer) Reading {
	if a.Status < 400 {
		return r
	}
	c := &clock{h: a.Header, now: a.Now}
	for path, v := range leaves(a.Body) {
		switch string(path) {
		case "error.code":
			if v.is("content_filter") { // the prompt was processed
				r.Billed = BilledYes
			}
			if v.is("insufficient_quota") {
				r.wall("balance", "body")
			}
		case "error.message", "message":
			message := v.text()
			if a.Status == http.StatusForbidden && strings.Contains(lowerASCII(message), "quota") {
				r.throttle("body") // API Management
			}
			if r.Throttled {
				r.hint(c.waitIn(message, time.Second, "retry after", "try again in", "replenished in"))
			}
		}
	}
	return r
}

// mistralWindows reads the limits of a minute. A limit of 0 says that the model is not
// part of the plan, which time does not change.
func mistralWindows(r Reading, a Answer) Reading {
	if a.Status < 400 && !has(a.Header, "X-Ratelimit-Limit-Req-Minute", "X-Ratelimit-Remaining-Req-Minute", "X-Ratelimit-Limit-Tokens-Minute", "X-Ratelimit-Remaining-Tokens-Minute") {
		return r
	}
	r.named(&clock{h: a.Header, now: a.Now}, "X-Ratelimit-", true, DeltaSeconds)
	if r.Throttled && r.Window.Known&HasLimit != 0 && r.Window.Limit == 0 {
		r.wall("plan", "headers")
	}
	return r
}

func readDeepL(r Reading, a Answer) Reading {
	if a.Status == 456 {
		r.quota("billing-period", "status")
	}
	return r
}

package dialect

import (
	"net/http"
	"strings"
	"time"
)

// llm are the vendors of language models. A good answer that counts its tokens is
// billed.
var llm = []vendor{
	// https://platform.openai.com/docs/guides/rate-limits: a reset is the time until the bucket is full;
	// https://console.groq.com/docs/rate-limits has the same headers
	{name: "OpenAI", also: []string{"groq"}, form: DeltaSeconds, windows: openAIWindows, naming: openAINaming, peek: refusals | answers, ref: "id", body: readOpenAI},
	// https://docs.anthropic.com/en/api/rate-limits; 529 is overload
	{name: "Anthropic", also: []string{"claude"}, form: DeltaSeconds, limits: []int{529}, peek: refusals | answers, ref: "id",
		windows: anthropicWindows, naming: naming{prefix: "Anthropic-Ratelimit-"}, body: readAnthropic},
	// https://learn.microsoft.com/azure/ai-foundry/openai/faq
	{name: "Azure OpenAI", also: []string{"azureapimanagement", "microsoftazureopenai"}, form: DeltaSeconds, peek: refusals | answers, ref: "id",
		windows: openAIWindows, naming: openAINaming, body: readAzure, billed: billedAzure},
	{name: "Mistral", also: []string{"mistralai"}, form: DeltaSeconds, peek: answers, ref: "id", refusal: mistralPlan, body: readUsage, naming: openAINaming, windows: []family{
		{name: "req-minute", limit: "X-Ratelimit-Limit-Req-Minute", remaining: "X-Ratelimit-Remaining-Req-Minute"},
		{name: "tokens-minute", limit: "X-Ratelimit-Limit-Tokens-Minute", remaining: "X-Ratelimit-Remaining-Tokens-Minute", unit: "tokens"},
	}},
	// DeepLcom/deepl-python translator.py: 456 is the quota of the billing period
	{name: "DeepL", limits: []int{456}, refusal: readDeepL},
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

// openAIWindows are the limits of a model; others have other names, of the same make.
var (
	openAIWindows = []family{
		{name: "requests", limit: "X-Ratelimit-Limit-Requests", remaining: "X-Ratelimit-Remaining-Requests", reset: "X-Ratelimit-Reset-Requests"},
		{name: "tokens", limit: "X-Ratelimit-Limit-Tokens", remaining: "X-Ratelimit-Remaining-Tokens", reset: "X-Ratelimit-Reset-Tokens", unit: "tokens"},
	}
	openAINaming = naming{prefix: "X-Ratelimit-", last: true}
)

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
	if r.Throttled && strings.HasPrefix(message, "Request too large") { // for the whole limit
		r.wall(word(kind), "body")
	}
	if r.Throttled {
		c := &clock{h: a.Header, now: a.Now}
		r.hint(c.waitIn(message, time.Second, "try again in", "retry after"))
	}
	return r
}

var anthropicWindows = []family{
	{name: "requests", limit: "Anthropic-Ratelimit-Requests-Limit", remaining: "Anthropic-Ratelimit-Requests-Remaining", reset: "Anthropic-Ratelimit-Requests-Reset"},
	{name: "tokens", limit: "Anthropic-Ratelimit-Tokens-Limit", remaining: "Anthropic-Ratelimit-Tokens-Remaining", reset: "Anthropic-Ratelimit-Tokens-Reset", unit: "tokens"},
	{name: "input-tokens", limit: "Anthropic-Ratelimit-Input-Tokens-Limit", remaining: "Anthropic-Ratelimit-Input-Tokens-Remaining", reset: "Anthropic-Ratelimit-Input-Tokens-Reset", unit: "tokens"},
	{name: "output-tokens", limit: "Anthropic-Ratelimit-Output-Tokens-Limit", remaining: "Anthropic-Ratelimit-Output-Tokens-Remaining", reset: "Anthropic-Ratelimit-Output-Tokens-Reset", unit: "tokens"},
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
	case kind == "billing_error", strings.Contains(message, "credit balance is too low"),
		strings.Contains(message, "reached your specified api usage limits"):
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

// mistralPlan: a limit of 0 says that the model is not part of the plan, which time does
// not change.
func mistralPlan(r Reading, a Answer) Reading {
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

package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// OpenAI is OpenAI's API, its regions included, at the prices of your models:
//
//	provider.OpenAI(price.Tokens{Models: map[string]price.Model{
//		"gpt-4o-mini": {Input: budget.MustParse("0.15"), Output: budget.MustParse("0.60"), Context: 128_000},
//	}})
//
// Chats, responses, completions and embeddings cost their tokens: what a request may cost
// at the most is held, and the usage in the answer is what counts. A stream of a chat
// tells its usage only with stream_options.include_usage, else its cost stays presumed.
// Reading, files, moderation and cancelling are free. Images, sound, video, batches and
// fine-tuning have no price here. A regional host costs 10 % more for models since
// 2026-03-05 (developers.openai.com, data residency, read 2026-11): give those prices if
// you use one.
//
// Limits are those of the model and the tier of the account, and its headers tell them:
// requests cap the turns of a model's scope, tokens close its gate when they are used up.
// A rate of the scope "model" counts requests; one of tokens goes into a scope of its own,
// with Units. An empty balance (insufficient_quota) is never repeated. There is no
// idempotency key.
//
// openai-go repeats transport errors, also refusals, twice: give it
// option.WithMaxRetries(0) and let outlay repeat.
func OpenAI(tokens price.Tokens) transport.Provider {
	return transport.Provider{
		Name:    "openai",
		Match:   []string{"api.openai.com", "*.api.openai.com"},
		Scopes:  []transport.Scope{{Name: "model", Key: Field("model")}},
		Dialect: dialect.For("openai"),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v1/chat/completions", tokens},
			{http.MethodPost, "/v1/responses", tokens},
			{http.MethodPost, "/v1/completions", tokens},
			{http.MethodPost, "/v1/embeddings", tokens},
			{http.MethodPost, "/v1/moderations", price.Free},
			{http.MethodPost, "/v1/files", price.Free},
			{http.MethodPost, "/v1/responses/*/cancel", price.Free},
			{http.MethodPost, "/v1/responses/input_tokens", price.Free},
			{"", "/v1/organization/", price.Free},
		}},
	}
}

// OpenAIRefusal makes OpenAI's error response of a refusal. Mistral and Azure have the
// same shape.
func OpenAIRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return openAIShape.refuse(r)
}

var openAIShape = shape{members: func(f said) []member {
	kind := f.pick("rate_limit_error", "insufficient_quota", "overloaded_error")
	return []member{{"error", fields{"message": f.text, "type": kind, "code": f.reason, "param": nil}}}
}}

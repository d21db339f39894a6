package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Anthropic is Anthropic's API at the prices of your models:
//
//	provider.Anthropic(price.Tokens{Models: map[string]price.Model{
//		"claude-sonnet-4-5": {Input: budget.MustParse("3"), Output: budget.MustParse("15"), Context: 200_000},
//	}})
//
// Messages cost their tokens: what a request may cost at the most is held, and the usage in
// the answer, or in its stream, is what counts. Counting tokens and reading are free.
// Batches and the old completions have no price here.
//
// Limits are those of the model's class and the tier of the account, and its headers tell
// them: requests cap the turns of a model's scope, tokens close its gate when they are used
// up. A rate of the scope "model" counts requests; one of tokens goes into a scope of its
// own, with Units. A 529 says that the service is overloaded
// (docs.anthropic.com/en/api/errors, read 2026-11) and is repeated like a 429. A spend cap
// is a 429 without retry-after, and is not. There is no idempotency key.
//
// anthropic-sdk-go repeats transport errors, also refusals, twice: give it
// option.WithMaxRetries(0) and let outlay repeat.
func Anthropic(tokens price.Tokens) transport.Provider {
	return transport.Provider{
		Name:    "anthropic",
		Match:   []string{"api.anthropic.com"},
		Scopes:  []transport.Scope{{Name: "model", Key: Field("model")}},
		Dialect: dialect.For("anthropic"),
		Retry:   transport.Retry{NotTaken: []int{529}},
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v1/messages", tokens},
			{http.MethodPost, "/v1/messages/count_tokens", price.Free},
			{http.MethodPost, "/v1/files", price.Free},
		}},
	}
}

// AnthropicRefusal makes Anthropic's error response of a refusal.
func AnthropicRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return anthropicShape.refuse(r)
}

var anthropicShape = shape{members: func(f said) []member {
	kind := f.pick("rate_limit_error", "billing_error", "overloaded_error")
	return []member{{"type", "error"}, {"error", fields{"type": kind, "message": f.text}}}
}}

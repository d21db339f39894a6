package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Gemini is Google's Gemini API, its own shape and that of OpenAI, at the prices of your
// models:
//
//	provider.Gemini(price.Tokens{Models: map[string]price.Model{
//		"gemini-2.5-flash": {Input: budget.MustParse("0.30"), Output: budget.MustParse("2.50"), Context: 1_048_576},
//	}})
//
// Generating costs tokens: what a request may cost at the most is held, and the
// usageMetadata of the answer, or of its stream, is what counts. Embeddings tell no usage,
// and stay presumed. Counting tokens, files and reading are free. Caches, batches, images
// and video have no price here. A 400 or 500 is not billed, though it counts against the
// quota (ai.google.dev/gemini-api/docs/billing, read 2026-11).
//
// Limits are those of the model and the tier of the project: the scope "model". A rate of
// it counts requests; one of tokens goes into a scope of its own, with Units. A quota of a
// day ends at midnight Pacific. There is no idempotency key.
func Gemini(tokens price.Tokens) transport.Provider {
	named := Field("model")
	return transport.Provider{
		Name:  "gemini",
		Match: []string{"generativelanguage.googleapis.com"},
		Scopes: []transport.Scope{{Name: "model", Key: func(r *http.Request) string {
			_, name, ok := strings.Cut(r.URL.Path, "/models/")
			if !ok {
				return named(r)
			}
			name, _, _ = strings.Cut(name, ":")
			return name
		}}},
		Dialect:   dialect.For("gemini"),
		QuotaZone: pacific(),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/v1*/models/*:generateContent", tokens},
			{http.MethodPost, "/v1*/models/*:streamGenerateContent", tokens},
			{http.MethodPost, "/v1*/models/*:embedContent", tokens},
			{http.MethodPost, "/v1*/models/*:batchEmbedContents", tokens},
			{http.MethodPost, "/v1*/models/*:countTokens", price.Free},
			{http.MethodPost, "/v1*/openai/chat/completions", tokens},
			{http.MethodPost, "/v1*/openai/embeddings", tokens},
			{http.MethodPost, "/upload/", price.Free},
		}},
	}
}

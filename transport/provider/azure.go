package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// AzureOpenAI is Azure OpenAI at the prices of your deployments: the names in
// price.Tokens.Models are those of deployments, or of models where a request or an answer
// names one.
//
// Chats, responses, completions and embeddings cost their tokens; reading is free; images,
// sound and batches have no price here. Azure charges answers 200, also a 400 of its
// content filter and a 408, not a 401 or a 429 (learn.microsoft.com, Azure OpenAI FAQ, read
// 2026-11).
//
// Limits hold for each deployment of each resource, which is the scope "deployment", and
// are judged over seconds. A rate of it counts requests; one of tokens goes into a scope of
// its own, with Units. There is no idempotency key.
//
// openai-go repeats transport errors, also refusals, twice: give it
// option.WithMaxRetries(0).
func AzureOpenAI(tokens price.Tokens) transport.Provider {
	model := Field("model")
	return transport.Provider{
		Name:  "azure-openai",
		Match: []string{"*.openai.azure.com", "*.cognitiveservices.azure.com/openai/", "*.services.ai.azure.com/openai/"},
		Scopes: []transport.Scope{{Name: "deployment", Key: func(r *http.Request) string {
			_, name, ok := strings.Cut(r.URL.Path, "/deployments/")
			if !ok {
				name = model(r)
			}
			name, _, _ = strings.Cut(name, "/")
			return host(r) + "/" + name
		}}},
		Dialect: dialect.For("azure-openai"),
		Price: rules{reads: true, list: []rule{
			{http.MethodPost, "/openai/deployments/*/chat/completions", tokens},
			{http.MethodPost, "/openai/deployments/*/completions", tokens},
			{http.MethodPost, "/openai/deployments/*/embeddings", tokens},
			{http.MethodPost, "/openai/responses", tokens},
			{http.MethodPost, "/openai/v1/chat/completions", tokens},
			{http.MethodPost, "/openai/v1/responses", tokens},
			{http.MethodPost, "/openai/v1/embeddings", tokens},
		}},
	}
}

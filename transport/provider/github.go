package provider

import (
	"net/http"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// GitHub is GitHub's API for one user. It costs nothing.
//
// The default rate is 5,000 requests an hour to what is not searched; its headers tell the
// limits of the scope "resource": core, search, code_search, graphql
// (docs.github.com, rate limits for the REST API, read 2026-11). An Enterprise app may make
// 15,000, GITHUB_TOKEN 1,000 for each repository, and nobody's address 60: set the Rates
// of the scope. The secondary limit, which no header tells, stops everything for a minute at
// least. There is no idempotency key.
//
// go-github lets refusals through and repeats nothing, but refuses by itself while it
// remembers that nothing remains.
func GitHub() transport.Provider {
	return transport.Provider{
		Name:  "github",
		Match: []string{"api.github.com", "uploads.github.com"},
		Scopes: []transport.Scope{{
			Name: "resource", Key: gitHubResource,
			Rates: []throttle.Rate{{N: 5000, Per: time.Hour, Strict: true}},
			RatesFor: func(key string) []throttle.Rate {
				if key == "core" {
					return nil
				}
				return []throttle.Rate{}
			},
		}},
		Dialect: dialect.For("github"),
		Price:   price.Free,
	}
}

// gitHubResource is what x-ratelimit-resource says. Asking for the limits is free.
func gitHubResource(r *http.Request) string {
	switch p := strings.TrimSuffix(r.URL.Path, "/"); {
	case p == "/rate_limit":
		return ""
	case p == "/graphql":
		return "graphql"
	case p == "/search/code":
		return "code_search"
	case strings.HasPrefix(p, "/search/"):
		return "search"
	}
	return "core"
}

// GitHubRefusal makes GitHub's error response of a refusal. For money it is a 403, which
// its SDKs do not repeat.
func GitHubRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return gitHubShape.refuse(r)
}

var gitHubShape = shape{money: http.StatusForbidden, kind: "application/json", members: func(f said) []member {
	return []member{{"message", f.text}, {"documentation_url", "https://docs.github.com/rest"}}
}}

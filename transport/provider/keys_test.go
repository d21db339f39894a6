package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

func TestField(t *testing.T) {
	tests := []struct {
		name, contentType, body string
		names                   []string
		want                    string
	}{
		{"a form", form, "To=1&From=%2B2", []string{"From"}, "+2"},
		{"the first name that is there", form, "From=1&MessagingServiceSid=MG", []string{"MessagingServiceSid", "From"}, "MG"},
		{"no such field", form, "To=1", []string{"From"}, ""},
		{"JSON", js, `{"messages":[{"model":"no"}],"model":"m"}`, []string{"model"}, "m"},
		{"JSON without its type", "", `{"model":"m"}`, []string{"model"}, "m"},
		{"cut after the field", js, `{"model":"m","messages":[`, []string{"model"}, "m"},
		{"cut before the field", js, `{"messages":[`, []string{"model"}, ""},
		{"no string", js, `{"model":7}`, []string{"model"}, ""},
		{"an array", js, `[{"model":"m"}]`, []string{"model"}, ""},
		{"no JSON", js, `model=m`, []string{"model"}, ""},
		{"within a megabyte", js, `{"a":"` + strings.Repeat("x", 1<<19) + `","model":"m"}`, []string{"model"}, "m"},
		{"beyond a megabyte", js, `{"a":"` + strings.Repeat("x", 1<<20) + `","model":"m"}`, []string{"model"}, ""},
		{"no body", js, "", []string{"model"}, ""},
		{"the same twice", form, "From=a&From=a", []string{"From"}, "a"},
		{"two values", form, "From=a&From=b", []string{"From"}, "(several)"},
		{"two values, the other way round", form, "From=b&To=1&From=a", []string{"From"}, "(several)"},
		{"two values, one empty", form, "From=&From=b", []string{"From"}, "(several)"},
		{"two values of the first name", form, "From=a&Sid=1&Sid=2", []string{"Sid", "From"}, "(several)"},
		{"two values of a name that does not count", form, "From=a&Sid=1&From=b", []string{"Sid", "From"}, "1"},
		{"JSON, the same twice", js, `{"model":"m","a":{"model":"n"},"model":"m"}`, []string{"model"}, "m"},
		{"JSON, two values", js, `{"model":"m","a":1,"model":"n"}`, []string{"model"}, "(several)"},
		{"JSON, two values by another spelling", js, `{"model":"n","mod\u0065l":"m"}`, []string{"model"}, "(several)"},
		{"JSON, two values, one no string", js, `{"model":"m","model":["n"]}`, []string{"model"}, "(several)"},
		{"JSON, two values, the second cut", js, `{"model":"m","model":"n`, []string{"model"}, "m"},
		{"JSON, names in their order, not that of the body", js, `{"from":"a","profile":"p"}`, []string{"profile", "from"}, "p"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, "POST example.com/", tt.contentType, tt.body)
			require.Equal(t, tt.want, provider.Field(tt.names...)(r))
			if tt.body != "" {
				left, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, tt.body, string(left), "the request's own body is untouched")
			}
		})
	}
}

func TestFieldOfABodyThatCannotBeReadAgain(t *testing.T) {
	r := request(t, "POST example.com/", js, `{"model":"m"}`)
	r.GetBody = nil
	require.Empty(t, provider.Field("model")(r))
	r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
	require.Empty(t, provider.Field("model")(r))
}

// scope returns the key function of a preset's scope.
func scope(t *testing.T, p transport.Provider, name string) func(*http.Request) string {
	t.Helper()
	for _, s := range p.Scopes {
		if s.Name == name {
			return s.Key
		}
	}
	require.Fail(t, "no scope", name)
	return nil
}

// TestScopesTellCallsApart: calls of one line share their limits, those of two do not.
func TestScopesTellCallsApart(t *testing.T) {
	tests := []struct {
		name   string
		preset transport.Provider
		scope  string
		groups [][]string // of equal keys
	}{
		{"Stripe's endpoints", provider.Stripe(), "endpoint", [][]string{
			{"POST api.stripe.com/v1/customers", "GET api.stripe.com/v1/customers/cus_123456789"},
			{"POST api.stripe.com/v1/payment_intents/pi_3PabcdefGH1234/confirm"},
		}},
		{"Stripe's objects", provider.Stripe(), "object", [][]string{
			{"GET api.stripe.com/v1/payment_intents/pi_3PabcdefGH1234", "POST api.stripe.com/v1/payment_intents/pi_3PabcdefGH1234/confirm"},
			{"GET api.stripe.com/v1/payment_intents/pi_4PabcdefGH1234"},
			{"GET api.stripe.com/v1/payment_intents", "GET api.stripe.com/v1/balance_transactions"},
		}},
		{"GitHub's resources", provider.GitHub(), "resource", [][]string{
			{"GET api.github.com/repos/o/r", "GET api.github.com/user/"},
			{"GET api.github.com/search/issues?q=x"}, {"GET api.github.com/search/code?q=x"}, {"POST api.github.com/graphql"},
		}},
		{"Discord's routes", provider.Discord(), "route", [][]string{
			{"GET discord.com/api/v10/channels/111/messages/1", "GET discord.com/api/channels/111/messages/2"},
			{"GET discord.com/api/v10/channels/222/messages/1"}, {"DELETE discord.com/api/v10/channels/111/messages/1"},
			{"GET discord.com/api/v10/users/1", "GET discord.com/api/v10/users/2"},
		}},
		{"Slack's methods", provider.Slack(), "method", [][]string{
			{"POST slack.com/api/chat.postMessage"}, {"POST slack.com/api/chat.update"},
		}},
		{"shops", provider.Shopify(), "shop", [][]string{
			{"GET a.myshopify.com/admin/api/2026-10/orders.json", "GET A.myshopify.com/admin/api/2026-10/products.json"},
			{"POST a.myshopify.com/admin/api/2026-10/graphql.json"}, {"GET b.myshopify.com/admin/api/2026-10/orders.json"},
		}},
		{"Okta's endpoints", provider.Okta(), "endpoint", [][]string{
			{"GET a.okta.com/api/v1/users/00u1", "GET a.okta.com/api/v1/users/00u2"}, {"GET a.okta.com/api/v1/groups/1"}, {"GET b.okta.com/api/v1/users/00u1"},
		}},
		{"Azure's deployments", provider.AzureOpenAI(models), "deployment", [][]string{
			{"POST a.openai.azure.com/openai/deployments/x/chat/completions", "POST a.openai.azure.com/openai/deployments/x/embeddings"},
			{"POST a.openai.azure.com/openai/deployments/y/chat/completions"}, {"POST b.openai.azure.com/openai/deployments/x/chat/completions"},
		}},
		{"Gemini's models", provider.Gemini(models), "model", [][]string{
			{"POST generativelanguage.googleapis.com/v1beta/models/a:generateContent", "POST generativelanguage.googleapis.com/v1/models/a:countTokens"},
			{"POST generativelanguage.googleapis.com/v1beta/models/b:generateContent"},
		}},
		{"Jira's issues", provider.Jira(), "object", [][]string{
			{"GET a.atlassian.net/rest/api/3/issue/A-1", "POST a.atlassian.net/rest/api/3/issue/A-1/comment"},
			{"GET a.atlassian.net/rest/api/3/issue/A-2"}, {"GET b.atlassian.net/rest/api/3/issue/A-1"}, {"GET a.atlassian.net/rest/api/3/search"},
		}},
		{"Jira's sites", provider.Jira(), "account", [][]string{
			{"GET api.atlassian.com/ex/jira/1/rest/api/3/myself", "GET api.atlassian.com/ex/jira/1/rest/api/3/search"},
			{"GET api.atlassian.com/ex/jira/2/rest/api/3/myself"}, {"GET a.atlassian.net/rest/api/3/myself"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			key := scope(t, tt.preset, tt.scope)
			seen := map[string]string{}
			for _, group := range tt.groups {
				first := key(request(t, group[0], "", ""))
				require.NotContains(t, seen, first, group[0])
				seen[first] = group[0]
				for _, call := range group {
					require.Equal(t, first, key(request(t, call, "", "")), call)
				}
			}
		})
	}
}

func FuzzField(f *testing.F) {
	f.Add(js, `{"a":{"model":"no"},"model":"m"}`)
	f.Add(form, "model=a%20b&x=%zz")
	f.Add(js, `[[[[`)
	f.Add("", "{\"model\":\"\\u0000\"}")
	f.Fuzz(func(t *testing.T, contentType, body string) {
		r, err := http.NewRequest(http.MethodPost, "https://example.com/", strings.NewReader(body))
		require.NoError(t, err)
		r.Header["Content-Type"] = []string{contentType}
		got := provider.Field("model")(r)
		// Whole JSON with one such field has one right answer.
		var v map[string]any
		if contentType != js || json.Unmarshal([]byte(body), &v) != nil || bytes.Count([]byte(body), []byte("odel")) != 1 {
			return
		}
		want, _ := v["model"].(string)
		require.Equal(t, want, got)
	})
}

// FuzzKeys: no path makes a key function panic, and no key is longer than what it is made
// of.
func FuzzKeys(f *testing.F) {
	for _, p := range []string{"/api/v10/channels/1/messages", "/ex/jira", "//", "", "/v1/models/:", "/issue/", "/openai/deployments/"} {
		f.Add("GET", p)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		for _, p := range presets {
			r := &http.Request{Method: method, Header: http.Header{}}
			r.URL = request(t, "GET example.com/", "", "").URL
			r.URL.Path = path
			made := p.make()
			for _, s := range made.Scopes {
				if s.Key != nil {
					require.LessOrEqual(t, len(s.Key(r)), len(method)+len(path)+32, p.function)
				}
			}
			_, _ = made.Price.Quote(r)
			if made.Weight != nil {
				require.GreaterOrEqual(t, made.Weight(r), 0)
			}
		}
	})
}

package price

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// What decides the price is found however it is written: vendors resolve escapes, and read
// the last of two.
func TestNothingThatCostsHides(t *testing.T) {
	tokens := Tokens{Models: map[string]Model{"mini": {Input: 1e6, Output: 1e6, Context: 100_000}}, MaxOutput: 10}
	quote := func(path, body string) (budget.Quote, error) {
		req, err := http.NewRequest(http.MethodPost, "https://api.example.com"+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		return tokens.Quote(req)
	}
	plain, err := quote("/v1/chat", `{"model":"mini","max_tokens":5,"messages":[]}`)
	require.NoError(t, err)
	for name, body := range map[string]string{
		"an escaped key":       `{"model":"mini","\u006dodel":"large","max_tokens":5}`,
		"all of it escaped":    `{"model":"mini","\u006d\u006f\u0064\u0065\u006c":"large","max_tokens":5}`,
		"two models":           `{"model":"mini","model":"large","max_tokens":5}`,
		"two models, turned":   `{"model":"large","model":"mini","max_tokens":5}`,
		"below an empty key":   `{"model":"large","":{"model":"mini"},"max_tokens":5}`,
		"a second document":    `{"model":"large","max_tokens":5} {"model":"mini"}`,
		"one behind the first": `{"model":"mini","max_tokens":5} {"model":"mini"}`,
		"a dearer tier":        `{"model":"mini","max_tokens":5,"service_tier":"priority"}`,
	} {
		_, err := quote("/v1/chat", body)
		require.ErrorIs(t, err, budget.ErrUnpriced, name)
	}
	for name, body := range map[string]string{ // each is larger by 30 tokens at least
		"an escaped limit":   `{"model":"mini","\u006d\u0061\u0078\u005f\u0063\u006f\u006d\u0070\u006c\u0065\u0074\u0069\u006f\u006e\u005f\u0074\u006f\u006b\u0065\u006e\u0073":500,"max_tokens":5}`,
		"an escaped number":  `{"model":"mini","\u006e":9,"max_tokens":5}`,
		"an escaped picture": `{"model":"mini","max_tokens":5,"messages":[{"content":[{"im\u0061ge_url":{"url":"x"}}]}]}`,
		"an escaped tool":    `{"model":"mini","max_tokens":5,"t\u006fols":[{"type":"\u0077eb_search"}]}`,
		"a tool of Gemini":   `{"model":"mini","max_tokens":5,"tools":[{"google_search":{}}]}`,
	} {
		q, err := quote("/v1/chat", body)
		require.NoError(t, err, name)
		require.Greater(t, q.Units, plain.Units+30, name)
	}
	_, err = quote("/openai/deployments/large/chat/completions", `{"model":"mini","max_tokens":5}`)
	require.ErrorIs(t, err, budget.ErrUnpriced, "Azure bills the deployment")
	_, err = quote("/openai/deployments/mini/chat/completions", `{"model":"large","max_tokens":5}`)
	require.NoError(t, err)
}

func TestWithoutEscapes(t *testing.T) {
	for in, want := range map[string]string{
		`model`: "model", `\u006dodel`: "model", `\n\t\"\\\/`: "\n\t\"\\/", `\u00`: `\u00`, `a\`: `a\`, `\uzzzz`: "\uFFFD", `\u20ac`: "€", `\ud83d\ude00`: "\uFFFD\uFFFD",
	} {
		require.Equal(t, want, string(withoutEscapes([]byte(in))), in)
	}
}

func TestEscapedFieldsAreCounted(t *testing.T) {
	req, err := http.NewRequest(http.MethodPost, "https://api.example.com/send", strings.NewReader(`{"to":"a","t\u006f":["a","b","c"]}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	n, err := Values("to")(req)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, int64(3))
}

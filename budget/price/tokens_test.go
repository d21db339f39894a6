package price_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

// usd reads prices as vendors print them, per million tokens.
func usd(s string) budget.Amount { return budget.MustParse(s) }

// models is a price list for tests; the numbers are made up to be easy to check.
var models = map[string]price.Model{
	"gpt-4o-mini":      {Input: usd("0.15"), CachedInput: usd("0.075"), Output: usd("0.60"), Context: 128_000},
	"claude-sonnet-4":  {Input: usd("3"), CachedInput: usd("0.30"), CacheWrite: usd("3.75"), CacheWrite1h: usd("6"), Output: usd("15")},
	"gemini-2.5-flash": {Input: usd("0.30"), CachedInput: usd("0.03"), Output: usd("2.50"), Context: 1_000_000},
	"gemini-2.5-pro": {
		Input: usd("1.25"), Output: usd("10"), LongFrom: 200_000,
		Long: &price.Model{Input: usd("2.50"), Output: usd("15")},
	},
	"text-embedding-3-small": {Input: usd("0.02")},
	"my-deployment":          {Input: usd("1"), Output: usd("2")},
}

const (
	chat      = "https://api.openai.com/v1/chat/completions"
	gemini    = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
	overhead  = 1024 // tokens that vendors may add
	perMillon = 1_000_000
)

func TestTokensAreBoundedByTheRequest(t *testing.T) {
	pad := func(s string, to int) string { return s + strings.Repeat(" ", to-len(s)) }
	tests := []struct {
		name, url, body string
		in, out         int64
		inPrice, price  string
	}{
		{"chat", chat, pad(`{"model":"gpt-4o-mini","max_tokens":100}`, 976), 2000, 100, "0.15", "0.60"},
		{"a release of the model", chat, pad(`{"model":"gpt-4o-mini-2024-07-18","max_completion_tokens":7}`, 976), 2000, 7, "0.15", "0.60"},
		{"two limits: the larger", chat, pad(`{"model":"gpt-4o-mini","max_tokens":5,"max_completion_tokens":9}`, 976), 2000, 9, "0.15", "0.60"},
		{"several answers", chat, pad(`{"model":"gpt-4o-mini","max_tokens":100,"n":3}`, 976), 2000, 300, "0.15", "0.60"},
		{"no limit: the assumed one", chat, pad(`{"model":"gpt-4o-mini"}`, 976), 2000, 4096, "0.15", "0.60"},
		{"null is no limit", chat, pad(`{"model":"gpt-4o-mini","max_tokens":null}`, 976), 2000, 4096, "0.15", "0.60"},
		{"gemini", gemini, pad(`{"contents":[],"generationConfig":{"maxOutputTokens":50,"candidateCount":2}}`, 976), 2000, 100, "0.30", "2.50"},
		{"gemini, spelled in the other way", gemini, pad(`{"contents":[],"generationConfig":{"max_output_tokens":5000,"candidate_count":2}}`, 976), 2000, 10_000, "0.30", "2.50"},
		{"gemini, spelled in both", gemini, pad(`{"contents":[],"generation_config":{"maxOutputTokens":5000,"candidateCount":2}}`, 976), 2000, 10_000, "0.30", "2.50"},
		{"azure", "https://x.openai.azure.com/openai/deployments/my-deployment/chat/completions", pad(`{"max_tokens":10}`, 976), 2000, 10, "1", "2"},
		{"embeddings have no output", chat, pad(`{"model":"text-embedding-3-small","input":"x"}`, 976), 2000, 0, "0.02", "0"},
		{"a picture counts as a full context", chat, `{"model":"gpt-4o-mini","max_tokens":1,"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`, 128_000, 1, "0.15", "0.60"},
		{"an earlier conversation too", chat, `{"model":"gpt-4o-mini","max_output_tokens":1,"previous_response_id":"r1"}`, 128_000, 1, "0.15", "0.60"},
		{"and a tool of the vendor's", chat, `{"model":"gpt-4o-mini","max_output_tokens":1,"tools":[{"type":"web_search"}]}`, 128_000, 1, "0.15", "0.60"},
		{"no prompt is larger than the context", chat, pad(`{"model":"gpt-4o-mini","max_tokens":1}`, 500_000), 128_000, 1, "0.15", "0.60"},
		{"cached for five minutes", chat, pad(`{"model":"claude-sonnet-4","max_tokens":10,"system":[{"cache_control":{"type":"ephemeral"}}]}`, 976), 2000, 10, "3.75", "15"},
		{"cached for an hour", chat, pad(`{"model":"claude-sonnet-4","max_tokens":10,"messages":[{"content":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`, 976), 2000, 10, "6", "15"},
		{"names in a user's schema mean nothing", chat, pad(`{"model":"claude-sonnet-4","max_tokens":10,"tools":[{"input_schema":{"properties":{"source":{"type":"string"}}}}]}`, 976), 2000, 10, "3", "15"},
		{"a long context has its own price", chat, pad(`{"model":"gemini-2.5-pro","max_tokens":1000}`, 300_000-overhead), 300_000, 1000, "2.50", "15"},
		{"a short one has the other", chat, pad(`{"model":"gemini-2.5-pro","max_tokens":1000}`, 200_000-overhead), 200_000, 1000, "1.25", "10"},
	}
	p := price.Tokens{Models: models, MaxOutput: 4096}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := p.Quote(post(t, jsonType, tt.url, tt.body))
			require.NoError(t, err)
			want := (usd(tt.inPrice)*budget.Amount(tt.in) + usd(tt.price)*budget.Amount(tt.out)) / perMillon
			require.Equal(t, budget.Quote{Amount: want, Unit: "USD", Units: tt.in + tt.out}, q)
		})
	}
}

func TestHoldsRoundUp(t *testing.T) {
	p := price.Tokens{Models: map[string]price.Model{"m": {Input: 1}}}
	q, err := p.Quote(post(t, jsonType, chat, `{"model":"m"}`))
	require.NoError(t, err)
	require.EqualValues(t, 1, q.Amount, "a thousandth of 10^-9 is a whole one")
}

func TestEstimatedInput(t *testing.T) {
	p := price.Tokens{Models: models, MaxOutput: 1, BytesPerToken: 4}
	q, err := p.Quote(post(t, jsonType, chat, `{"model":"gpt-4o-mini","x":"`+strings.Repeat("x", 4000)+`"}`))
	require.NoError(t, err)
	require.EqualValues(t, 4029/4+overhead+1, q.Units)
}

func TestTokensWithoutBoundAreUnpriced(t *testing.T) {
	p := price.Tokens{Models: models}
	tests := []struct{ name, body string }{
		{"no model", `{"max_tokens":1}`},
		{"unknown model", `{"model":"gpt-5","max_tokens":1}`},
		{"another variant of a known model", `{"model":"gpt-4o-mini-audio","max_tokens":1}`},
		{"a known model with something before", `{"model":"x/gpt-4o-mini","max_tokens":1}`},
		{"no limit", `{"model":"gpt-4o-mini"}`},
		{"a limit of zero", `{"model":"gpt-4o-mini","max_tokens":0}`},
		{"negative", `{"model":"gpt-4o-mini","max_tokens":-1}`},
		{"absurd", `{"model":"gpt-4o-mini","max_tokens":99999999999999999999}`},
		{"no integer", `{"model":"gpt-4o-mini","max_tokens":1e3}`},
		{"a bad number of answers", `{"model":"gpt-4o-mini","max_tokens":10,"n":-2}`},
		{"too many answers", `{"model":"gpt-4o-mini","max_tokens":1000000,"n":1000000}`},
		{"a picture for a model without context", `{"model":"claude-sonnet-4","max_tokens":1,"messages":[{"content":[{"source":{"type":"base64","data":"xx"}}]}]}`},
		{"garbage", `<html>`},
		{"nothing", ``},
		{"nested deep", strings.Repeat(`[`, 100_000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Quote(post(t, jsonType, chat, tt.body))
			require.ErrorIs(t, err, budget.ErrUnpriced)
		})
	}
	for _, m := range []price.Model{{}, {Input: -1, Output: 2}, {Input: 1, Output: 1, Long: &price.Model{}}} {
		_, err := price.Tokens{Models: map[string]price.Model{"m": m}, MaxOutput: 1}.Quote(post(t, jsonType, chat, `{"model":"m"}`))
		require.ErrorIs(t, err, budget.ErrUnpriced)
	}
}

func TestLargePromptIsNotCopied(t *testing.T) {
	body := `{"model":"gpt-4o-mini","max_tokens":10,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 18<<20/5) + `"}]}`
	r := post(t, jsonType, chat, body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := price.Tokens{Models: models}.Quote(r)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
}

func BenchmarkTokensQuote10KB(b *testing.B) {
	body := `{"model":"gpt-4o-mini","max_tokens":10,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 2000) + `"}]}`
	r := post(b, jsonType, chat, body)
	p := price.Tokens{Models: models}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := p.Quote(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheMeterCountsTokens(t *testing.T) {
	p := price.Tokens{Models: map[string]price.Model{"gpt-x": {Input: budget.Unit, Output: budget.Unit}}}
	for body, want := range map[string]int64{
		`{"model":"gpt-x","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`: 15,
		`{"model":"gpt-x"}`: -1,
	} {
		w, cost := p.Meter(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}})
		_, err := io.WriteString(w, body)
		require.NoError(t, err)
		_, _ = cost()
		n, known := w.(interface{ Units() (int64, bool) }).Units()
		if !known {
			n = -1
		}
		require.Equal(t, want, n, body)
	}
}

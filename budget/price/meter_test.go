package price_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

type meterer interface {
	Meter(*http.Response) (io.Writer, func() (budget.Amount, bool))
}

// meter feeds a body in pieces of a size and returns the cost.
func meter(m meterer, body string, size int, header ...string) (budget.Amount, bool) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	w, cost := m.Meter(resp)
	for len(body) > 0 && w != nil {
		n := min(size, len(body))
		_, _ = io.WriteString(w, body[:n])
		body = body[n:]
	}
	return cost()
}

// answers are good answers of the vendors, with what they cost by the list of models.
var answers = []struct{ name, body, cost string }{
	{"openai chat", `{"model":"gpt-4o-mini-2024-07-18","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}}`, "0.00045"},
	{"openai with cached input and reasoning", `{"model":"gpt-4o-mini","usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens":500,"completion_tokens_details":{"reasoning_tokens":300},"total_tokens":1500}}`, "0.00042"},
	{"openai responses", `{"id":"r","model":"gpt-4o-mini","usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":400},"output_tokens":500,"total_tokens":1500}}`, "0.00042"},
	{"exactly 1,234 tokens", `{"model":"gpt-4o-mini","usage":{"prompt_tokens":1234,"completion_tokens":0,"total_tokens":1234}}`, "0.0001851"},
	{"reasoning only in the total", `{"model":"gpt-4o-mini","usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1500}}`, "0.00045"},
	{"only a total: the dearer price", `{"model":"gpt-4o-mini","usage":{"total_tokens":1000}}`, "0.0006"},
	{"embeddings", `{"model":"text-embedding-3-small","data":[{"embedding":[` + strings.Repeat("0.1234567,", 100) + `1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, "0.00000016"},
	{"anthropic with both caches", `{"type":"message","model":"claude-sonnet-4-20250514","content":[{"type":"text","text":"{\"usage\":{\"input_tokens\":9}}"}],"stop_reason":"end_turn","usage":{"input_tokens":100,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":600,"ephemeral_1h_input_tokens":400},"cache_read_input_tokens":10000,"output_tokens":50}}`, "0.0087"},
	{"gemini with thoughts and a cache", `{"candidates":[{"finishReason":"STOP"}],"modelVersion":"gemini-2.5-flash","usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":500,"candidatesTokenCount":100,"thoughtsTokenCount":200,"toolUsePromptTokenCount":50,"totalTokenCount":1350}}`, "0.00093"},
	{"gemini in one array", `[{"candidates":[{}],"modelVersion":"gemini-2.5-flash","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}},` + "\n" + `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":100}}]`, "0.000253"},
	{"a long context", `{"model":"gemini-2.5-pro","usage":{"prompt_tokens":200001,"completion_tokens":1000,"total_tokens":201001}}`, "0.5150025"},
	{"not a long one", `{"model":"gemini-2.5-pro","usage":{"prompt_tokens":200000,"completion_tokens":1000}}`, "0.26"},
	{"openai stream", `data: {"model":"gpt-4o-mini","choices":[{"delta":{"content":"hi"}}],"usage":null}

data: {"model":"gpt-4o-mini","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500}}

data: [DONE]

`, "0.00045"},
	{"usage in every event, then the end", `data: {"model":"gpt-4o-mini","choices":[{"delta":{}}],"usage":{"prompt_tokens":1000,"completion_tokens":1}}

data: {"model":"gpt-4o-mini","choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":1000,"completion_tokens":500}}

`, "0.00045"},
	{"openai responses stream", `event: response.created
data: {"type":"response.created","response":{"model":"gpt-4o-mini","usage":null}}

event: response.completed
data: {"type":"response.completed","response":{"model":"gpt-4o-mini","usage":{"input_tokens":1000,"output_tokens":500,"total_tokens":1500}}}

`, "0.00045"},
	{"anthropic stream", `event: message_start
data: {"type":"message_start","message":{"model":"claude-sonnet-4-20250514","usage":{"input_tokens":1000,"output_tokens":1}}}

: a comment
event: ping
data: {"type": "ping"}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":100}}

event: message_stop
data: {"type":"message_stop"}

`, "0.0045"},
	{"gemini stream", `data: {"candidates":[{"content":{}}],"usageMetadata":{"promptTokenCount":1000,"totalTokenCount":1000},"modelVersion":"models/gemini-2.5-flash"}

data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":100,"totalTokenCount":1100}}

`, "0.00055"},
	{"data in several lines", "id: 7\ndata: {\"model\":\"gpt-4o-mini\",\ndata: \"usage\":{\"total_tokens\":\ndata:1000\ndata: }}\n\n", "0.0006"},
	{"without the last empty line", `data: {"model":"gpt-4o-mini","usage":{"total_tokens":1000}}`, "0.0006"},
}

func TestUsageIsReadHoweverItArrives(t *testing.T) {
	p := price.Tokens{Models: models}
	for _, tt := range answers {
		t.Run(tt.name, func(t *testing.T) {
			for _, body := range []string{tt.body, strings.ReplaceAll(tt.body, "\n", "\r\n"), strings.ReplaceAll(tt.body, "\n", "\r"), "\ufeff\n" + tt.body} {
				for _, size := range []int{1, 2, 3, 7, 1000, len(body)} {
					a, known := meter(p, body, size)
					require.True(t, known, "in pieces of %d", size)
					require.Equal(t, tt.cost, a.String(), "in pieces of %d", size)
				}
			}
		})
	}
}

func TestUsageIsReadThroughGzip(t *testing.T) {
	p := price.Tokens{Models: models}
	for _, tt := range answers {
		a, known := meter(p, zip(t, tt.body), 100, "Content-Encoding", "GZIP")
		require.True(t, known, tt.name)
		require.Equal(t, tt.cost, a.String(), tt.name)
	}
	whole := zip(t, answers[0].body)
	for _, body := range []string{"", whole[:len(whole)-1], "not gzip", whole + strings.Repeat("x", 300<<10)} {
		_, known := meter(p, body, 100, "Content-Encoding", "gzip")
		require.False(t, known)
	}
	_, known := meter(p, answers[0].body, 100, "Content-Encoding", "br")
	require.False(t, known)
}

func zip(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, s)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// A stream that ends early must not look like one that ended well: wherever it is cut,
// either the cost is the right one or it is not known.
func TestCutAnswersAreNeverCheaper(t *testing.T) {
	p := price.Tokens{Models: models}
	for _, tt := range answers {
		for n := range tt.body {
			if a, known := meter(p, tt.body[:n], n+1); known {
				require.Equal(t, tt.cost, a.String(), "%s: cut at %d", tt.name, n)
			}
		}
	}
}

func TestCutStreamTellsTheLeastItCost(t *testing.T) {
	a, known := meter(price.Tokens{Models: models}, `data: {"type":"message_start","message":{"model":"claude-sonnet-4","usage":{"input_tokens":1000,"output_tokens":1}}}

data: {"type":"content_block_delta"}

`, 10)
	require.False(t, known)
	require.Equal(t, "0.003015", a.String())
}

func TestUsageThatIsMissingOrAbsurd(t *testing.T) {
	p := price.Tokens{Models: models}
	for name, body := range map[string]string{
		"none":                `{"model":"gpt-4o-mini","choices":[]}`,
		"null":                `{"model":"gpt-4o-mini","usage":null}`,
		"null counts":         `{"model":"gpt-4o-mini","usage":{"prompt_tokens":null}}`,
		"nothing used":        `{"model":"gpt-4o-mini","usage":{"prompt_tokens":0,"completion_tokens":0}}`,
		"negative":            `{"model":"gpt-4o-mini","usage":{"prompt_tokens":-5,"completion_tokens":9}}`,
		"a fraction":          `{"model":"gpt-4o-mini","usage":{"prompt_tokens":5.5,"completion_tokens":9}}`,
		"an exponent":         `{"model":"gpt-4o-mini","usage":{"prompt_tokens":1e2,"completion_tokens":9}}`,
		"a string":            `{"model":"gpt-4o-mini","usage":{"prompt_tokens":"5","completion_tokens":9}}`,
		"absurd":              `{"model":"gpt-4o-mini","usage":{"prompt_tokens":1000000001}}`,
		"beyond int64":        `{"model":"gpt-4o-mini","usage":{"prompt_tokens":99999999999999999999}}`,
		"of an unknown model": `{"model":"gpt-5","usage":{"total_tokens":5}}`,
		"of no model":         `{"usage":{"total_tokens":5}}`,
		"in another place":    `{"model":"gpt-4o-mini","x":{"usage":{"total_tokens":5}}}`,
		"in a text":           `{"model":"gpt-4o-mini","text":"\"usage\":{\"total_tokens\":5}"}`,
		"HTML":                `<html>usage: {"total_tokens":5}</html>`,
		"empty":               ``,
		"nested 10,000 deep":  strings.Repeat(`{"usage":`, 10_000) + `{"total_tokens":5}` + strings.Repeat(`}`, 10_000),
		"more ends than":      `]}]}`,
		"an event too long":   `data: {"model":"gpt-4o-mini","x":"` + strings.Repeat("x", 10<<20) + `","usage":{"total_tokens":5}}` + "\n\n",
		"only the output":     `{"model":"gpt-4o-mini","usage":{"completion_tokens":5}}`,
		"an event too long between counts": `data: {"type":"message_start","message":{"model":"claude-sonnet-4","usage":{"input_tokens":1000,"output_tokens":1}}}` +
			"\n\ndata: {\"x\":\"" + strings.Repeat("x", 300<<10) + "\"}\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}` + "\n\n",
		"an event too long before the end": `data: {"model":"gpt-4o-mini","choices":[{}],"usage":{"prompt_tokens":5,"completion_tokens":1}}` +
			"\n\ndata: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":900},\"x\":\"" + strings.Repeat("x", 300<<10) + "\"}\n\ndata: [DONE]\n\n",
		"another field's data": `datum: {"model":"gpt-4o-mini","usage":{"total_tokens":5}}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, known := meter(p, body, 4096)
			require.False(t, known)
		})
	}
}

func TestUsageAtTheEndOfALongAnswer(t *testing.T) {
	body := `{"model":"text-embedding-3-small","data":[{"embedding":[` + strings.Repeat("0.1234567,", 100_000) + `1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`
	a, known := meter(price.Tokens{Models: models}, body, 1000)
	require.True(t, known)
	require.Equal(t, "0.00000016", a.String())
}

func TestLongStreamNeedsLittleMemory(t *testing.T) {
	p := price.Tokens{Models: models}
	w, cost := p.Meter(&http.Response{StatusCode: 200})
	event := []byte(`data: {"model":"gpt-4o-mini","choices":[{"delta":{"content":"` + strings.Repeat("word ", 200) + `"}}]}` + "\n\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20_000 { // 20 MB
		_, _ = w.Write(event)
	}
	_, _ = w.Write([]byte("data: "))
	for range 10 << 10 { // one line of 10 MB
		_, _ = w.Write(event[6:1006])
	}
	_, _ = io.WriteString(w, "\n\n"+`data: {"choices":[],"usage":{"total_tokens":1000}}`)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<10))
	a, known := cost()
	require.True(t, known)
	require.Equal(t, "0.0006", a.String())
}

func TestModelOfTheURLIsTheLastResort(t *testing.T) {
	u, err := url.Parse("https://x.openai.azure.com/openai/deployments/my-deployment/chat/completions")
	require.NoError(t, err)
	w, cost := price.Tokens{Models: models}.Meter(&http.Response{StatusCode: 200, Request: &http.Request{URL: u}})
	_, _ = io.WriteString(w, `{"model":"gpt-4-0613","usage":{"prompt_tokens":1000,"completion_tokens":0}}`)
	a, known := cost()
	require.True(t, known)
	require.Equal(t, "0.001", a.String())
}

func TestRefusalsAreNotMetered(t *testing.T) {
	for _, m := range []meterer{price.Tokens{Models: models}, price.FromAnswer(price.Free, price.AnswerCost{Amounts: "a"})} {
		w, cost := m.Meter(&http.Response{StatusCode: 400})
		require.Nil(t, w)
		require.Nil(t, cost)
	}
}

func FuzzMeter(f *testing.F) {
	for _, a := range answers {
		f.Add(a.body, 5)
	}
	f.Add("data:\n\n\r\r\n:\ndata\n", 1)
	p := price.Tokens{Models: models}
	told := price.FromAnswer(price.Free, price.AnswerCost{Amounts: "usage.total_tokens", In: "USD"})
	f.Fuzz(func(t *testing.T, body string, size int) {
		size = 1 + max(0, size)%64
		a, known := meter(p, body, len(body)+1)
		b, same := meter(p, body, size)
		require.Equal(t, a, b, "how it arrives makes no difference")
		require.Equal(t, known, same)
		require.GreaterOrEqual(t, a, budget.Amount(0))
		a, _ = meter(told, body, size)
		require.GreaterOrEqual(t, a, budget.Amount(0))
	})
}

func BenchmarkMeterStream(b *testing.B) {
	event := []byte(`data: {"model":"gpt-4o-mini","choices":[{"delta":{"content":"word "}}],"usage":null}` + "\n\n")
	w, _ := price.Tokens{Models: models}.Meter(&http.Response{StatusCode: 200})
	b.ReportAllocs()
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		_, _ = w.Write(event)
	}
}

func BenchmarkMeterJSON(b *testing.B) {
	body := []byte(answers[0].body)
	p := price.Tokens{Models: models}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		w, cost := p.Meter(&http.Response{StatusCode: 200})
		_, _ = w.Write(body)
		cost()
	}
}

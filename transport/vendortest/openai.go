package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// NewOpenAI starts a fake of OpenAI's chat completions, POST /v1/chat/completions, as
// JSON or as a stream, which tells its usage only with
// stream_options.include_usage.
//
// It bills the tokens, 0.15 USD per million read and 0.60 per million written if
// Options has no prices. It throttles with status 429 and code rate_limit_exceeded, and
// tells the pause in retry-after-ms and retry-after; its headers tell the window, with
// resets as durations.
func NewOpenAI(o Options) *Fake {
	return start(vendor{
		name: "openai", hosts: []string{"api.openai.com"},
		unit: "USD", price: 150, output: 600,
		answer: openAIAnswer, headers: openAIHeaders, throttle: openAIThrottle,
		fail: func(status int) reply { return openAIError(status, "server_error", "", http.StatusText(status)) },
	}, o)
}

type openAIRequest struct {
	Model     string `json:"model"`
	Messages  []any  `json:"messages"`
	Stream    bool   `json:"stream"`
	MaxTokens int    `json:"max_tokens"`
	MaxNew    int    `json:"max_completion_tokens"`
	Options   struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func openAIAnswer(c call) reply {
	var q openAIRequest
	switch {
	case c.URL.Path != "/v1/chat/completions" || c.Method != http.MethodPost:
		return openAIError(http.StatusNotFound, "invalid_request_error", "", "Unknown request URL").refuse()
	case !c.decode(&q) || q.Model == "":
		return openAIError(http.StatusBadRequest, "invalid_request_error", "", "you must provide a model parameter").refuse()
	case len(q.Messages) == 0:
		return openAIError(http.StatusBadRequest, "invalid_request_error", "", "[] is too short - 'messages'").refuse()
	}
	n := c.converse(q.Model, texts(q.Messages), max(q.MaxTokens, q.MaxNew))
	id := fmt.Sprintf("chatcmpl-%024d", c.serial())
	if q.Stream {
		return openAIStream(c, id, n, q.Options.IncludeUsage).billTokens(c, id, n)
	}
	return object(http.StatusOK, map[string]any{
		"id": id, "object": "chat.completion", "created": c.now.Unix(), "model": n.model, "usage": openAIUsage(n),
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": n.text(), "refusal": nil},
		}},
	}).billTokens(c, id, n)
}

func openAIStream(c call, id string, n chat, usage bool) reply {
	chunk := func(choices []any, usage any) string {
		return event("", map[string]any{
			"id": id, "object": "chat.completion.chunk", "created": c.now.Unix(), "model": n.model, "choices": choices, "usage": usage,
		})
	}
	var all []string
	for _, w := range n.words {
		all = append(all, chunk([]any{map[string]any{"index": 0, "delta": map[string]any{"content": w}, "finish_reason": nil}}, nil))
	}
	all = append(all, chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}, nil))
	if usage {
		all = append(all, chunk([]any{}, openAIUsage(n)))
	}
	return stream(append(all, "data: [DONE]\n\n"))
}

func openAIUsage(n chat) map[string]any {
	return map[string]any{
		"prompt_tokens": n.input, "completion_tokens": n.output, "total_tokens": n.input + n.output,
		"prompt_tokens_details":     map[string]int{"cached_tokens": 0},
		"completion_tokens_details": map[string]int{"reasoning_tokens": 0},
	}
}

func openAIThrottle(_ call, why refusal) reply {
	a := openAIError(http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached")
	if why.after <= 0 {
		return a
	}
	ms := (why.after + time.Millisecond - 1) / time.Millisecond
	return a.hint(why.after).with("retry-after-ms", strconv.FormatInt(int64(ms), 10))
}

func openAIHeaders(c call) map[string]string {
	if !c.windowed() {
		return nil
	}
	return map[string]string{
		"x-ratelimit-limit-requests":     strconv.Itoa(c.fake.opts.Limit.Requests),
		"x-ratelimit-remaining-requests": strconv.Itoa(c.remaining),
		"x-ratelimit-reset-requests":     c.reset.Round(time.Millisecond).String(),
	}
}

func openAIError(status int, kind, code, message string) reply {
	e := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	return object(status, map[string]any{"error": e})
}

package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// NewAnthropic starts a fake of Anthropic's messages, POST /v1/messages, as JSON or as
// a stream.
//
// It bills the tokens, 3 USD per million read and 15 per million written if Options has
// no prices. It throttles with status 429 and rate_limit_error, and tells the pause in
// retry-after; its headers tell the window, with resets as instants. Its 503 is a 529
// with overloaded_error.
func NewAnthropic(o Options) *Fake {
	return start(vendor{
		name: "anthropic", hosts: []string{"api.anthropic.com"},
		unit: "USD", price: 3_000, output: 15_000,
		answer: anthropicAnswer, headers: anthropicHeaders,
		throttle: func(_ call, why refusal) reply {
			return anthropicError(http.StatusTooManyRequests, "rate_limit_error").hint(why.after)
		},
		fail: func(status int) reply {
			if status == http.StatusServiceUnavailable {
				return anthropicError(529, "overloaded_error")
			}
			return anthropicError(status, "api_error")
		},
	}, o)
}

func anthropicAnswer(c call) reply {
	var q struct {
		Model     string `json:"model"`
		System    any    `json:"system"`
		Messages  []any  `json:"messages"`
		MaxTokens int    `json:"max_tokens"`
		Stream    bool   `json:"stream"`
	}
	switch {
	case c.URL.Path != "/v1/messages" || c.Method != http.MethodPost:
		return anthropicError(http.StatusNotFound, "not_found_error").refuse()
	case !c.decode(&q) || q.Model == "" || q.MaxTokens <= 0 || len(q.Messages) == 0:
		return anthropicError(http.StatusBadRequest, "invalid_request_error").refuse()
	}
	n := c.converse(q.Model, append(texts(q.System), texts(q.Messages)...), q.MaxTokens)
	id := fmt.Sprintf("msg_%024d", c.serial())
	m := map[string]any{
		"id": id, "type": "message", "role": "assistant", "model": n.model, "stop_sequence": nil,
		"stop_reason": "end_turn", "content": []any{map[string]string{"type": "text", "text": n.text()}},
		"usage": anthropicUsage(n.input, n.output),
	}
	if q.Stream {
		m["content"], m["stop_reason"], m["usage"] = []any{}, nil, anthropicUsage(n.input, 1)
		return anthropicStream(m, n).billTokens(c, id, n)
	}
	return object(http.StatusOK, m).billTokens(c, id, n)
}

func anthropicStream(begin map[string]any, n chat) reply {
	all := []string{
		event("message_start", map[string]any{"type": "message_start", "message": begin}),
		event("content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]string{"type": "text", "text": ""}}),
		event("ping", map[string]any{"type": "ping"}),
	}
	for _, w := range n.words {
		all = append(all, event("content_block_delta", map[string]any{
			"type": "content_block_delta", "index": 0, "delta": map[string]string{"type": "text_delta", "text": w},
		}))
	}
	return stream(append(all,
		event("content_block_stop", map[string]any{"type": "content_block_stop", "index": 0}),
		event("message_delta", map[string]any{
			"type": "message_delta", "delta": map[string]any{"stop_reason": "end_turn", "stop_sequence": nil},
			"usage": map[string]int64{"output_tokens": n.output},
		}),
		event("message_stop", map[string]any{"type": "message_stop"}),
	))
}

func anthropicUsage(input, output int64) map[string]any {
	return map[string]any{
		"input_tokens": input, "output_tokens": output,
		"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
	}
}

func anthropicHeaders(c call) map[string]string {
	if !c.windowed() {
		return nil
	}
	return map[string]string{
		"anthropic-ratelimit-requests-limit":     strconv.Itoa(c.fake.opts.Limit.Requests),
		"anthropic-ratelimit-requests-remaining": strconv.Itoa(c.remaining),
		"anthropic-ratelimit-requests-reset":     c.now.Add(c.reset + time.Second - 1).UTC().Format(time.RFC3339),
	}
}

func anthropicError(status int, kind string) reply {
	return object(status, map[string]any{
		"type": "error", "request_id": "req_fake",
		"error": map[string]string{"type": kind, "message": http.StatusText(status)},
	})
}

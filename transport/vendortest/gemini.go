package vendortest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// NewGemini starts a fake of the Gemini API: POST /v1beta/models/NAME:generateContent,
// and :streamGenerateContent with alt=sse.
//
// It bills the tokens, 0.30 USD per million read and 2.50 per million written if Options
// has no prices, and nothing for what ends in a 500. It throttles with status 429 and
// RESOURCE_EXHAUSTED, and tells the pause only in the body.
func NewGemini(o Options) *Fake {
	return start(vendor{
		name: "gemini", hosts: []string{"generativelanguage.googleapis.com"},
		unit: "USD", price: 300, output: 2_500,
		answer: geminiAnswer, throttle: geminiThrottle, free500: true,
		fail: func(status int) reply { return geminiError(status, geminiStatus(status), nil) },
	}, o)
}

func geminiAnswer(c call) reply {
	rest, ok := strings.CutPrefix(c.URL.Path, "/v1beta/models/")
	model, method, _ := strings.Cut(rest, ":")
	streaming := method == "streamGenerateContent" && c.URL.Query().Get("alt") == "sse"
	var q struct {
		Contents          []any `json:"contents"`
		SystemInstruction any   `json:"systemInstruction"`
		Config            struct {
			MaxOutputTokens int `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	switch {
	case !ok || model == "" || !streaming && method != "generateContent":
		return geminiError(http.StatusNotFound, "NOT_FOUND", nil).refuse()
	case !c.decode(&q) || len(q.Contents) == 0:
		return geminiError(http.StatusBadRequest, "INVALID_ARGUMENT", nil).refuse()
	}
	n := c.converse(model, append(texts(q.SystemInstruction), texts(q.Contents)...), q.Config.MaxOutputTokens)
	id := fmt.Sprintf("gemini-%06d", c.serial())
	if !streaming {
		return object(http.StatusOK, geminiChunk(id, n, n.text(), n.output, true)).billTokens(c, id, n)
	}
	var all []string
	for i, w := range n.words {
		all = append(all, event("", geminiChunk(id, n, w, int64(i+1), i == len(n.words)-1)))
	}
	return stream(all).billTokens(c, id, n)
}

// geminiChunk tells what was written so far.
func geminiChunk(id string, n chat, text string, output int64, last bool) map[string]any {
	candidate := map[string]any{
		"index": 0, "content": map[string]any{"role": "model", "parts": []any{map[string]string{"text": text}}},
	}
	if last {
		candidate["finishReason"] = "STOP"
	}
	return map[string]any{
		"candidates": []any{candidate}, "modelVersion": n.model, "responseId": id,
		"usageMetadata": map[string]int64{"promptTokenCount": n.input, "candidatesTokenCount": output, "totalTokenCount": n.input + output},
	}
}

func geminiThrottle(_ call, why refusal) reply {
	var details []any
	if why.after > 0 {
		details = append(details, map[string]any{
			"@type":      "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": fmt.Sprintf("%.3fs", why.after.Round(time.Millisecond).Seconds()),
		})
	}
	a := geminiError(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", details)
	a.pause = why.after
	return a
}

func geminiStatus(status int) string {
	if status == http.StatusServiceUnavailable {
		return "UNAVAILABLE"
	}
	return "INTERNAL"
}

func geminiError(code int, status string, details []any) reply {
	e := map[string]any{"code": code, "status": status, "message": http.StatusText(code)}
	if details != nil {
		e["details"] = details
	}
	return object(code, map[string]any{"error": e})
}

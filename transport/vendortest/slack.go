package vendortest

import (
	"fmt"
	"net/http"
	"strings"
)

// NewSlack starts a fake of Slack's Web API: POST /api/chat.postMessage and other
// methods, with a form or JSON.
//
// Nothing is billed. It throttles with status 429, Retry-After and "ratelimited" in the
// body. Other errors are told in 200s.
func NewSlack(o Options) *Fake {
	return start(vendor{
		name: "slack", hosts: []string{"slack.com"}, unit: "USD",
		answer: slackAnswer,
		throttle: func(_ call, why refusal) reply {
			return slackError(http.StatusTooManyRequests, "ratelimited").hint(why.after)
		},
		fail: func(status int) reply { return slackError(status, "internal_error") },
	}, o)
}

func slackAnswer(c call) reply {
	method, ok := strings.CutPrefix(c.URL.Path, "/api/")
	if !ok || method == "" {
		return reply{status: http.StatusNotFound}.refuse()
	}
	if method != "chat.postMessage" {
		return object(http.StatusOK, map[string]any{"ok": true})
	}
	var m struct{ Channel, Text string }
	if !c.decode(&m) {
		f := c.form()
		m.Channel, m.Text = f.Get("channel"), f.Get("text")
	}
	switch {
	case m.Channel == "":
		return slackError(http.StatusOK, "channel_not_found").refuse()
	case m.Text == "":
		return slackError(http.StatusOK, "no_text").refuse()
	}
	ts := fmt.Sprintf("%d.%06d", c.now.Unix(), c.serial())
	return object(http.StatusOK, map[string]any{
		"ok": true, "channel": m.Channel, "ts": ts, "message": map[string]string{"type": "message", "text": m.Text, "ts": ts},
	})
}

func slackError(status int, code string) reply {
	return object(status, map[string]any{"ok": false, "error": code})
}

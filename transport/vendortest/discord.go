package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// NewDiscord starts a fake of Discord's API: POST /api/v10/channels/{id}/messages.
//
// Nothing is billed. It throttles with status 429 and tells the pause in Retry-After, in
// the body with fractions, and, as the state of its bucket, in headers.
func NewDiscord(o Options) *Fake {
	return start(vendor{
		name: "discord", hosts: []string{"discord.com"}, unit: "USD",
		answer: discordAnswer, headers: discordHeaders, throttle: discordThrottle,
		fail: func(status int) reply { return discordError(status, 0, http.StatusText(status)) },
	}, o)
}

func discordAnswer(c call) reply {
	path := strings.Split(strings.Trim(c.URL.Path, "/"), "/")
	if len(path) != 5 || path[0] != "api" || path[2] != "channels" || path[4] != "messages" {
		return discordError(http.StatusNotFound, 0, "404: Not Found").refuse()
	}
	if c.Method == http.MethodGet {
		return object(http.StatusOK, []any{})
	}
	var m struct{ Content string }
	if !c.decode(&m) || m.Content == "" {
		return discordError(http.StatusBadRequest, 50006, "Cannot send an empty message").refuse()
	}
	return object(http.StatusOK, map[string]any{
		"id": fmt.Sprintf("%018d", c.serial()), "channel_id": path[3], "content": m.Content,
		"timestamp": c.now.UTC().Format(time.RFC3339Nano),
	})
}

func discordThrottle(_ call, why refusal) reply {
	body := map[string]any{"message": "You are being rate limited.", "global": false}
	if why.after > 0 {
		body["retry_after"] = why.after.Round(time.Millisecond).Seconds()
	}
	return object(http.StatusTooManyRequests, body).hint(why.after).with("X-RateLimit-Scope", "user")
}

func discordHeaders(c call) map[string]string {
	if !c.windowed() {
		return nil
	}
	at := c.now.Add(c.reset)
	return map[string]string{
		"X-RateLimit-Limit":       strconv.Itoa(c.fake.opts.Limit.Requests),
		"X-RateLimit-Remaining":   strconv.Itoa(c.remaining),
		"X-RateLimit-Reset":       fmt.Sprintf("%d.%03d", at.Unix(), at.Nanosecond()/1e6),
		"X-RateLimit-Reset-After": fmt.Sprintf("%.3f", c.reset.Seconds()),
		"X-RateLimit-Bucket":      "abcd1234",
	}
}

func discordError(status, code int, message string) reply {
	return object(status, map[string]any{"code": code, "message": message})
}

package provider

import (
	"net/http"
	"path"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Slack is Slack's Web API for one app in one workspace. It costs nothing.
//
// Limits hold for each method, by tiers of 1, 20, 50 or 100 and more a minute, less for
// apps outside the Marketplace since 2025-05-29: the scope "method", whose Rates or RatesFor
// are yours to set. The scope "channel" sends at most one message a second to each channel
// (docs.slack.dev/apis/web-api/rate-limits, read 2026-11). For several workspaces add a
// provider for each, or put the workspace into the keys. There is no idempotency key.
//
// Incoming webhooks at hooks.slack.com belong to no preset.
func Slack() transport.Provider {
	channel := Field("channel")
	return transport.Provider{
		Name:  "slack",
		Match: []string{"slack.com/api/"},
		Scopes: []transport.Scope{
			{Name: "channel", Rates: []throttle.Rate{throttle.PerSecond(1)}, Key: func(r *http.Request) string {
				if path.Base(r.URL.Path) != "chat.postMessage" {
					return ""
				}
				return channel(r)
			}},
			{Name: "method", Key: func(r *http.Request) string { return path.Base(r.URL.Path) }},
		},
		Dialect: dialect.For("slack"),
		Price:   price.Free,
	}
}

// SlackRefusal makes Slack's error response of a refusal. It never has a Retry-After: its
// SDK for Node would stop for that long.
func SlackRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	r.Status = http.StatusTooManyRequests // it repeats all others for half an hour
	return slackShape.refuse(r)
}

var slackShape = shape{money: http.StatusTooManyRequests, quiet: true, members: func(f said) []member {
	return []member{{"ok", false}, {"error", f.pick("ratelimited", f.reason, f.reason)}}
}}

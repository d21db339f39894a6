package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Discord is Discord's API for one bot. It costs nothing.
//
// The default rate is 50 requests a second for the bot; every route has limits beside it,
// which only the headers tell (discord.com/developers/docs/topics/rate-limits, read
// 2026-11). The scope "route" is the method and the path, with the ids that Discord counts
// apart: of the channel, the guild or the webhook. 10,000 answers of 401, 403 or 429 in ten
// minutes ban the address for a while. There is no idempotency key.
func Discord() transport.Provider {
	return transport.Provider{
		Name:    "discord",
		Match:   []string{"discord.com/api/", "discordapp.com/api/"},
		Rates:   []throttle.Rate{throttle.PerSecond(50)},
		Scopes:  []transport.Scope{{Name: "route", Key: discordRoute}},
		Dialect: dialect.For("discord"),
		Price:   price.Free,
	}
}

// discordRoute is the method and the path without ids, but with the first one where
// Discord counts by it.
func discordRoute(r *http.Request) string {
	p := strings.TrimPrefix(r.URL.Path, "/api/")
	if version, rest, _ := strings.Cut(p, "/"); strings.HasPrefix(version, "v") && !isID(version) {
		p = rest
	}
	route := r.Method + " "
	switch kind, rest, _ := strings.Cut(p, "/"); kind {
	case "channels", "guilds", "webhooks":
		id, after, _ := strings.Cut(rest, "/")
		route, p = route+kind+"/"+id, after
	}
	return route + generic(p, 6)
}

// DiscordRefusal makes Discord's error response of a refusal.
func DiscordRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return discordShape.refuse(r)
}

var discordShape = shape{members: func(f said) []member { return []member{{"message", f.text}, {"code", 0}} }}

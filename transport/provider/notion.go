package provider

import (
	"net/http"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Notion is Notion's API for one connection. It costs nothing.
//
// The default rate is three requests a second, an average that Notion named for years; now
// it gives each connection a number for each minute by the plan of the workspace, and the
// workspace another (developers.notion.com/reference/request-limits, read 2026-11): set
// Rates to yours. A 529 says that the service is overloaded and is repeated, as the
// vendor's own SDK does. There is no idempotency key.
func Notion() transport.Provider {
	return transport.Provider{
		Name:    "notion",
		Match:   []string{"api.notion.com"},
		Rates:   []throttle.Rate{throttle.PerSecond(3)},
		Dialect: dialect.For("notion"),
		Retry:   transport.Retry{NotTaken: []int{529}},
		Price:   price.Free,
	}
}

// NotionRefusal makes Notion's error response of a refusal.
func NotionRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return notionShape.refuse(r)
}

var notionShape = shape{members: func(f said) []member {
	code := f.pick("rate_limited", "restricted_resource", "service_unavailable")
	return []member{{"object", "error"}, {"status", f.status}, {"code", code}, {"message", f.text}}
}}

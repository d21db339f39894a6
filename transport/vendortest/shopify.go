package vendortest

import (
	"net/http"
	"strings"
	"time"
)

// shopifyCost is what every query of the fake shop costs, in points.
const shopifyCost = 10

// NewShopify starts a fake of Shopify's GraphQL Admin API: POST
// /admin/api/VERSION/graphql.json of any shop.
//
// Nothing is billed. A request of the limit is ten points of a bucket. It throttles with
// status 200 and THROTTLED in the body, from whose points and restore rate the pause
// follows.
func NewShopify(o Options) *Fake {
	return start(vendor{
		name: "shopify", hosts: []string{"*.myshopify.com"}, unit: "USD",
		answer: shopifyAnswer, throttle: shopifyThrottle,
		fail: func(status int) reply { return object(status, map[string]any{"errors": http.StatusText(status)}) },
	}, o)
}

func shopifyAnswer(c call) reply {
	var q struct{ Query string }
	switch {
	case !strings.HasPrefix(c.URL.Path, "/admin/api/") || !strings.HasSuffix(c.URL.Path, "/graphql.json"):
		return object(http.StatusNotFound, map[string]any{"errors": "Not Found"}).refuse()
	case !c.decode(&q) || q.Query == "":
		return object(http.StatusBadRequest, map[string]any{"errors": map[string]string{"query": "Required parameter missing or invalid"}}).refuse()
	}
	available := 1000 - shopifyCost
	if c.windowed() {
		available = shopifyCost * c.remaining
	}
	return object(http.StatusOK, map[string]any{
		"data":       map[string]any{"shop": map[string]string{"name": "fake"}},
		"extensions": shopifyExtensions(c, shopifyCost, available, shopifyRestore(c.reset)),
	})
}

// shopifyRestore is how many points a second, a whole number as Shopify's, give back a
// request after a pause: after ten seconds at the latest.
func shopifyRestore(pause time.Duration) int64 {
	if pause <= 0 {
		return 50
	}
	return max(1, int64(shopifyCost*time.Second/pause))
}

func shopifyExtensions(c call, actual any, available int, restore int64) map[string]any {
	return map[string]any{"cost": map[string]any{
		"requestedQueryCost": shopifyCost, "actualQueryCost": actual,
		"throttleStatus": map[string]any{
			"maximumAvailable": max(1000, shopifyCost*c.fake.opts.Limit.Requests), "currentlyAvailable": available, "restoreRate": restore,
		},
	}}
}

func shopifyThrottle(c call, why refusal) reply {
	if why.planned {
		return object(http.StatusTooManyRequests, map[string]any{"errors": "Exceeded 2 calls per second for api client."}).hint(why.after)
	}
	restore := shopifyRestore(why.after)
	a := object(http.StatusOK, map[string]any{
		"errors":     []any{map[string]any{"message": "Throttled", "extensions": map[string]string{"code": "THROTTLED"}}},
		"extensions": shopifyExtensions(c, nil, 0, restore),
	})
	a.pause = shopifyCost * time.Second / time.Duration(restore)
	return a
}

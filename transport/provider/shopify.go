package provider

import (
	"net/http"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Shopify is Shopify's Admin API, GraphQL and REST, of any number of shops. It costs
// nothing.
//
// The scope "shop" is one shop's bucket. REST has 40 requests and refills 2 a second, which
// are the default rates; Advanced refills 4 and Plus 20
// (shopify.dev/docs/api/admin-rest/usage/rate-limits, read 2026-11): set the Rates of the
// scope, or its RatesFor if shops differ. GraphQL counts points: a query that is throttled,
// in a 200, waits until its cost has been refilled. There is no idempotency key for all
// calls.
func Shopify() transport.Provider {
	return transport.Provider{
		Name:  "shopify",
		Match: []string{"*.myshopify.com"},
		Scopes: []transport.Scope{{
			Name: "shop",
			Key: func(r *http.Request) string {
				if strings.HasSuffix(r.URL.Path, "/graphql.json") {
					return host(r) + "/graphql"
				}
				return host(r)
			},
			Rates: []throttle.Rate{{N: 2, Per: time.Second, Burst: 40}},
			RatesFor: func(key string) []throttle.Rate {
				if strings.HasSuffix(key, "/graphql") {
					return []throttle.Rate{}
				}
				return nil
			},
		}},
		Dialect: dialect.For("shopify"),
		Price:   price.Free,
	}
}

// ShopifyRefusal makes Shopify's error response of a refusal, which both of its APIs have.
func ShopifyRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return shopifyShape.refuse(r)
}

var shopifyShape = shape{members: func(f said) []member { return []member{{"errors", f.text}} }}

package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// IPAPI is the free service of ip-api.com, which is not for commercial use.
//
// The default rates are 45 requests a minute, and 15 for batches, each counted for the
// address that asks; who goes on at a 429 is banned for an hour (ip-api.com/docs, read
// 2026-11). The scope "endpoint" keeps the two apart. Machines behind one address need a
// limiter in common. The paid service at pro.ip-api.com has no limit and belongs to no
// preset.
func IPAPI() transport.Provider {
	batch := []throttle.Rate{throttle.PerMinute(15)}
	return transport.Provider{
		Name:  "ip-api",
		Match: []string{"ip-api.com"},
		Scopes: []transport.Scope{{
			Name: "endpoint",
			Key: func(r *http.Request) string {
				if strings.HasPrefix(r.URL.Path, "/batch") {
					return "batch"
				}
				return "single"
			},
			Rates: []throttle.Rate{throttle.PerMinute(45)},
			RatesFor: func(key string) []throttle.Rate {
				if key == "batch" {
					return batch
				}
				return nil
			},
		}},
		Dialect: dialect.For("ip-api"),
		Price:   price.Free,
	}
}

// IPAPIRefusal makes ip-api's error response of a refusal.
func IPAPIRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return ipapiShape.refuse(r)
}

var ipapiShape = shape{members: func(f said) []member { return []member{{"status", "fail"}, {"message", f.text}} }}

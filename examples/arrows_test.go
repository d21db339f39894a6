package examples_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	testify = "github.com/stretchr/testify"
	sqlite  = "github.com/ncruces/go-sqlite3"
	goRedis = "github.com/redis/go-redis/v9"
)

// edges are the only imports that each package may have beside the standard library:
// packages of this module by their folder, and foreign modules. Who imports only
// transport compiles no adapter, and the parts can be understood one by one.
var edges = map[string][]string{
	"throttle":                         {"golang.org/x/time"},
	"throttle/redislimiter":            {"throttle", "throttle/redislimiter/redisstore", goRedis},
	"throttle/limitertest":             {"throttle", testify},
	"budget":                           {},
	"budget/price":                     {"budget"},
	"budget/sqliteledger":              {"budget", sqlite},
	"budget/redisledger":               {"budget", "throttle/redislimiter/redisstore", goRedis},
	"budget/ledgertest":                {"budget", testify},
	"throttle/redislimiter/redisstore": {goRedis},
	"throttle/redislimiter/redistest":  {"throttle/redislimiter/redisstore", goRedis, testify},
	"transport":                        {"budget", "throttle", "transport/dialect", "github.com/cenkalti/backoff/v4"},
	"transport/dialect":                {},
	"transport/provider":               {"budget", "budget/price", "throttle", "transport", "transport/dialect"},
	"transport/vendortest":             {"budget"}, // it is the oracle, and counts for itself
	"transport/statuspage":             {"budget", "transport"},
	"transport/promtransport":          {"budget", "throttle", "transport", "github.com/prometheus/client_golang"},
	"transport/oteltransport":          {"budget", "transport", "go.opentelemetry.io/otel"},
	"transport/gateway": {
		"budget", "budget/price", "throttle", "transport", "transport/dialect", "transport/provider", "github.com/goccy/go-yaml",
	},
}

// testEdges are further imports that the tests of a package may have.
var testEdges = map[string][]string{
	"throttle":                {"throttle/limitertest"},
	"throttle/redislimiter":   {"throttle/limitertest", "throttle/redislimiter/redistest"},
	"budget":                  {"budget/ledgertest"},
	"budget/sqliteledger":     {"budget/ledgertest"},
	"budget/redisledger":      {"budget/ledgertest", "throttle/redislimiter/redistest"},
	"transport/promtransport": {"budget/price"},
	"transport/statuspage":    {"budget/price", "throttle", "budget/redisledger", "throttle/redislimiter/redistest"},
	"transport/oteltransport": {"budget/price", "throttle"},
	"transport/gateway":       {"budget/sqliteledger", "transport/vendortest"},
	// The parts are tried where they are joined, and compared with a bare limiter.
	"transport": {"budget/price", "transport/vendortest", "golang.org/x/time"},
}

// testTools may be imported by every test.
var testTools = []string{testify, "go.uber.org/goleak", "github.com/jarcoal/httpmock"}

func TestImportEdges(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir == "examples" || strings.HasPrefix(s.dir, "examples/") {
			continue // examples may import anything
		}
		allowed, known := edges[s.dir]
		assert.True(t, known, "%s: there is no package %s", s.name, s.dir)
		allowed = slices.Concat(allowed, []string{s.dir})
		if s.test {
			allowed = slices.Concat(allowed, testEdges[s.dir], testTools)
		}
		for _, p := range s.imports() {
			assert.True(t, isAllowed(p, allowed), "%s imports %s", s.name, p)
		}
	}
}

// isAllowed reports whether the import path p is of the standard library or in one of
// the allowed folders and modules.
func isAllowed(p string, allowed []string) bool {
	first, _, _ := strings.Cut(p, "/")
	if !strings.Contains(first, ".") {
		return true
	}
	if inside, ok := strings.CutPrefix(p, module+"/"); ok {
		return slices.Contains(allowed, inside)
	}
	return slices.ContainsFunc(allowed, func(a string) bool { return p == a || strings.HasPrefix(p, a+"/") })
}

func TestIsAllowed(t *testing.T) {
	allowed := []string{"budget", "golang.org/x/time"}
	for p, want := range map[string]bool{
		"net/http":                         true,
		module + "/budget":                 true,
		module + "/budget/price":           false,
		module + "/transport":              false,
		"golang.org/x/time/rate":           true,
		"golang.org/x/timex":               false,
		"github.com/redis/go-redis/v9":     false,
		"github.com/elsewhere/budget/fake": false,
	} {
		assert.Equal(t, want, isAllowed(p, allowed), p)
	}
}

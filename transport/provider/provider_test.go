package provider_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// withBudget is a preset with a day's budget in its currency.
func (p preset) withBudget() transport.Provider {
	made := p.make()
	b := budget.PerDay(100 * budget.Unit)
	b.Unit = p.unit
	made.Budgets = []budget.Budget{b}
	return made
}

// together is a transport with all presets side by side.
func together(t testing.TB) *transport.Transport {
	t.Helper()
	config := transport.Config{Ledger: new(budget.Memory)}
	for _, p := range presets {
		config.Providers = append(config.Providers, p.withBudget())
	}
	rt, err := transport.New(config)
	require.NoError(t, err)
	return rt
}

func TestEachAlone(t *testing.T) {
	for _, p := range presets {
		t.Run(p.function, func(t *testing.T) {
			_, err := transport.New(transport.Config{Ledger: new(budget.Memory), Providers: []transport.Provider{p.withBudget()}})
			require.NoError(t, err)
			made := p.make()
			require.Empty(t, made.Budgets, "money is the user's matter")
			require.Nil(t, made.Refusal, "refusals are errors unless the user wants otherwise")
			require.NotNil(t, made.Price)
		})
	}
}

func TestAnotherCurrencyIsFound(t *testing.T) {
	for _, p := range presets {
		if p.billed == "free" {
			continue // in any currency
		}
		made := p.withBudget()
		made.Budgets[0].Unit = "CHF"
		_, err := transport.New(transport.Config{Ledger: new(budget.Memory), Providers: []transport.Provider{made}})
		require.ErrorContains(t, err, "Price: is in "+p.unit, p.function)
	}
}

func TestPresetsAreValues(t *testing.T) {
	for _, p := range presets {
		a, b := p.make(), p.make()
		for i := range a.Rates {
			a.Rates[i].N++
			require.NotEqual(t, a.Rates[i], b.Rates[i], p.function)
		}
		for i := range a.Match {
			a.Match[i] += "x"
			require.NotEqual(t, a.Match[i], b.Match[i], p.function)
		}
		for i := range a.Scopes {
			a.Scopes[i].Name += "x"
			require.NotEqual(t, a.Scopes[i].Name, b.Scopes[i].Name, p.function)
		}
	}
}

func TestQuotaDays(t *testing.T) {
	zones := map[string]string{}
	for _, p := range presets {
		if z := p.make().QuotaZone; z != nil {
			zones[p.function] = z.String()
		}
	}
	require.Equal(t, map[string]string{
		"GoogleGeocoding": "America/Los_Angeles", "GooglePlaces": "America/Los_Angeles", "GoogleDistanceMatrix": "America/Los_Angeles",
		"GoogleRoutes": "America/Los_Angeles", "Gemini": "America/Los_Angeles", "OpenCage": "UTC",
	}, zones)
}

// vector is the part of a vendor's response that says whether it is a throttle.
type vector struct {
	Vendor, Case string
	Response     struct {
		Status  int
		Headers map[string][]string
		Body    string
	}
	Now    time.Time
	Expect struct {
		Throttled *bool
	}
}

// alsoReads are vendors whose responses a preset meets beside its own.
var alsoReads = map[string][]string{
	"Shopify":              {"Shopify REST", "Shopify GraphQL"},
	"GoogleDistanceMatrix": {"Google Distance Matrix"},
	"AWSSES":               {"AWS SES v2"},
	"X":                    {"X (Twitter)"},
}

// TestDialects: each preset reads its own vendor's responses.
func TestDialects(t *testing.T) {
	text, err := os.ReadFile("../dialect/testdata/vendor-signals.json")
	require.NoError(t, err)
	var vectors []vector
	require.NoError(t, json.Unmarshal(text, &vectors))
	read := 0
	for _, p := range presets {
		d := p.make().Dialect
		require.Equal(t, dialect.For(p.vendor), d, p.function)
		require.NotEqual(t, dialect.Dialect(dialect.Standard{}), d, p.function)
		names := append(alsoReads[p.function], p.vendor)
		for _, v := range vectors {
			if !contains(names, v.Vendor) || v.Expect.Throttled == nil {
				continue
			}
			a := dialect.Answer{Status: v.Response.Status, Header: http.Header{}, Now: v.Now}
			for k, lines := range v.Response.Headers {
				a.Header[http.CanonicalHeaderKey(k)] = lines
			}
			if d.WantsBody(a.Status, a.Header) {
				a.Body = []byte(v.Response.Body)
			}
			require.Equal(t, *v.Expect.Throttled, d.Read(a).Throttled, "%s: %s", p.function, v.Case)
			read++
		}
	}
	require.Greater(t, read, 80, "responses of vendors with a preset")
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

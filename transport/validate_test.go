package transport_test

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

func TestNewNamesEveryWrongField(t *testing.T) {
	day := budget.PerDay(50 * budget.Unit)
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	elsewhere := day
	elsewhere.Name, elsewhere.Zone = "shared", tokyo
	here := day
	here.Name = "shared"
	euro := day
	euro.Unit = "EUR"
	for _, c := range []struct {
		name   string
		change func(*transport.Config, *transport.Provider)
		paths  []string
	}{
		{"no name", func(_ *transport.Config, p *transport.Provider) { p.Name = "" }, []string{"Providers[0].Name"}},
		{"control characters in a name", func(_ *transport.Config, p *transport.Provider) { p.Name = "a\x1fb" }, []string{"Providers[0].Name"}},
		{"no pattern", func(_ *transport.Config, p *transport.Provider) { p.Match = nil }, []string{"Providers[0].Match"}},
		{"pattern with scheme", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"https://api.example.com"} }, []string{"Providers[0].Match[0]"}},
		{"pattern without host", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"x.example", "/v1/"} }, []string{"Providers[0].Match[1]"}},
		{"wildcard inside", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"api.*.com"} }, []string{"Providers[0].Match[0]"}},
		{"host not ASCII", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"bücher.example"} }, []string{"Providers[0].Match[0]"}},
		{"comma in a host", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"api.twilio,com"} }, []string{"Providers[0].Match[0]"}},
		{"space in a host", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"POST  x.example y.example/z"} }, []string{"Providers[0].Match[0]"}},
		{"method in small letters", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"post x.example"} }, []string{"Providers[0].Match[0]"}},
		{"unreachable pattern", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"x.example/a//b"} }, []string{"Providers[0].Match[0]"}},
		{"bad wildcard", func(_ *transport.Config, p *transport.Provider) { p.Match = []string{"x.example/{a"} }, []string{"Providers[0].Match[0]"}},
		{"overlapping patterns", func(_ *transport.Config, p *transport.Provider) {
			p.Match = []string{"x.example/a/{b}", "x.example/{c}/d"}
		}, []string{"Providers[0].Match[1]"}},
		{"pattern of another provider", func(c *transport.Config, p *transport.Provider) {
			c.Providers = []transport.Provider{{Name: "other", Match: []string{"API.example.com:443"}}}
		}, []string{"Providers[1].Match[0]"}},
		{"two of one name", func(c *transport.Config, p *transport.Provider) {
			c.Providers = []transport.Provider{{Name: "api", Match: []string{"other.example"}}}
		}, []string{"Providers[1].Name"}},
		{"rates", func(_ *transport.Config, p *transport.Provider) {
			p.Rates = []throttle.Rate{throttle.PerSecond(10), {}, throttle.PerSecond(0), {N: -1, Per: time.Second}, {N: 1, Per: -1}, {N: 1, Per: time.Second, Burst: -1}}
		}, []string{"Providers[0].Rates[1]", "Providers[0].Rates[2]", "Providers[0].Rates[3]", "Providers[0].Rates[4]", "Providers[0].Rates[5]"}},
		{"slots", func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = -1 }, []string{"Providers[0].MaxInFlight"}},
		{"waits", func(c *transport.Config, p *transport.Provider) { c.MaxWait, p.MaxWait = -2, -time.Second }, []string{"MaxWait", "Providers[0].MaxWait"}},
		{"retry", func(_ *transport.Config, p *transport.Provider) {
			p.Retry = transport.Retry{Attempts: -1, MaxRetryAfter: -1, Backoff: math.MaxInt64, Share: 101, NotTaken: []int{200}, Unknown: 9}
		}, []string{"Providers[0].Retry.Attempts", "Providers[0].Retry.MaxRetryAfter", "Providers[0].Retry.Backoff", "Providers[0].Retry.Share", "Providers[0].Retry.NotTaken[0]", "Providers[0].Retry.Unknown"}},
		{"header", func(_ *transport.Config, p *transport.Provider) { p.IdempotencyHeader = "Idempotency Key" }, []string{"Providers[0].IdempotencyHeader"}},
		{"scopes", func(_ *transport.Config, p *transport.Provider) {
			p.Scopes = []transport.Scope{{Name: "a"}, {Name: "a"}, {Rates: []throttle.Rate{{}}, Max: -1}}
		}, []string{"Providers[0].Scopes[1].Name", "Providers[0].Scopes[2].Name", "Providers[0].Scopes[2].Rates[0]", "Providers[0].Scopes[2].Max"}},
		{"empty budget", func(_ *transport.Config, p *transport.Provider) { p.Budgets = []budget.Budget{{}} }, []string{"Providers[0].Budgets[0]"}},
		{"negative budget", func(c *transport.Config, p *transport.Provider) { c.Budgets = []budget.Budget{budget.PerDay(-1)} }, []string{"Budgets[0]"}},
		{"two budgets of one name", func(_ *transport.Config, p *transport.Provider) { p.Budgets = []budget.Budget{day, day} }, []string{"Providers[0].Budgets[1].Name"}},
		{"no ledger", func(c *transport.Config, _ *transport.Provider) { c.Ledger = nil }, []string{"Ledger"}},
		{"no price", func(_ *transport.Config, p *transport.Provider) { p.Price = nil }, []string{"Providers[0].Price"}},
		{"price without its unit", func(_ *transport.Config, p *transport.Provider) { p.Price = price.PerCall(1) }, []string{"Providers[0].Price"}},
		{"assumed price without its unit", func(_ *transport.Config, p *transport.Provider) { p.Price = price.Assume(50) }, []string{"Providers[0].Price"}},
		{"unit price without its unit", func(_ *transport.Config, p *transport.Provider) {
			p.Price = price.Per(2, func(*http.Request) (int64, error) { return 1, nil })
		}, []string{"Providers[0].Price"}},
		{"price below zero", func(_ *transport.Config, p *transport.Provider) { p.Price = price.PerCall(-budget.Unit) }, []string{"Providers[0].Price"}},
		{"segment without its unit", func(_ *transport.Config, p *transport.Provider) {
			p.Price = price.SMS{Segment: budget.Unit, Prefixes: map[string]budget.Amount{"+1": 2}}
		}, []string{"Providers[0].Price"}},
		{"other currency", func(_ *transport.Config, p *transport.Provider) { p.Budgets = []budget.Budget{euro} }, []string{"Providers[0].Price"}},
		{"one name, two budgets", func(c *transport.Config, p *transport.Provider) {
			p.Budgets = []budget.Budget{here}
			c.Budgets = []budget.Budget{elsewhere}
		}, []string{"Providers[0].Budgets"}},
		{"unknown policy", func(c *transport.Config, _ *transport.Provider) { c.Unmatched = 9 }, []string{"Unmatched"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := transport.Provider{Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit), Budgets: []budget.Budget{day}}
			k := transport.Config{Ledger: new(budget.Memory)}
			c.change(&k, &p)
			k.Providers = append(k.Providers, p)
			rt, err := transport.New(k)
			require.Nil(t, rt)
			require.Error(t, err)
			for _, path := range c.paths {
				require.Contains(t, "\n"+err.Error(), path+":")
			}
		})
	}
}

// One mistake is one line, and no line says what is not so.
func TestOneNameOfTwoBudgetsIsOneLine(t *testing.T) {
	team := func(limit budget.Amount) []budget.Budget {
		b := budget.PerDay(limit * budget.Unit)
		b.Name = "team"
		return []budget.Budget{b}
	}
	for _, c := range []struct {
		name             string
		all, first, last []budget.Budget
		want             []string
	}{
		{"one provider's", nil, slices.Concat(team(1), team(1)), nil, []string{"Providers[0].Budgets[1].Name"}},
		{"one provider's, which differ", nil, slices.Concat(team(1), team(2)), nil, []string{"Providers[0].Budgets[1].Name"}},
		{"of all", slices.Concat(team(1), team(2)), nil, nil, []string{"Budgets[1].Name"}},
		{"of all and of the first", team(1), team(1), nil, []string{"Providers[0].Budgets"}},
		{"of all and of the first, which differ", team(1), team(2), nil, []string{"Providers[0].Budgets"}},
		{"of all and of the last, which differ", team(1), nil, team(2), []string{"Providers[1].Budgets"}},
		{"of two that share it", nil, team(1), team(1), nil},
		{"of two, which differ", nil, team(1), team(2), []string{"Providers[1].Budgets"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := func(name string, b []budget.Budget) transport.Provider {
				return transport.Provider{Name: name, Match: []string{name + ".example"}, Price: price.PerCall(budget.Unit), Budgets: b}
			}
			_, err := transport.New(transport.Config{Ledger: new(budget.Memory), Budgets: c.all, Providers: []transport.Provider{of("a", c.first), of("b", c.last)}})
			var got []string
			if err != nil {
				for line := range strings.Lines(err.Error()) {
					path, _, _ := strings.Cut(strings.TrimPrefix(line, "transport: configuration: "), ": ")
					got = append(got, path)
				}
			}
			require.Equal(t, c.want, got, "%v", err)
		})
	}
}

func TestAPriceOfNothingIsSaidAloud(t *testing.T) {
	p := transport.Provider{Name: "api", Match: []string{"api.example.com"}, Budgets: []budget.Budget{budget.PerDay(budget.Unit)}}
	_, err := transport.New(transport.Config{Ledger: new(budget.Memory), Providers: []transport.Provider{p}})
	require.ErrorContains(t, err, "price.Free")
	p.Price = price.Free
	_, err = transport.New(transport.Config{Ledger: new(budget.Memory), Providers: []transport.Provider{p}})
	require.NoError(t, err)
}

func TestNewKeepsNothingOfTheCallers(t *testing.T) {
	rates := []throttle.Rate{throttle.PerMinute(1)}
	match := []string{"api.example.com"}
	w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
		c.MaxWait, p.Rates, p.Match = transport.NoWait, rates, match
	})
	rates[0], match[0] = throttle.PerSecond(1_000_000), "other.example"
	_, err := w.get()
	require.NoError(t, err)
	_, err = w.get()
	require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
}

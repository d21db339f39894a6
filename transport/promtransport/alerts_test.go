package promtransport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// scrapes is an account of what Prometheus would have scraped, by the minute.
type scrapes struct {
	rules  string // what is not in there is not kept
	begin  time.Time
	minute int
	series map[string][]float64 // NaN: absent
}

// take keeps what the rules read of one scrape.
func (s *scrapes) take(t *testing.T, w *world) {
	w.m.Forget()
	for line := range strings.Lines(w.scrape(t)) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		name, labels, _ := strings.Cut(strings.TrimSuffix(line[:end], "}"), "{")
		if line[0] == '#' || !strings.Contains(s.rules, name) {
			continue
		}
		v, err := strconv.ParseFloat(line[end+1:], 64)
		require.NoError(t, err, line)
		if strings.Contains(name, "_window_") { // the time of promtool begins in 1970
			v -= float64(s.begin.Unix())
		}
		s.put(strings.TrimSuffix(name+`{job="web",instance="a",`+labels, ",")+"}", v)
	}
	s.minute++
}

func (s *scrapes) put(key string, v float64) {
	all := s.series[key]
	for len(all) < s.minute {
		all = append(all, math.NaN())
	}
	s.series[key] = append(all, v)
}

// firing are the alerts that promtool finds firing at a minute.
type firing struct {
	minute int
	alerts []string
}

// check runs the rules over what was scraped.
func (s *scrapes) check(t *testing.T, want []firing) {
	rules, err := filepath.Abs("outlay.rules.yaml")
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n", rules)
	for _, key := range slices.Sorted(maps.Keys(s.series)) {
		var values strings.Builder
		for _, v := range s.series[key] {
			if math.IsNaN(v) {
				values.WriteString("_ ")
				continue
			}
			fmt.Fprintf(&values, "%v ", v)
		}
		fmt.Fprintf(&b, "  - {series: '%s', values: '%s'}\n", key, values.String())
	}
	b.WriteString("  promql_expr_test:\n")
	for _, f := range want {
		fmt.Fprintf(&b, "  - expr: group by (alertname) (ALERTS{alertstate=\"firing\"})\n    eval_time: %dm\n    exp_samples:\n", f.minute)
		for _, a := range f.alerts {
			fmt.Fprintf(&b, "    - {labels: '{alertname=\"Outlay%s\"}', value: 1}\n", a)
		}
	}
	file := filepath.Join(t.TempDir(), "test.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	require.Contains(t, promtool(t, "test", "rules", file), "SUCCESS")
}

// hand is a provider, a price and a ledger that do what a test says.
type hand struct {
	budget.Memory
	mu             sync.Mutex
	code           int // 0: no answer
	cost           budget.Amount
	unpriced, away bool
	throttles      bool // every fourth call
	calls          int
}

func (h *hand) set(f func(*hand)) { h.mu.Lock(); defer h.mu.Unlock(); f(h) }

func (h *hand) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls++; h.throttles && h.calls%4 == 0 {
		return status(429, "Retry-After", "1")(req)
	}
	if h.code == 0 {
		return nil, errors.New("connection reset by peer")
	}
	return status(h.code)(req)
}

func (h *hand) Quote(*http.Request) (q budget.Quote, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unpriced {
		return q, budget.ErrUnpriced
	}
	return budget.Quote{Amount: budget.Unit / 100}, nil
}

func (h *hand) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cost := h.cost
	return io.Discard, func() (budget.Amount, bool) { return cost, true }
}

func (h *hand) Hold(ctx context.Context, x budget.Hold) (budget.Report, error) {
	if h.gone() {
		return budget.Report{}, budget.ErrUnavailable
	}
	return h.Memory.Hold(ctx, x)
}

func (h *hand) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	if h.gone() {
		return nil, budget.ErrUnavailable
	}
	return h.Memory.Totals(ctx, at, b...)
}

func (h *hand) gone() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.away }

// between runs f at two minutes: when the trouble begins and when it is over.
func between(from, to int, f func(h *hand, on bool)) func(*testing.T, *world, *hand, int) {
	return func(_ *testing.T, _ *world, h *hand, minute int) {
		if minute == from || minute == to {
			h.set(func(h *hand) { f(h, minute == from) })
		}
	}
}

// Real calls are scraped by the minute: each alert fires in the trouble that it is for,
// beside those that belong to it, and is over when the trouble is.
func TestAlertsOfRealCalls(t *testing.T) {
	if raceEnabled {
		t.Skip("hours of calls one after the other: the race detector sees nothing in them")
	}
	by := budget.By{Who: "maria", Why: "duplicate charges"}
	steady := func(int) int { return 1 }
	limit := func(dollars budget.Amount) func(*transport.Config) {
		return func(c *transport.Config) {
			c.Providers[0].Budgets = []budget.Budget{budget.PerDay(dollars * budget.Unit)}
		}
	}
	rules, err := os.ReadFile("outlay.rules.yaml")
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		length int // minutes
		calls  func(minute int) int
		change func(*transport.Config)
		step   func(*testing.T, *world, *hand, int)
		want   []firing
	}{
		{"a quiet day", 300, steady, nil, nil, []firing{{30, nil}, {120, nil}, {299, nil}}},
		{"the ledger is away, and nobody calls when it is back", 80, func(m int) int { return map[bool]int{true: 2}[m < 50] }, nil,
			between(30, 50, func(h *hand, on bool) { h.away = on }),
			[]firing{{29, nil}, {49, []string{"LedgerUnreachable", "CallsRefused", "CollectFailing"}}, {70, nil}}},
		{"a runaway loop", 1600, func(m int) int { return map[bool]int{true: 10, false: 1}[m >= 300 && m < 600] }, nil, nil,
			[]firing{{299, nil}, {350, []string{"BudgetForecastExhausted"}}, {430, []string{"BudgetForecastExhausted", "BudgetExhaustingSoon"}},
				{560, []string{"BudgetExhausted"}}, {1400, []string{"BudgetExhausted"}}, {1450, nil}, {1599, nil}}},
		{"the provider throttles", 120, func(int) int { return 20 }, limit(1000), between(30, 60, func(h *hand, on bool) { h.throttles = on }),
			[]firing{{29, nil}, {59, []string{"UpstreamThrottling"}}, {119, nil}}},
		{"no answers, and an invoice that knows", 200, func(int) int { return 5 }, limit(100), func(t *testing.T, w *world, h *hand, minute int) {
			between(30, 60, func(h *hand, on bool) { h.code = map[bool]int{true: 0, false: 200}[on] })(t, w, h, minute)
			if minute < 120 {
				return
			}
			open, err := w.Unresolved(t.Context(), "api", 0)
			require.NoError(t, err)
			for _, u := range open {
				_, err := w.Correct(t.Context(), u.ID, budget.Unit/100, by)
				require.NoError(t, err)
			}
		}, []firing{{29, nil}, {119, []string{"PresumedShareHigh"}}, {130, nil}}},
		{"costs above the holds", 200, steady, nil, between(30, 60, func(h *hand, on bool) { h.cost = budget.Unit / map[bool]budget.Amount{true: 50, false: 100}[on] }),
			[]firing{{29, nil}, {59, []string{"Overrun"}}, {199, nil}}},
		{"calls without a price", 90, func(int) int { return 40 }, limit(1000), between(30, 40, func(h *hand, on bool) { h.unpriced = on }),
			[]firing{{29, nil}, {39, []string{"UnpricedCallsRefused"}}, {60, nil}}},
		{"a frozen provider", 90, steady, nil, func(t *testing.T, w *world, _ *hand, minute int) {
			switch minute {
			case 30:
				require.NoError(t, w.Freeze(t.Context(), "api", by))
			case 50:
				require.NoError(t, w.Release(t.Context(), "api", by))
			}
		}, []firing{{29, nil}, {49, []string{"CallsRefused"}}, {70, nil}}},
		{"more calls than the rate", 200, func(m int) int { return map[bool]int{true: 3, false: 1}[m >= 30 && m < 60] }, func(c *transport.Config) {
			c.Providers[0].Rates = []throttle.Rate{throttle.PerMinute(2)}
			c.Providers[0].MaxWait = time.Hour
		}, nil, []firing{{29, nil}, {59, []string{"QueueWaitHigh"}}, {199, nil}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			promtool(t, "--version")
			var s *scrapes
			synctest.Test(t, func(t *testing.T) {
				h := &hand{code: 200, cost: budget.Unit / 100}
				w := newWorld(t, h, h, func(c *transport.Config) {
					p := &c.Providers[0]
					p.Price, p.Retry.Attempts = h, 1
					p.Budgets = []budget.Budget{budget.PerDay(20 * budget.Unit)}
					if tt.change != nil {
						tt.change(c)
					}
				})
				s = &scrapes{rules: string(rules), begin: time.Now(), series: map[string][]float64{}}
				var wg sync.WaitGroup
				for minute := range tt.length {
					s.take(t, w)
					if tt.step != nil {
						tt.step(t, w, h, minute)
					}
					for range tt.calls(minute) {
						wg.Go(func() { _ = w.get(t.Context()) })
					}
					time.Sleep(time.Minute)
				}
				wg.Wait()
			})
			s.check(t, tt.want)
		})
	}
}

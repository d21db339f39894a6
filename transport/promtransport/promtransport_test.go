package promtransport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/promtransport"
)

// answer is a Base whose answers a test chooses.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

func status(code int, header ...string) answer {
	return func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		resp := w.Result()
		resp.Request = req
		return resp, nil
	}
}

// world is a transport with its metrics.
type world struct {
	*transport.Transport
	m   *promtransport.Metrics
	reg *prometheus.Registry
}

func newWorld(t testing.TB, base http.RoundTripper, ledger budget.Ledger, change ...func(*transport.Config)) *world {
	t.Helper()
	w := &world{m: promtransport.New(promtransport.Options{Timeout: 50 * time.Millisecond}), reg: prometheus.NewPedanticRegistry()}
	c := transport.Config{Base: base, Ledger: ledger, OnEvent: w.m.Observe, Providers: []transport.Provider{{
		Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit / 2),
		Budgets: []budget.Budget{budget.PerDay(10 * budget.Unit)},
	}}}
	for _, f := range change {
		f(&c)
	}
	rt, err := transport.New(c)
	require.NoError(t, err)
	w.Transport = rt
	w.m.Watch(rt)
	require.NoError(t, w.reg.Register(w.m))
	return w
}

func (w *world) get(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/v1", nil)
	if err != nil {
		return err
	}
	resp, err := w.RoundTrip(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// scrape is what Prometheus would read.
func (w *world) scrape(t testing.TB) string {
	t.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(w.reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).
		ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	return rec.Body.String()
}

// value is that of the series with the name and labels, as Prometheus writes them.
func value(t testing.TB, scrape, series string) string {
	t.Helper()
	for line := range strings.Lines(scrape) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return "absent"
}

func TestEverythingIsAtZeroBeforeTheFirstCall(t *testing.T) {
	out := newWorld(t, status(200), new(budget.Memory)).scrape(t)
	for _, series := range []string{
		`outlay_calls_total{outcome="answered",provider="api"}`,
		`outlay_refusals_total{provider="api",reason="exhausted"}`,
		`outlay_budget_refusals_total{budget="api-day",reason="exhausted"}`,
		`outlay_spend_amount_total{provider="api",state="presumed",unit="USD"}`,
		`outlay_store_errors_total{error="timeout",store="ledger"}`,
		`outlay_collect_errors_total`,
		`outlay_queue_length{priority="bulk",provider="api"}`,
		`outlay_frozen{provider="api"}`,
	} {
		require.Equal(t, "0", value(t, out, series), series)
	}
}

func TestLint(t *testing.T) {
	w := newWorld(t, status(200), new(budget.Memory))
	require.NoError(t, w.get(t.Context()))
	problems, err := testutil.CollectAndLint(w.m)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestFamilies(t *testing.T) {
	descs := make(chan *prometheus.Desc, 100)
	promtransport.New(promtransport.Options{}).Describe(descs)
	require.Len(t, descs, 43)
}

func TestCounts(t *testing.T) {
	reset := answer(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") })
	free := func(c *transport.Config) { c.Providers[0].Retry.Attempts = 1 }
	dear := func(c *transport.Config) { c.Providers[0].Price = price.PerCall(11 * budget.Unit) }
	tests := []struct {
		name   string
		base   http.RoundTripper
		change func(*transport.Config)
		series map[string]string
	}{
		{"answered", status(200), free, map[string]string{
			`outlay_calls_total{outcome="answered",provider="api"}`:                              "1",
			`outlay_attempts_total{code_class="2xx",provider="api"}`:                             "1",
			`outlay_attempt_duration_seconds_count{provider="api"}`:                              "1",
			`outlay_wait_duration_seconds_count{priority="normal",provider="api",result="turn"}`: "1",
			`outlay_spend_amount_total{provider="api",state="settled",unit="USD"}`:               "0.5",
			`outlay_holds_total{outcome="settled",provider="api"}`:                               "1",
			`outlay_store_operation_duration_seconds_count{op="hold",store="ledger"}`:            "1",
			`outlay_store_operation_duration_seconds_count{op="resolve",store="ledger"}`:         "1",
		}},
		{"throttled", status(429, "Retry-After", "7"), free, map[string]string{
			`outlay_calls_total{outcome="throttled",provider="api"}`: "1",
			`outlay_throttles_total{provider="api",source="status"}`: "1",
			`outlay_holds_total{outcome="voided",provider="api"}`:    "1",
			`outlay_closed_gates{provider="api"}`:                    "1",
		}},
		{"no answer", reset, free, map[string]string{
			`outlay_calls_total{outcome="failed",provider="api"}`:                   "1",
			`outlay_attempts_total{code_class="error",provider="api"}`:              "1",
			`outlay_spend_amount_total{provider="api",state="presumed",unit="USD"}`: "0.5",
		}},
		{"odd status", status(799), free, map[string]string{
			`outlay_attempts_total{code_class="error",provider="api"}`: "1",
		}},
		{"exhausted", status(200), dear, map[string]string{
			`outlay_calls_total{outcome="refused",provider="api"}`:              "1",
			`outlay_refusals_total{provider="api",reason="exhausted"}`:          "1",
			`outlay_budget_refusals_total{budget="api-day",reason="exhausted"}`: "1",
			`outlay_attempts_total{code_class="2xx",provider="api"}`:            "0",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.base, new(budget.Memory), tt.change)
			_ = w.get(t.Context())
			out := w.scrape(t)
			for series, want := range tt.series {
				require.Equal(t, want, value(t, out, series), series)
			}
		})
	}
}

// A waiter who leaves is seen: a percentile of those who stayed would lie.
func TestAWaiterWhoLeavesIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, status(200), new(budget.Memory), func(c *transport.Config) {
			c.Providers[0].Rates = []throttle.Rate{throttle.PerMinute(1)}
			c.Providers[0].MaxWait = time.Hour
		})
		require.NoError(t, w.get(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		require.ErrorIs(t, w.get(ctx), context.Canceled)
		out := w.scrape(t)
		require.Equal(t, "1", value(t, out, `outlay_wait_duration_seconds_count{priority="normal",provider="api",result="left"}`))
		require.Equal(t, "3", value(t, out, `outlay_wait_duration_seconds_sum{priority="normal",provider="api",result="left"}`))
		require.Equal(t, "1", value(t, out, `outlay_wait_duration_seconds_count{priority="normal",provider="api",result="turn"}`))
	})
}

func TestFrozenAndCorrected(t *testing.T) {
	w := newWorld(t, status(500), new(budget.Memory), func(c *transport.Config) { c.Providers[0].Retry.Attempts = 1 })
	require.NoError(t, w.get(t.Context()))
	by := budget.By{Who: "maria", Why: "invoice of November"}
	open, err := w.Unresolved(t.Context(), "api", 0)
	require.NoError(t, err)
	require.Len(t, open, 1)
	_, err = w.Correct(t.Context(), open[0].ID, budget.Unit/5, by)
	require.NoError(t, err)
	require.NoError(t, w.Freeze(t.Context(), "api", by))
	out := w.scrape(t)
	require.Equal(t, "0.3", value(t, out, `outlay_corrections_amount_total{direction="down",provider="api",unit="USD"}`))
	require.Equal(t, "0.5", value(t, out, `outlay_spend_amount_total{provider="api",state="presumed",unit="USD"}`))
	require.Equal(t, "1", value(t, out, `outlay_frozen{provider="api"}`))
}

// deaf is a ledger that does not answer while it is told so.
type deaf struct {
	budget.Memory
	mu   sync.Mutex
	away bool
}

func (d *deaf) be(away bool) { d.mu.Lock(); d.away = away; d.mu.Unlock() }

func (d *deaf) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	d.mu.Lock()
	away := d.away
	d.mu.Unlock()
	if !away {
		return d.Memory.Totals(ctx, at, b...)
	}
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", budget.ErrUnavailable, ctx.Err())
}

func TestALedgerThatDoesNotAnswerLeavesGapsAndNoOldNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(deaf)
		w := newWorld(t, status(200), d)
		require.NoError(t, w.get(t.Context()))
		before := w.scrape(t)
		require.Contains(t, before, "outlay_budget_used_amount{")
		require.Equal(t, "1", value(t, before, `outlay_store_up{store="ledger"}`))

		d.be(true)
		time.Sleep(2 * time.Second)
		gone := w.scrape(t)
		for _, family := range []string{"outlay_budget_", "outlay_frozen{", "outlay_store_clock_skew"} {
			kept := strings.ReplaceAll(gone, "outlay_budget_refusals_total", "")
			require.NotContains(t, kept, family)
		}
		require.Equal(t, "0", value(t, gone, `outlay_store_up{store="ledger"}`))
		require.Equal(t, "1", value(t, gone, `outlay_collect_errors_total`))
		require.Equal(t, "0", value(t, gone, `outlay_queue_length{priority="normal",provider="api"}`))
		require.Equal(t, "1", value(t, gone, `outlay_calls_total{outcome="answered",provider="api"}`))

		d.be(false)
		time.Sleep(2 * time.Second)
		require.Contains(t, w.scrape(t), "outlay_budget_used_amount{")
	})
}

// Scrapes that come together cost the ledger one reading.
func TestScrapesShareAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, status(200), new(budget.Memory))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { w.scrape(t) })
		}
		wg.Wait()
		require.Equal(t, "1", value(t, w.scrape(t), `outlay_store_operation_duration_seconds_count{op="totals",store="ledger"}`))
	})
}

// Hostile keys, budgets made per request and every priority may not add series.
func TestSeriesAreBounded(t *testing.T) {
	w := newWorld(t, status(200), new(budget.Memory), func(c *transport.Config) {
		p := &c.Providers[0]
		p.Scopes = []transport.Scope{{Name: "to", Key: func(r *http.Request) string { return r.Header.Get("To") }}}
		p.Tenant = func(r *http.Request) string { return r.Header.Get("To") }
		p.Priority = func(r *http.Request) throttle.Priority { return throttle.Priority(len(r.Header.Get("To")) % 3) }
		p.BudgetsFor = func(r *http.Request, _ budget.Quote) []budget.Budget {
			b := budget.PerDay(budget.Unit / 4) // too little: it refuses
			b.Name = r.Header.Get("To")
			b.Label = r.Header.Get("Label")
			return []budget.Budget{b}
		}
	})
	run := func(from int) int {
		for i := range 500 {
			req := httptest.NewRequest(http.MethodGet, "https://api.example.com/v1", nil)
			req.Header.Set("To", strings.Repeat("<", i%7+1)+fmt.Sprint("+49170", from+i))
			req.Header.Set("Label", fmt.Sprint("label", from+i))
			_, err := w.RoundTrip(req)
			require.Error(t, err)
		}
		w.m.Observe(t.Context(), transport.Event{Kind: transport.KindFinished, Provider: "api", Outcome: fmt.Sprint("new", from)})
		for i := range 50 {
			w.m.Observe(t.Context(), transport.Event{Kind: transport.KindResolved, Provider: "api", Outcome: "settled", Unit: fmt.Sprint("U", from+i)})
		}
		out := w.scrape(t)
		require.NotContains(t, out, "label")
		require.NotContains(t, out, "49170")
		n := 0
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "#") {
				n++
			}
		}
		return n
	}
	first := run(0)
	t.Logf("%d series of one provider and one budget", first)
	require.LessOrEqual(t, first, 200+15+200)
	require.Equal(t, first, run(10_000), "a second run adds nothing")
}

func TestAScrapeWithoutTransportAndDuringShutdown(t *testing.T) {
	m := promtransport.New(promtransport.Options{})
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(m))
	w := &world{m: m, reg: reg}
	require.Contains(t, w.scrape(t), "outlay_build_info")

	w = newWorld(t, status(200), new(budget.Memory))
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			_ = w.get(t.Context())
		}
		w.CloseIdleConnections()
	})
	for range 5 {
		require.Contains(t, w.scrape(t), "outlay_build_info")
	}
	wg.Wait()
}

// large is a transport with many budgets and scopes.
func large(t testing.TB, budgets, scopes int) *world {
	w := newWorld(t, status(200), new(budget.Memory), func(c *transport.Config) {
		c.Providers = nil
		for i := range 10 {
			p := transport.Provider{
				Name: fmt.Sprint("api", i), Match: []string{fmt.Sprintf("api%d.example.com", i)}, Price: price.PerCall(1000),
				Scopes: []transport.Scope{{Name: "to", Key: func(r *http.Request) string { return r.Header.Get("To") }, Rates: []throttle.Rate{throttle.PerSecond(1000)}}},
			}
			for j := range budgets / 10 {
				b := budget.PerDay(10 * budget.Unit)
				b.Name = fmt.Sprint("budget", i, "-", j)
				p.Budgets = append(p.Budgets, b)
			}
			c.Providers = append(c.Providers, p)
		}
	})
	for i := range scopes {
		req := httptest.NewRequest(http.MethodGet, fmt.Sprintf("https://api%d.example.com/", i%10), nil)
		req.Header.Set("To", fmt.Sprint(i))
		resp, err := w.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	return w
}

func BenchmarkScrape1000Budgets10000Scopes(b *testing.B) {
	scrape := large(b, 1000, 10_000).fresh(b)
	b.ReportAllocs()
	for b.Loop() {
		scrape()
	}
}

// fresh returns what a scrape by an ordinary registry does, with a reading of its own.
func (w *world) fresh(t testing.TB) func() {
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(w.m))
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return func() {
		w.m.Forget()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
	}
}

// The best of many scrapes counts: a busy machine only adds.
func TestAScrapeOfAThousandBudgetsTakesAtMost50Milliseconds(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector is slow")
	}
	scrape := large(t, 1000, 10_000).fresh(t)
	best := time.Hour
	for range 50 {
		begin := time.Now()
		scrape()
		best = min(best, time.Since(begin))
	}
	t.Logf("1,000 budgets and 10,000 scopes: %v", best)
	require.Less(t, best, 50*time.Millisecond)
}

func BenchmarkObserve(b *testing.B) {
	w := newWorld(b, status(200), new(budget.Memory))
	e := transport.Event{Kind: transport.KindAnswered, Provider: "api", Status: 200, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		w.m.Observe(b.Context(), e)
	}
}

// What an Update adds counts from its first call on, without a scrape between.
func TestWhatAnUpdateAddsCountsAtOnce(t *testing.T) {
	var config transport.Config
	w := newWorld(t, status(200), new(budget.Memory), func(c *transport.Config) { config = *c })
	p := config.Providers[0]
	p.Name, p.Budgets = "renamed", []budget.Budget{{Name: "small", Limit: budget.Unit / 4, Every: budget.Day}}
	config.Providers = []transport.Provider{p}
	require.NoError(t, w.Update(config))
	require.Error(t, w.get(t.Context()))
	out := w.scrape(t)
	require.Equal(t, "1", value(t, out, `outlay_budget_refusals_total{budget="small",reason="exhausted"}`))
	require.Equal(t, "1", value(t, out, `outlay_refusals_total{provider="renamed",reason="exhausted"}`))
	require.Equal(t, "0", value(t, out, `outlay_refusals_total{provider="api",reason="exhausted"}`), "counters stay")
	require.Equal(t, "absent", value(t, out, `outlay_queue_length{priority="normal",provider="api"}`))
}

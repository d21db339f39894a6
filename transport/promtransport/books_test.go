package promtransport_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// chance answers at random: late, not at all, with a cost above or below the price.
type chance struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (c *chance) n(n int) int { c.mu.Lock(); defer c.mu.Unlock(); return c.r.IntN(n) }

// slow is a body that ends when its time has come.
type slow struct{ d time.Duration }

func (s *slow) Read([]byte) (int, error) { time.Sleep(s.d); return 0, io.EOF }
func (s *slow) Close() error             { return nil }

func (c *chance) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(c.n(200)) * time.Second)
	codes := []int{200, 200, 200, 404, 429, 500, 503, 0}
	code := codes[c.n(len(codes))]
	if code == 0 {
		return nil, errors.New("connection reset by peer")
	}
	resp, err := status(code)(req)
	resp.Body = &slow{time.Duration(c.n(7200)) * time.Second}
	return resp, err
}

func (c *chance) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{Amount: budget.Unit / 8, Unit: "EUR"}, nil
}

func (c *chance) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	cost, known := budget.Amount(c.n(20))*budget.Unit/64, c.n(5) > 0
	return io.Discard, func() (budget.Amount, bool) { return cost, known }
}

// Whatever becomes of calls over days, what the counters net is what the books say, in
// money and in holds, and no counter ever goes down.
func TestTheCountersNetWhatTheBooksSay(t *testing.T) {
	for seed := range map[bool]int{true: 1, false: 2}[raceEnabled] {
		synctest.Test(t, func(t *testing.T) {
			c := &chance{r: rand.New(rand.NewPCG(uint64(seed), 1))}
			zone, err := time.LoadLocation("Europe/Berlin")
			require.NoError(t, err)
			books := new(budget.Memory)
			w := newWorld(t, c, books, func(cfg *transport.Config) {
				day := budget.PerDay(8 * budget.Unit)
				day.Unit, day.Zone = "EUR", zone
				calls := budget.PerDay(1000 * budget.Unit)
				calls.Name, calls.Unit = "calls", budget.Calls
				roll := budget.Rolling(5 * time.Hour)
				p := &cfg.Providers[0]
				p.Price, p.Budgets = c, []budget.Budget{day, calls, {Name: "roll", Unit: "EUR", Limit: 3 * budget.Unit, Every: roll}}
				p.Retry = transport.Retry{Unknown: transport.ReplayAll}
			})
			began := time.Now()
			time.Sleep(87*24*time.Hour - time.Hour) // 27 March 2000: clocks went forward the day before
			var wg sync.WaitGroup
			before := map[string]float64{}
			for range 300 {
				wg.Go(func() {
					req, _ := http.NewRequest(http.MethodGet, "https://api.example.com/v1", nil)
					if resp, err := w.RoundTrip(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				})
				time.Sleep(time.Duration(c.n(1800)) * time.Second)
				open, err := w.Unresolved(t.Context(), "api", 0)
				require.NoError(t, err)
				for _, u := range open {
					if u.State == budget.StatePresumed && c.n(8) == 0 {
						_, err := w.Correct(t.Context(), u.ID, budget.Amount(c.n(20))*budget.Unit/64, budget.By{Who: "maria", Why: "invoice"})
						require.NoError(t, err)
					}
				}
				before = neverLess(t, before, w.scrape(t))
			}
			wg.Wait()
			time.Sleep(3 * time.Hour) // bodies that nobody reads any more end
			out := w.scrape(t)
			neverLess(t, before, out)

			all, err := w.Windows(t.Context(), began, time.Now())
			require.NoError(t, err)
			var spent, calls budget.Amount
			for i := range all {
				switch all[i].Budget.Name {
				case "api-day":
					spent += all[i].Settled + all[i].Presumed
				case "calls":
					calls += all[i].Settled + all[i].Presumed
				}
				require.Zero(t, all[i].Held)
			}
			n := func(format string, a ...any) float64 {
				v, err := strconv.ParseFloat(value(t, out, fmt.Sprintf(format, a...)), 64)
				require.NoError(t, err, format)
				return v
			}
			money := func(family, label, word string) float64 {
				return n(`outlay_%s_amount_total{provider="api",state="%s",unit="EUR"}`, family, word)
			}
			net := money("spend", "state", "settled") + money("spend", "state", "presumed") +
				n(`outlay_corrections_amount_total{direction="up",provider="api",unit="EUR"}`) - n(`outlay_corrections_amount_total{direction="down",provider="api",unit="EUR"}`)
			require.InDelta(t, float64(spent)/1e9, net, 1e-6)
			require.InDelta(t, float64(calls)/1e9, n(`outlay_holds_total{outcome="settled",provider="api"}`)+n(`outlay_holds_total{outcome="presumed",provider="api"}`), 1e-6)
			t.Logf("seed %d: %v EUR in %v calls, overruns %v, late %v", seed, net, calls, n(`outlay_overruns_total{provider="api"}`), n(`outlay_late_settles_total{provider="api"}`))
		})
	}
}

// neverLess compares the counters of two scrapes.
func neverLess(t *testing.T, before map[string]float64, scrape string) map[string]float64 {
	now := map[string]float64{}
	for line := range strings.Lines(scrape) {
		series, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ := strings.Cut(series, "{"); !strings.HasSuffix(name, "_total") && !strings.HasSuffix(name, "_bucket") && !strings.HasSuffix(name, "_count") {
			continue
		}
		n, err := strconv.ParseFloat(v, 64)
		require.NoError(t, err)
		now[series] = n
		require.GreaterOrEqual(t, n, before[series], series)
	}
	for series := range before {
		require.Contains(t, now, series)
	}
	return now
}

package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

func header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

func sender(rates ...throttle.Rate) func(*transport.Config, *transport.Provider) {
	return func(_ *transport.Config, p *transport.Provider) {
		p.Scopes = []transport.Scope{{Name: "sender", Key: header("Sender"), Rates: rates}}
	}
}

func (w *world) from(name, value string) (*http.Response, error) {
	req := request(w.t, w.t.Context(), strings.NewReader("text"))
	req.Header.Set(name, value)
	return w.RoundTrip(req)
}

func TestScopesHaveLimitsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), sender(throttle.PerMinute(1)))
		for _, s := range []string{"a", "b", ""} {
			_, err := w.from("Sender", s)
			require.NoError(t, err)
		}
		_, err := w.from("Sender", "") // no sender: only the provider's limits
		require.NoError(t, err)
		require.Equal(t, make([]time.Duration, 4), w.base.at())
		_, err = w.from("Sender", "a")
		require.NoError(t, err)
		require.Equal(t, time.Minute, w.base.at()[4])
	})
}

func TestPlansGiveTenantsTheirRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
			c.MaxWait = transport.NoWait
			p.Scopes = []transport.Scope{{Name: "tenant", Key: header("Tenant"), Rates: []throttle.Rate{throttle.PerMinute(1)}, RatesFor: func(key string) []throttle.Rate {
				return map[string][]throttle.Rate{"gold": {{N: 60, Per: time.Minute, Burst: 5}}}[key]
			}}}
		})
		sent := map[string]int{}
		for range 10 {
			for _, tenant := range []string{"gold", "free"} {
				if _, err := w.from("Tenant", tenant); err == nil {
					sent[tenant]++
				}
			}
		}
		require.Equal(t, map[string]int{"gold": 5, "free": 1}, sent)
	})
}

// scoped says that a 429 concerns what a header names.
type scoped struct{ dialect.Standard }

func (d scoped) Read(a dialect.Answer) dialect.Reading {
	r := d.Standard.Read(a)
	r.Scope = a.Header.Get("Limit-Scope")
	return r
}

func TestOnlyTheScopeThatTheAnswerNamesIsClosed(t *testing.T) {
	for _, c := range []struct {
		scope string
		other time.Duration // when another sender may send
	}{{"sender", 0}, {"", 0}, {dialect.Whole, 5 * time.Second}} {
		t.Run(c.scope, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 5\nLimit-Scope: " + c.scope}, answer{status: 200}), sender(), func(_ *transport.Config, p *transport.Provider) {
					p.Dialect, p.Retry.Attempts = scoped{}, 1
				})
				_, err := w.from("Sender", "a")
				require.NoError(t, err)
				_, err = w.from("Sender", "b")
				require.NoError(t, err)
				between(t, c.other, c.other*6/5, w.base.at()[1])
				_, err = w.from("Sender", "a")
				require.NoError(t, err)
				require.GreaterOrEqual(t, w.base.at()[2], 5*time.Second)
			})
		})
	}
}

// A good answer may tell limits of several parts: the one that is used up is the only one
// whose calls wait.
func TestOnlyTheScopeOfTheUsedUpWindowWaits(t *testing.T) {
	const used = "X-Rate-Limit: 700\nX-Rate-Limit-Remaining: 699\nRatelimit-Reset: 30\nZendesk-RateLimit-Exports: total=10; remaining=0; resets=41"
	for name, scopes := range map[string][]transport.Scope{
		"endpoint then account": {{Name: "endpoint", Key: header("Sender")}, {Name: "account"}},
		"no such scope":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200, header: used}, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
					p.Dialect, p.Scopes = dialect.For("Zendesk"), scopes
				})
				for _, endpoint := range []string{"exports", "tickets", "exports"} {
					_, err := w.from("Sender", endpoint)
					require.NoError(t, err)
				}
				require.Zero(t, w.base.at()[1])
				if scopes != nil {
					require.GreaterOrEqual(t, w.base.at()[2], 41*time.Second)
				}
			})
		})
	}
}

func TestALimitOfAnUnknownScopeConcernsItsOwnCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 5\nLimit-Scope: object"}, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) { p.Dialect = scoped{} })
		done := make(chan error)
		go func() { _, err := w.get(); done <- err }()
		synctest.Wait()
		_, err := w.get() // not held up
		require.NoError(t, err)
		require.NoError(t, <-done)
		require.Zero(t, w.base.at()[1])
		require.GreaterOrEqual(t, w.base.at()[2], 5*time.Second)
	})
}

func TestAUsedUpQuotaIsLeftAloneUntilTheVendorsDayEnds(t *testing.T) {
	la, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	for _, c := range []struct {
		zone *time.Location
		end  time.Duration
	}{{la, 8 * time.Hour}, {nil, 10 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) { // the bubble begins at midnight UTC, 16:00 in Los Angeles
			w := newWorld(t, answers(t, answer{status: 429}), func(_ *transport.Config, p *transport.Provider) {
				p.Dialect, p.QuotaZone = quota{}, c.zone
			})
			resp, err := w.get()
			require.NoError(t, err)
			require.Equal(t, 429, resp.StatusCode)
			_, err = w.get()
			at, ok := transport.RetryAt(err)
			require.True(t, ok)
			require.WithinDuration(t, w.base.start.Add(c.end), at, 0)
			require.Len(t, w.base.at(), 1)
		})
	}
}

type quota struct{}

func (quota) WantsBody(int, http.Header) bool { return false }
func (quota) Read(dialect.Answer) dialect.Reading {
	return dialect.Reading{Throttled: true, Wall: true, Policy: "daily"}
}

// counted is a pricer of tokens: bound 60 of them, and the body tells how many there were.
type counted struct{}

func (counted) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{Amount: budget.Unit, Units: 60}, nil
}

func (counted) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	w := new(unitWriter)
	return w, func() (budget.Amount, bool) { return budget.Unit, true }
}

type unitWriter struct{ bytes.Buffer }

func (w *unitWriter) Units() (n int64, known bool) {
	_, err := fmt.Sscanf(w.String(), "tokens=%d", &n)
	return n, err == nil
}

func TestEstimatedTokensAreCorrectedByTheAnswer(t *testing.T) {
	for body, third := range map[string]time.Duration{"tokens=10": 0, "tokens=60": 12 * time.Second, "unknown": 12 * time.Second} {
		t.Run(body, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200, body: body}), func(_ *transport.Config, p *transport.Provider) {
					p.Price = counted{}
					p.Scopes = []transport.Scope{{Name: "tokens", Units: true, Rates: []throttle.Rate{{N: 100, Per: time.Minute, Burst: 100}}}}
				})
				for range 2 {
					resp, err := w.get()
					require.NoError(t, err)
					_ = read(t, resp)
				}
				between(t, third, third+time.Millisecond, w.base.at()[1])
			})
		})
	}
}

func TestPerCallBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.BudgetsFor = func(r *http.Request, q budget.Quote) []budget.Budget {
				perHour := budget.Budget{Name: "to " + r.Header.Get("To"), Limit: 2 * budget.Unit, Unit: "calls", Every: budget.Rolling(time.Hour)}
				return []budget.Budget{perHour}
			}
		})
		for range 2 {
			_, err := w.from("To", "+95")
			require.NoError(t, err)
		}
		_, err := w.from("To", "+95")
		over, ok := asType[*budget.ExceededError](err)
		require.True(t, ok, "got %v", err)
		require.Equal(t, "per_call", over.Budget)
		require.Equal(t, "calls", over.Unit)
		_, err = w.from("To", "+33")
		require.NoError(t, err)
		w.books("3", "0", "0")
	})
}

// Slots of the provider and of a scope bound the calls in flight side by side.
func TestSlotsOfProviderAndScope(t *testing.T) {
	for _, c := range []struct{ provider, scope, one, other int }{{0, 0, 3, 3}, {4, 0, 3, 1}, {0, 1, 1, 1}, {3, 2, 2, 1}} {
		w := newWorld(t, answers(t, answer{status: 200, body: "x"}), func(k *transport.Config, p *transport.Provider) {
			k.MaxWait, p.MaxInFlight = transport.NoWait, c.provider
			p.Scopes = []transport.Scope{{Name: "to", Key: func(r *http.Request) string { return r.Header.Get("To") }, Max: c.scope}}
		})
		for _, to := range []string{"one", "other"} {
			passed := 0
			for range 3 {
				if _, err := w.from("To", to); err == nil { // the body stays open
					passed++
				} else {
					require.Equal(t, transport.ReasonSlots, transport.ReasonOf(err))
				}
			}
			require.Equal(t, map[string]int{"one": c.one, "other": c.other}[to], passed, "%+v, %s", c, to)
		}
	}
}

func TestTheSameCallTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Repeat = transport.Repeat{Max: 3, Per: time.Minute}
		})
		for range 3 {
			_, err := w.post("same")
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		_, err := w.post("same")
		repeated, ok := asType[*transport.RepeatedError](err)
		require.True(t, ok, "got %v", err)
		require.Equal(t, transport.ReasonRepeated, transport.ReasonOf(err))
		require.True(t, transport.NotSent(err))
		require.WithinDuration(t, w.base.start.Add(time.Minute), repeated.RetryAt, 0)
		_, err = w.post("another")
		require.NoError(t, err)
		time.Sleep(57 * time.Second)
		_, err = w.post("same")
		require.NoError(t, err)
		_, err = w.post("same")
		require.Error(t, err)
	})
}

func TestManyDifferentKeysKeepMemoryBounded(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
		c.Base, c.OnEvent, p.Budgets, p.Price = newBare(), nil, nil, nil
		p.Scopes = []transport.Scope{{Name: "to", Key: header("To"), Rates: []throttle.Rate{throttle.PerHour(1)}}}
		p.Repeat = transport.Repeat{Max: 5, Per: time.Hour, Fingerprint: header("To")}
	})
	req := request(t, t.Context(), nil)
	for i := range 101_000 {
		req.Header.Set("To", fmt.Sprint(i))
		_, err := w.RoundTrip(req)
		if err != nil { // those who share the overflow scope wait for each other
			require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
		}
	}
	s, err := w.Status(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(s.Providers[0].Scopes), 100_002)
	require.Positive(t, s.Providers[0].Overflow)
}

func TestKeyFunctionsThatPanicLeaveNothingBehind(t *testing.T) {
	boom := func(*http.Request) string { panic("boom") }
	for name, config := range map[string]func(*transport.Config, *transport.Provider){
		"scope":  func(_ *transport.Config, p *transport.Provider) { p.Scopes = []transport.Scope{{Name: "s", Key: boom}} },
		"tenant": func(_ *transport.Config, p *transport.Provider) { p.Tenant = boom },
		"fingerprint": func(_ *transport.Config, p *transport.Provider) {
			p.Repeat = transport.Repeat{Max: 1, Per: 1, Fingerprint: boom}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 200}), config)
			body := &spyBody{Reader: strings.NewReader("text")}
			require.PanicsWithValue(t, "boom", func() { _, _ = w.RoundTrip(request(t, t.Context(), body)) })
			require.Equal(t, 1, body.closed)
			require.Empty(t, w.base.at())
			require.Zero(t, w.totals().Used())
		})
	}
}

func TestKeysOfMegabytesAreKeptShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), sender(throttle.PerMinute(1)))
		huge := strings.Repeat("x", 1<<20)
		for range 2 {
			_, err := w.from("Sender", huge)
			require.NoError(t, err)
		}
		require.Equal(t, time.Minute, w.base.at()[1])
		s, err := w.Status(t.Context())
		require.NoError(t, err)
		for _, sc := range s.Providers[0].Scopes {
			require.LessOrEqual(t, len(sc.Alias), 16)
			require.Empty(t, sc.Key)
		}
	})
}

func TestUpdateRetimesWaitersAndKeepsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c transport.Config
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)), func(k *transport.Config, p *transport.Provider) {
			c = *k
			c.Providers = []transport.Provider{*p}
		})
		_, err := w.get()
		require.NoError(t, err)
		done := make(chan error)
		go func() { _, err := w.get(); done <- err }()
		time.Sleep(time.Second)

		bad := c
		bad.Providers = []transport.Provider{{Name: "api"}}
		require.ErrorContains(t, w.Update(bad), "Providers[0].Match")

		faster := c
		faster.Providers = []transport.Provider{c.Providers[0]}
		faster.Providers[0].Rates = []throttle.Rate{throttle.PerSecond(100)}
		faster.Ledger = nil // it stays that of New
		require.NoError(t, w.Update(faster))
		require.NoError(t, <-done)
		require.LessOrEqual(t, w.base.at()[1], 1020*time.Millisecond)
		w.books("2", "0", "0")
	})
}

func TestUpdateThatRemovesAProviderLetsItsWaitersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)))
		_, err := w.get()
		require.NoError(t, err)
		done := make(chan error)
		go func() { _, err := w.get(); done <- err }()
		synctest.Wait()
		require.NoError(t, w.Update(transport.Config{}))
		require.NoError(t, <-done)
		_, err = w.get() // nobody's host any more
		require.NoError(t, err)
		w.books("2", "0", "0")
	})
}

func TestFreezeStopsAtOnce(t *testing.T) {
	for name, config := range map[string]func(*transport.Config, *transport.Provider){
		"with budget":    func(*transport.Config, *transport.Provider) {},
		"without budget": func(_ *transport.Config, p *transport.Provider) { p.Budgets, p.Price = nil, nil },
		"monitor":        func(_ *transport.Config, p *transport.Provider) { p.Monitor = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200}), config)
				_, err := w.get()
				require.NoError(t, err)
				by := budget.By{Who: "maria", Why: "runaway job"}
				require.NoError(t, w.Freeze(t.Context(), "api", by))
				_, err = w.get()
				frozen, ok := asType[*budget.FrozenError](err)
				require.True(t, ok, "got %v", err)
				require.Equal(t, "api", frozen.Provider)
				require.Equal(t, transport.ReasonFrozen, transport.ReasonOf(err))
				require.NoError(t, w.Release(t.Context(), "api", by))
				_, err = w.get()
				require.NoError(t, err)
				require.Error(t, w.Freeze(t.Context(), "nobody", by))
				changed := w.eventsOf(transport.KindChanged)
				require.Len(t, changed, 2)
				require.Equal(t, "maria", changed[0].Actor)
			})
		})
	}
}

func TestOpenGateLetsCallsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 3600"}, answer{status: 200}), sender())
		_, err := w.from("Sender", "a")
		require.NoError(t, err)
		_, err = w.from("Sender", "a")
		require.Equal(t, transport.ReasonGate, transport.ReasonOf(err))
		require.NoError(t, w.OpenGate(t.Context(), "api", budget.By{Who: "maria"}))
		_, err = w.from("Sender", "a")
		require.NoError(t, err)
	})
}

func TestSetLimitRaisesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"))
		_, err := w.get()
		require.NoError(t, err)
		_, err = w.get()
		require.Error(t, err)
		require.NoError(t, w.SetLimit(t.Context(), "day", 2*budget.Unit, budget.By{Who: "maria"}))
		_, err = w.get()
		require.NoError(t, err)
	})
}

func TestALimitCanBeLoweredBeforeTheFirstCall(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), limit("5"))
	maria := budget.By{Who: "maria"}
	require.NoError(t, w.SetLimit(t.Context(), "day", budget.Unit/2, maria))
	_, err := w.get()
	var over *budget.ExceededError
	require.ErrorAs(t, err, &over)
	require.Equal(t, budget.Unit/2, over.Limit)
	require.Error(t, w.SetLimit(t.Context(), "nobody's", budget.Unit, maria))
	require.Error(t, w.SetLimit(t.Context(), "day", budget.Unit, budget.By{}))
	changed := w.eventsOf(transport.KindChanged)
	require.Len(t, changed, 1, "what fails is not told")
	require.Equal(t, []string{"limit", "maria", "day", "5", "0.5"}, []string{changed[0].Action, changed[0].Actor, changed[0].Budget, changed[0].From, changed[0].To})
}

func TestANewConfiguredLimitTellsTheOneBefore(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), limit("5"))
	day := budget.PerDay(8 * budget.Unit)
	day.Name = "day"
	require.NoError(t, w.ledger.Configure(t.Context(), day))
	_, err := w.get()
	require.NoError(t, err)
	changed := w.eventsOf(transport.KindChanged)
	require.Len(t, changed, 1)
	require.Equal(t, []string{"configuration", "8", "5"}, []string{changed[0].Actor, changed[0].From, changed[0].To})
}

func TestPlanSaysWhatWouldHappenAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), rate(throttle.PerMinute(1)), sender(throttle.PerHour(1)))
		body := &spyBody{Reader: strings.NewReader("text")}
		req := request(t, t.Context(), body)
		req.Header.Set("Sender", "a")
		for range 3 {
			plan, err := w.Plan(req)
			require.NoError(t, err)
			require.NoError(t, plan.Refusal)
			require.Equal(t, "api", plan.Provider)
			require.Equal(t, []string{"sender"}, plan.Scopes)
			require.Equal(t, budget.Unit, plan.Quote.Amount)
			require.Equal(t, budget.Unit, plan.Budgets[0].Available())
			require.Zero(t, plan.Forecast.Wait)
		}
		require.Zero(t, body.closed+body.read)
		_, err := w.from("Sender", "a")
		require.NoError(t, err)
		plan, err := w.Plan(req)
		require.NoError(t, err)
		require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(plan.Refusal))
		require.Equal(t, time.Hour, plan.Forecast.Wait)

		foreign, err := http.NewRequest("GET", "https://other.example", nil)
		require.NoError(t, err)
		plan, err = w.Plan(foreign)
		require.NoError(t, err)
		require.Empty(t, plan.Provider)
	})
}

func TestStatusTellsWhyCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 60"}, answer{status: 200}), sender(throttle.PerSecond(10)), func(_ *transport.Config, p *transport.Provider) {
			p.Retry.Attempts = 1
			p.ScopeAlias = func(string) string { return "alias" }
		})
		_, err := w.from("Sender", "+4917012345")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			req := request(t, transport.WithPriority(ctx, throttle.Critical), nil)
			req.Header.Set("Sender", "+4917012345")
			_, _ = w.RoundTrip(req)
		}()
		synctest.Wait()
		s, err := w.Status(t.Context())
		require.NoError(t, err)
		require.True(t, s.LedgerUp && s.LimiterUp)
		p := s.Providers[0]
		require.Equal(t, 1, p.Queue.Critical)
		require.Equal(t, []string{"day"}, p.Budgets)
		require.Len(t, p.Scopes, 2)
		require.Equal(t, "sender", p.Scopes[1].Scope)
		require.Equal(t, "alias", p.Scopes[1].Alias)
		require.Equal(t, w.base.start.Add(time.Minute), p.Scopes[1].GateUntil)
		require.Equal(t, throttle.CauseThrottled, p.Scopes[1].GateCause)
		require.Equal(t, "day", s.Budgets[0].Budget.Name)
		require.NotContains(t, fmt.Sprintf("%+v", s), "4917012345")
		cancel()
		<-done
	})
}

func BenchmarkStatus10kScopes(b *testing.B) {
	rt, err := transport.New(transport.Config{Base: newBare(), Providers: []transport.Provider{{Name: "api", Match: []string{"api.example.com"},
		Scopes: []transport.Scope{{Name: "to", Key: header("To"), Rates: []throttle.Rate{throttle.PerHour(1)}}}}}})
	require.NoError(b, err)
	for i := range 10_000 {
		req, _ := http.NewRequest("GET", apiURL, nil)
		req.Header.Set("To", fmt.Sprint(i))
		_, err := rt.RoundTrip(req)
		require.NoError(b, err)
	}
	for b.Loop() {
		if _, err := rt.Status(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

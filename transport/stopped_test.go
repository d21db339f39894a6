package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// A refusal to repeat is not a refusal of the call: something was sent.
func TestARefusedRepeatAfterAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := newWorld(t, answers(t, answer{err: errReset}, answer{status: 200}), limit("1"), func(_ *transport.Config, p *transport.Provider) {
			p.IdempotencyHeader = "Idempotency-Key"
			p.Refusal = func(transport.Refused) (int, http.Header, []byte) { asked++; return 429, nil, nil }
		})
		resp, err := w.post("text")
		require.Nil(t, resp)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.True(t, transport.OutcomeUnknown(err))
		require.False(t, transport.NotSent(err))
		require.Empty(t, transport.ReasonOf(err))
		_, over := asType[*budget.ExceededError](err)
		require.False(t, over)
		call, ok := asType[*transport.CallError](err)
		require.True(t, ok)
		require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(call.Refusal))
		require.Zero(t, asked)
		w.books("0", "1", "0")
		end := w.eventsOf(transport.KindFinished)[0]
		require.Equal(t, "failed, not refused: exhausted", end.Outcome+", not refused: "+string(end.Reason))
		require.Equal(t, 1, w.eventsOf(transport.KindRefused)[0].Attempt, "it was begun before the refusal")
	})
}

func TestOutcomeUnknownNeedsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{err: errReset}), func(_ *transport.Config, p *transport.Provider) { p.Budgets, p.Price = nil, nil })
		_, err := w.post("text")
		require.True(t, transport.OutcomeUnknown(err))
	})
}

// alwaysBilled charges for refusals too.
type alwaysBilled struct{ dialect.Standard }

func (d alwaysBilled) Read(a dialect.Answer) dialect.Reading {
	r := d.Standard.Read(a)
	r.Billed = dialect.BilledYes
	return r
}

func TestABilledRefusalThatTellsItsCostIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, body: "cost=0.25\n"}, answer{status: 200, body: "cost=0.5\n"}), streaming(budget.Unit), func(_ *transport.Config, p *transport.Provider) {
			p.Dialect = alwaysBilled{}
		})
		resp, err := w.post("text")
		require.NoError(t, err)
		_ = read(t, resp)
		w.books("0.75", "0", "0")
	})
}

// exploding is a pricer whose meter panics.
type exploding struct{}

func (exploding) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{Amount: budget.Unit}, nil
}

func (exploding) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	return io.Discard, func() (budget.Amount, bool) { panic("meter") }
}

func TestAMeterThatPanicsLeavesNothingOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, body: "data"}), func(_ *transport.Config, p *transport.Provider) {
			p.Price, p.MaxInFlight = exploding{}, 1
		})
		for range 2 {
			resp, err := w.get()
			require.NoError(t, err)
			require.PanicsWithValue(t, "meter", func() { _, _ = io.ReadAll(resp.Body) })
			require.NoError(t, resp.Body.Close())
		}
		w.books("0", "2", "0")
	})
}

func TestAPanicWhenTheStoreIsBackLeavesNothingOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ledger *counting
		w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
			p.MaxInFlight = 1
			ledger = &counting{Ledger: c.Ledger, fail: budget.ErrUnavailable}
			c.Ledger = ledger
			c.OnEvent = func(_ context.Context, e transport.Event) {
				if e.Kind == transport.KindStore && e.Up {
					panic("hook")
				}
			}
		})
		_, err := w.get()
		require.Error(t, err)
		ledger.fail = nil
		require.Panics(t, func() { _, _ = w.get() })
		require.Zero(t, w.totals().Used())
		resp, err := w.get()
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}

// A slow or endless body holds up nobody for long.
func TestPeekingDoesNotWaitForTheEndOfABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := io.Pipe()
		base := answers(t, answer{})
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			resp := base.response(req, answer{status: 200})
			resp.Body, resp.ContentLength = r, -1
			return resp, nil
		}
		w := newWorld(t, base, func(_ *transport.Config, q *transport.Provider) { q.Dialect = greedy{} })
		go func() {
			for _, s := range []string{"one ", "two ", "three"} {
				_, _ = io.WriteString(p, s)
				time.Sleep(5 * time.Second)
			}
			_ = p.Close()
		}()
		resp, err := w.get()
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(base.start), 2*time.Second)
		require.Equal(t, "one two three", read(t, resp))
		require.Equal(t, 15*time.Second, time.Since(base.start))
	})
}

// endless is a body without an end, which counts what is read of it.
type endless struct{ n atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) { return len(p), e.count(len(p)) }
func (e *endless) Close() error               { return nil }
func (e *endless) count(n int) error          { e.n.Add(int64(n)); return nil }

// Whatever a vendor sends, little of it is read that nobody asked for.
func TestPeekingReadsABoundedPrefix(t *testing.T) {
	for _, status := range []int{200, 400, 429} {
		synctest.Test(t, func(t *testing.T) {
			body, base := new(endless), answers(t, answer{})
			base.answer = func(_ int, req *http.Request) (*http.Response, error) {
				resp := base.response(req, answer{status: status, header: "Retry-After: 3600"})
				resp.Body, resp.ContentLength = body, -1
				return resp, nil
			}
			w := newWorld(t, base, func(_ *transport.Config, q *transport.Provider) { q.Dialect = greedy{} })
			resp, err := w.get()
			require.NoError(t, err)
			synctest.Wait()
			require.Positive(t, body.n.Load())
			require.LessOrEqual(t, body.n.Load(), int64(96<<10))
			require.NoError(t, resp.Body.Close())
		})
	}
}

// Gemini streams a JSON array: its first element comes when it is there.
func TestStreamsOfJSONAreNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := io.Pipe()
		base := answers(t, answer{})
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			resp := base.response(req, answer{status: 200, header: "Content-Type: application/json"})
			resp.Body, resp.ContentLength = r, -1
			return resp, nil
		}
		w := newWorld(t, base, func(_ *transport.Config, q *transport.Provider) { q.Dialect = dialect.For("gemini") })
		go func() {
			_, _ = io.WriteString(p, "[{},")
			time.Sleep(5 * time.Second)
			_, _ = io.WriteString(p, "{}]")
			_ = p.Close()
		}()
		resp, err := w.get()
		require.NoError(t, err)
		require.Zero(t, time.Since(base.start))
		require.Equal(t, "[{},{}]", read(t, resp))
	})
}

func TestARefusalWhoseBodyNeverEndsIsRepeatedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		r, _ := io.Pipe()
		base.answer = func(n int, req *http.Request) (*http.Response, error) {
			if n > 1 {
				return base.response(req, answer{status: 200}), nil
			}
			resp := base.response(req, answer{status: 429, header: "Retry-After: 1"})
			resp.Body = r
			return resp, nil
		}
		w := newWorld(t, base)
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.LessOrEqual(t, time.Since(base.start), 4*time.Second)
	})
}

func TestMaxRetryAfterHoldsForResetHeadersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60"}), func(_ *transport.Config, p *transport.Provider) {
			p.Retry.MaxRetryAfter = 5 * time.Second
		})
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 429, resp.StatusCode)
		require.Zero(t, time.Since(w.base.start))
	})
}

func TestMonitorLetsRepeatedAndUnpricedCallsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Monitor, p.Price = true, unpriced{}
			p.Repeat = transport.Repeat{Max: 1, Per: time.Minute}
		})
		for range 2 {
			_, err := w.post("text")
			require.NoError(t, err)
		}
		reasons := map[transport.Reason]int{}
		for _, e := range w.eventsOf(transport.KindWouldRefuse) {
			reasons[e.Reason]++
		}
		require.Equal(t, map[transport.Reason]int{transport.ReasonUnpriced: 2, transport.ReasonRepeated: 1}, reasons)
	})
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	named := func(name string, limit budget.Amount) []budget.Budget {
		b := budget.PerDay(limit)
		b.Name = name
		return []budget.Budget{b}
	}
	scopes := make([]transport.Scope, 33)
	for i := range scopes {
		scopes[i].Name = strings.Repeat("s", i+1)
	}
	for _, c := range []struct {
		name, path string
		change     func(*transport.Config, *transport.Provider)
	}{
		{"one name for a budget of its own and of all", "Providers[0].Budgets", func(c *transport.Config, p *transport.Provider) {
			p.Budgets, c.Budgets = named("day", 1), named("day", 1)
		}},
		{"one name, two limits", "Providers[1].Budgets", func(c *transport.Config, p *transport.Provider) {
			other := *p
			other.Name, other.Match = "other", []string{"other.example"}
			p.Budgets, other.Budgets = named("shared", 1), named("shared", 2)
			c.Providers = []transport.Provider{other}
		}},
		{"two budgets that are shown as one", "Providers[1].Budgets", func(c *transport.Config, p *transport.Provider) {
			other := *p
			other.Name, other.Match, other.Budgets = "other", []string{"other.example"}, named("night", 1)
			other.Budgets[0].Label = "day"
			c.Providers = []transport.Provider{other}
		}},
		{"nil ledger in an interface", "Ledger", func(c *transport.Config, _ *transport.Provider) { c.Ledger = (*budget.Memory)(nil) }},
		{"nil limiter in an interface", "Limiter", func(c *transport.Config, _ *transport.Provider) { c.Limiter = (*throttle.Bucket)(nil) }},
		{"nil dialect in an interface", "Providers[0].Dialect", func(_ *transport.Config, p *transport.Provider) { p.Dialect = (*dialect.Standard)(nil) }},
		{"nil price in an interface", "Providers[0].Price", func(_ *transport.Config, p *transport.Provider) { p.Price = (*fixed)(nil) }},
		{"a wait that a limit nobody set would cut", "Providers[0].Retry.MaxRetryAfter", func(_ *transport.Config, p *transport.Provider) {
			p.Retry.MaxRetryAfter = time.Hour
		}},
		{"too many scopes", "Providers[0].Scopes", func(_ *transport.Config, p *transport.Provider) { p.Scopes = scopes }},
		{"too many slots", "Providers[0].MaxInFlight", func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 << 40 }},
		{"names from requests and no key", "Providers[0].BudgetsFor", func(c *transport.Config, p *transport.Provider) {
			c.Ledger = &counting{Ledger: c.Ledger}
			p.BudgetsFor = func(*http.Request, budget.Quote) []budget.Budget { return nil }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := transport.Provider{Name: "api", Match: []string{"api.example.com"}, Price: fixed{}, Budgets: named("day", 1)}
			k := transport.Config{Ledger: new(budget.Memory)}
			c.change(&k, &p)
			k.Providers = append([]transport.Provider{p}, k.Providers...)
			_, err := transport.New(k)
			require.ErrorContains(t, err, c.path+":")
		})
	}
}

func TestARaisedLimitHoldsAtOnceAfterAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c transport.Config
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), func(k *transport.Config, p *transport.Provider) {
			c = *k
			c.Providers = []transport.Provider{*p}
			c.Providers[0].Budgets = []budget.Budget{budget.PerDay(2 * budget.Unit)}
			c.Providers[0].Budgets[0].Name = "day"
		})
		_, err := w.get()
		require.NoError(t, err)
		_, err = w.get()
		require.Error(t, err)
		require.NoError(t, w.Update(c))
		_, err = w.get()
		require.NoError(t, err)
	})
}

func TestAnEmptyMethodIsGet(t *testing.T) {
	find := matcher(t, transport.RefuseAll, map[string][]string{"gets": {"GET api.example.com/x"}})
	req, err := http.NewRequest("GET", "https://api.example.com/x", nil)
	require.NoError(t, err)
	req.Method = ""
	got, err := find(req)
	require.NoError(t, err)
	require.Equal(t, "gets", got)
}

// An answer that is presumed spent counts as unknown, whatever ends the call later.
func TestAnUnknownOutcomeIsNotForgottenByWhatComesLater(t *testing.T) {
	for name, second := range map[string]answer{"dial": {err: errDial}, "gave up": {status: 200}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 500}, second), func(_ *transport.Config, p *transport.Provider) {
					p.Retry.Unknown, p.Retry.Attempts = transport.ReplayAll, 2
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if second.err == nil {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				_, err := w.send(ctx, "POST", "text")
				require.Error(t, err)
				require.True(t, transport.OutcomeUnknown(err))
				require.False(t, transport.NotSent(err))
				w.books("0", "1", "0")
			})
		})
	}
}

func TestARefusedCallIsNoRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)), func(c *transport.Config, p *transport.Provider) {
			c.MaxWait = transport.NoWait
			p.Repeat = transport.Repeat{Max: 1, Per: time.Hour}
		})
		_, err := w.post("other")
		require.NoError(t, err)
		_, err = w.post("text")
		at, ok := transport.RetryAt(err)
		require.True(t, ok)
		require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
		time.Sleep(time.Until(at))
		_, err = w.post("text")
		require.NoError(t, err)
	})
}

// An outage of the network must not keep a text from going out after it.
func TestACallThatNobodyWasThereToTakeIsNoRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{err: errDial}, answer{err: errDial}, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Repeat, p.Retry.Attempts = transport.Repeat{Max: 1, Per: time.Hour}, 1
		})
		for range 2 {
			_, err := w.post("text")
			require.True(t, transport.NotSent(err))
			require.Empty(t, transport.ReasonOf(err))
		}
		_, err := w.post("text")
		require.NoError(t, err)
		_, err = w.post("text")
		require.Equal(t, transport.ReasonRepeated, transport.ReasonOf(err))
	})
}

// A conversation repeats what was said before, and differs at its end.
func TestLongBodiesThatDifferAtTheirEndAreNoRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Repeat = transport.Repeat{Max: 1, Per: time.Hour}
		})
		history := strings.Repeat("what was said before ", 10_000)
		for _, question := range []string{"one", "two"} {
			_, err := w.post(history + question)
			require.NoError(t, err)
		}
		_, err := w.post(history + "two")
		require.Equal(t, transport.ReasonRepeated, transport.ReasonOf(err))
	})
}

func TestPlanKnowsFreezesAndRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Repeat = transport.Repeat{Max: 1, Per: time.Hour}
		})
		req := request(t, t.Context(), strings.NewReader("text"))
		reason := func() transport.Reason {
			plan, err := w.Plan(req)
			require.NoError(t, err)
			return transport.ReasonOf(plan.Refusal)
		}
		require.Empty(t, reason())
		require.NoError(t, w.Freeze(t.Context(), "api", budget.By{Who: "maria"}))
		require.Equal(t, transport.ReasonFrozen, reason())
		require.NoError(t, w.Release(t.Context(), "api", budget.By{Who: "maria"}))
		require.NoError(t, w.ledger.Freeze(t.Context(), budget.Target{Budget: "day"}, budget.By{Who: "maria"}))
		require.Equal(t, transport.ReasonFrozen, reason())
		require.NoError(t, w.ledger.Release(t.Context(), budget.Target{Budget: "day"}, budget.By{Who: "maria"}))
		_, err := w.RoundTrip(req)
		require.NoError(t, err)
		req = request(t, t.Context(), strings.NewReader("text"))
		require.Equal(t, transport.ReasonRepeated, reason())
	})
}

// noticing tells a notice with every hold.
type noticing struct{ *budget.Memory }

func (l noticing) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	r, err := l.Memory.Hold(ctx, h)
	r.Notices = append(r.Notices, budget.Notice{Kind: budget.NoticeThreshold, Budget: "shared", Percent: 80})
	return r, err
}

func TestNoticesReachTheHookThroughAnyProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
			c.Ledger, p.Budgets, p.Price = noticing{new(budget.Memory)}, nil, nil
		})
		_, err := w.get()
		require.NoError(t, err)
		require.Len(t, w.eventsOf(transport.KindThreshold), 1)
	})
}

func TestASlowHookSlowsItsOwnCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		slow.Store(true)
		w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
			p.MaxInFlight = 2
			c.OnEvent = func(_ context.Context, e transport.Event) {
				if e.Kind == transport.KindFinished && slow.CompareAndSwap(true, false) {
					time.Sleep(time.Minute)
				}
			}
		})
		done := make(chan time.Duration)
		go func() { _, _ = w.get(); done <- time.Since(w.base.start) }()
		synctest.Wait()
		w.books("1", "0", "0") // the books do not wait for the hook
		_, err := w.get()
		require.NoError(t, err)
		require.Zero(t, time.Since(w.base.start))
		w.books("2", "0", "0")
		require.Equal(t, time.Minute, <-done)
	})
}

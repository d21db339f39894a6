package transport_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

func cents(a string) func(*transport.Config, *transport.Provider) {
	return func(_ *transport.Config, p *transport.Provider) { p.Price = price.PerCall(budget.MustParse(a)) }
}

func TestConcurrentCallsShareTheLastDollar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, delay: time.Second}), limit("1"), cents("0.3"))
		start := make(chan struct{})
		var wg sync.WaitGroup
		var refused atomic.Int32
		for range 10 {
			wg.Go(func() {
				<-start
				_, err := w.get()
				if over, ok := asType[*budget.ExceededError](err); ok {
					refused.Add(1)
					require.True(t, over.Busy)
					require.Equal(t, "api: budget day: 0.9 of 1 USD used, call needs 0.3 (calls in flight hold the rest)", err.Error())
				}
			})
		}
		close(start)
		wg.Wait()
		require.Len(t, w.base.at(), 3)
		require.EqualValues(t, 7, refused.Load())
		w.books("0.9", "0", "0")
	})
}

func TestExhaustedBudgetRefusesUntilTheNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("2"))
		for range 2 {
			_, err := w.get()
			require.NoError(t, err)
		}
		_, err := w.get()
		over, ok := asType[*budget.ExceededError](err)
		require.True(t, ok, "got %v", err)
		require.Equal(t, budget.ReasonExhausted, over.Reason)
		require.Equal(t, time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC), over.RetryAt.UTC())
		require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(err))
		require.True(t, transport.NotSent(err))
		time.Sleep(time.Until(over.RetryAt))
		_, err = w.get()
		require.NoError(t, err)
		require.Len(t, w.base.at(), 3)
	})
}

// counting counts what reaches the ledger.
type counting struct {
	budget.Ledger
	holds int
	fail  error
	lost  bool // the hold is made but the answer is lost
}

func (l *counting) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	l.holds++
	if l.fail != nil {
		if l.lost {
			_, _ = l.Ledger.Hold(ctx, h)
		}
		return budget.Report{}, l.fail
	}
	return l.Ledger.Hold(ctx, h)
}

func TestAHotLoopOnAnExhaustedBudgetAsksNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ledger *counting
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), func(c *transport.Config, _ *transport.Provider) {
			ledger = &counting{Ledger: c.Ledger}
			c.Ledger = ledger
		})
		_, err := w.get()
		require.NoError(t, err)
		for range 10_000 {
			_, err := w.get()
			require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(err))
		}
		require.Equal(t, 2, ledger.holds)
		require.Zero(t, time.Since(w.base.start))
		time.Sleep(time.Second) // the memory is short: a limit may be raised
		_, err = w.get()
		require.Error(t, err)
		require.Equal(t, 3, ledger.holds)
	})
}

func TestADearCallsRefusalIsNotACheapCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), func(_ *transport.Config, p *transport.Provider) { p.Price = byHeader{} })
		send := func(cost string) error {
			req := request(t, t.Context(), nil)
			req.Header.Set("Cost", cost)
			_, err := w.RoundTrip(req)
			return err
		}
		require.NoError(t, send("0.5"))
		require.Error(t, send("0.6"))
		require.NoError(t, send("0.5"))
		require.Error(t, send("0.000000001"))
		require.NoError(t, send("0"), "what costs nothing always passes")
	})
}

type byHeader struct{}

func (byHeader) Quote(r *http.Request) (budget.Quote, error) {
	a, err := budget.Parse(r.Header.Get("Cost"))
	if err != nil {
		return budget.Quote{}, errors.New("secret 4111111111111111")
	}
	return budget.Quote{Amount: a}, nil
}

func TestALedgerThatFailsSendsNothing(t *testing.T) {
	for name, lost := range map[string]bool{"nothing written": false, "answer lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ledger *counting
				w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)), func(c *transport.Config, _ *transport.Provider) {
					ledger = &counting{Ledger: c.Ledger, fail: budget.ErrUnavailable, lost: lost}
					c.Ledger = ledger
				})
				for range 3 { // the turn is given back each time
					_, err := w.get()
					require.ErrorIs(t, err, budget.ErrUnavailable)
					require.Equal(t, transport.ReasonLedger, transport.ReasonOf(err))
					require.True(t, transport.NotSent(err))
				}
				require.Empty(t, w.base.at())
				require.Zero(t, w.totals().Used())
				ledger.fail = nil
				_, err := w.get()
				require.NoError(t, err)
				require.Zero(t, w.base.at()[0])
				store := w.eventsOf(transport.KindStore)
				require.False(t, store[0].Up)
				require.True(t, store[len(store)-1].Up)
			})
		})
	}
}

// leaving cancels the caller's context while the ledger is asked.
type leaving struct {
	*budget.Memory
	cancel context.CancelFunc
}

func (l leaving) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	_, _ = l.Memory.Hold(ctx, h)
	l.cancel()
	return budget.Report{}, errors.Join(budget.ErrUnavailable, ctx.Err())
}

func TestACallerWhoLeavesDuringTheHoldIsNoFaultOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld(t, answers(t, answer{status: 200}))
		rt := newWorld(t, w.base, func(c *transport.Config, _ *transport.Provider) { c.Ledger = leaving{w.ledger, cancel} })
		_, err := rt.send(ctx, "POST", "text")
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, transport.NotSent(err))
		require.Empty(t, transport.ReasonOf(err))
		require.Empty(t, w.base.at())
		require.Empty(t, rt.eventsOf(transport.KindStore))
		w.books("0", "0", "0")
	})
}

func TestARefusedHoldGivesTheTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), rate(throttle.PerMinute(1)), func(c *transport.Config, p *transport.Provider) {
			p.Price = byHeader{}
			c.MaxWait = transport.NoWait
		})
		send := func(cost string) error {
			req := request(t, t.Context(), nil)
			req.Header.Set("Cost", cost)
			_, err := w.RoundTrip(req)
			return err
		}
		require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(send("2")))
		require.NoError(t, send("0.5"))
	})
}

func TestUnknownPriceIsRefusedWhileMoneyIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) { p.Price = byHeader{} })
		_, err := w.get() // the pricer fails
		require.ErrorIs(t, err, budget.ErrUnpriced)
		require.Equal(t, transport.ReasonUnpriced, transport.ReasonOf(err))
		require.NotContains(t, err.Error(), "4111")
		require.Empty(t, w.base.at())

		free := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) { p.Price, p.Budgets = byHeader{}, nil })
		_, err = free.get()
		require.NoError(t, err)
	})
}

func TestPricesThatMakeNoSenseAreRefused(t *testing.T) {
	for name, q := range map[string]budget.Quote{"negative": {Amount: -1}, "other currency": {Amount: 1, Unit: "EUR"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) { p.Price = fixed{q} })
			_, err := w.get()
			require.ErrorIs(t, err, budget.ErrUnpriced)
			require.Empty(t, w.base.at())
		})
	}
}

type fixed struct{ q budget.Quote }

func (f fixed) Quote(*http.Request) (budget.Quote, error) { return f.q, nil }

func TestNothingIsNothingInAnyCurrency(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
		p.Price = price.Free
		p.Budgets[0].Unit = "EUR"
	})
	_, err := w.get()
	require.NoError(t, err)
	w.books("0", "0", "0")
}

func TestTheResponseNamesTheCallersRequest(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}))
	req := request(t, t.Context(), strings.NewReader("text"))
	resp, err := w.RoundTrip(req)
	require.NoError(t, err)
	require.Same(t, req, resp.Request)
}

func TestFailuresCountAndEarlyErrorsDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		base.answer = func(n int, req *http.Request) (*http.Response, error) {
			switch {
			case n <= 50:
				return nil, errDial
			case n <= 100:
				return base.response(req, answer{status: 401}), nil
			}
			return base.response(req, answer{status: 500}), nil
		}
		w := newWorld(t, base, limit("1"), cents("0.1"), func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 1 })
		var last error
		for range 120 {
			_, last = w.get()
		}
		require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(last))
		require.Len(t, w.base.at(), 110, "ten failures that may be billed, then no more")
		w.books("0", "1", "0")
	})
}

func TestCallBudgetsCountEveryBilledAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := budget.PerDay(2 * budget.Unit)
		calls.Name, calls.Unit = "day", "calls"
		w := newWorld(t, answers(t, answer{status: 429}, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Price, p.Budgets = nil, []budget.Budget{calls}
		})
		for range 2 {
			_, err := w.get()
			require.NoError(t, err)
		}
		_, err := w.get()
		require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(err))
		require.Len(t, w.base.at(), 3)
	})
}

func TestSeveralBudgetsPayTogetherOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		month := budget.PerMonth(budget.MustParse("0.5"))
		month.Name = "everything"
		w := newWorld(t, answers(t, answer{status: 200}), cents("0.4"), func(c *transport.Config, _ *transport.Provider) { c.Budgets = []budget.Budget{month} })
		_, err := w.get()
		require.NoError(t, err)
		_, err = w.get()
		over, ok := asType[*budget.ExceededError](err)
		require.True(t, ok)
		require.Equal(t, "everything", over.Budget)
		w.books("0.4", "0", "0")
	})
}

// A call that queued over midnight is paid by the new day.
func TestTheDayIsThatOfTheSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), rate(throttle.Rate{N: 1, Per: 20 * time.Second}), func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 1 })
		time.Sleep(24*time.Hour - 10*time.Second)
		_, err := w.get()
		require.NoError(t, err)
		_, err = w.get()
		require.NoError(t, err)
		require.Equal(t, 24*time.Hour+10*time.Second, w.base.at()[1])
	})
}

func TestFraudRunsIntoTheBudget(t *testing.T) {
	for _, c := range []struct {
		name, price, limit, spent string
		attempts                  int
	}{
		{"premium numbers", "0.24", "1", "0.96", 4},
		{"pagination loop", "0.038", "1", "0.988", 26},
		{"exact fit", "0.1", "1", "1", 10},
		{"a third", "0.1", "0.3", "0.3", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200}), limit(c.limit), cents(c.price))
				for range 100 {
					_, _ = w.get()
				}
				require.Len(t, w.base.at(), c.attempts)
				w.books(c.spent, "0", "0")
			})
		})
	}
}

func TestThresholdsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("10"))
		for range 30 {
			_, _ = w.get()
		}
		var percents []int
		for _, e := range w.eventsOf(transport.KindThreshold) {
			percents = append(percents, e.Percent)
			require.Equal(t, "day", e.Budget)
		}
		require.Equal(t, []int{50, 80, 100}, percents)
	})
}

func TestRecordTellsWhatACallWentThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 5"}, answer{status: 200}))
		ctx, rec := transport.Record(t.Context())
		_, err := w.send(ctx, "POST", "text")
		require.NoError(t, err)
		calls := rec.Calls()
		require.Len(t, calls, 1)
		require.Equal(t, "api", calls[0].Provider)
		require.GreaterOrEqual(t, calls[0].Waited, 5*time.Second)
		require.Len(t, calls[0].Attempts, 2)
		first, second := calls[0].Attempts[0], calls[0].Attempts[1]
		require.Equal(t, budget.StateVoided, first.State)
		require.True(t, first.Throttled)
		require.Equal(t, budget.StateSettled, second.State)
		require.Equal(t, transport.ReasonGate, second.WaitedFor)
		require.NotEqual(t, first.Hold, second.Hold)
		require.Equal(t, map[string]budget.Amount{"USD": budget.Unit}, rec.Cost())
		require.Equal(t, 2, rec.Attempts())
	})
}

func TestEventsOfACallComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 5"}, answer{status: 200}))
		_, err := w.get()
		require.NoError(t, err)
		require.Equal(t, strings.Fields("started answered resolved throttled gate retrying waiting started answered resolved finished"), w.kinds())
		last := w.events[len(w.events)-1]
		require.Equal(t, "answered", last.Outcome)
		require.Equal(t, 2, last.Attempts)
		require.Equal(t, budget.Unit, last.Cost)
	})
}

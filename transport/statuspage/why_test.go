package statuspage_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// ofTheirOwn gives calls with the header To a budget of that name and of a quarter.
func ofTheirOwn(p *transport.Provider) {
	p.BudgetsFor = func(r *http.Request, _ budget.Quote) []budget.Budget {
		if r.Header.Get("To") == "" {
			return nil
		}
		b := budget.PerDay(budget.Unit / 4)
		b.Name = r.Header.Get("To")
		return []budget.Budget{b}
	}
}

// While a budget refuses calls the page does not say that they leave at once, and it
// blames the budget that refused, for what it refused.
func TestTheBudgetThatRefusesIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, level, say string
		change           func(*transport.Provider)
		header           []string
	}{
		{"never enough", "bad", `^Budget maps-day never pays for a call of 11.00 USD: its limit is 10.00. Refused in the last 5 minutes for that: 3 calls.`, func(p *transport.Provider) {
			p.Price = price.PerCall(11 * budget.Unit)
		}, nil},
		{"kept for critical calls", "bad", `^Budget maps-day has 7.00 USD left and keeps 7.00 for critical calls \(3.00 of 10.00 used\). Refused in the last 5 minutes: 3 calls.`, func(p *transport.Provider) {
			p.Budgets[0].Keep = 7 * budget.Unit
		}, nil},
		{"a budget of a request", "warn", `^Some calls have a budget of their own \(per_call\) that had too little: 0.00 of 0.25 USD used. Refused in the last 5 minutes: 3 calls; the last needed 0.50. Others still go.$`, ofTheirOwn, []string{"To", "+4917012345678"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := provider("maps", "10")
				tt.change(&p)
				w := newWorld(t, new(budget.Memory), p)
				for range 6 {
					_ = w.send(t.Context(), "maps")
				}
				time.Sleep(6 * time.Minute)
				for range 3 {
					require.Error(t, w.send(t.Context(), "maps", tt.header...))
				}
				s := w.json(t, "/").Providers[0]
				require.Equal(t, []string{"exhausted", tt.level}, []string{s.State, s.Level})
				require.Regexp(t, tt.say, s.Say)
				require.NotContains(t, w.html(t, "/"), "Calls leave at once")
				time.Sleep(5 * time.Minute)
				require.Equal(t, "ok", w.json(t, "/").Providers[0].State, "nobody was refused lately")
			})
		})
	}
}

func TestARaisedLimitEndsTheTroubleAtOnce(t *testing.T) {
	p := provider("maps", "1.80")
	w := newWorld(t, new(budget.Memory), p)
	for range 4 {
		_ = w.send(t.Context(), "maps")
	}
	require.Equal(t, "exhausted", w.json(t, "/").Providers[0].State)
	require.NoError(t, w.SetLimit(t.Context(), "maps-day", 5*budget.Unit, budget.By{Who: "maria", Why: "wanted"}))
	require.Equal(t, "ok", w.json(t, "/").Providers[0].State)
}

// Calls in flight hold what is left: that clears, and is no budget that is used up.
func TestCallsInFlightHoldWhatIsLeft(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	p := provider("maps", "0.80")
	w := newWorldOn(t, answer(func(r *http.Request) (*http.Response, error) {
		close(reached)
		<-release
		return byHeader(r)
	}), new(budget.Memory), p)
	done := make(chan error)
	go func() { done <- w.send(context.Background(), "maps") }()
	<-reached
	require.Error(t, w.send(t.Context(), "maps"))
	s := w.json(t, "/").Providers[0]
	require.Equal(t, []string{"busy", "busy"}, []string{s.State, s.Level})
	require.Contains(t, s.Say, "Budget maps-day has 0.30 USD left, and 0.50 held by 1 call in flight.")
	close(release)
	require.NoError(t, <-done)
}

// Each budget that stops calls stands under "now": raising one limit would not be enough.
func TestEveryBudgetThatIsUsedUpIsToldOfNow(t *testing.T) {
	p := provider("maps", "1")
	month := budget.PerMonth(budget.Unit)
	month.Name = "maps-month"
	p.Budgets = append(p.Budgets, month)
	w := newWorld(t, new(budget.Memory), p)
	for range 2 {
		require.NoError(t, w.send(t.Context(), "maps"))
	}
	page := w.html(t, "/")
	require.Regexp(t, `(?s)id="now".*Budget maps-day is used up.*Budget maps-month is used up.*id="budgets"`, page)
	require.NotRegexp(t, `(?s)id="now".*Budget maps-day is used up.*Budget maps-day is used up.*id="budgets"`, page)
}

func TestABudgetThatOnlyWatchesIsNoOutage(t *testing.T) {
	p := provider("maps", "1")
	p.Budgets[0].Monitor = true
	w := newWorld(t, new(budget.Memory), p)
	for range 4 {
		require.NoError(t, w.send(t.Context(), "maps"))
	}
	s := w.json(t, "/")
	require.Equal(t, []string{"warn", "warn", "ok"}, []string{s.Level, s.Budgets[0].Level, s.Providers[0].State})
	require.Equal(t, "Budget maps-day is over its limit: 2.00 of 1.00 USD (settled 2.00, presumed 0.00). It is only monitored: calls go all the same.", s.Budgets[0].Say)
	require.Len(t, s.Decisions, 2)
	require.Equal(t, "would refuse: exhausted", s.Decisions[0].Say)
	require.Contains(t, s.Decisions[0].Why, "1.50 of 1.00 USD used; only monitored: it went all the same")

	require.NoError(t, w.FreezeBudget(t.Context(), "maps-day", budget.By{Who: "maria", Why: "fraud"}))
	require.Error(t, w.send(t.Context(), "maps"))
	frozen := w.json(t, "/").Providers[0]
	require.Equal(t, `maria froze budget maps-day ("fraud"). Its calls are refused until someone releases it.`, frozen.Say)
	require.Nil(t, frozen.Until, "the end of the window does not release it")
}

// What a rolling period counts leaves it bit by bit, and refusals count in it as long.
func TestARollingBudgetThatIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider("maps", "2")
		p.Budgets[0].Every = budget.Rolling(24 * time.Hour)
		w := newWorld(t, new(budget.Memory), p)
		for range 10 {
			_ = w.send(t.Context(), "maps")
			time.Sleep(time.Hour)
		}
		require.Contains(t, w.json(t, "/").Budgets[0].Say, "It counts the last 24 h 0 min: what is older leaves bit by bit, at 11:00 UTC (in 1 h 0 min) at the earliest.")
		require.Contains(t, w.html(t, "/?view=bill"), "The limit stopped 6 calls of 3.00 that this process would have sent.")
		time.Sleep(19 * time.Hour) // 5 is more than a day ago
		require.Contains(t, w.html(t, "/?view=bill"), "The limit stopped 5 calls of 2.50")
	})
}

// A correction, and a cost of a window that is over, is no spending of this moment.
func TestLateCostsAreNoSpendingOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plain{new(budget.Memory)}, provider("maps", "100"))
		memory := w.ledger.(plain).Ledger.(*budget.Memory)
		correct := func() {
			open, err := memory.Unresolved(t.Context(), "", 0)
			require.NoError(t, err)
			c, err := memory.Correct(t.Context(), open[0].ID, budget.Unit/5, budget.By{Who: "maria", Why: "invoice"})
			require.NoError(t, err)
			w.page.Observe(t.Context(), transport.Event{
				Kind: transport.KindResolved, Time: time.Now(), Provider: "maps", Outcome: "corrected", Cost: budget.Unit / 5, Delta: c.Delta, Unit: "USD",
			})
		}
		points := func() (all []string) {
			for _, p := range w.json(t, "/").Budgets[0].History.Points {
				all = append(all, p.Settled+" "+p.Presumed)
			}
			return all
		}
		require.Error(t, w.send(t.Context(), "maps", "Fail", "yes"))
		time.Sleep(10 * time.Second)
		correct()
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"0 0.5", "0.2 0"}, points())

		require.Error(t, w.send(t.Context(), "maps", "Fail", "yes"))
		time.Sleep(24 * time.Hour)
		require.Equal(t, []string{"0 0"}, points())
		time.Sleep(10 * time.Second)
		correct()
		w.page.Observe(t.Context(), transport.Event{
			Kind: transport.KindResolved, Time: time.Now(), Provider: "maps", Outcome: "settled", Cost: budget.Unit, Unit: "USD", Late: true,
		})
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"0 0", "0 0"}, points())
	})
}

// unpaid is a ledger that answers everything but calls.
type unpaid struct {
	budget.Memory
	away atomic.Bool
}

func (u *unpaid) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	if u.away.Load() && len(h.Legs) > 0 {
		return budget.Report{}, fmt.Errorf("%w: %w", budget.ErrUnavailable, context.DeadlineExceeded)
	}
	return u.Memory.Hold(ctx, h)
}

// A provider whose calls name all budgets needs the ledger as well.
func TestALedgerThatPaysNothingIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider("maps", "10")
		p.Budgets = nil
		ofTheirOwn(&p)
		p.Price = price.PerCall(budget.Unit / 10)
		u := new(unpaid)
		w := newWorld(t, u, p)
		require.NoError(t, w.send(t.Context(), "maps", "To", "x"))
		u.away.Store(true)
		require.Error(t, w.send(t.Context(), "maps", "To", "x"))
		s := w.json(t, "/")
		require.Equal(t, []string{"bad", "ledger"}, []string{s.Level, s.Providers[0].State})
		require.Equal(t, "Calls cannot be paid since 00:00 UTC (timeout), although totals can be read; they are refused.", s.Stores[0].Say)
		u.away.Store(false)
		time.Sleep(2 * time.Minute)
		s = w.json(t, "/")
		require.Equal(t, []string{"ok", "ok"}, []string{s.Level, s.Providers[0].State})
	})
}

// A refused repeat is not free: the attempt before it may be charged.
func TestARefusedRepeatIsNotToldAsFree(t *testing.T) {
	p := provider("maps", "0.50")
	p.Retry = transport.Retry{Unknown: transport.ReplayAll, Backoff: time.Millisecond}
	w := newWorld(t, new(budget.Memory), p)
	require.Error(t, w.send(t.Context(), "maps", "Fail", "yes"))
	s := w.json(t, "/")
	require.Equal(t, "refused: exhausted", s.Decisions[0].Say)
	require.Contains(t, s.Decisions[0].Why, "the repeat was not sent; what was sent before may be charged")
	require.Empty(t, s.Providers[0].Hour.Refused)
}

// contrary is a ledger that has the budget with another period.
type contrary struct{ budget.Memory }

func (*contrary) Totals(context.Context, time.Time, ...budget.Budget) ([]budget.Totals, error) {
	return nil, fmt.Errorf("%w: budget maps-day is per week", budget.ErrConflict)
}

// foreign is a limiter that is not of this process.
type foreign struct{ throttle.Limiter }

func TestStoresAreToldAsTheyAre(t *testing.T) {
	page := statuspage.New(statuspage.Options{})
	rt, err := transport.New(transport.Config{
		Base: byHeader, Ledger: new(contrary), Limiter: foreign{throttle.NewBucket()}, Providers: []transport.Provider{provider("maps", "1")}, OnEvent: page.Observe,
	})
	require.NoError(t, err)
	page.Watch(rt)
	s := (&world{page: page}).json(t, "/")
	require.Regexp(t, "^The configuration contradicts the ledger", s.Stores[0].Say, "it answers, but not to this")
	require.Regexp(t, "^The configuration contradicts the ledger", s.Providers[0].Say)
	require.Equal(t, "shared", s.Stores[1].Kind)
	require.Contains(t, s.Stores[1].Say, "all processes that share it")
}

// A provider may be well while calls to it are refused for what they are, or because they
// do not wait: the page says so as long as it lasts.
func TestCallsThatAreRefusedByAProviderThatIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider("maps", "10")
		p.Repeat = transport.Repeat{Max: 1, Per: time.Hour}
		q := provider("sms", "10")
		q.MaxWait, q.Rates = transport.NoWait, []throttle.Rate{throttle.PerMinute(1)}
		w := newWorld(t, new(budget.Memory), p, q)
		for range 3 {
			_ = w.send(t.Context(), "maps")
			_ = w.send(t.Context(), "sms")
		}
		s := w.json(t, "/")
		require.Equal(t, []string{"maps ok warn", "sms ok busy"}, []string{
			s.Providers[0].Name + " " + s.Providers[0].State + " " + s.Providers[0].Level, s.Providers[1].Name + " " + s.Providers[1].State + " " + s.Providers[1].Level,
		})
		require.Equal(t, "Refused in the last 5 minutes: 2 calls (repeated: the same call came too often: look for a loop). Others leave at once.", s.Providers[0].Say)
		require.Contains(t, s.Providers[1].Say, "2 calls (rate: no turn came within what callers may wait)")
		require.Contains(t, w.html(t, "/"), `<li class="warn"><span class="tag">refused</span><span class="name"><a href="?provider=maps">maps</a>`)
		time.Sleep(5 * time.Minute)
		require.Equal(t, "ok", w.json(t, "/").Level)
	})
}

// Under the label of a budget that is gone another one begins anew.
func TestABudgetUnderTheLabelOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider("maps", "10")
		p.Budgets[0].Label = "maps"
		w := newWorld(t, plain{new(budget.Memory)}, p)
		require.NoError(t, w.send(t.Context(), "maps"))
		require.Len(t, w.json(t, "/").Budgets[0].History.Points, 1)
		b := budget.PerDay(20 * budget.Unit)
		b.Name, b.Label = "maps-2", "maps"
		p.Budgets = []budget.Budget{b}
		require.NoError(t, w.Update(transport.Config{Base: byHeader, Ledger: w.ledger, Providers: []transport.Provider{p}, OnEvent: w.page.Observe}))
		time.Sleep(time.Minute)
		points := w.json(t, "/").Budgets[0].History.Points
		require.NotEmpty(t, points)
		require.Equal(t, "0", points[0].Settled)
	})
}

// mute is a limiter that does not answer while it is told so.
type mute struct {
	throttle.Limiter
	away atomic.Bool
}

func (m *mute) Wait(ctx context.Context, a throttle.Ask) (throttle.Turn, error) {
	if m.away.Load() {
		return throttle.Turn{}, throttle.ErrUnavailable
	}
	return m.Limiter.Wait(ctx, a)
}

// Nobody asks a shared limiter while there are no calls: then the page knows no more than
// the last of them.
func TestALimiterThatNobodyAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, m := statuspage.New(statuspage.Options{}), &mute{Limiter: throttle.NewBucket()}
		rt, err := transport.New(transport.Config{
			Base: byHeader, Ledger: new(budget.Memory), Limiter: m, Providers: []transport.Provider{provider("maps", "1")}, OnEvent: page.Observe,
		})
		require.NoError(t, err)
		page.Watch(rt)
		w := &world{Transport: rt, page: page}
		m.away.Store(true)
		for range 2 {
			time.Sleep(time.Minute)
			require.ErrorIs(t, w.send(t.Context(), "maps"), throttle.ErrUnavailable)
		}
		require.Equal(t, "The limiter has not answered since 00:01 UTC. Calls are refused.", w.json(t, "/").Providers[0].Say)
		time.Sleep(time.Hour)
		require.Equal(t, "The limiter did not answer when it was asked last, at 00:02 UTC. Whether it does now shows with the next call.", w.json(t, "/").Providers[0].Say)
		m.away.Store(false)
		require.NoError(t, w.send(t.Context(), "maps"))
		require.Equal(t, "ok", w.json(t, "/").Level)
	})
}

// What an Update adds is remembered from its first call on, without a look at the page.
func TestWhatAnUpdateAddsIsRememberedAtOnce(t *testing.T) {
	p := provider("maps", "10")
	w := newWorld(t, new(budget.Memory), p)
	p.Budgets = []budget.Budget{{Name: "small", Limit: budget.Unit / 4, Every: budget.Day}}
	require.NoError(t, w.Update(transport.Config{Ledger: w.ledger, Providers: []transport.Provider{p}, OnEvent: w.page.Observe}))
	require.Error(t, w.send(t.Context(), "maps"))
	require.Contains(t, w.html(t, "/?view=bill"), "The limit stopped 1 call of 0.50")
}

package transport_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// afar is a ledger that is asked for its totals only, as those in a store are.
type afar struct {
	budget.Ledger
	budget.Operator
	budget.Keyed
	reads atomic.Int32
	hangs atomic.Bool
}

// readBy puts l before the ledger of a configuration.
func readBy(l *afar) func(*transport.Config, *transport.Provider) {
	return func(c *transport.Config, _ *transport.Provider) {
		m := c.Ledger.(*budget.Memory)
		l.Ledger, l.Operator, l.Keyed, c.Ledger = m, m, m, l
	}
}

func (l *afar) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	l.reads.Add(1)
	if l.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Ledger.Totals(ctx, at, b...)
}

// each runs a test with a ledger in memory and with one that is read.
func each(t *testing.T, f func(t *testing.T, ledger func(*transport.Config, *transport.Provider))) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, func(*transport.Config, *transport.Provider) {}) })
	})
	t.Run("read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, readBy(new(afar)))
		})
	})
}

// perMinute lets one call start each minute.
func perMinute(_ *transport.Config, p *transport.Provider) {
	p.Rates = []throttle.Rate{throttle.PerMinute(1)}
}

// spend settles what another program spent on the budget.
func (w *world) spend(amount string) {
	w.t.Helper()
	w.setAside(amount)
	_, err := w.ledger.Resolve(w.t.Context(), budget.HoldID{Boot: 7, Seq: seq.Load()}, budget.Settled(budget.MustParse(amount)))
	require.NoError(w.t, err)
}

// setAside holds money as a call of another program that is in flight.
func (w *world) setAside(amount string) {
	w.t.Helper()
	b := w.totals().Budget
	_, err := w.ledger.Hold(w.t.Context(), budget.Hold{ID: budget.HoldID{Boot: 7, Seq: seq.Add(1)}, Provider: "other", Critical: true, Legs: []budget.Leg{{Budget: b, Amount: budget.MustParse(amount)}}})
	require.NoError(w.t, err)
}

var seq atomic.Uint64

// refusedAtOnce sends a call and wants its budget to refuse it without any wait.
func (w *world) refusedAtOnce(why budget.Reason) {
	w.t.Helper()
	begin := time.Now()
	_, err := w.get()
	over, ok := asType[*budget.ExceededError](err)
	require.True(w.t, ok, "got %v", err)
	require.Equal(w.t, why, over.Reason)
	require.Zero(w.t, time.Since(begin))
	require.True(w.t, transport.NotSent(err))
}

func TestWhatIsSpentIsToldBeforeTheWaitForATurn(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("2"), perMinute)
		_, err := w.get()
		require.NoError(t, err)
		w.spend("1") // no call of this program was refused for it
		for range 3 {
			w.refusedAtOnce(budget.ReasonExhausted)
		}
		// Those who were refused took no turn: the next is at the minute.
		require.NoError(t, w.SetLimit(t.Context(), "day", budget.MustParse("5"), budget.By{Who: "test"}))
		_, err = w.get()
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
	})
}

func TestWhatIsSpentIsToldInPlaceOfTheRate(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("1"), perMinute, func(c *transport.Config, _ *transport.Provider) { c.MaxWait = transport.NoWait })
		_, err := w.get()
		require.NoError(t, err)
		w.refusedAtOnce(budget.ReasonExhausted)
		require.Equal(t, transport.ReasonExhausted, w.eventsOf(transport.KindRefused)[0].Reason)
	})
}

func TestWhatIsKeptForOthersIsToldBeforeTheWait(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("4"), perMinute, func(_ *transport.Config, p *transport.Provider) { p.Budgets[0].Keep = 2 * budget.Unit })
		_, err := w.get()
		require.NoError(t, err)
		w.spend("1.5")
		w.refusedAtOnce(budget.ReasonFloor)
		_, err = w.send(transport.WithPriority(t.Context(), throttle.Critical), "GET", "")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
	})
}

func TestABudgetOfOneCallIsToldBeforeTheWait(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, perMinute, func(_ *transport.Config, p *transport.Provider) {
			p.BudgetsFor = func(*http.Request, budget.Quote) []budget.Budget {
				b := budget.PerDay(budget.Unit)
				b.Name, b.Label = "tenant:7", "tenant"
				return []budget.Budget{b}
			}
		})
		_, err := w.get()
		require.NoError(t, err)
		w.refusedAtOnce(budget.ReasonExhausted)
	})
}

func TestCallsWaitForMoneyThatMayComeBack(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("2"), perMinute)
		_, err := w.get()
		require.NoError(t, err)
		w.setAside("1")
		go func() {
			time.Sleep(30 * time.Second)
			_, _ = w.ledger.Resolve(t.Context(), budget.HoldID{Boot: 7, Seq: seq.Load()}, budget.Voided("not_sent"))
		}()
		_, err = w.get()
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
	})
}

func TestCallsWaitForTheNextWindowIfItsMoneyComesWithTheTurn(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		time.Sleep(24*time.Hour - 30*time.Second)
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("1"), perMinute)
		_, err := w.get()
		require.NoError(t, err)
		_, err = w.get()
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
	})
}

func TestWhatIsFrozenIsToldBeforeTheWait(t *testing.T) {
	by := budget.By{Who: "test"}
	for _, target := range []budget.Target{{Provider: "api"}, {Budget: "day"}} {
		each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
			w := newWorld(t, answers(t, answer{status: 200}), ledger, perMinute)
			_, err := w.get()
			require.NoError(t, err)
			require.NoError(t, w.ledger.Freeze(t.Context(), target, by))
			begin := time.Now()
			_, err = w.get()
			_, ok := asType[*budget.FrozenError](err)
			require.True(t, ok, "got %v", err)
			require.Zero(t, time.Since(begin))
			require.NoError(t, w.ledger.Release(t.Context(), target, by))
			time.Sleep(time.Second)
			_, err = w.get()
			require.NoError(t, err)
		})
	}
}

func TestAMonitorIsNotTold(t *testing.T) {
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("1"), perMinute, func(_ *transport.Config, p *transport.Provider) { p.Budgets[0].Monitor = true })
		for range 3 {
			_, err := w.get()
			require.NoError(t, err)
		}
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute}, w.base.at())
	})
}

// What was read of a store holds for a moment only: a limit that somebody else raised, and
// a window that turned, must let calls through.
func TestWhatWasReadOfAStoreIsForgottenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), perMinute, readBy(new(afar)))
		_, err := w.get()
		require.NoError(t, err)
		w.refusedAtOnce(budget.ReasonExhausted)
		require.NoError(t, w.ledger.SetLimit(t.Context(), "day", 9*budget.Unit, budget.By{Who: "another program"}))
		time.Sleep(1200 * time.Millisecond)
		_, err = w.get()
		require.NoError(t, err)
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - 50*time.Millisecond)
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), perMinute, readBy(new(afar)), func(c *transport.Config, _ *transport.Provider) { c.MaxWait = transport.NoWait })
		_, err := w.get()
		require.NoError(t, err)
		w.refusedAtOnce(budget.ReasonExhausted)
		time.Sleep(50 * time.Millisecond)
		_, err = w.get()
		busy, ok := asType[*throttle.WaitError](err) // it is the rate now, no more the money
		require.True(t, ok, "got %v", err)
		require.Equal(t, throttle.ReasonRate, busy.Reason)
	})
}

func TestThoseWhoQueueShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := new(afar)
		w := newWorld(t, answers(t, answer{status: 200}), limit("500"), readBy(ledger), func(_ *transport.Config, p *transport.Provider) {
			p.Rates = []throttle.Rate{throttle.PerSecond(100)}
		})
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				_, err := w.get()
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, ledger.reads.Load(), "readings")
	})
}

func TestAStoreThatHangsDelaysNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := new(afar)
		w := newWorld(t, answers(t, answer{status: 200}), readBy(ledger), func(_ *transport.Config, p *transport.Provider) {
			p.Rates = []throttle.Rate{throttle.PerSecond(1000)}
		})
		ledger.hangs.Store(true)
		begin := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := w.get()
				require.NoError(t, err)
			})
		}
		wg.Wait()
		between(t, 49*time.Millisecond, 150*time.Millisecond, time.Since(begin))
	})
}

// What an operator gave back is there for the next call, whatever was read before.
func TestWhatAnOperatorGaveBackIsThereAtOnce(t *testing.T) {
	by := budget.By{Who: "test"}
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, limit("2"), perMinute)
		_, err := w.get()
		require.NoError(t, err)
		w.spend("1")
		w.refusedAtOnce(budget.ReasonExhausted)
		_, err = w.Correct(t.Context(), budget.HoldID{Boot: 7, Seq: seq.Load()}, 0, by)
		require.NoError(t, err)
		_, err = w.get()
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
	})
	each(t, func(t *testing.T, ledger func(*transport.Config, *transport.Provider)) {
		w := newWorld(t, answers(t, answer{status: 200}), ledger, perMinute)
		_, err := w.get()
		require.NoError(t, err)
		require.NoError(t, w.FreezeBudget(t.Context(), "day", by))
		_, err = w.get()
		_, ok := asType[*budget.FrozenError](err)
		require.True(t, ok, "got %v", err)
		require.NoError(t, w.ReleaseBudget(t.Context(), "day", by))
		_, err = w.get()
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
	})
}

// late is a ledger whose refusals arrive late.
type late struct {
	*budget.Memory
	at, on chan struct{}
}

func (l *late) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	r, err := l.Memory.Hold(ctx, h)
	if err != nil {
		l.at <- struct{}{}
		<-l.on
	}
	return r, err
}

func TestARefusalOfBeforeAChangeRefusesNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{new(budget.Memory), make(chan struct{}), make(chan struct{})}
		w := newWorld(t, answers(t, answer{status: 200}), limit("1"), func(c *transport.Config, _ *transport.Provider) { c.Ledger = l })
		_, err := w.get()
		require.NoError(t, err)
		done := make(chan error)
		go func() {
			_, err := w.get()
			done <- err
		}()
		<-l.at // it is refused
		require.NoError(t, w.SetLimit(t.Context(), "day", 2*budget.Unit, budget.By{Who: "test"}))
		close(l.on)
		require.Error(t, <-done, "it asked before the change")
		_, err = w.get()
		require.NoError(t, err)
	})
}

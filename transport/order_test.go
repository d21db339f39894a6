package transport_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// capped is a limiter that looks at something when an answer tightens a scope.
type capped struct {
	*throttle.Bucket
	look func(throttle.Cap)
}

func (l *capped) Cap(ctx context.Context, c throttle.Cap) error {
	l.look(c)
	return l.Bucket.Cap(ctx, c)
}

// To tell a shared limiter takes time, in which a process may die: by then the books know
// what the answer cost.
func TestTheBooksAreClosedBeforeTheLimiterIsTold(t *testing.T) {
	for _, c := range []struct {
		a                 answer
		settled, presumed string
	}{
		{answer{status: 200, header: "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60"}, "1", "0"},
		{answer{status: 429, header: "Retry-After: 2"}, "0", "0"},
		{answer{status: 503, header: "Retry-After: 2"}, "0", "0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			told := 0
			w = newWorld(t, answers(t, c.a), func(k *transport.Config, _ *transport.Provider) {
				k.Limiter = &capped{throttle.NewBucket(), func(throttle.Cap) {
					told++
					w.books(c.settled, c.presumed, "0")
					panic("the process ends here")
				}}
			})
			require.Panics(t, func() { _, _ = w.get() })
			require.Equal(t, 1, told, "%v", c.a)
			w.books(c.settled, c.presumed, "0")
		})
	}
}

func TestTheGateIsClosedBeforeTheCallsOwnRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		closed := 0
		w = newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 30"}, answer{status: 200}), func(k *transport.Config, _ *transport.Provider) {
			k.Limiter = &capped{throttle.NewBucket(), func(c throttle.Cap) {
				closed++
				require.Len(t, w.base.at(), 1)
				require.Equal(t, 30*time.Second, time.Until(c.Until))
			}}
		})
		_, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 1, closed)
		require.GreaterOrEqual(t, w.base.at()[1], 30*time.Second)
	})
}

// slowLedger takes its time to close the books.
type slowLedger struct{ *budget.Memory }

func (l slowLedger) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	r, err := l.Memory.Resolve(ctx, id, o)
	time.Sleep(3 * time.Second)
	return r, err
}

func TestAWaitCountsFromTheAnswerHoweverSlowTheBooksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 10"}, answer{status: 200}), func(k *transport.Config, _ *transport.Provider) {
			k.Ledger = slowLedger{new(budget.Memory)}
		})
		_, err := w.get()
		require.NoError(t, err)
		between(t, 10*time.Second, 12*time.Second+floor, w.base.at()[1])
	})
}

// asked is a ledger that stops in the question whether a provider is frozen, after it
// has the answer.
type asked struct {
	*budget.Memory
	at, on chan struct{}
}

func (l *asked) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	r, err := l.Memory.Hold(ctx, h)
	if l.at != nil && len(h.Legs) == 0 && err == nil {
		l.at <- struct{}{}
		<-l.on
	}
	return r, err
}

func TestNoCallPassesAFreezeThatHasReturned(t *testing.T) {
	for _, before := range []int{0, 1} { // calls that have asked already
		synctest.Test(t, func(t *testing.T) {
			l := &asked{Memory: new(budget.Memory)}
			w := newWorld(t, answers(t, answer{status: 200}), func(k *transport.Config, p *transport.Provider) {
				k.Ledger, p.Budgets = l, nil
			})
			for range before {
				_, err := w.get()
				require.NoError(t, err)
				time.Sleep(2 * time.Second)
			}
			l.at, l.on = make(chan struct{}), make(chan struct{})
			done := make(chan error)
			go func() {
				_, err := w.get()
				done <- err
			}()
			<-l.at // it heard that nothing is frozen
			require.NoError(t, w.Freeze(t.Context(), "api", budget.By{Who: "maria"}))
			l.on <- struct{}{}
			require.NoError(t, <-done, "it began before the freeze")
			_, err := w.get()
			var frozen *budget.FrozenError
			require.ErrorAs(t, err, &frozen)
			require.NoError(t, w.Release(t.Context(), "api", budget.By{Who: "maria"}))
			l.at = nil
			_, err = w.get()
			require.NoError(t, err)
		})
	}
}

func TestARecordSaysWhenNoBudgetPays(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) { p.Budgets = nil })
	ctx, rec := transport.Record(t.Context())
	_, err := w.send(ctx, http.MethodGet, "")
	require.NoError(t, err)
	a := rec.Calls()[0].Attempts[0]
	require.Equal(t, budget.StateNone, a.State)
	require.Equal(t, "none", a.State.String())
	require.Zero(t, a.Hold)
	require.Empty(t, rec.Cost())
}

// A hook that is told of a body which nobody closed may take its time.
func TestAnUnclosedBodyIsToldAfterItsSlotIsFree(t *testing.T) {
	told := make(chan bool, 1)
	var limiter *throttle.Bucket
	w := newWorld(t, answers(t, answer{status: 200, body: "text"}), func(k *transport.Config, p *transport.Provider) {
		limiter = throttle.NewBucket()
		k.Limiter, p.MaxInFlight = limiter, 1
		k.OnEvent = func(_ context.Context, e transport.Event) {
			if e.Kind == transport.KindUnclosed {
				turn, err := limiter.Wait(context.Background(), throttle.Ask{Legs: []throttle.Leg{{Key: "api", Slots: 1}}})
				turn.Cancel()
				told <- err == nil
			}
		}
	})
	_, err := w.get()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case free := <-told:
			require.True(t, free)
			return true
		default:
			return false
		}
	}, 10*time.Second, 10*time.Millisecond)
}

type fullDisk struct{ budget.Memory }

func (*fullDisk) Hold(context.Context, budget.Hold) (budget.Report, error) {
	return budget.Report{}, diskError{}
}

type diskError struct{}

func (diskError) Error() string      { return "no space left" }
func (diskError) Unwrap() error      { return budget.ErrUnavailable }
func (diskError) ErrorClass() string { return "full" }

func TestAStoreSaysWhatIsWrongWithIt(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(k *transport.Config, _ *transport.Provider) { k.Ledger = new(fullDisk) })
	_, err := w.get()
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.Equal(t, "full", w.eventsOf(transport.KindStore)[0].ErrorClass)
}

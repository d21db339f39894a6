package sdktest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// world is one SDK at work.
type world struct {
	fake    *vendortest.Fake
	ledger  *budget.Memory
	budget  budget.Budget
	refused atomic.Int32 // how often outlay refused something
	call    func(ctx context.Context, i int) error
}

// books pay for everything; a call has its own budget.
func books() budget.Budget {
	return budget.Budget{Name: "books", Limit: 1000 * budget.Unit, Every: budget.Rolling(24 * time.Hour)}
}

// build makes a world. The edit changes the preset as a user might.
func (s sdk) build(t *testing.T, o vendortest.Options, retries bool, edit func(*transport.Config, *transport.Provider)) *world {
	t.Helper()
	w := &world{fake: s.fake(o), ledger: new(budget.Memory), budget: books()}
	t.Cleanup(w.fake.Close)
	p := s.preset()
	p.Budgets = []budget.Budget{w.budget}
	config := transport.Config{Base: vendortest.Base(w.fake), Ledger: w.ledger, OnEvent: func(_ context.Context, e transport.Event) {
		if e.Kind == transport.KindRefused {
			w.refused.Add(1)
		}
	}}
	if edit != nil {
		edit(&config, &p)
	}
	config.Providers = []transport.Provider{p}
	rt, err := transport.New(config)
	require.NoError(t, err)
	t.Cleanup(rt.CloseIdleConnections)
	w.call = s.connect(rt.Client(), retries)
	return w
}

// run makes n calls, eight at a time, and returns how many went well.
func (w *world) run(ctx context.Context, n int) int {
	var next, good atomic.Int64
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if w.call(ctx, int(i)) == nil {
					good.Add(1)
				}
			}
		})
	}
	work.Wait()
	return int(good.Load())
}

// accounts returns what the books say.
func (w *world) accounts(t *testing.T) (settled, presumed budget.Amount) {
	t.Helper()
	totals, err := w.ledger.Totals(t.Context(), time.Now(), w.budget)
	require.NoError(t, err)
	require.Zero(t, totals[0].OpenHolds, "every call has ended")
	return totals[0].Settled, totals[0].Presumed
}

// each runs a test for every SDK.
func each(t *testing.T, test func(*testing.T, sdk)) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// TestRatesAreKept: the vendor never sees more than it allows, and the calls take the
// time that the rate gives them.
func TestRatesAreKept(t *testing.T) {
	each(t, func(t *testing.T, s sdk) {
		// The vendor allows twice our rate, because what we send in one of its windows may
		// arrive in the next.
		const n, window = 20, 400 * time.Millisecond
		limit := vendortest.Options{Limit: vendortest.Limit{Requests: 2 * n, Window: window}}
		w := s.build(t, limit, false, func(_ *transport.Config, p *transport.Provider) {
			p.Rates = []throttle.Rate{{N: n, Per: window, Strict: true}}
			p.Scopes = nil
		})
		begin := time.Now()
		require.Equal(t, 3*n, w.run(t.Context(), 3*n))
		require.GreaterOrEqual(t, time.Since(begin), 2*window)
		counts := w.fake.Counts()
		require.Zero(t, counts.Throttled)
		require.Equal(t, 3*n, counts.Received)
		settled, presumed := w.accounts(t)
		require.Equal(t, w.fake.Invoice().Total, settled, "the books agree with the invoice to the nano")
		require.Zero(t, presumed)
	})
}

// TestNothingIsSentTwice: the vendor throttles, fails and loses answers, and the books
// enclose its invoice.
func TestNothingIsSentTwice(t *testing.T) {
	each(t, func(t *testing.T, s sdk) {
		w := s.build(t, vendortest.Options{
			Limit: vendortest.Limit{Requests: 100, Window: time.Second},
			Faults: vendortest.Faults{
				Seed: 11, Throttle429Hint: 15, Throttle429Bare: s.bare, Unavailable503: 30, Unavailable503Hint: 15,
				Error500: 40, ResetBeforeRead: 40, ResetAfterRead: 50, Cut: 40, Slow: 30, SlowFor: 50 * time.Millisecond,
			},
		}, false, nil)
		good := w.run(t.Context(), 80)
		require.Greater(t, good, 40)
		counts := w.fake.Counts()
		require.Greater(t, len(counts.Faults), 5, "the vendor failed in several ways")
		require.Zero(t, counts.Double)
		require.Zero(t, counts.Invalid)
		settled, presumed := w.accounts(t)
		invoice := w.fake.Invoice().Total
		require.LessOrEqual(t, settled, invoice)
		require.LessOrEqual(t, invoice, settled+presumed)
		t.Logf("%d good of 80, %d received, %d throttled, %d replayed; settled %v <= invoice %v <= %v",
			good, counts.Received, counts.Throttled, counts.Replayed, settled, invoice, settled+presumed)
	})
}

// exhaust lets three calls pass.
func exhaust(_ *transport.Config, p *transport.Provider) {
	p.Budgets = []budget.Budget{books(), {Name: "three", Limit: 3 * budget.Unit, Unit: budget.Calls, Every: budget.Rolling(24 * time.Hour)}}
}

// TestRefusalsOfABudget: the SDK's error is ours inside, and says that nothing was sent.
func TestRefusalsOfABudget(t *testing.T) {
	each(t, func(t *testing.T, s sdk) {
		for _, retries := range []bool{true, false} {
			w := s.build(t, vendortest.Options{}, retries, exhaust)
			require.Equal(t, 3, w.run(t.Context(), 3))
			err := w.call(t.Context(), 4)
			var over *budget.ExceededError
			require.ErrorAs(t, err, &over)
			require.Equal(t, "three", over.Budget)
			require.True(t, transport.NotSent(err))
			require.Equal(t, transport.ReasonExhausted, transport.ReasonOf(err))
			require.Equal(t, 3, w.fake.Counts().Received)
			sends := 1
			if retries {
				sends = s.sends
			}
			require.EqualValues(t, sends, w.refused.Load(), "sends of a refused call, with the SDK's retries: %v", retries)
		}
	})
}

// TestRefusalsOfARate: a call that cannot start now says when it could.
func TestRefusalsOfARate(t *testing.T) {
	each(t, func(t *testing.T, s sdk) {
		for _, retries := range []bool{true, false} {
			w := s.build(t, vendortest.Options{}, retries, func(c *transport.Config, p *transport.Provider) {
				c.MaxWait = transport.NoWait
				p.Rates = []throttle.Rate{throttle.PerHour(1)}
			})
			require.NoError(t, w.call(t.Context(), 1))
			err := w.call(t.Context(), 2)
			var wait *throttle.WaitError
			require.ErrorAs(t, err, &wait)
			at, known := transport.RetryAt(err)
			require.True(t, known)
			require.WithinDuration(t, time.Now().Add(time.Hour), at, time.Minute)
			require.Equal(t, 1, w.fake.Counts().Received)
			sends := 1
			if retries {
				sends = s.sends
			}
			require.EqualValues(t, sends, w.refused.Load(), "sends of a refused call, with the SDK's retries: %v", retries)
		}
	})
}

// TestRefusalsInTheVendorsShape: an SDK that is not told to stop repeating does stop, and
// makes its own error of the refusal.
func TestRefusalsInTheVendorsShape(t *testing.T) {
	each(t, func(t *testing.T, s sdk) {
		w := s.build(t, vendortest.Options{}, true, func(c *transport.Config, p *transport.Provider) {
			exhaust(c, p)
			p.Refusal = s.refusal
		})
		require.Equal(t, 3, w.run(t.Context(), 3))
		err := w.call(t.Context(), 4)
		require.Error(t, err)
		require.True(t, s.own(err), "%T: %v", err, err)
		require.EqualValues(t, 1, w.refused.Load())
		require.Equal(t, 3, w.fake.Counts().Received)
	})
}

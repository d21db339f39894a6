package transport_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// A hook that does nothing costs no memory: events are values.
func TestAHookThatDoesNothingAllocatesNothing(t *testing.T) {
	count := func(hook func(context.Context, transport.Event)) float64 {
		rt, err := transport.New(transport.Config{Base: newBare(), Ledger: new(budget.Memory), OnEvent: hook, Providers: []transport.Provider{{
			Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(1000), MaxInFlight: 100,
			Rates:   []throttle.Rate{{N: 1_000_000_000, Per: time.Second, Burst: 1_000_000}},
			Budgets: []budget.Budget{budget.PerDay(9_000_000_000 * budget.Unit)},
		}}})
		require.NoError(t, err)
		req, err := http.NewRequest(http.MethodGet, apiURL, nil)
		require.NoError(t, err)
		return testing.AllocsPerRun(1000, func() {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				panic(err)
			}
			_ = resp.Body.Close()
		})
	}
	without := count(nil)
	with := count(func(context.Context, transport.Event) {})
	t.Logf("without hook %v, with one %v", without, with)
	require.LessOrEqual(t, with, without)
}

// Each attempt tells its own wait, the call the sum, and who leaves the queue how long it
// stood there.
func TestWaitsAreToldPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Rates = []throttle.Rate{throttle.PerMinute(6)}
			p.Retry.Unknown = transport.ReplayAll
		})
		ctx, record := transport.Record(t.Context())
		resp, err := w.send(ctx, http.MethodGet, "")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		started := w.eventsOf(transport.KindStarted)
		require.Len(t, started, 2)
		require.Zero(t, started[0].Wait)
		require.Greater(t, started[1].Wait, 5*time.Second)
		attempts := record.Calls()[0].Attempts
		require.Equal(t, started[1].Wait, attempts[1].Waited)
		require.Zero(t, attempts[0].Waited)
		require.Zero(t, w.eventsOf(transport.KindFinished)[0].Left)

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(3*time.Second, cancel)
		_, err = w.send(ctx, http.MethodGet, "")
		require.ErrorIs(t, err, context.Canceled)
		last := w.eventsOf(transport.KindFinished)[1]
		require.Equal(t, 3*time.Second, last.Left)
		require.Equal(t, "cancelled", last.Outcome)
	})
}

// What an operator does is told, and what was frozen or corrected is to be seen.
func TestStatusAndCorrectionsOfAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}), func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 1 })
		_, err := w.get()
		require.NoError(t, err)
		by := budget.By{Who: "maria", Why: "invoice"}
		open, err := w.Unresolved(t.Context(), "api", 0)
		require.NoError(t, err)
		require.Len(t, open, 1)
		report, err := w.Correct(t.Context(), open[0].ID, budget.Unit/4, by)
		require.NoError(t, err)
		require.Equal(t, -budget.Unit*3/4, report.Delta)
		w.books("0.25", "0", "0")
		corrected := w.eventsOf(transport.KindResolved)[1]
		require.Equal(t, []string{"corrected", "api", "USD", "-0.75"}, []string{corrected.Outcome, corrected.Provider, corrected.Unit, corrected.Delta.String()})
		require.False(t, corrected.Time.IsZero())
		_, err = w.Correct(t.Context(), budget.HoldID{Boot: 1, Seq: 1}, 0, by)
		require.ErrorIs(t, err, budget.ErrUnknownHold)

		s, err := w.Status(t.Context())
		require.NoError(t, err)
		require.True(t, s.Providers[0].Frozen.IsZero())
		require.NoError(t, w.Freeze(t.Context(), "api", by))
		s, err = w.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Now(), s.Providers[0].Frozen.In(time.Local))
		require.Equal(t, "memory", s.Ledger.Kind)
		require.Equal(t, "exact", s.Ledger.Mode)
		require.Regexp(t, `^[0-9a-f]{8}$`, s.Ledger.ID)
		changed := w.eventsOf(transport.KindChanged)
		require.Equal(t, "freeze", changed[len(changed)-1].Action)
		require.False(t, changed[0].Time.IsZero())
	})
}

// forgetful is a ledger that has something to tell whenever it is asked for a freeze.
type forgetful struct{ budget.Memory }

func (f *forgetful) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	r, err := f.Memory.Hold(ctx, h)
	if len(h.Legs) == 0 {
		r.Notices = append(r.Notices, budget.Notice{Kind: budget.NoticeClock, Skew: time.Hour})
	}
	return r, err
}

// Reading the state does not swallow what the ledger has to tell: it tells it once.
func TestStatusTellsWhatTheLedgerNotices(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, _ *transport.Provider) { c.Ledger = new(forgetful) })
	_, err := w.Status(t.Context())
	require.NoError(t, err)
	clocks := w.eventsOf(transport.KindClock)
	require.Len(t, clocks, 1)
	require.Equal(t, time.Hour, clocks[0].Skew)
	require.False(t, clocks[0].Time.IsZero())
}

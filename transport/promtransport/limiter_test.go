package promtransport_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// far is a limiter that needs a while for everything, as a shared one does.
type far struct {
	*throttle.Bucket
	degraded bool
	err      error
}

func (f *far) Wait(ctx context.Context, a throttle.Ask) (throttle.Turn, error) {
	time.Sleep(2 * time.Millisecond)
	if f.err != nil {
		return throttle.Turn{}, f.err
	}
	return f.Bucket.Wait(ctx, a)
}

func (f *far) Cap(ctx context.Context, c throttle.Cap) error {
	time.Sleep(5 * time.Millisecond)
	return f.Bucket.Cap(ctx, c)
}

func (f *far) Degraded() bool { return f.degraded }

func TestTheTimeOfASharedLimiterIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{Bucket: throttle.NewBucket()}
		base := answer(func(req *http.Request) (*http.Response, error) {
			return status(429, "Retry-After", "3")(req)
		})
		var l throttle.Limiter
		w := newWorld(t, base, new(budget.Memory), func(c *transport.Config) {
			c.Providers[0].Retry.Attempts = 1
			c.Providers[0].MaxWait = time.Minute
		})
		l = w.m.Limiter(f)
		rt, err := transport.New(transport.Config{Base: base, OnEvent: w.m.Observe, Limiter: l, Providers: []transport.Provider{{
			Name: "api", Match: []string{"api.example.com"}, Retry: transport.Retry{Attempts: 1}, MaxWait: time.Minute,
		}}})
		require.NoError(t, err)
		w.Transport = rt
		w.m.Watch(rt)
		for range 2 { // the second one queues behind the pause that the first was told
			require.NoError(t, w.get(t.Context()))
		}
		f.degraded = true
		out := w.scrape(t)
		const op = `outlay_store_operation_duration_seconds`
		require.Equal(t, "1", value(t, out, op+`_count{op="wait",store="limiter"}`))
		require.Equal(t, "0.002", value(t, out, op+`_sum{op="wait",store="limiter"}`))
		require.Equal(t, "2", value(t, out, op+`_count{op="cap",store="limiter"}`))
		require.Equal(t, "0.01", value(t, out, op+`_sum{op="cap",store="limiter"}`))
		require.Equal(t, "1", value(t, out, `outlay_limiter_degraded{provider="api"}`))
		require.Equal(t, "0", value(t, out, `outlay_queue_length{priority="normal",provider="api"}`), "it still tells its state")

		f.err = errors.Join(throttle.ErrUnavailable)
		require.Error(t, w.get(t.Context()))
		require.Equal(t, "2", value(t, w.scrape(t), op+`_count{op="wait",store="limiter"}`), "a failure takes time, too")
	})
}

// What a limiter cannot do, its wrapping cannot either.
func TestAWrappedLimiterCanDoWhatItCould(t *testing.T) {
	w := newWorld(t, status(200), new(budget.Memory))
	type only struct{ throttle.Limiter }
	for _, tt := range []struct {
		l                throttle.Limiter
		informs, adjusts bool
	}{
		{throttle.NewBucket(), true, true},
		{only{throttle.NewBucket()}, false, false},
		{struct {
			only
			throttle.Informer
		}{only{throttle.NewBucket()}, throttle.NewBucket()}, true, false},
		{struct {
			only
			throttle.Tuner
		}{only{throttle.NewBucket()}, throttle.NewBucket()}, false, true},
	} {
		l := w.m.Limiter(tt.l)
		_, informs := l.(throttle.Informer)
		_, adjusts := l.(throttle.Tuner)
		require.Equal(t, []bool{tt.informs, tt.adjusts}, []bool{informs, adjusts})
		require.False(t, l.(interface{ Degraded() bool }).Degraded())
		turn, err := l.Wait(t.Context(), throttle.Ask{Legs: []throttle.Leg{{Key: "x"}}})
		require.NoError(t, err)
		turn.Done()
	}
}

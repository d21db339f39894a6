package throttle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// flaky is a shared limiter whose store can be down.
type flaky struct {
	*Bucket
	mu    sync.Mutex
	down  bool
	calls int
}

func (f *flaky) gone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.down
}

func (f *flaky) set(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *flaky) Wait(ctx context.Context, a Ask) (Turn, error) {
	if f.gone() {
		return Turn{}, errors.Join(ErrUnavailable, errors.New("connection refused"))
	}
	return f.Bucket.Wait(ctx, a)
}

func (f *flaky) Cap(ctx context.Context, c Cap) error {
	if f.gone() {
		return ErrUnavailable
	}
	return f.Bucket.Cap(ctx, c)
}

func fallbackTest(t *testing.T, f func(t *testing.T, shared *flaky, local *Bucket, both Limiter, degraded func() bool)) {
	synctest.Test(t, func(t *testing.T) {
		shared, local := &flaky{Bucket: NewBucket()}, NewBucket()
		both := Fallback(shared, local)
		f(t, shared, local, both, both.(interface{ Degraded() bool }).Degraded)
	})
}

func TestFallbackUsesLocalWhileSharedIsDown(t *testing.T) {
	fallbackTest(t, func(t *testing.T, shared *flaky, local *Bucket, both Limiter, degraded func() bool) {
		wait := func() error {
			turn, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg("p")}})
			turn.Done()
			return err
		}
		require.NoError(t, wait())
		require.Equal(t, 1, shared.calls)
		require.Empty(t, local.Stats("p").Scopes)

		shared.set(true)
		for range 10 {
			require.NoError(t, wait())
		}
		require.True(t, degraded())
		require.Equal(t, 2, shared.calls, "one failure, then local for a second")
		require.Len(t, local.Stats("p").Scopes, 1)

		time.Sleep(time.Second)
		require.NoError(t, wait())
		require.NoError(t, wait())
		require.Equal(t, 3, shared.calls, "one probe, then local again")

		shared.set(false)
		time.Sleep(time.Second)
		require.NoError(t, wait())
		require.False(t, degraded())
		require.NoError(t, wait())
		require.Equal(t, 5, shared.calls)
	})
}

func TestFallbackTellsSharedTheGatesItMissed(t *testing.T) {
	fallbackTest(t, func(t *testing.T, shared *flaky, local *Bucket, both Limiter, _ func() bool) {
		until := time.Now().Add(time.Hour)
		shared.set(true)
		require.ErrorIs(t, both.Cap(t.Context(), Cap{Key: "p", Until: until}), ErrUnavailable)
		require.NoError(t, both.Cap(t.Context(), Cap{Key: "p", Until: until.Add(-time.Minute)}))
		require.NoError(t, both.Cap(t.Context(), Cap{Key: "q", Until: until}))
		require.NoError(t, both.Cap(t.Context(), Cap{Key: "q", Reopen: true}))
		require.Equal(t, until, local.Stats("p").Scopes[0].GateUntil)

		shared.set(false)
		time.Sleep(time.Second)
		_, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg("r")}})
		require.NoError(t, err)
		require.Equal(t, until, shared.Stats("p").Scopes[0].GateUntil)
		require.Empty(t, shared.Stats("q").Scopes)
	})
}

// A gate that a person opened during the outage does not close again with its end; one
// that a provider closed since then does.
func TestFallbackTellsSharedTheGatesThatWereOpened(t *testing.T) {
	fallbackTest(t, func(t *testing.T, shared *flaky, local *Bucket, both Limiter, _ func() bool) {
		begin := time.Now()
		for _, key := range []string{"p", "q"} {
			require.NoError(t, both.Cap(t.Context(), Cap{Key: key, Until: begin.Add(time.Hour)}))
		}
		shared.set(true)
		for _, key := range []string{"p", "q"} {
			_ = both.Cap(t.Context(), Cap{Key: key, Reopen: true})
		}
		require.NoError(t, both.Cap(t.Context(), Cap{Key: "q", Until: begin.Add(time.Minute)}))
		require.Zero(t, local.Stats("p").Scopes[0].GateUntil)

		shared.set(false)
		time.Sleep(time.Second)
		for _, key := range []string{"r", "p"} { // the first is told the gates of before
			_, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg(key)}, MaxWait: time.Second})
			require.NoError(t, err)
		}
		require.Zero(t, shared.Stats("p").Scopes[0].GateUntil)
		require.Equal(t, begin.Add(time.Minute), shared.Stats("q").Scopes[0].GateUntil)
	})
}

// deafOnce is a shared limiter that does not hear the first time that a gate was opened.
type deafOnce struct {
	*flaky
	meanwhile func()
}

func (d *deafOnce) Cap(ctx context.Context, c Cap) error {
	if f := d.meanwhile; c.Reopen && f != nil && !d.gone() {
		d.meanwhile = nil
		f()
		return ErrUnavailable
	}
	return d.flaky.Cap(ctx, c)
}

// What shared does not hear at once is told in order: an opening that comes late must not open
// the gate that was closed after it.
func TestFallbackTellsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &deafOnce{flaky: &flaky{Bucket: NewBucket()}}
		both := Fallback(shared, NewBucket())
		until := time.Now().Add(time.Hour)
		shared.set(true)
		_ = both.Cap(t.Context(), Cap{Key: "p", Reopen: true})
		_ = both.Cap(t.Context(), Cap{Key: "q", Reopen: true})
		require.NoError(t, both.Cap(t.Context(), Cap{Key: "q", Until: until}))
		shared.set(false)
		shared.meanwhile = func() { _ = both.Cap(t.Context(), Cap{Key: "p", Until: until}) }
		time.Sleep(time.Second)
		for range 3 {
			_, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg("r", PerSecond(10))}, MaxWait: time.Second})
			require.NoError(t, err)
		}
		for _, key := range []string{"p", "q"} {
			require.Error(t, func() error { _, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg(key)}}); return err }(), key)
			require.Equal(t, until, shared.Stats(key).Scopes[0].GateUntil, key)
		}
	})
}

func TestFallbackKeepsRefusals(t *testing.T) {
	fallbackTest(t, func(t *testing.T, shared *flaky, local *Bucket, both Limiter, degraded func() bool) {
		require.NoError(t, both.Cap(t.Context(), Cap{Key: "p", Until: time.Now().Add(time.Hour)}))
		_, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg("p")}})
		var w *WaitError
		require.ErrorAs(t, err, &w)
		require.False(t, degraded())
	})
}

func TestFallbackProbeThatQueuesBringsAllBack(t *testing.T) {
	fallbackTest(t, func(t *testing.T, shared *flaky, local *Bucket, both Limiter, degraded func() bool) {
		p := leg("p", PerMinute(1))
		_, err := shared.Bucket.Wait(t.Context(), ask(p))
		require.NoError(t, err)
		shared.set(true)
		_, err = both.Wait(t.Context(), ask(p))
		require.NoError(t, err, "from local")
		shared.set(false)
		time.Sleep(time.Second)
		queued := false
		a := ask(p)
		a.OnQueue = func(Forecast) { queued = true }
		done := make(chan error)
		go func() { _, err := both.Wait(t.Context(), a); done <- err }()
		synctest.Wait()
		require.True(t, queued)
		require.False(t, degraded())
		require.NoError(t, <-done)
	})
}

// dies is a shared limiter whose store goes down while a call waits in its queue.
type dies struct{ *Bucket }

func (dies) Wait(_ context.Context, a Ask) (Turn, error) {
	a.OnQueue(Forecast{})
	if err := a.Still(); err != nil {
		return Turn{}, err
	}
	time.Sleep(time.Second)
	return Turn{}, ErrUnavailable
}

func TestFallbackAsksOnceWhereACallQueuesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := NewBucket()
		both := Fallback(dies{NewBucket()}, local)
		p := leg("p", PerMinute(1))
		_, err := local.Wait(t.Context(), ask(p))
		require.NoError(t, err)
		a, begin := ask(p), time.Now()
		var hooks string
		a.OnQueue = func(Forecast) { hooks += "queue " }
		a.Still = func() error { hooks += "still "; return nil }
		_, err = both.Wait(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(begin), "it waited in both")
		require.Equal(t, "queue still ", hooks)
	})
}

func TestFallbackProbeThatGivesUpSaysNothing(t *testing.T) {
	fallbackTest(t, func(t *testing.T, shared *flaky, local *Bucket, both Limiter, degraded func() bool) {
		shared.set(true)
		_, err := both.Wait(t.Context(), Ask{Legs: []Leg{leg("p")}})
		require.NoError(t, err)
		time.Sleep(time.Second)
		shared.set(false)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = both.Wait(ctx, Ask{Legs: []Leg{leg("p")}})
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, degraded())
		_, err = both.Wait(t.Context(), Ask{Legs: []Leg{leg("p")}})
		require.NoError(t, err)
		require.False(t, degraded(), "the next call probes")
	})
}

// What is seen and tuned is the limiter in use.
func TestFallbackTellsAndTunesTheLimiterInUse(t *testing.T) {
	local, shared := NewBucket(), NewBucket()
	f := Fallback(shared, local)
	ctx := t.Context()
	turn, err := f.Wait(ctx, Ask{Legs: []Leg{{Key: "api", Rates: []Rate{PerMinute(10)}}, {Key: "api/sender", Rates: []Rate{PerMinute(1)}}}})
	require.NoError(t, err)
	informer, ok := f.(Informer)
	require.True(t, ok)
	require.Len(t, informer.Stats("api").Scopes, 2, "an operator finds every gate")
	forecast, err := informer.Forecast(Ask{Legs: []Leg{{Key: "api/sender", Rates: []Rate{PerMinute(1)}}}, MaxWait: time.Hour})
	require.NoError(t, err)
	require.Positive(t, forecast.Wait)
	tuner := f.(Tuner)
	tuner.Adjust(turn, "api", 5)
	require.InDelta(t, shared.Stats("api").Scopes[0].Tokens, informer.Stats("api").Scopes[0].Tokens, 1)
	require.Empty(t, local.Stats("api").Scopes)
	require.NoError(t, tuner.Set(Leg{Key: "api", Rates: []Rate{PerMinute(20)}}))
	require.Equal(t, 20, informer.Stats("api").Scopes[0].Rates[0].N)
	turn.Done()
}

// panics is a shared limiter that panics once.
type panics struct {
	*flaky
	now bool
}

func (p *panics) Wait(ctx context.Context, a Ask) (Turn, error) {
	if p.now {
		panic("a hook of the store")
	}
	return p.flaky.Wait(ctx, a)
}

func (p *panics) Cap(ctx context.Context, c Cap) error {
	if p.now {
		panic("a hook of the store")
	}
	return p.flaky.Cap(ctx, c)
}

func TestFallbackTriesAgainAfterAPanicOfTheOneWhoTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := Ask{Legs: []Leg{leg("p")}}
		for _, try := range []func(l Limiter){
			func(l Limiter) { _, _ = l.Wait(t.Context(), ask) },
			func(l Limiter) { _ = l.Cap(t.Context(), Cap{Key: "p"}) },
		} {
			shared := &panics{flaky: &flaky{Bucket: NewBucket(), down: true}}
			both := Fallback(shared, NewBucket())
			_, err := both.Wait(t.Context(), ask)
			require.NoError(t, err, "from local")
			time.Sleep(probeEvery)
			shared.now = true
			require.Panics(t, func() { try(both) })
			shared.now = false
			shared.set(false)
			_, err = both.Wait(t.Context(), ask)
			require.NoError(t, err)
			require.False(t, both.(interface{ Degraded() bool }).Degraded(), "nobody tries the shared limiter any more")
		}
	})
}

package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab runs calls against a bucket in virtual time and notes when each started.
type lab struct {
	t     *testing.T
	b     *Bucket
	begin time.Time
}

// bubble runs f with a new bucket in virtual time, and checks that nothing is left
// behind when all calls are over.
func bubble(t *testing.T, f func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, b: NewBucket(), begin: time.Now()}
		f(l)
		synctest.Wait()
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		require.Empty(t, l.b.alarms, "alarms left")
		require.Zero(t, l.b.set, "timer left running")
		require.Empty(t, l.b.dirty)
		for _, s := range l.b.scopes {
			if s.x != nil {
				require.Empty(t, s.x.flows)
				require.Nil(t, s.x.group)
				require.Empty(t, s.x.parks)
				require.Nil(t, s.x.claim)
			}
		}
	})
}

// at is the time since the bubble began.
func (l *lab) at() time.Duration { return time.Since(l.begin) }

// result is what became of a call and when.
type result struct {
	turn Turn
	err  error
	at   time.Duration
}

// call asks in a new goroutine, so that several wait together. Its turn is done at once.
func (l *lab) call(ctx context.Context, a Ask) <-chan result {
	c := make(chan result, 1)
	go func() {
		turn, err := l.b.Wait(ctx, a)
		turn.Done()
		c <- result{turn, err, l.at()}
	}()
	synctest.Wait()
	return c
}

// calls asks n times in order and returns when each call started.
func (l *lab) calls(n int, a Ask) []<-chan result {
	out := make([]<-chan result, n)
	for i := range out {
		out[i] = l.call(l.t.Context(), a)
	}
	return out
}

// starts collects the starting times of calls that must all succeed.
func (l *lab) starts(calls []<-chan result) []time.Duration {
	l.t.Helper()
	var at []time.Duration
	for _, c := range calls {
		r := <-c
		require.NoError(l.t, r.err)
		at = append(at, r.at)
	}
	return at
}

func ask(legs ...Leg) Ask { return Ask{Legs: legs, MaxWait: time.Hour} }

func leg(key string, rates ...Rate) Leg { return Leg{Key: key, Rates: rates} }

func (l *lab) cap(c Cap) {
	l.t.Helper()
	require.NoError(l.t, l.b.Cap(l.t.Context(), c))
}

func (l *lab) refused(err error) *WaitError {
	l.t.Helper()
	var w *WaitError
	require.ErrorAs(l.t, err, &w)
	return w
}

// every returns n instants with equal gaps.
func every(from, gap time.Duration, n int) []time.Duration {
	var at []time.Duration
	for i := range n {
		at = append(at, from+time.Duration(i)*gap)
	}
	return at
}

package transport_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// byDefault leaves to New what its tests are about.
func byDefault(c *transport.Config, p *transport.Provider) { c.MaxWait, p.Retry = 0, transport.Retry{} }

func TestACallWaitsForAMinuteByDefault(t *testing.T) {
	for turn, passes := range map[time.Duration]bool{time.Minute: true, time.Minute + time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 200}), byDefault, rate(throttle.Rate{N: 1, Per: turn}))
			_, err := w.get()
			require.NoError(t, err)
			_, err = w.get()
			require.Equal(t, passes, err == nil, "%v: %v", turn, err)
		})
	}
}

// Zero in a configuration is the default; zero in a context is what its caller said.
func TestAContextMayWaitForNothing(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Hour, transport.NoWait} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)))
			ctx := transport.WithMaxWait(t.Context(), d)
			_, err := w.send(ctx, http.MethodGet, "")
			require.NoError(t, err)
			_, err = w.send(ctx, http.MethodGet, "")
			require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
		})
	}
}

// Ten calls at one instant, at ten a second: the rate has no burst but what it is given.
func TestARateHasABurstOfOneByDefault(t *testing.T) {
	for burst, passed := range map[int]int{0: 1, 10: 10} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
				c.MaxWait, p.Rates = transport.NoWait, []throttle.Rate{throttle.PerSecond(10)}
				p.Rates[0].Burst = burst
			})
			for range 10 {
				if _, err := w.get(); err != nil {
					require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
				}
			}
			require.Len(t, w.base.at(), passed)
		})
	}
}

func TestACallIsTriedThreeTimesByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429}), byDefault)
		_, err := w.get()
		require.NoError(t, err)
		require.Len(t, w.base.at(), 3)
	})
}

func TestOneAttemptIsNeverRepeated(t *testing.T) {
	for _, a := range []answer{{status: 429}, {status: 429, header: "Retry-After: 1"}, {status: 503}, {err: errDial}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, a), func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 1 })
			_, _ = w.get()
			require.Len(t, w.base.at(), 1, "%+v", a)
		})
	}
}

// All retries of a provider stay below a fifth of the last minute's calls, ten always allowed.
func TestRetriesAreAFifthByDefault(t *testing.T) {
	for good, retries := range map[int]int{0: 10, 100: (100 + 20) / 5} {
		synctest.Test(t, func(t *testing.T) {
			list := make([]answer, good+1)
			for i := range list {
				list[i] = answer{status: 200}
			}
			list[good] = answer{status: 503}
			w := newWorld(t, answers(t, list...), byDefault)
			for range good + 20 {
				_, err := w.get()
				require.NoError(t, err)
			}
			require.Less(t, time.Since(w.base.start), 50*time.Second, "or the first calls are forgotten")
			require.Len(t, w.base.at(), good+20+retries)
		})
	}
}

// The first wait of our own is drawn below half a second, and none is above a minute or
// shorter than the one before.
func TestOwnWaitsGrowToAMinute(t *testing.T) {
	var first, longest time.Duration
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 503}), byDefault, func(c *transport.Config, p *transport.Provider) {
				c.MaxWait, p.Retry.Attempts = time.Hour, 11
			})
			_, err := w.get()
			require.NoError(t, err)
			waits := w.eventsOf(transport.KindRetrying)
			require.Len(t, waits, 10)
			require.LessOrEqual(t, waits[0].Delay, 500*time.Millisecond)
			first = max(first, waits[0].Delay)
			for i, wait := range waits {
				require.GreaterOrEqual(t, wait.Delay, max(floor, waits[max(0, i-1)].Delay))
				require.LessOrEqual(t, wait.Delay, time.Minute)
				longest = max(longest, wait.Delay)
			}
		})
	}
	require.Greater(t, first, 400*time.Millisecond)
	require.Greater(t, longest, 50*time.Second)
}

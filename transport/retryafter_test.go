package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

func TestUnusableHintsAreAsIfAbsent(t *testing.T) {
	for _, hint := range []string{"Retry-After: -1", "Retry-After: -5", "Retry-After: -0", "Retry-After: 0", "Retry-After-Ms: -1",
		"Retry-After: NaN", "Retry-After: inf", "Retry-After: -inf", "Retry-After: 1e300", "Retry-After: 1e3", "Retry-After: 1_000",
		"Retry-After: 0x10", "Retry-After: +5", "Retry-After: 5 s", "Retry-After: ", "Retry-After: Sat, 01 Jan 2000 00:00:00 GMT",
		"Retry-After: Fri, 31 Dec 1999 23:59:58 GMT", "Retry-After: tomorrow"} {
		for _, status := range []int{429, 503} {
			t.Run(fmt.Sprint(status, hint), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, answers(t, answer{status: status, header: hint}, answer{status: 200}))
					resp, err := w.get()
					require.NoError(t, err)
					require.Equal(t, 200, resp.StatusCode)
					require.Len(t, w.base.at(), 2)
					between(t, floor, time.Second*12/10, w.base.at()[1])
				})
			})
		}
	}
}

func TestHintsAreLowerBounds(t *testing.T) {
	for _, c := range []struct {
		header string
		want   time.Duration
	}{
		{"Retry-After: 30", 30 * time.Second},
		{"Retry-After:   7 ", 7 * time.Second},
		{"Retry-After: 299.997", 299997 * time.Millisecond},
		{"Retry-After: 0.503", 503 * time.Millisecond},
		{"Retry-After: 2.0", 2 * time.Second},
		{"Retry-After: .5", 500 * time.Millisecond},
		{"Retry-After-Ms: 1250", 1250 * time.Millisecond},
		{"Retry-After: Sat, 01 Jan 2000 00:00:30 GMT", 30 * time.Second},
		{"Retry-After: Saturday, 01-Jan-00 00:00:30 GMT", 30 * time.Second},
		{"Retry-After: Sat Jan  1 00:00:30 2000", 30 * time.Second},
		{"Retry-After: 946684830", 30 * time.Second}, // an epoch
		{"Date: Sat, 01 Jan 2000 00:05:00 GMT\nRetry-After: Sat, 01 Jan 2000 00:06:00 GMT", time.Minute},
		{"X-RateLimit-Reset: 30\nX-RateLimit-Remaining: 0", 30 * time.Second},
		{"X-RateLimit-Reset: 946684830\nX-RateLimit-Remaining: 0", 30 * time.Second},
		{"RateLimit: \"day\";r=0;t=20", 20 * time.Second},
	} {
		t.Run(c.header, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 429, header: c.header}, answer{status: 200}), func(c *transport.Config, _ *transport.Provider) {
					c.MaxWait = time.Hour
				})
				resp, err := w.get()
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Len(t, w.base.at(), 2)
				between(t, c.want, c.want*12/10+time.Second, w.base.at()[1])
				w.books("1", "0", "0")
			})
		})
	}
}

func TestRepeatedZeroHintsNeverSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 0", body: "slow down"}))
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, "slow down", read(t, resp))
		at := w.base.at()
		require.Len(t, at, 4)
		gap := floor
		for i := 1; i < len(at); i++ {
			require.GreaterOrEqual(t, at[i]-at[i-1], gap)
			gap = at[i] - at[i-1]
		}
		w.books("0", "0", "0")
	})
}

func TestHugeHintStopsAtOnceAndKeepsTheGateClosed(t *testing.T) {
	for _, v := range []string{"3600", "9223372036", "9223372037", "18446744074", "99999999999", "99999999999999999999"} {
		t.Run(v, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: " + v, body: "later"}, answer{status: 200}))
				resp, err := w.get()
				require.NoError(t, err)
				require.Equal(t, 429, resp.StatusCode)
				require.Equal(t, "later", read(t, resp))
				require.Zero(t, time.Since(w.base.start))

				time.Sleep(10 * time.Second)
				_, err = w.get()
				busy, ok := asType[*throttle.WaitError](err)
				require.True(t, ok, "got %v", err)
				require.Equal(t, throttle.ReasonGate, busy.Reason)
				require.False(t, busy.RetryAt.Before(w.base.start.Add(time.Hour)), "got %v", busy.RetryAt)
				require.True(t, transport.NotSent(err))
				require.Len(t, w.base.at(), 1)
				require.Equal(t, 10*time.Second, time.Since(w.base.start))
			})
		})
	}
}

func TestGateOpensWhenTheHintSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 3600"}, answer{status: 200}))
		_, err := w.get()
		require.NoError(t, err)
		time.Sleep(3601 * time.Second)
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	})
}

func TestMaxRetryAfterIsNeverClamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 20"}), func(_ *transport.Config, p *transport.Provider) {
			p.Retry.MaxRetryAfter = 10 * time.Second
		})
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 429, resp.StatusCode)
		require.Equal(t, []time.Duration{0}, w.base.at())
	})
}

func TestDeadlineBeforeTheHintStopsAtOnce(t *testing.T) {
	for name, header := range map[string]string{"hint": "Retry-After: 180", "equal counts as too late": "Retry-After: 60"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 429, header: header}))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				resp, err := w.send(ctx, "GET", "")
				require.NoError(t, err)
				require.Equal(t, 429, resp.StatusCode)
				require.Zero(t, time.Since(w.base.start))
			})
		})
	}
}

// A hint that the call may just wait for is waited for, and its jitter fits into what is left.
func TestAHintThatFitsIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		hint     string
		deadline time.Duration
	}{{"300", time.Hour}, {"299.5", time.Hour}, {"270", time.Hour}, {"59", time.Minute}, {"59.9", time.Minute}} {
		t.Run(c.hint, func(t *testing.T) {
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: " + c.hint}, answer{status: 200}))
					ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
					defer cancel()
					resp, err := w.send(ctx, "GET", "")
					require.NoError(t, err)
					require.Equal(t, 200, resp.StatusCode)
				})
			}
		})
	}
}

func TestJitterOnlyAdds(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 10"}, answer{status: 200}))
			_, err := w.get()
			require.NoError(t, err)
			between(t, 10*time.Second, 12*time.Second, w.base.at()[1])
			seen[w.base.at()[1]] = true
		})
	}
	require.Greater(t, len(seen), 10)
}

func TestCallsInFlightComeBackSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{status: 200})
		good := base.answer
		base.answer = func(n int, req *http.Request) (*http.Response, error) {
			if n > 20 {
				return good(n, req)
			}
			time.Sleep(10 * time.Millisecond) // all twenty are in flight before the first answer
			return base.response(req, answer{status: 429, header: "Retry-After: 10"}), nil
		}
		w := newWorld(t, base, func(_ *transport.Config, p *transport.Provider) { p.Retry.Share = 100 })
		done := make(chan error, 20)
		for range 20 {
			go func() { _, err := w.get(); done <- err }()
		}
		for range 20 {
			require.NoError(t, <-done)
		}
		distinct := map[time.Duration]bool{}
		for _, at := range w.base.at()[20:] {
			between(t, 10*time.Second, 12100*time.Millisecond, at)
			distinct[at] = true
		}
		require.GreaterOrEqual(t, len(distinct), 15)
	})
}

func TestRedirectsAndSuccessesWithRetryAfterPassAtOnce(t *testing.T) {
	for _, status := range []int{200, 202, 301} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: status, header: "Retry-After: 5\nLocation: /b"}))
				for range 2 {
					resp, err := w.get()
					require.NoError(t, err)
					require.Equal(t, status, resp.StatusCode)
				}
				require.Equal(t, []time.Duration{0, 0}, w.base.at())
			})
		})
	}
}

func TestIdleTimeDoesNotUseUpRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}, answer{status: 503}, answer{status: 200}))
		_, err := w.get()
		require.NoError(t, err)
		time.Sleep(16 * time.Minute)
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Len(t, w.base.at(), 3)
	})
}

func TestRetriesStayWithinTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 503}))
		for range 100 {
			resp, err := w.get()
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
		}
		// Ten are always allowed, and a fifth of the last minute's calls.
		require.LessOrEqual(t, len(w.base.at()), 100+20+10)
		require.Greater(t, len(w.base.at()), 100+5)
	})
}

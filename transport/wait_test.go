package transport_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

func rate(r throttle.Rate) func(*transport.Config, *transport.Provider) {
	return func(_ *transport.Config, p *transport.Provider) { p.Rates = []throttle.Rate{r} }
}

func TestEverybodyWaitsForAClosedGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{status: 429, header: "Retry-After: 30", delay: 10 * time.Millisecond}, answer{status: 200, delay: 10 * time.Millisecond})
		w := newWorld(t, base, rate(throttle.Rate{N: 5, Per: time.Second}), func(_ *transport.Config, p *transport.Provider) { p.Rates[0].Burst = 5 })
		done := make(chan error, 10)
		for range 10 {
			go func() { _, err := w.get(); done <- err }()
			time.Sleep(100 * time.Millisecond)
		}
		for range 10 {
			require.NoError(t, <-done)
		}
		at := w.base.at()
		require.Len(t, at, 11)
		for i, when := range at[1:] {
			between(t, 30*time.Second, 33*time.Second, when)
			if i > 0 {
				require.GreaterOrEqual(t, when-at[i], 199*time.Millisecond, "one at a time, at the rate")
			}
		}
	})
}

func TestALateSuccessDoesNotOpenTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{status: 200, delay: 10 * time.Second, header: "X-RateLimit-Remaining: 5\nX-RateLimit-Reset: 30"},
			answer{status: 429, delay: time.Second, header: "Retry-After: 60"}, answer{status: 200})
		w := newWorld(t, base)
		for range 2 {
			go func() { _, _ = w.get() }()
			time.Sleep(time.Second)
		}
		time.Sleep(9 * time.Second)
		_, err := w.get() // at 11 s
		require.NoError(t, err)
		for _, at := range w.base.at()[2:] {
			require.GreaterOrEqual(t, at, 62*time.Second)
		}
	})
}

func TestNothingLeftOnASuccessMakesLaterCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, header: "X-RateLimit-Remaining: 0\nX-RateLimit-Reset-After: 3", body: "all of it"}, answer{status: 200}))
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, "all of it", read(t, resp))
		time.Sleep(time.Second)
		_, err = w.get()
		require.NoError(t, err)
		between(t, 3*time.Second, 3600*time.Millisecond, w.base.at()[1])
		w.books("2", "0", "0")
	})
}

func TestAnAnswerWithoutHeadersStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 403}, answer{status: 200}))
		for range 4 {
			_, err := w.get()
			require.NoError(t, err)
		}
		require.Equal(t, make([]time.Duration, 4), w.base.at())
	})
}

func TestDayLimitIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 54000"}))
		refused := 0
		for range 20 {
			if _, err := w.get(); err != nil {
				refused++
				at, ok := transport.RetryAt(err)
				require.True(t, ok)
				require.False(t, at.Before(w.base.start.Add(15*time.Hour)))
			}
			time.Sleep(3 * time.Second)
		}
		require.Len(t, w.base.at(), 1)
		require.Equal(t, 19, refused)
	})
}

// walled says that the balance is empty.
type walled struct{}

func (walled) WantsBody(int, http.Header) bool { return true }
func (walled) Read(a dialect.Answer) dialect.Reading {
	return dialect.Reading{Wall: a.Status == 429, Policy: "balance"}
}

func TestAWallIsNeverRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `{"error":{"code":"insufficient_quota"}}`
		w := newWorld(t, answers(t, answer{status: 429, body: body}), func(_ *transport.Config, p *transport.Provider) { p.Dialect = walled{} })
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, body, read(t, resp))
		require.Len(t, w.base.at(), 1)
		w.books("0", "0", "0")
	})
}

func TestRefusalsForTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		maxWait time.Duration
		timeout time.Duration
		reason  throttle.Reason
	}{
		{"no wait", transport.NoWait, time.Hour, throttle.ReasonRate},
		{"too long", 5 * time.Second, time.Hour, throttle.ReasonRate},
		{"deadline", time.Hour, time.Second, throttle.ReasonDeadline},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.Rate{N: 1, Per: 10 * time.Second}), func(k *transport.Config, _ *transport.Provider) {
					k.MaxWait = c.maxWait
				})
				_, err := w.get()
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				_, err = w.send(ctx, "GET", "")
				busy, ok := asType[*throttle.WaitError](err)
				require.True(t, ok, "got %v", err)
				require.Equal(t, c.reason, busy.Reason)
				require.WithinDuration(t, w.base.start.Add(10*time.Second), busy.RetryAt, time.Millisecond)
				require.Equal(t, c.reason == throttle.ReasonDeadline, isDeadline(err))
				require.Zero(t, time.Since(w.base.start), "it fails at once")
				require.Len(t, w.base.at(), 1)
				w.books("1", "0", "0")
			})
		})
	}
}

func isDeadline(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

func TestMaxWaitOfTheContextAndOfTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)), func(k *transport.Config, p *transport.Provider) {
			k.MaxWait, p.MaxWait = transport.NoWait, 2*time.Minute
		})
		for range 2 { // the provider's setting lets the second call wait
			_, err := w.get()
			require.NoError(t, err)
		}
		require.Equal(t, []time.Duration{0, time.Minute}, w.base.at())
		_, err := w.send(transport.WithMaxWait(t.Context(), transport.NoWait), "GET", "")
		require.Error(t, err)
		require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
	})
}

func TestAllWaitsOfACallAreOneSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 25"}), func(k *transport.Config, _ *transport.Provider) { k.MaxWait = time.Minute })
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 429, resp.StatusCode)
		require.Len(t, w.base.at(), 3, "25 s + 25 s, and no room for another 25 s")
	})
}

// The error says that our own queue was too long, not that the provider was slow.
func TestClientTimeoutIsToldApart(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.Rate{N: 1, Per: 5 * time.Second}))
		client := w.Client()
		client.Timeout = 2 * time.Second
		resp, err := client.Get(apiURL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		start := time.Now()
		_, err = client.Get(apiURL)
		busy, ok := asType[*throttle.WaitError](err)
		require.True(t, ok, "got %v", err)
		require.Equal(t, throttle.ReasonDeadline, busy.Reason)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, time.Since(start))
		require.True(t, transport.NotSent(err))
	})
}

func TestManyCallersKeepTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.Rate{N: 1000, Per: time.Second}))
		const callers = 10_000
		done := make(chan error, callers)
		for range callers {
			go func() { _, err := w.get(); done <- err }()
		}
		for range callers {
			require.NoError(t, <-done)
		}
		require.Len(t, w.base.at(), callers)
		between(t, 9*time.Second, 11*time.Second, time.Since(w.base.start))
		w.books("10000", "0", "0")
	})
}

// With 20 callers that give up after 50 ms, at least 98 % of the rate is used.
func TestCallersWhoGiveUpWasteNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.Rate{N: 100, Per: time.Second}))
		stop := make(chan struct{})
		done := make(chan struct{})
		for range 20 {
			go func() {
				defer func() { done <- struct{}{} }()
				for {
					select {
					case <-stop:
						return
					default:
					}
					ctx, cancel := context.WithCancel(t.Context())
					timer := time.AfterFunc(50*time.Millisecond, cancel)
					_, _ = w.send(ctx, "GET", "")
					timer.Stop()
					cancel()
				}
			}()
		}
		time.Sleep(10 * time.Second)
		sent := len(w.base.at())
		close(stop)
		for range 20 {
			<-done
		}
		require.GreaterOrEqual(t, sent, 980)
		require.LessOrEqual(t, sent, 1002)
		require.Zero(t, w.totals().Held)
	})
}

func TestWaitingWorksOnTheRealClock(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.Rate{N: 50, Per: time.Second}))
	for range 3 {
		_, err := w.get()
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, w.base.at()[2], 39*time.Millisecond)
	_, err := w.send(transport.WithMaxWait(t.Context(), transport.NoWait), "GET", "")
	require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
}

func TestMonitorNeverWaitsAndNeverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("2"), rate(throttle.PerMinute(1)), func(_ *transport.Config, p *transport.Provider) { p.Monitor = true })
		for range 4 {
			resp, err := w.get()
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
		}
		require.Equal(t, make([]time.Duration, 4), w.base.at())
		w.books("4", "0", "0")
		reasons := map[transport.Reason]int{}
		for _, e := range w.eventsOf(transport.KindWouldRefuse) {
			reasons[e.Reason]++
		}
		require.Equal(t, map[transport.Reason]int{transport.ReasonRate: 3, transport.ReasonExhausted: 2}, reasons)
	})
}

// What is wrong with one call, or with the balance, says nothing of the window told beside
// it, which may be a day's.
func TestAWallBesideAWindowThatHasRoomClosesNoGate(t *testing.T) {
	const room = "X-RateLimit-Limit-Requests: 10000\nX-RateLimit-Remaining-Requests: 9999\nX-RateLimit-Reset-Requests: 7h12m0s"
	for name, body := range map[string]string{
		"balance":   `{"error":{"code":"insufficient_quota","type":"insufficient_quota"}}`,
		"too large": `{"error":{"message":"Request too large for gpt-4: Limit 10000, Requested 12000.","type":"tokens","code":"rate_limit_exceeded"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 429, header: room, body: body}, answer{status: 200}),
					func(_ *transport.Config, p *transport.Provider) { p.Dialect = dialect.For("OpenAI") })
				resp, err := w.post("x")
				require.NoError(t, err)
				require.Equal(t, body, read(t, resp))
				resp, err = w.post("y")
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, []time.Duration{0, 0}, w.base.at())
				w.books("1", "0", "0")
			})
		})
	}
}

// A refusal in XML under status 200 is one like any other.
func TestRefusalsInXMLAreRead(t *testing.T) {
	for vendor, body := range map[string]string{
		"Google Maps": "<?xml version=\"1.0\"?>\n<GeocodeResponse>\n <status>OVER_QUERY_LIMIT</status>\n</GeocodeResponse>",
		"Vonage SMS":  `<mt-submission-response><messages count="1"><message><status>1</status><errorText>please wait [ 978 ] and retry</errorText></message></messages></mt-submission-response>`,
	} {
		t.Run(vendor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200, header: "Content-Type: text/xml", body: body}, answer{status: 200, body: "ok"}),
					func(_ *transport.Config, p *transport.Provider) { p.Dialect = dialect.For(vendor) })
				resp, err := w.post("x")
				require.NoError(t, err)
				require.Equal(t, "ok", read(t, resp))
				require.Len(t, w.base.at(), 2)
				w.books("1", "0", "0")
			})
		})
	}
}

// The vendor's own word on repeats counts: its SDKs obey it as well.
func TestAVendorMayForbidTheRepeat(t *testing.T) {
	for header, attempts := range map[string]int{
		"X-Should-Retry: false": 1, "Stripe-Should-Retry: False ": 1, "X-Should-Retry: true": 2, "X-Should-Retry: ": 2,
	} {
		t.Run(header, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 429, header: header + "\nRetry-After: 2", body: "slow"}, answer{status: 200}))
				resp, err := w.post("x")
				require.NoError(t, err)
				if attempts == 1 {
					require.Equal(t, "slow", read(t, resp))
				}
				require.Len(t, w.base.at(), attempts)
				_, err = w.post("y")
				require.NoError(t, err)
				require.GreaterOrEqual(t, w.base.at()[1], 2*time.Second, "the gate is closed all the same")
			})
		})
	}
}

// slowPrice asks somebody, who takes his time.
type slowPrice struct{ price.Fixed }

func (p slowPrice) Quote(req *http.Request) (budget.Quote, error) {
	time.Sleep(2 * time.Second)
	return p.Fixed.Quote(req)
}

// A turn counts from when it was had, not from when the call began.
func TestASlowPriceBringsNoTurnForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Price = slowPrice{price.PerCall(budget.Unit)}
			p.Rates = []throttle.Rate{{N: 1, Per: 10 * time.Second, Strict: true}}
		})
		_, err := w.get() // leaves at 2 s
		require.NoError(t, err)
		time.Sleep(6500 * time.Millisecond)
		_, err = w.get() // asks at 10.5 s
		require.NoError(t, err)
		at := w.base.at()
		require.GreaterOrEqual(t, at[1]-at[0], 10*time.Second)
	})
}

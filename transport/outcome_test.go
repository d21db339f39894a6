package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

var (
	errReset = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	errDial  = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
)

// What each outcome costs, and how often it is sent: the table of the README.
func TestWhatIsChargedWhen(t *testing.T) {
	key := func(_ *transport.Config, p *transport.Provider) { p.IdempotencyHeader = "Idempotency-Key" }
	notTaken := func(_ *transport.Config, p *transport.Provider) { p.Retry.NotTaken = []int{503, 529} }
	safe := func(_ *transport.Config, p *transport.Provider) { p.Retry.Unknown = transport.ReplaySafe }
	all := func(_ *transport.Config, p *transport.Provider) { p.Retry.Unknown = transport.ReplayAll }
	none := func(*transport.Config, *transport.Provider) {}
	for _, c := range []struct {
		name     string
		config   func(*transport.Config, *transport.Provider)
		method   string
		first    answer // then 200
		attempts int
		settled  string
		presumed string
	}{
		{"200", none, "GET", answer{status: 200}, 1, "1", "0"},
		{"201", none, "POST", answer{status: 201}, 1, "1", "0"},
		{"204", none, "POST", answer{status: 204}, 1, "1", "0"},
		{"304", none, "GET", answer{status: 304}, 1, "0", "0"},
		{"302", none, "GET", answer{status: 302}, 1, "0", "0"},
		{"400", none, "POST", answer{status: 400}, 1, "1", "0"},
		{"401", none, "POST", answer{status: 401}, 1, "0", "0"},
		{"402", none, "POST", answer{status: 402}, 1, "0", "0"},
		{"403", none, "POST", answer{status: 403}, 1, "0", "0"},
		{"404", none, "GET", answer{status: 404}, 1, "1", "0"},
		{"407", none, "GET", answer{status: 407}, 1, "0", "0"},
		{"409", none, "POST", answer{status: 409}, 1, "1", "0"},
		{"429 on GET", none, "GET", answer{status: 429}, 2, "1", "0"},
		{"429 on POST", none, "POST", answer{status: 429}, 2, "1", "0"},
		{"500 on POST", none, "POST", answer{status: 500}, 1, "0", "1"},
		{"500 on GET", none, "GET", answer{status: 500}, 1, "0", "1"},
		{"500 on GET, opted in", safe, "GET", answer{status: 500}, 2, "1", "1"},
		{"500 on POST, safe opted in", safe, "POST", answer{status: 500}, 1, "0", "1"},
		{"500 on POST, all opted in", all, "POST", answer{status: 500}, 2, "1", "1"},
		{"500 with key", key, "POST", answer{status: 500}, 2, "1", "1"},
		{"502 with key", key, "POST", answer{status: 502}, 2, "1", "1"},
		{"504 with key", key, "POST", answer{status: 504}, 2, "1", "1"},
		{"501 with key", key, "POST", answer{status: 501}, 1, "0", "1"},
		{"502 on POST", none, "POST", answer{status: 502}, 1, "0", "1"},
		{"504 on POST", none, "POST", answer{status: 504}, 1, "0", "1"},
		{"503 without hint on POST", none, "POST", answer{status: 503}, 1, "0", "1"},
		{"503 without hint on GET", none, "GET", answer{status: 503}, 2, "1", "1"},
		{"503 without hint on HEAD", none, "HEAD", answer{status: 503}, 2, "1", "1"},
		{"503 without hint on OPTIONS", none, "OPTIONS", answer{status: 503}, 2, "1", "1"},
		{"503 without hint on TRACE", none, "TRACE", answer{status: 503}, 2, "1", "1"},
		{"503 without hint on DELETE", none, "DELETE", answer{status: 503}, 1, "0", "1"},
		{"503 without hint with key", key, "POST", answer{status: 503}, 2, "1", "1"},
		{"503 with a hint that says nothing, on POST", none, "POST", answer{status: 503, header: "Retry-After: soon"}, 1, "0", "0"},
		{"503 with a hint that says nothing, on GET", none, "GET", answer{status: 503, header: "Retry-After: soon"}, 2, "1", "0"},
		{"503 with hint on POST", none, "POST", answer{status: 503, header: "Retry-After: 2"}, 2, "1", "0"},
		{"503 not taken", notTaken, "POST", answer{status: 503}, 2, "1", "0"},
		{"529 unlisted", none, "POST", answer{status: 529}, 1, "0", "1"},
		{"529 listed", notTaken, "POST", answer{status: 529}, 2, "1", "0"},
		{"reset after write", none, "POST", answer{err: errReset}, 1, "0", "1"},
		{"reset after write on GET", none, "GET", answer{err: errReset}, 1, "0", "1"},
		{"reset after write with key", key, "POST", answer{err: errReset}, 2, "1", "1"},
		{"end of file", none, "POST", answer{err: io.EOF}, 1, "0", "1"},
		{"dial", none, "POST", answer{err: errDial}, 2, "1", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, c.first, answer{status: 200}), c.config)
				body := ""
				if c.method == "POST" {
					body = "text"
				}
				resp, err := w.send(t.Context(), c.method, body)
				if err == nil {
					require.NoError(t, resp.Body.Close())
				} else {
					require.Nil(t, resp)
					require.True(t, transport.OutcomeUnknown(err))
				}
				require.Len(t, w.base.at(), c.attempts)
				for _, try := range w.base.tries {
					require.Equal(t, body, try.body)
					require.EqualValues(t, len(body), try.length)
				}
				w.books(c.settled, c.presumed, "0")
			})
		})
	}
}

func TestIdempotencyKeyIsOnePerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}, answer{status: 500}, answer{status: 200}, answer{status: 200}),
			func(_ *transport.Config, p *transport.Provider) { p.IdempotencyHeader = "idempotency-key" })
		for range 2 {
			_, err := w.post("text")
			require.NoError(t, err)
		}
		keys := map[string]int{}
		for _, try := range w.base.tries {
			keys[try.header.Get("Idempotency-Key")]++
		}
		require.Len(t, keys, 2)
		require.NotContains(t, keys, "")
	})
}

func TestOnlyAKeyWithAValueMakesARetrySafe(t *testing.T) {
	for _, c := range []struct {
		key      []string
		attempts int
	}{{[]string{}, 1}, {[]string{""}, 1}, {[]string{" "}, 1}, {[]string{"k1", "k2"}, 1}, {[]string{"k1"}, 2}} {
		t.Run(fmt.Sprint(c.key), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{err: errReset}, answer{status: 201}),
					func(_ *transport.Config, p *transport.Provider) { p.IdempotencyHeader = "Idempotency-Key" })
				req, err := http.NewRequestWithContext(t.Context(), "POST", apiURL, strings.NewReader("text"))
				require.NoError(t, err)
				req.Header["Idempotency-Key"] = c.key
				_, _ = w.RoundTrip(req)
				require.Len(t, w.base.at(), c.attempts)
				require.Equal(t, c.key, req.Header["Idempotency-Key"])
			})
		})
	}
}

// Some SDKs write their headers into the map in lower case. A second key of ours beside
// theirs would be refused, or make the retry a new payment.
func TestAKeyInAnotherSpellingIsTheKey(t *testing.T) {
	for _, c := range []struct {
		header   http.Header
		attempts int
	}{
		{http.Header{"idempotency-key": {"k1"}}, 2},
		{http.Header{"IDEMPOTENCY-KEY": {"k1"}}, 2},
		{http.Header{"idempotency-key": {""}}, 1},
		{http.Header{"idempotency-key": {"k1"}, "Idempotency-Key": {"k2"}}, 1},
	} {
		t.Run(fmt.Sprint(c.header), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{err: errReset}, answer{status: 201}),
					func(_ *transport.Config, p *transport.Provider) { p.IdempotencyHeader = "Idempotency-Key" })
				req, err := http.NewRequestWithContext(t.Context(), "POST", apiURL, strings.NewReader("text"))
				require.NoError(t, err)
				req.Header = c.header.Clone()
				_, _ = w.RoundTrip(req)
				require.Len(t, w.base.at(), c.attempts)
				require.Equal(t, c.header, w.base.tries[0].header)
			})
		})
	}
}

// A key is known for ten minutes: until then the layer above repeats a call.
func TestAKeySeenAgainLowersTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}), func(_ *transport.Config, p *transport.Provider) {
			p.IdempotencyHeader, p.Retry.Attempts = "Idempotency-Key", 3
		})
		sent := 0
		for _, c := range []struct {
			pause    time.Duration
			attempts int
		}{{0, 3}, {4 * time.Minute, 2}, {5 * time.Minute, 1}, {21 * time.Minute, 3}} {
			time.Sleep(c.pause)
			req, err := http.NewRequestWithContext(t.Context(), "POST", apiURL, strings.NewReader("text"))
			require.NoError(t, err)
			req.Header.Set("Idempotency-Key", "k1")
			_, err = w.RoundTrip(req)
			require.NoError(t, err)
			sent += c.attempts
			require.Len(t, w.base.at(), sent, "after %v", c.pause)
		}
	})
}

// A key of a call that we refused was never sent: what comes with it is the first try.
func TestAKeyOfARefusedCallIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}), func(_ *transport.Config, p *transport.Provider) {
			p.IdempotencyHeader, p.Retry.Attempts = "Idempotency-Key", 3
		})
		keyed := func() (*http.Response, error) {
			req := request(t, t.Context(), strings.NewReader("text"))
			req.Header.Set("Idempotency-Key", "k1")
			return w.RoundTrip(req)
		}
		require.NoError(t, w.Freeze(t.Context(), "api", budget.By{Who: "maria"}))
		for range 3 {
			_, err := keyed()
			require.Equal(t, transport.ReasonFrozen, transport.ReasonOf(err))
		}
		require.NoError(t, w.Release(t.Context(), "api", budget.By{Who: "maria"}))
		_, err := keyed()
		require.NoError(t, err)
		require.Len(t, w.base.at(), 3)
	})
}

func TestAnSDKsOwnRetriesLowerTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429}))
		for i := range 4 {
			req, err := http.NewRequestWithContext(t.Context(), "GET", apiURL, nil)
			require.NoError(t, err)
			req.Header.Set("X-Stainless-Retry-Count", fmt.Sprint(i))
			_, err = w.RoundTrip(req)
			require.NoError(t, err)
		}
		require.Len(t, w.base.at(), 4+3+2+1)
	})
}

func TestCancelledInFlightIsPresumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, delay: time.Minute}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.send(ctx, "POST", "text")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, transport.OutcomeUnknown(err))
		require.Len(t, w.base.at(), 1)
		w.books("0", "1", "0")
	})
}

func TestSlowAnswerIsNotSentAgainByAnAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{err: &timeoutError{}, delay: 30 * time.Second}))
		_, err := w.post("text")
		require.True(t, transport.OutcomeUnknown(err))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		require.Len(t, w.base.at(), 1)
		w.books("0", "1", "0")
	})
}

type timeoutError struct{}

func (*timeoutError) Error() string   { return "timeout awaiting response headers" }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }

func TestBaseThatReturnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		base.answer = func(int, *http.Request) (*http.Response, error) { return nil, nil }
		w := newWorld(t, base)
		resp, err := w.get()
		require.Nil(t, resp)
		require.Error(t, err)
		w.books("0", "1", "0")
	})
}

func TestBaseThatReturnsBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			return base.response(req, answer{status: 200}), errReset
		}
		w := newWorld(t, base)
		resp, err := w.get()
		require.Nil(t, resp)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, 1, base.bodies[0].closed)
	})
}

func TestPanicOfBasePresumesTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		base.answer = func(int, *http.Request) (*http.Response, error) { panic("boom") }
		w := newWorld(t, base, func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 })
		for range 2 { // the slot is free again
			require.PanicsWithValue(t, "boom", func() { _, _ = w.post("text") })
		}
		w.books("0", "2", "0")
	})
}

func TestPanicOfAHookLeavesNothingOpen(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindStarted, transport.KindAnswered, transport.KindResolved, transport.KindFinished} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				armed := true
				w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
					p.MaxInFlight = 1
					c.OnEvent = func(_ context.Context, e transport.Event) {
						if e.Kind == kind && armed {
							panic(errors.New("hook"))
						}
					}
				})
				body := &spyBody{Reader: strings.NewReader("text")}
				req, err := http.NewRequestWithContext(t.Context(), "POST", apiURL, body)
				require.NoError(t, err)
				require.Panics(t, func() { _, _ = w.RoundTrip(req) })
				require.Equal(t, 1, body.closed)
				require.Zero(t, w.totals().Held)
				armed = false
				resp, err := w.get()
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				for _, b := range w.base.bodies {
					require.Equal(t, 1, b.closed)
				}
				require.Equal(t, budget.Amount(0), w.totals().Held)
			})
		})
	}
}

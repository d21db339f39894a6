package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

func request(t *testing.T, ctx context.Context, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, "POST", apiURL, body)
	require.NoError(t, err)
	return req
}

func TestEveryAttemptHasTheWholeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 503, header: "Retry-After: 1"}, answer{status: 429}, answer{status: 200}))
		original := &spyBody{Reader: strings.NewReader("hello")}
		var copies []*spyBody
		req := request(t, t.Context(), original)
		req.ContentLength = 5
		req.GetBody = func() (io.ReadCloser, error) {
			copies = append(copies, &spyBody{Reader: strings.NewReader("hello")})
			return copies[len(copies)-1], nil
		}
		_, err := w.RoundTrip(req)
		require.NoError(t, err)
		for _, try := range w.base.tries {
			require.Equal(t, "hello", try.body)
			require.EqualValues(t, 5, try.length)
		}
		require.Equal(t, 1, original.closed)
		require.Len(t, copies, 2)
		for _, c := range copies {
			require.Equal(t, 1, c.closed)
			require.Zero(t, c.late)
		}
	})
}

func TestBodyThatCannotBeReplayedIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 1", body: "slow"}))
		r, p := io.Pipe()
		go func() { _, _ = p.Write([]byte("hello")); _ = p.Close() }()
		resp, err := w.RoundTrip(request(t, t.Context(), r))
		require.NoError(t, err)
		require.Equal(t, "slow", read(t, resp))
		require.Len(t, w.base.at(), 1)
		require.Equal(t, "hello", w.base.tries[0].body)
	})
}

func TestGetBodyThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429}))
		broken := errors.New("file is gone")
		req := request(t, t.Context(), strings.NewReader("hello"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		resp, err := w.RoundTrip(req)
		require.Nil(t, resp)
		require.ErrorIs(t, err, broken)
		require.False(t, transport.NotSent(err), "the first attempt was sent")
		require.Len(t, w.base.at(), 1)
		require.Equal(t, 1, w.base.bodies[0].closed)
		w.books("0", "0", "0")
	})
}

// A GetBody that gives nothing must not make an empty request of a repeat.
func TestGetBodyThatGivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429}), func(_ *transport.Config, p *transport.Provider) {
			p.Repeat = transport.Repeat{Max: 5, Per: time.Minute}
		})
		req := request(t, t.Context(), strings.NewReader("hello"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
		_, err := w.RoundTrip(req)
		require.ErrorContains(t, err, "GetBody gave no body")
		require.Len(t, w.base.at(), 1)
		w.books("0", "0", "0")
	})
}

func TestRefusedCallsCloseTheBodyOnce(t *testing.T) {
	exhausted := limit("0.5")
	for name, c := range map[string]struct {
		config func(*transport.Config, *transport.Provider)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		before int
	}{
		"budget": {config: exhausted},
		"cancelled": {ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, c := context.WithCancel(ctx)
			c()
			return ctx, c
		}},
		"queue full": {config: func(c *transport.Config, p *transport.Provider) {
			c.Limiter, p.Rates = &throttle.Bucket{MaxQueue: 1}, []throttle.Rate{throttle.PerMinute(1)}
		}, before: 2},
		"deadline": {config: func(_ *transport.Config, p *transport.Provider) { p.Rates = []throttle.Rate{throttle.PerMinute(1)} },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, before: 1},
		"gives up": {config: func(_ *transport.Config, p *transport.Provider) { p.Rates = []throttle.Rate{throttle.PerMinute(1)} },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, before: 1},
		"unpriced": {config: func(_ *transport.Config, p *transport.Provider) { p.Price = unpriced{} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := c.config
				if config == nil {
					config = func(*transport.Config, *transport.Provider) {}
				}
				w := newWorld(t, answers(t, answer{status: 200}), config)
				for range c.before {
					go func() { _, _ = w.get() }()
				}
				synctest.Wait()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.ctx != nil {
					ctx, cancel = c.ctx(ctx)
				}
				defer cancel()
				sent := len(w.base.at())
				body := &spyBody{Reader: strings.NewReader("hello")}
				resp, err := w.RoundTrip(request(t, ctx, body))
				require.Nil(t, resp)
				require.Error(t, err)
				require.True(t, transport.NotSent(err), "got %v", err)
				require.Equal(t, 1, body.closed)
				require.Zero(t, body.read)
				require.Len(t, w.base.at(), sent)
				require.Zero(t, w.totals().Held)
			})
		})
	}
}

type unpriced struct{}

func (unpriced) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{}, budget.ErrUnpriced
}

func TestCallersRequestIsNeverChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429}, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.IdempotencyHeader, p.Retry.Share = "Idempotency-Key", 100
		})
		req := request(t, t.Context(), strings.NewReader("hello"))
		req.Header = nil
		before := *req
		for range 1000 {
			_, err := w.RoundTrip(req)
			require.NoError(t, err)
		}
		require.Nil(t, req.Header)
		require.Equal(t, before.Body, req.Body)
		require.NotNil(t, req.GetBody)
		for _, try := range w.base.tries {
			require.Len(t, try.header["Idempotency-Key"], 1)
		}
	})
}

func TestDiscardedAnswersAreDrainedAndClosedBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{status: 429, header: "Retry-After: 5", body: "one"}, answer{status: 429, header: "Retry-After: 5", body: "two"}, answer{status: 200, body: "three"})
		next := base.answer
		base.answer = func(n int, req *http.Request) (*http.Response, error) {
			for _, b := range base.bodies {
				require.Equal(t, 1, b.closed)
				require.Equal(t, 3, b.read)
			}
			return next(n, req)
		}
		w := newWorld(t, base)
		resp, err := w.get()
		require.NoError(t, err)
		require.Zero(t, base.bodies[2].closed)
		require.Equal(t, "three", read(t, resp))
	})
}

func TestTheLastAnswerIsReturnedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 503, body: "twenty bytes of text"}))
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, "twenty bytes of text", read(t, resp))
		last := len(w.base.bodies) - 1
		for i, b := range w.base.bodies {
			require.Equal(t, 1, b.closed, "body %d of %d", i, last)
		}
	})
}

// The provider's own answer is worth more than our refusal to send again.
func TestRefusedRetryReturnsTheAnswerThatAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500, body: "billed"}), limit("1"), func(_ *transport.Config, p *transport.Provider) {
			p.Retry.Unknown = transport.ReplayAll
		})
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.Equal(t, "billed", read(t, resp))
		require.Len(t, w.base.at(), 1)
		w.books("0", "1", "0")
	})
}

func TestCancelledWhileWaitingToRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 429, header: "Retry-After: 60", body: "slow"}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		resp, err := w.send(ctx, "POST", "text")
		require.Nil(t, resp)
		require.ErrorIs(t, err, context.Canceled)
		require.Contains(t, err.Error(), "429")
		require.False(t, transport.OutcomeUnknown(err))
		require.Equal(t, 1, w.base.bodies[0].closed)
		w.books("0", "0", "0")
	})
}

// tokens is a pricer that learns the cost from the number in the body.
type tokens struct{ hold budget.Amount }

func (p tokens) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{Amount: p.hold, Unit: "USD"}, nil
}

func (p tokens) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	var seen bytes.Buffer
	return &seen, func() (budget.Amount, bool) {
		_, n, ok := strings.Cut(seen.String(), "cost=")
		n, _, whole := strings.Cut(n, "\n")
		if !ok || !whole {
			return 0, false
		}
		a, err := budget.Parse(n)
		return a, err == nil
	}
}

func streaming(p budget.Amount) func(*transport.Config, *transport.Provider) {
	return func(_ *transport.Config, q *transport.Provider) { q.Price = tokens{p} }
}

func TestCostIsLearnedAtTheEndOfTheBody(t *testing.T) {
	end := map[string]func(*testing.T, *http.Response){
		"read to the end":      func(t *testing.T, r *http.Response) { _, err := io.ReadAll(r.Body); require.NoError(t, err) },
		"read and closed":      func(t *testing.T, r *http.Response) { _ = read(t, r) },
		"closed before":        func(t *testing.T, r *http.Response) { require.NoError(t, r.Body.Close()) },
		"closed twice":         func(t *testing.T, r *http.Response) { _ = r.Body.Close(); _ = r.Body.Close() },
		"read, closed, closed": func(t *testing.T, r *http.Response) { _ = read(t, r); _ = r.Body.Close() },
	}
	for _, c := range []struct {
		body, end         string
		settled, presumed string
	}{
		{"data cost=0.37\n", "read to the end", "0.37", "0"},
		{"data cost=0.37\n", "read and closed", "0.37", "0"},
		{"data cost=0.37\n", "read, closed, closed", "0.37", "0"},
		{"data cost=0.37\n", "closed before", "0", "1"},
		{"data cost=0.37\n", "closed twice", "0", "1"},
		{"data", "read to the end", "0", "1"},
		{"", "read to the end", "0", "1"},
		{"cost=1.30\n", "read to the end", "1.3", "0"},
		{"cost=0\n", "read to the end", "0", "0"},
	} {
		t.Run(c.body+c.end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200, body: c.body}), streaming(budget.Unit))
				resp, err := w.get()
				require.NoError(t, err)
				w.books("0", "0", "1")
				end[c.end](t, resp)
				w.books(c.settled, c.presumed, "0")
			})
		})
	}
}

func TestStreamThatIsCutIsPresumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			resp := base.response(req, answer{status: 200})
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("some data"), &broken{}))
			return resp, nil
		}
		w := newWorld(t, base, streaming(budget.Unit))
		resp, err := w.get()
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		w.books("0", "1", "0")
	})
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestHoldOfALongStreamIsKeptUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, body: "cost=1\n"}), streaming(budget.Unit), limit("1"))
		resp, err := w.get()
		require.NoError(t, err)
		time.Sleep(6 * time.Hour)
		_, err = w.get()
		over, ok := asType[*budget.ExceededError](err)
		require.True(t, ok)
		require.True(t, over.Busy)
		_ = read(t, resp)
		w.books("1", "0", "0")
	})
}

func TestUnclosedBodyIsResolvedAtTheContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, body: "data"}), streaming(budget.Unit), func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.send(ctx, "GET", "")
		require.NoError(t, err)
		w.books("0", "0", "1")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.books("0", "1", "0")
		resp, err := w.get() // the slot is free
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}

func TestUnclosedBodyIsResolvedWhenItIsCollected(t *testing.T) {
	unclosed := make(chan struct{}, 1)
	w := newWorld(t, answers(t, answer{status: 200, body: "data"}), streaming(budget.Unit), func(c *transport.Config, _ *transport.Provider) {
		c.OnEvent = func(_ context.Context, e transport.Event) {
			if e.Kind == transport.KindUnclosed {
				unclosed <- struct{}{}
			}
		}
	})
	func() {
		_, err := w.send(context.Background(), "GET", "")
		require.NoError(t, err)
	}()
	w.base.bodies = nil
	require.Eventually(t, func() bool { runtime.GC(); return len(unclosed) == 1 }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return w.totals().Presumed == budget.Unit }, 10*time.Second, time.Millisecond)
}

func TestSlotIsHeldUntilTheBodyEnds(t *testing.T) {
	for name, end := range map[string]func(*http.Response){
		"end of body": func(r *http.Response) { _, _ = io.ReadAll(r.Body) },
		"close":       func(r *http.Response) { _ = r.Body.Close() },
		"both":        func(r *http.Response) { _, _ = io.ReadAll(r.Body); _ = r.Body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200, body: "data"}), func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 })
				resp, err := w.get()
				require.NoError(t, err)
				time.AfterFunc(10*time.Second, func() { end(resp) })
				time.Sleep(time.Second)
				second, err := w.get()
				require.NoError(t, err)
				require.Equal(t, []time.Duration{0, 10 * time.Second}, w.base.at())
				go func() { time.Sleep(time.Second); end(second) }()
				third, err := w.get() // one slot, not two
				require.NoError(t, err)
				require.Equal(t, 11*time.Second, w.base.at()[2])
				end(third)
			})
		})
	}
}

func TestStreamsAreNotBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := io.Pipe()
		base := answers(t, answer{})
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			resp := base.response(req, answer{status: 200, header: "Content-Type: text/event-stream"})
			resp.Body, resp.ContentLength = r, -1
			return resp, nil
		}
		w := newWorld(t, base, streaming(budget.Unit), func(_ *transport.Config, q *transport.Provider) { q.Dialect = greedy{} })
		go func() {
			for range 3 {
				_, _ = io.WriteString(p, "data: x\n\n")
				time.Sleep(5 * time.Second)
			}
			_ = p.Close()
		}()
		resp, err := w.get()
		require.NoError(t, err)
		buf := make([]byte, 64)
		for i := range 3 {
			n, err := resp.Body.Read(buf)
			require.NoError(t, err)
			require.Equal(t, "data: x\n\n", string(buf[:n]))
			require.Equal(t, time.Duration(i)*5*time.Second, time.Since(base.start))
		}
		_, err = resp.Body.Read(buf)
		require.Equal(t, io.EOF, err)
	})
}

// greedy wants every body and remembers nothing.
type greedy struct{}

func (greedy) WantsBody(int, http.Header) bool { return true }
func (greedy) Read(a dialect.Answer) dialect.Reading {
	return dialect.Reading{Throttled: bytes.Contains(a.Body, []byte("OVER_LIMIT")), Source: "body"}
}

func TestPeekedBodiesAreGivenBackByteForByte(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20_000) // well above what is peeked at
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, `{"status":"OVER_LIMIT"}`+long)
	require.NoError(t, z.Close())
	for _, c := range []struct {
		name, header, body string
		attempts           int
	}{
		{"plain", "", `{"status":"OK"}`, 1},
		{"empty", "", "", 1},
		{"long", "", long, 1},
		{"throttled", "", `{"status":"OVER_LIMIT"}`, 2},
		{"throttled and long", "", `{"status":"OVER_LIMIT"}` + long, 2},
		{"gzip", "Content-Encoding: gzip", zipped.String(), 2},
		{"x-gzip", "Content-Encoding: X-GZIP", zipped.String(), 2},
		{"events", "Content-Type: Text/Event-Stream", `{"status":"OVER_LIMIT"}`, 1},
		{"not really gzip", "Content-Encoding: gzip", "OVER_LIMIT", 2},
		{"html", "Content-Type: text/html", "<html>\x00\xff", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200, header: c.header, body: c.body}), func(_ *transport.Config, p *transport.Provider) {
					p.Dialect, p.Retry.Attempts = greedy{}, 2
				})
				resp, err := w.get()
				require.NoError(t, err)
				require.Equal(t, c.body, read(t, resp))
				require.Len(t, w.base.at(), c.attempts)
				require.Equal(t, 1, w.base.bodies[len(w.base.bodies)-1].closed)
			})
		})
	}
}

func TestUpgradedConnectionsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &pipe{}
		base := answers(t, answer{})
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			resp := base.response(req, answer{status: 101})
			resp.Body = conn
			return resp, nil
		}
		w := newWorld(t, base, func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 })
		resp, err := w.get()
		require.NoError(t, err)
		rw, ok := resp.Body.(io.ReadWriteCloser)
		require.True(t, ok)
		_, err = rw.Write([]byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "hello", conn.String())
		require.NoError(t, rw.Close())
		w.books("1", "0", "0")
	})
}

type pipe struct{ bytes.Buffer }

func (*pipe) Close() error { return nil }

func TestBodiesAreWrappedOnlyIfNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, body: "data"}))
		resp, err := w.get()
		require.NoError(t, err)
		require.Same(t, w.base.bodies[0], resp.Body)
	})
}

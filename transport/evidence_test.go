package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Only what happens before anything can be written proves that nothing was: TLS has
// errors for later too, and anybody can write a text.
func TestTroubleOfTLSIsProofOnlyBeforeTheRequest(t *testing.T) {
	for _, c := range []struct {
		err     error
		notSent bool
	}{
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, true},
		{tls.RecordHeaderError{Msg: "unsupported SSLv2 handshake received"}, false},
		{tls.RecordHeaderError{Msg: "received record with version 3 when expecting version 303"}, false},
		{tls.AlertError(20), false},
		{errors.New("vendor said: TLS handshake timeout"), false},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, answers(t, answer{err: c.err}))
			_, err := w.post("text")
			require.Error(t, err)
			if c.notSent {
				w.books("0", "0", "0")
				return
			}
			require.Len(t, w.base.at(), 1, "%v: it was sent again", c.err)
			require.False(t, transport.NotSent(err), "%v", c.err)
			w.books("0", "1", "0")
		})
	}
}

func TestACostAboveTheHoldIsToldAsBooked(t *testing.T) {
	for known, books := range map[bool][]string{true: {"5", "0", "0"}, false: {"0", "5", "0"}} {
		synctest.Test(t, func(t *testing.T) {
			var told budget.Amount
			w := newWorld(t, answers(t, answer{status: 200, body: "cost=5\n"}), streaming(budget.Unit), func(c *transport.Config, p *transport.Provider) {
				p.Price = fiveForOne{known}
				c.OnEvent = func(_ context.Context, e transport.Event) {
					if e.Kind == transport.KindResolved {
						told = e.Cost
					}
				}
			})
			ctx, record := transport.Record(t.Context())
			resp, err := w.RoundTrip(request(t, ctx, strings.NewReader("text")))
			require.NoError(t, err)
			_ = read(t, resp)
			w.books(books[0], books[1], books[2])
			require.Equal(t, 5*budget.Unit, told)
			require.Equal(t, 5*budget.Unit, record.Cost()["USD"])
		})
	}
}

// fiveForOne holds one unit, and learns that five were spent, or five at least.
type fiveForOne struct{ known bool }

func (fiveForOne) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{Amount: budget.Unit}, nil
}

func (f fiveForOne) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	return io.Discard, func() (budget.Amount, bool) { return 5 * budget.Unit, f.known }
}

func TestARepeatWithoutBodyLeavesTheFirstAttemptInTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}), func(_ *transport.Config, p *transport.Provider) { p.Retry.Unknown = transport.ReplayAll })
		ctx, record := transport.Record(t.Context())
		req := request(t, ctx, strings.NewReader("hello"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("file is gone") }
		_, err := w.RoundTrip(req)
		require.Error(t, err)
		w.books("0", "1", "0")
		attempts := record.Calls()[0].Attempts
		require.Len(t, attempts, 2)
		require.Equal(t, budget.StatePresumed, attempts[0].State)
		require.Equal(t, budget.StateVoided, attempts[1].State)
		require.Equal(t, budget.Unit, record.Cost()["USD"])
	})
}

func TestACancelledCallDoesNotReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{t: t, start: time.Now()}
		base.answer = func(_ int, req *http.Request) (*http.Response, error) {
			resp := base.response(req, answer{status: 429, header: "Retry-After: 1"})
			resp.Body = io.NopCloser(blocked{})
			return resp, nil
		}
		w := newWorld(t, base)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, _ = w.RoundTrip(request(t, ctx, strings.NewReader("hello")))
		require.LessOrEqual(t, time.Since(begin), 20*time.Millisecond)
	})
}

// blocked is a body that says nothing for a while.
type blocked struct{}

func (blocked) Read([]byte) (int, error) {
	time.Sleep(10 * time.Second)
	return 0, io.EOF
}

func TestMonitorPassesWhatTheConfigurationGetsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
			p.Monitor = true
			p.BudgetsFor = func(*http.Request, budget.Quote) []budget.Budget {
				return []budget.Budget{{Name: "wrong", Limit: -1, Every: budget.Day}}
			}
		})
		resp, err := w.post("text")
		require.NoError(t, err)
		_ = read(t, resp)
		require.Len(t, w.base.at(), 1)
	})
}

func TestTheCallerMayChangeTheDateOfAnAnswer(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200, header: "Date: Sat, 01 Jan 2000 00:00:00 GMT"}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50 {
			if resp, err := w.post("text"); err == nil {
				resp.Header["Date"][0] = "mine"
				_ = resp.Body.Close()
			}
		}
	}()
	for range 50 {
		if resp, err := w.post("text"); err == nil {
			resp.Header["Date"][0] = "mine"
			_ = resp.Body.Close()
		}
	}
	<-done
}

// A price that cannot be is no reason to show negative costs.
func TestAbsurdCostsDoNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 500}), func(_ *transport.Config, p *transport.Provider) {
			p.Price = price.PerCall(math.MaxInt64)
			p.Budgets = []budget.Budget{{Name: "calls", Limit: 10 * budget.Unit, Unit: budget.Calls, Every: budget.Day}}
			p.Retry.Unknown = transport.ReplayAll
		})
		ctx, record := transport.Record(t.Context())
		_, err := w.send(ctx, "POST", "x")
		require.NoError(t, err)
		require.Equal(t, 4, record.Attempts())
		require.Equal(t, map[string]budget.Amount{"USD": math.MaxInt64}, record.Cost())
		for _, e := range w.eventsOf(transport.KindFinished) {
			require.Equal(t, budget.Amount(math.MaxInt64), e.Cost)
		}
	})
}

// slowBody gives a piece, and the rest ten seconds later.
type slowBody struct {
	first, rest io.Reader
}

func (b *slowBody) Read(p []byte) (int, error) {
	if n, err := b.first.Read(p); err == nil {
		return n, nil
	}
	time.Sleep(10 * time.Second)
	return b.rest.Read(p)
}
func (b *slowBody) Close() error { return nil }

func TestACutListOfPartsProvesNothing(t *testing.T) {
	first := `{"message-count":"2","messages":[{"to":"1","status":"1","error-text":"Throttled"},`
	rest := `{"to":"2","message-id":"0A","status":"0","message-price":"0.05"}]}`
	synctest.Test(t, func(t *testing.T) {
		s := answers(t, answer{status: 200})
		s.answer = func(_ int, req *http.Request) (*http.Response, error) {
			r := s.response(req, answer{status: 200, header: "Content-Type: application/json"})
			r.ContentLength = -1
			r.Body = &slowBody{strings.NewReader(first), strings.NewReader(rest)}
			return r, nil
		}
		w := newWorld(t, s, func(_ *transport.Config, p *transport.Provider) { p.Dialect = dialect.For("vonage") })
		resp, err := w.post("x")
		require.NoError(t, err)
		b, _ := io.ReadAll(resp.Body)
		require.Equal(t, first+rest, string(b))
		require.Len(t, w.base.at(), 1)
		w.books("1", "0", "0")
	})
}

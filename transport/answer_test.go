package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// Nobody closes what has no body, and over HTTP/2 net/http does not say so by http.NoBody.
func TestAnswersWithoutBodyKeepNoSlot(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
	}{{"HEAD", 200}, {"HEAD", 404}, {"POST", 202}, {"GET", 200}, {"DELETE", 204}, {"GET", 304}} {
		for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
			t.Run(fmt.Sprint(proto, c), func(t *testing.T) {
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(c.status) }))
				srv.EnableHTTP2 = proto == "HTTP/2.0"
				srv.StartTLS()
				t.Cleanup(srv.Close)
				rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "https://"), streaming(budget.Unit), oneAtATime)
				for range 2 {
					resp, err := rt.RoundTrip(replayRequest(t, srv.URL, c.method, "", ""))
					require.NoError(t, err)
					require.Equal(t, proto, resp.Proto)
				}
				require.Zero(t, booked(t, rt).Held)
			})
		}
	}
}

func oneAtATime(c *transport.Config, p *transport.Provider) {
	p.MaxInFlight, c.MaxWait = 1, transport.NoWait
}

// echoing answers by a connection that gives every line back.
func echoing(t *testing.T) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, line)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func upgrade(t *testing.T, ctx context.Context, rt http.RoundTripper, url string) (io.ReadWriteCloser, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	require.NoError(t, err)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok, "got %T", resp.Body)
	return conn, nil
}

func requireEcho(t *testing.T, conn io.ReadWriter) {
	t.Helper()
	_, err := io.WriteString(conn, "ping\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ping\n", line)
}

// The context of the handshake is no longer that of the connection.
func TestAnUpgradedConnectionKeepsItsSlotAfterTheHandshake(t *testing.T) {
	srv := echoing(t)
	rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "http://"), streaming(budget.Unit), oneAtATime)
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := upgrade(t, ctx, rt, srv.URL)
	require.NoError(t, err)
	cancel()
	requireEcho(t, conn)
	require.Equal(t, budget.Unit, booked(t, rt).Held)
	_, err = upgrade(t, t.Context(), rt, srv.URL)
	require.Equal(t, transport.ReasonSlots, transport.ReasonOf(err))
	require.NoError(t, conn.Close())
	conn, err = upgrade(t, t.Context(), rt, srv.URL)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestAnUpgradedConnectionIsNotPeeked(t *testing.T) {
	srv := echoing(t)
	rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "http://"), func(_ *transport.Config, p *transport.Provider) {
		p.Dialect = greedy{}
	})
	conn, err := upgrade(t, t.Context(), rt, srv.URL)
	require.NoError(t, err)
	requireEcho(t, conn)
	require.NoError(t, conn.Close())
}

func TestAPeekedBodyGivesNothingAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200, body: "data"}), func(_ *transport.Config, p *transport.Provider) { p.Dialect = greedy{} })
		resp, err := w.get()
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		n, err := resp.Body.Read(make([]byte, 4))
		require.Zero(t, n)
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	})
}

// throwing is a body that panics once.
type throwing struct{ read, close bool }

func (b *throwing) Read([]byte) (int, error) {
	if b.read {
		panic("body")
	}
	return 0, io.EOF
}

func (b *throwing) Close() error {
	if b.close {
		b.close = false
		panic("body")
	}
	return nil
}

// A panic belongs to who reads, who may recover from it: not to a goroutine of ours.
func TestABodyThatPanicsDoesSoToItsReader(t *testing.T) {
	for name, c := range map[string]struct {
		body   throwing
		peeked bool
	}{"read": {throwing{read: true}, false}, "peeked": {throwing{read: true}, true}, "close": {throwing{close: true}, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := answers(t, answer{})
				base.answer = func(_ int, req *http.Request) (*http.Response, error) {
					resp := base.response(req, answer{status: 200})
					b := c.body
					resp.Body, resp.ContentLength = &b, -1
					return resp, nil
				}
				w := newWorld(t, base, streaming(budget.Unit), oneAtATime, func(_ *transport.Config, p *transport.Provider) {
					if c.peeked {
						p.Dialect = greedy{}
					}
				})
				for range 2 {
					resp, err := w.get()
					require.NoError(t, err)
					require.PanicsWithValue(t, "body", func() {
						if c.body.read {
							defer resp.Body.Close()
							_, _ = resp.Body.Read(make([]byte, 1))
						}
						_ = resp.Body.Close()
					})
				}
				require.Zero(t, time.Since(base.start))
				w.books("0", "2", "0")
			})
		})
	}
}

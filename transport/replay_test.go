package transport_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

// dyingServer answers the first request of each connection and dies after it has read
// the second: the situation in which net/http sends a request again by itself.
func dyingServer(t *testing.T) (addr string, seen *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	seen = new(atomic.Int32)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for n := 1; ; n++ {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if req.Header.Get("Warm") == "" {
						seen.Add(1)
					}
					if n > 1 {
						return
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String(), seen
}

var replayCases = []struct {
	name, method, body string
	key                string
}{
	{"GET", "GET", "", ""},
	{"HEAD", "HEAD", "", ""},
	{"POST", "POST", "text", ""},
	{"keyed POST", "POST", "text", "k1"},
	{"keyed POST without body", "POST", "", "k1"},
	{"keyed GET", "GET", "", "k1"},
	{"DELETE", "DELETE", "", ""},
	{"keyed DELETE", "DELETE", "", "k1"},
	{"TRACE", "TRACE", "", ""},
}

func replayRequest(t *testing.T, addr, method, body, key string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, addr, r)
	require.NoError(t, err)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req
}

func TestNetHTTPNeverSendsAnAttemptTwice(t *testing.T) {
	for _, c := range replayCases {
		t.Run(c.name, func(t *testing.T) {
			addr, seen := dyingServer(t)
			base := &http.Transport{}
			t.Cleanup(base.CloseIdleConnections)
			rt := metered(t, base, addr)

			warm := replayRequest(t, "http://"+addr, "GET", "", "")
			warm.Header.Set("Warm", "1")
			resp, err := rt.RoundTrip(warm)
			require.NoError(t, err)
			_ = read(t, resp)

			_, err = rt.RoundTrip(replayRequest(t, "http://"+addr, c.method, c.body, c.key))
			require.Error(t, err)
			require.EqualValues(t, 1, seen.Load(), "times the server saw the request")
			require.True(t, transport.OutcomeUnknown(err))
			require.False(t, transport.NotSent(err))
			require.Equal(t, "1", booked(t, rt).Presumed.String())
		})
	}
}

// Without outlay net/http repeats some of these: the test above can fail.
func TestNetHTTPAloneSendsTwice(t *testing.T) {
	twice := 0
	for _, c := range replayCases {
		addr, seen := dyingServer(t)
		base := &http.Transport{}
		warm := replayRequest(t, "http://"+addr, "GET", "", "")
		warm.Header.Set("Warm", "1")
		resp, err := base.RoundTrip(warm)
		require.NoError(t, err)
		_ = read(t, resp)
		if resp, err := base.RoundTrip(replayRequest(t, "http://"+addr, c.method, c.body, c.key)); err == nil {
			_ = resp.Body.Close()
		}
		base.CloseIdleConnections()
		if seen.Load() > 1 {
			twice++
		}
	}
	require.GreaterOrEqual(t, twice, 4)
}

func TestWireFormIsKept(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			got := make(chan *http.Request, 1)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				r.Header.Set("Test-Body", string(b))
				got <- r
			}))
			srv.EnableHTTP2 = proto == "HTTP/2.0"
			srv.StartTLS()
			t.Cleanup(srv.Close)
			rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "https://"))
			for _, c := range replayCases {
				resp, err := rt.RoundTrip(replayRequest(t, srv.URL, c.method, c.body, c.key))
				require.NoError(t, err)
				_ = resp.Body.Close()
				r := <-got
				require.Equal(t, proto, r.Proto)
				require.Equal(t, c.method, r.Method)
				require.Equal(t, c.body, r.Header.Get("Test-Body"))
				require.Equal(t, c.key, r.Header.Get("Idempotency-Key"))
				require.Empty(t, r.TransferEncoding, c.name)
				require.LessOrEqual(t, int(r.ContentLength), len(c.body), c.name)
			}
		})
	}
}

func TestHTTP2StreamResetIsPresumedAndNotRepeated(t *testing.T) {
	var seen atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen.Add(1)
		panic(http.ErrAbortHandler)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for _, c := range replayCases {
		seen.Store(0)
		rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "https://"))
		_, err := rt.RoundTrip(replayRequest(t, srv.URL, c.method, c.body, c.key))
		require.Error(t, err)
		require.EqualValues(t, 1, seen.Load(), c.name)
		require.Equal(t, "1", booked(t, rt).Presumed.String(), c.name)
	}
}

func TestFailedDialIsProvenNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close()) // nobody listens there any more
	rt := metered(t, &http.Transport{}, addr)
	for range 3 {
		_, err = rt.RoundTrip(replayRequest(t, "http://"+addr, "POST", "text", ""))
		require.Error(t, err)
		require.True(t, transport.NotSent(err))
		require.False(t, transport.OutcomeUnknown(err))
	}
	require.Zero(t, booked(t, rt).Used())
}

// A dial that hangs until the client's timeout sends nothing: an outage must not use up
// the day's money.
func TestTimeoutWhileDiallingIsProvenNotSent(t *testing.T) {
	hang := make(chan struct{})
	base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { <-hang; return nil, io.EOF }}
	defer close(hang)
	for _, c := range []struct {
		base    http.RoundTripper
		traced  bool
		notSent bool
	}{{base, false, true}, {wrapped{base}, true, true}, {wrapped{base}, false, false}} {
		rt := metered(t, c.base, "127.0.0.1", func(k *transport.Config, _ *transport.Provider) { k.TracedBase = c.traced })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := rt.RoundTrip(replayRequest(t, "http://127.0.0.1:9/x", "POST", "text", "").WithContext(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, c.notSent, transport.NotSent(err))
		require.Equal(t, !c.notSent, booked(t, rt).Used() > 0, "TracedBase %t", c.traced)
	}
}

// wrapped hides that its Base is one of net/http.
type wrapped struct{ http.RoundTripper }

// rig is a transport with a real Base, its ledger and its budget.
type rig struct {
	*transport.Transport
	ledger *budget.Memory
	budget budget.Budget
}

func metered(t *testing.T, base http.RoundTripper, host string, change ...func(*transport.Config, *transport.Provider)) *rig {
	b := budget.PerDay(1000 * budget.Unit)
	b.Name, b.Label, b.Unit = "day", "day", "USD"
	r := &rig{ledger: new(budget.Memory), budget: b}
	p := transport.Provider{Name: "api", Match: []string{host}, Price: price.PerCall(budget.Unit), Budgets: []budget.Budget{b}, Retry: transport.Retry{Attempts: 1}}
	c := transport.Config{Base: base, Ledger: r.ledger}
	for _, f := range change {
		f(&c, &p)
	}
	c.Providers = []transport.Provider{p}
	rt, err := transport.New(c)
	require.NoError(t, err)
	r.Transport = rt
	return r
}

func booked(t *testing.T, r *rig) budget.Totals {
	totals, err := r.ledger.Totals(t.Context(), time.Now(), r.budget)
	require.NoError(t, err)
	return totals[0]
}

package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/provider"
	"github.com/outlay-go/outlay/transport/vendortest"
)

func openai(t testing.TB, to string) (gateway.Provider, budget.Budget) {
	p := provider.OpenAI(price.Tokens{Models: map[string]price.Model{"gpt-4o-mini": {Input: 150_000_000, Output: 600_000_000}}, MaxOutput: 1000})
	p.Name, p.Match, p.Refusal = "openai", nil, provider.OpenAIRefusal
	p.Budgets = []budget.Budget{{Name: "openai-day", Limit: budget.Unit, Every: budget.Rolling(time.Hour)}}
	return gateway.Provider{Provider: p, Upstream: parse(t, to), AllowPrivate: true}, p.Budgets[0]
}

const streamed = `{"model":"gpt-4o-mini","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`

// TestStreamIsSettledByItsUsage: the last event tells what it cost.
func TestStreamIsSettledByItsUsage(t *testing.T) {
	fake := vendortest.NewOpenAI(vendortest.Options{})
	defer fake.Close()
	p, b := openai(t, fake.URL())
	r := start(t, config(p), gateway.Listener{})
	got := r.do(http.MethodPost, "/openai/v1/chat/completions", streamed, "Content-Type", "application/json")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Contains(t, got.body, "[DONE]")
	require.Equal(t, fake.Invoice().Total, r.totals(b).Settled)
	require.Zero(t, r.totals(b).Held)
	require.Contains(t, r.log.String(), "resolved=settled")
	require.NotContains(t, r.log.String(), "cut=")
	require.Regexp(t, `waited_s=\S+ upstream_s=(0\.|\S+e-)\S* took_s=(0\.|\S+e-)\S* `, r.log.String())
}

// events is a vendor that sends an event for each tick, and tells when its caller has left.
func events(ticks <-chan struct{}, left chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for {
			select {
			case _, more := <-ticks:
				if !more {
					return
				}
				fmt.Fprint(w, "data: x\n\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				close(left)
				return
			}
		}
	}
}

// TestEventsComeAtOnce, and a stream whose caller leaves is ended: that stops its cost.
func TestEventsComeAtOnce(t *testing.T) {
	ticks, left := make(chan struct{}), make(chan struct{})
	v := newVendor(t, events(ticks, left))
	p := behind(t, "api", v.URL)
	withBudget(10*cent, nil)(&p)
	p.Price = price.Tokens{Models: map[string]price.Model{"m": {Input: 1000, Output: 1000}}, MaxOutput: 1}
	r := start(t, config(p), gateway.Listener{})
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/api/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
	req.Header.Set("Content-Type", "application/json")
	go func() { ticks <- struct{}{} }()
	resp, err := r.client.Do(req)
	require.NoError(t, err)
	br := bufio.NewReader(resp.Body)
	for i := range 3 {
		if i > 0 {
			ticks <- struct{}{}
		}
		line, err := br.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "data: x\n", line)
		_, _ = br.ReadString('\n')
	}
	cancel()
	resp.Body.Close()
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Fatal("the vendor goes on, and bills")
	}
	require.Eventually(t, func() bool { s := r.totals(p.Budgets[0]); return s.Presumed > 0 && s.Held == 0 }, 5*time.Second, time.Millisecond)
}

// TestCallersWhoLeaveAfterTheSend: what was sent is finished, to learn what it cost, unless
// the configuration says otherwise.
func TestCallersWhoLeaveAfterTheSend(t *testing.T) {
	for name, tt := range map[string]struct {
		policy gateway.Disconnect
		status string
	}{
		"auto": {gateway.AutoDisconnect, "settled"}, "finish": {gateway.FinishOnDisconnect, "settled"}, "cancel": {gateway.CancelOnDisconnect, "presumed"},
	} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, header early: %v", name, early), func(t *testing.T) {
				t.Parallel()
				arrived, goOn := make(chan struct{}), make(chan struct{})
				big := strings.Repeat("x", 300_000)
				v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
					if early {
						w.WriteHeader(http.StatusOK)
						_ = http.NewResponseController(w).Flush()
					}
					close(arrived)
					select {
					case <-goOn:
					case <-r.Context().Done():
					}
					_, _ = io.WriteString(w, big)
				})
				p := behind(t, "api", v.URL)
				withBudget(10*cent, nil)(&p)
				if early {
					p.Price = metered{price.PerCall(cent)}
				}
				p.OnDisconnect = tt.policy
				r := start(t, config(p), gateway.Listener{})
				left := make(chan struct{})
				front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					defer context.AfterFunc(q.Context(), func() { close(left) })()
					r.gw.ServeHTTP(w, q)
				}))
				defer front.Close()
				ctx, cancel := context.WithCancel(context.Background())
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+"/api/x", strings.NewReader("text"))
				go func() {
					<-arrived
					cancel()
					<-left // the server has noticed
					if tt.policy != gateway.CancelOnDisconnect {
						close(goOn)
					}
				}()
				resp, err := r.client.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				require.Error(t, err)
				require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "resolved="+tt.status) }, 5*time.Second, time.Millisecond, r.log)
				require.Contains(t, r.log.String(), "cut=caller_left", "the status alone looks as if somebody had read it")
				s := r.totals(p.Budgets[0])
				require.Zero(t, s.Held)
				require.Equal(t, cent, s.Used())
			})
		}
	}
}

// TestAnswersThatNobodyReadAreMarked, also those that are small enough to be written to a
// connection that is gone.
func TestAnswersThatNobodyReadAreMarked(t *testing.T) {
	for _, early := range []bool{false, true} {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
			if early {
				_, _ = io.WriteString(w, "o")
				_ = http.NewResponseController(w).Flush()
			}
			close(arrived)
			<-goOn
			if early {
				_, _ = io.WriteString(w, "k")
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
		r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
		left := make(chan struct{})
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			defer context.AfterFunc(q.Context(), func() { close(left) })()
			r.gw.ServeHTTP(w, q)
		}))
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/api/x", nil)
		require.NoError(t, err)
		go func() {
			<-arrived
			cancel()
			<-left
			close(goOn)
		}()
		if resp, err := r.client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "msg=call") }, 5*time.Second, time.Millisecond)
		require.Regexp(t, `status=20\d outcome=answered cut=caller_left`, r.log.String())
		front.Close()
	}
}

// metered knows what a call cost only when its answer was read to the end.
type metered struct{ price.Fixed }

func (m metered) Meter(*http.Response) (io.Writer, func() (budget.Amount, bool)) {
	n := new(counter)
	return n, func() (budget.Amount, bool) { return cent, *n == 300_000 }
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// TestSlowReadersAreCut: they must not keep a slot for ever.
func TestSlowReadersAreCut(t *testing.T) {
	left := make(chan int)
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := strings.Repeat("x", 64<<10)
		for n := 0; ; n += len(chunk) {
			if _, err := io.WriteString(w, chunk); err != nil {
				left <- n
				return
			}
		}
	})
	p := behind(t, "api", v.URL)
	withBudget(10*cent, nil)(&p)
	p.MaxInFlight, p.OnDisconnect = 1, gateway.FinishOnDisconnect
	p.Timeouts.ClientWrite = 200 * time.Millisecond
	r := start(t, config(p), gateway.Listener{})
	conn := dial(t, r.url)
	_, _ = io.WriteString(conn, "GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case n := <-left:
		require.Less(t, n, 48<<20, "who is slow is not waited for, as one who has left is")
	case <-time.After(15 * time.Second):
		t.Fatal("the upstream is still read")
	}
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "status=200") }, 5*time.Second, time.Millisecond)
	require.Contains(t, r.log.String(), "cut=slow_reader")
	status, err := r.gw.Transport().Status(context.Background())
	require.NoError(t, err)
	require.Zero(t, status.Providers[0].Scopes[0].InUse, "the slot is free")
}

// TestSilentVendorsAreCut between two pieces of an answer.
func TestSilentVendorsAreCut(t *testing.T) {
	ticks, left := make(chan struct{}, 1), make(chan struct{})
	v := newVendor(t, events(ticks, left))
	p := behind(t, "api", v.URL)
	p.Timeouts.Idle = 100 * time.Millisecond
	r := start(t, config(p), gateway.Listener{})
	ticks <- struct{}{}
	got := raw(t, r.url, "GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Contains(t, got, "data: x")
	require.NotContains(t, got, "\r\n0\r\n\r\n", "never a clean end")
	<-left
}

// TestHTTP2OnBothSides, with trailers, informational answers and many streams.
func TestHTTP2OnBothSides(t *testing.T) {
	v := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Proto", r.Proto)
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Sum", "7")
		w.Header().Set(http.TrailerPrefix+"X-Late", "8")
	}))
	v.EnableHTTP2 = true
	v.StartTLS()
	defer v.Close()
	p := behind(t, "api", v.URL)
	withBudget(100*budget.Unit, nil)(&p)
	base := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(v)}, ForceAttemptHTTP2: true, DisableCompression: true}
	defer base.CloseIdleConnections()
	r := startWith(t, config(p), gateway.Listener{}, gateway.Parts{Base: base})

	front := httptest.NewUnstartedServer(r.gw)
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	r.url, r.client = front.URL, front.Client()
	require.NoError(t, echo(r)) // the connections are there
	errs := make(chan error)
	for range 99 {
		go func() { errs <- echo(r) }()
	}
	for range 99 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, 100*cent, r.totals(p.Budgets[0]).Settled)
}

// echo makes one call and looks at what comes back.
func echo(r *rig) error {
	hints := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		if code == http.StatusEarlyHints {
			hints++
		}
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/api/x", strings.NewReader("hello"))
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if got := fmt.Sprint(resp.StatusCode, resp.Proto, resp.Header.Get("X-Proto"), string(b), resp.Trailer, hints); got != "200HTTP/2.0HTTP/2.0hellomap[X-Late:[8] X-Sum:[7]] 1" {
		return fmt.Errorf("got %s", got)
	}
	return nil
}

func pool(s *httptest.Server) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(s.Certificate())
	return p
}

// TestUpgradesPassWhereAllowed: then a websocket is one call, and its slot is taken until
// it ends.
func TestUpgradesPassWhereAllowed(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		conn, brw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(brw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = brw.Flush()
		line, _ := brw.ReadString('\n')
		fmt.Fprint(brw, "echo "+line)
		_ = brw.Flush()
	})
	p := behind(t, "api", v.URL)
	p.Upgrades, p.MaxInFlight = true, 1
	r := start(t, config(p), gateway.Listener{})
	conn := dial(t, r.url)
	fmt.Fprint(conn, "GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	status, err := r.gw.Transport().Status(context.Background())
	require.NoError(t, err)
	require.Equal(t, 1, status.Providers[0].Scopes[0].InUse)
	fmt.Fprint(conn, "hello\n")
	line, err := br.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "echo hello\n", line)
	_ = conn.Close()
	require.Eventually(t, func() bool {
		status, _ := r.gw.Transport().Status(context.Background())
		return status.Providers[0].Scopes[0].InUse == 0
	}, 5*time.Second, time.Millisecond)
}

// TestHeadersPassInOrder, several of one name as well, and what would lead around us does not.
func TestHeadersPassInOrder(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Set-Cookie"] = []string{"a=1", "b=2"}
		h["X-Many"] = []string{"1", "2", "3"}
		h.Set("Alt-Svc", `h3=":443"`)
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Set("Outlay-Provider", "somebody")
		h["Content-Type"] = nil
		h.Set("Content-Length", "5")
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "hello")
		}
	})
	r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		got := r.do(method, "/api/x", "")
		require.Equal(t, []string{"a=1", "b=2"}, got.header["Set-Cookie"])
		require.Equal(t, []string{"1", "2", "3"}, got.header["X-Many"])
		require.Empty(t, got.header["Alt-Svc"])
		require.Empty(t, got.header["X-Hop"])
		require.NotContains(t, got.header, "Content-Type", "nobody guesses one")
		require.Equal(t, "api", got.header.Get("Outlay-Provider"))
		require.Equal(t, "5", got.header.Get("Content-Length"))
	}
	c := config(behind(t, "api", v.URL))
	c.HideOutlay = true
	require.NoError(t, r.gw.Reload(c))
	got := r.do(http.MethodGet, "/api/x", "")
	require.Empty(t, got.header["Outlay-Call"])
	require.Empty(t, got.header["Outlay-Attempts"])
}

// TestHugeHeaders are refused by the server, and slow ones cut.
func TestHugeHeaders(t *testing.T) {
	v := newVendor(t, nil)
	r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
	got := raw(t, r.url, "GET /api/x HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 100<<10)+"\r\n\r\n")
	require.Contains(t, got, "HTTP/1.1 431")
	srv := r.gw.Server(gateway.Listener{})
	require.Equal(t, 10*time.Second, srv.ReadHeaderTimeout)
	srv.ReadHeaderTimeout = 100 * time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	conn := dial(t, "http://"+ln.Addr().String())
	_, _ = io.WriteString(conn, "GET /api/x HTTP/1.1\r\nHost: local")
	_, _ = io.ReadAll(conn) // ends
	require.Empty(t, v.requests())
}

// TestNothingStaysBehind: no goroutine of a call outlives it, however it ended.
func TestNothingStaysBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("calls", func(t *testing.T) {
		ticks, left := make(chan struct{}, 1), make(chan struct{})
		stream := events(ticks, left)
		v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				stream(w, r)
				return
			}
			moods(w, r)
		})
		p := behind(t, "api", v.URL)
		withBudget(100*cent, nil)(&p)
		p.Retry.Attempts, p.Timeouts.Response = 1, 100*time.Millisecond
		r := start(t, config(p, held(t, v.URL)), gateway.Listener{})
		r.do(http.MethodGet, "/held/x", "")
		conns := append(r.open(3, "/held/x"), r.open(1, "/api/stream")...)
		r.waiting(3)
		for _, path := range []string{"/api/x", "/api/drop", "/api/hang", "/api/throttle?0", "/nobody/x"} {
			r.do(http.MethodPost, path, "text")
		}
		raw(t, r.url, "GET /api/cut HTTP/1.1\r\nHost: localhost\r\n\r\n")
		ticks <- struct{}{}
		for _, c := range conns {
			_ = c.Close()
		}
		<-left
		r.client.CloseIdleConnections()
		require.NoError(t, r.gw.Shutdown(context.Background()))
	})
}

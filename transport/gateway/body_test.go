package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

// dial opens a connection to write by hand.
func dial(t testing.TB, base string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

// TestBodiesInChunksGetALength: some vendors refuse chunks, and the whole is in memory.
func TestBodiesInChunksGetALength(t *testing.T) {
	v := newVendor(t, nil)
	r := start(t, config(behind(t, "api", v.URL)), gateway.Listener{})
	send := func(body string) string {
		return raw(t, r.url, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"+body)
	}
	require.Contains(t, send("\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"), "HTTP/1.1 200")
	require.Contains(t, send("\r\n0\r\n\r\n"), "HTTP/1.1 200")
	require.Contains(t, send("Trailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"), "HTTP/1.1 200")
	all := v.requests()
	require.Equal(t, "abcdefg", all[0].body)
	require.Empty(t, all[0].encoding)
	require.EqualValues(t, 7, all[0].length)
	require.Zero(t, all[1].length)
	require.Empty(t, all[1].encoding)
	require.Equal(t, "abc", all[2].body)
	require.Equal(t, []string{"chunked"}, all[2].encoding, "trailers need chunks")
	require.Equal(t, http.Header{"X-Sum": {"7"}}, all[2].trailer)
}

// TestBodiesAreRepeated: the first answer asks to come again, and all of the body does.
func TestBodiesAreRepeated(t *testing.T) {
	n := 0
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	p, _ := twilio(t, v.URL)
	r := start(t, config(p), gateway.Listener{})
	got := r.do(http.MethodPost, messages, sms)
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Equal(t, "2", got.header.Get("Outlay-Attempts"))
	require.Equal(t, []string{sms, sms}, []string{v.requests()[0].body, v.requests()[1].body})
}

// TestLargeBodiesStreamOnce: beyond what is read they pass, if their price does not need
// them, and are not repeated.
func TestLargeBodiesStreamOnce(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "throttle" {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	p := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&p)
	p.Body = gateway.Body{Buffer: 1000, Max: 100_000}
	r := start(t, config(p), gateway.Listener{})
	big := strings.Repeat("0123456789", 5000)

	require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/api/x", big).status)
	require.Equal(t, big, v.requests()[0].body)
	require.EqualValues(t, len(big), v.requests()[0].length)

	resp, err := r.client.Post(r.url+"/api/x", "text/plain", io.MultiReader(strings.NewReader(big))) // of unknown length
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, big, v.requests()[1].body)

	require.Equal(t, http.StatusTooManyRequests, r.do(http.MethodPost, "/api/x?throttle", big).status)
	require.Len(t, v.requests(), 3, "it cannot be sent again")

	got := r.do(http.MethodPost, "/api/x", strings.Repeat("x", 100_001))
	require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
	require.Len(t, v.requests(), 3)
}

// TestBodiesOfUnknownLengthAreBounded while they stream.
func TestBodiesOfUnknownLengthAreBounded(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&p)
	p.Body = gateway.Body{Buffer: 1000, Max: 100_000}
	r := start(t, config(p), gateway.Listener{})
	resp, err := r.client.Post(r.url+"/api/x", "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", 200_000))))
	if err == nil { // the connection may break before the answer is read
		require.Equal(t, http.StatusGatewayTimeout, resp.StatusCode)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.Contains(t, string(b), "api: the body is larger than allowed (body.max)")
		require.Contains(t, string(b), `"sent":"unknown","charged":"presumed"`, "a part of it has left")
	}
	require.Eventually(t, func() bool { return r.totals(p.Budgets[0]).Presumed == cent }, 5*time.Second, time.Millisecond)
}

// TestBodiesThatAreCut while they stream: a part has left, and is presumed to be billed.
func TestBodiesThatAreCut(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&p)
	p.Body = gateway.Body{Buffer: 1000, Max: 100_000}
	p.Timeouts.BodyRead = 300 * time.Millisecond
	r := start(t, config(p), gateway.Listener{})
	part := strings.Repeat("x", 2000)
	for i, body := range []string{
		"Content-Length: 50000\r\n\r\n" + part,                            // and nothing more
		"Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + part + "\r\nzz\r\n", // no length
	} {
		got := raw(t, r.url, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+body)
		require.Contains(t, got, "HTTP/1.1 504 Gateway Timeout\r\n", "%d", i)
		require.Contains(t, got, `"sent":"unknown","charged":"presumed"`)
		require.Contains(t, got, "X-Should-Retry: false")
		require.Eventually(t, func() bool { return r.totals(p.Budgets[0]).Presumed == budget.Amount(i+1)*cent }, 5*time.Second, time.Millisecond)
	}
	// Nothing of these has left.
	for _, body := range []string{
		"Content-Length: 500\r\n\r\nxxx",
		"Transfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\nzz\r\n",
	} {
		got := raw(t, r.url, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+body)
		require.Contains(t, got, "HTTP/1.1 40", body)
		require.Contains(t, got, `"sent":false`)
	}
	require.Equal(t, 2*cent, r.totals(p.Budgets[0]).Used())
}

// TestBodiesThatDribble while they stream hold a turn and a slot: they must keep the pace of
// those that are read before.
func TestBodiesThatDribble(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&p)
	p.Body = gateway.Body{Buffer: 1000, Max: 100_000}
	p.Timeouts.BodyRead = 300 * time.Millisecond
	r := start(t, config(p), gateway.Listener{})
	conn := dial(t, r.url)
	_, err := io.WriteString(conn, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"+strings.Repeat("x", 2000))
	require.NoError(t, err)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		answered <- line
	}()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for sent := 0; ; sent++ {
		select {
		case <-tick.C:
			_, _ = io.WriteString(conn, "x") // it breaks in the end
			require.Less(t, sent, 300, "it goes on for ever")
		case line := <-answered:
			require.Contains(t, line, "HTTP/1.1 504")
			return
		}
	}
}

// TestHalfClosedConnections are taken for callers who left, and can read why.
func TestHalfClosedConnections(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Rates = []throttle.Rate{throttle.PerMinute(6)}
	r := start(t, config(p), gateway.Listener{})
	once(r)
	conn := dial(t, r.url)
	_, err := io.WriteString(conn, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.count(transport.KindWaiting) == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	b, _ := io.ReadAll(conn)
	require.Contains(t, string(b), "HTTP/1.1 400 Bad Request\r\n")
	require.Contains(t, string(b), "closed its side of the connection")
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "status=499 reason=caller_left") }, 5*time.Second, time.Millisecond)
}

// TestRefusalsWithoutTheBody: who asks first need not send it.
func TestRefusalsWithoutTheBody(t *testing.T) {
	v := newVendor(t, nil)
	fine := behind(t, "fine", v.URL)
	stopped := behind(t, "stopped", v.URL)
	stopped.Stopped = true
	spent := behind(t, "spent", v.URL)
	withBudget(cent/2, nil)(&spent)
	paused := behind(t, "paused", v.URL)
	paused.Rates, paused.MaxWait = []throttle.Rate{throttle.PerHour(1)}, transport.NoWait
	text, _ := twilio(t, v.URL)
	r := start(t, config(fine, stopped, spent, paused, text), gateway.Listener{})
	r.do(http.MethodGet, "/paused/", "")
	for path, want := range map[string]string{
		"/stopped/x": "503", "/spent/x": "402", "/paused/x": "429", "/nobody/x": "404", "/fine/../x": "400",
	} {
		got := raw(t, r.url, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 "+want), "%s: %s", path, got)
	}
	got := raw(t, r.url, "POST /fine/x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 40000000\r\n\r\n")
	require.True(t, strings.HasPrefix(got, "HTTP/1.1 413"), got)

	for _, path := range []string{"/fine/x", messages} {
		conn := dial(t, r.url)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\nContent-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\n", path, len(sms))
		br := bufio.NewReader(conn)
		line, err := br.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 100 Continue\r\n", line, "a price that needs the body is no refusal")
		_, _ = io.WriteString(conn, sms)
		rest, _ := io.ReadAll(br)
		require.Contains(t, string(rest), "HTTP/1.1 200")
	}
	all := v.requests()
	require.Empty(t, all[len(all)-1].header["Expect"], "the body is here already")
}

// TestSlowUploadersHoldNothing: neither a turn nor money, and they are cut off.
func TestSlowUploadersHoldNothing(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(cent, nil)(&p)
	p.MaxInFlight, p.MaxWait = 1, transport.NoWait
	p.Timeouts.BodyRead = 200 * time.Millisecond
	r := start(t, config(p), gateway.Listener{})
	conn := dial(t, r.url)
	_, _ = io.WriteString(conn, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/api/x", "").status, "others have turn and money")
	got, _ := io.ReadAll(conn)
	require.True(t, strings.HasPrefix(string(got), "HTTP/1.1 408"), string(got))
	require.Contains(t, string(got), `"reason":"body_timeout"`)
	require.Len(t, v.requests(), 1)

	got = []byte(raw(t, r.url, "POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"))
	require.True(t, strings.HasPrefix(string(got), "HTTP/1.1 400"), string(got))
	require.Contains(t, string(got), `"reason":"bad_request"`)
}

// TestBuffersAreBounded for all callers together, and given back.
func TestBuffersAreBounded(t *testing.T) {
	release := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(2)
	v := newVendor(t, func(http.ResponseWriter, *http.Request) { arrived.Done(); <-release })
	c := config(behind(t, "api", v.URL))
	c.Buffers = 2500
	r := start(t, c, gateway.Listener{})
	body := strings.Repeat("x", 1000)
	done := make(chan reply)
	for range 2 {
		go func() { done <- r.do(http.MethodPost, "/api/x", body) }()
	}
	arrived.Wait()
	got := r.do(http.MethodPost, "/api/x", body)
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Equal(t, "buffers_full", got.json(t)["reason"])
	require.Equal(t, "2", got.header.Get("Retry-After"))
	close(release)
	require.Equal(t, 200, (<-done).status)
	require.Equal(t, 200, (<-done).status)
	arrived.Add(1)
	require.Equal(t, 200, r.do(http.MethodPost, "/api/x", strings.Repeat("x", 2500)).status, "all of it is there again")
}

// TestCompressedBodiesPass: they cannot be priced by what they say, and are not touched.
func TestCompressedBodiesPass(t *testing.T) {
	v := newVendor(t, nil)
	p, _ := twilio(t, v.URL)
	open := behind(t, "open", v.URL)
	open.Price = price.PerCall(cent)
	r := start(t, config(p, open), gateway.Listener{})
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(sms))
	_ = z.Close()
	for path, want := range map[string]int{messages: http.StatusPaymentRequired, "/open/x": http.StatusOK} {
		got := r.do(http.MethodPost, path, b.String(), "Content-Encoding", "gzip")
		require.Equal(t, want, got.status, got.body)
	}
	require.Equal(t, b.String(), v.requests()[0].body)
}

// TestCallersWhoLeaveTheQueue cost nothing, and those behind them move up.
func TestCallersWhoLeaveTheQueue(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	withBudget(100*cent, nil)(&p)
	p.Rates = []throttle.Rate{{N: 1, Per: 300 * time.Millisecond}}
	r := start(t, config(p), gateway.Listener{})
	once(r)
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/api/x", strings.NewReader("leaves"))
		_, err := r.client.Do(req)
		gone <- err
	}()
	require.Eventually(t, func() bool { return r.count(transport.KindWaiting) == 1 }, 5*time.Second, time.Millisecond)
	cancel()
	require.Error(t, <-gone)
	got := r.do(http.MethodPost, "/api/x", "stays")
	require.Equal(t, http.StatusOK, got.status)
	require.Len(t, v.requests(), 2)
	require.Equal(t, "stays", v.requests()[1].body)
	require.Equal(t, 2*cent, r.totals(p.Budgets[0]).Used())
	require.Contains(t, r.log.String(), "status=499 reason=caller_left")
}

// TestStreamedBodiesWaitShortly: that their callers leave is not seen while they wait.
func TestStreamedBodiesWaitShortly(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	p.Rates, p.MaxWait = []throttle.Rate{{N: 1, Per: 10 * time.Second}}, time.Minute
	p.Body.Buffer = 10
	r := start(t, config(p), gateway.Listener{})
	once(r)
	got := r.do(http.MethodPost, "/api/x", "longer than the buffer")
	require.Equal(t, http.StatusTooManyRequests, got.status)
	require.Equal(t, "rate", got.json(t)["reason"])
	require.Len(t, v.requests(), 1)
}

// TestBuffersAreFreeOnceAnswered: a stream keeps no body that cannot be sent again.
func TestBuffersAreFreeOnceAnswered(t *testing.T) {
	goOn := make(chan struct{})
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-goOn
	})
	c := config(behind(t, "api", v.URL))
	c.Buffers = 1500
	r := start(t, c, gateway.Listener{})
	var open []io.Closer
	for range 3 {
		resp, err := r.client.Post(r.url+"/api/x", "text/plain", strings.NewReader(strings.Repeat("x", 1000)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		open = append(open, resp.Body)
	}
	close(goOn)
	for _, b := range open {
		_ = b.Close()
	}
}

package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

var zeroRate throttle.Rate

// FuzzMatcher: whatever bytes come in, what leaves was metered, goes to the upstream of the
// configuration, holds no token of a caller, and nothing panics.
func FuzzMatcher(f *testing.F) {
	for _, s := range []string{
		"GET /api/x?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /api/v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabcGET /api/y HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"GET /api/../open/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: " + shopToken + "\r\n\r\n",
		"GET /open/x?key=" + shopToken + "&%6bey=1;b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + shopToken + "\r\nConnection: authorization, x\r\n\r\n",
		"GET http://evil.test/api HTTP/1.1\r\nHost: localhost\r\nOutlay-Tenant: x\r\n\r\n",
		"CONNECT api:443 HTTP/1.1\r\nHost: api\r\n\r\n",
		"GET //api%2fx/%2e%2e HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nExpect: 100-continue\r\n\r\n",
		"OPTIONS * HTTP/1.0\r\n\r\n", "GET /api HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add(s)
	}
	var seen atomic.Int64
	var leaked atomic.Pointer[string]
	v := newVendor(f, nil)
	own := strings.TrimPrefix(v.URL, "http://")
	v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		bad := r.Host != own
		for name, values := range r.Header {
			bad = bad || strings.HasPrefix(name, "Outlay-")
			for _, v := range values {
				f := strings.Fields(v)
				bad = bad || len(f) > 0 && f[len(f)-1] == shopToken
			}
		}
		for _, values := range r.URL.Query() {
			bad = bad || slices.Contains(values, shopToken)
		}
		if bad {
			text := fmt.Sprintf("%s %v", r.RequestURI, r.Header)
			leaked.Store(&text)
		}
	})
	priced := keyed(f, v.URL, gateway.Slot{In: gateway.InBearer})
	priced.Price = price.PerCall(1000)
	priced.Budgets = []budget.Budget{budget.PerDay(1_000_000 * budget.Unit)}
	priced.Retry.Attempts = 1
	priced.Timeouts.BodyRead = 100 * time.Millisecond
	open := behind(f, "open", v.URL)
	open.Retry.Attempts = 1
	r := start(f, twoCallers(config(priced, open)), gateway.Listener{})
	r.onlyCount()

	f.Fuzz(func(t *testing.T, text string) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		require.LessOrEqual(t, seen.Load(), int64(r.count(transport.KindStarted)), "what leaves is metered")
		if p := leaked.Load(); p != nil {
			t.Fatal(*p)
		}
		require.NotContains(t, r.log.String(), "panic")
		r.log.Reset()
	})
}

package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/provider"
)

const cent = budget.Unit / 100

// rig is a gateway on a real listener.
type rig struct {
	t      testing.TB
	gw     *gateway.Gateway
	url    string
	client *http.Client
	ledger *budget.Memory
	log    *lockedBuffer
	mu     sync.Mutex
	events []transport.Event
	kinds  map[transport.Kind]int
	quiet  bool // only count the events
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Reset forgets what was written.
func (l *lockedBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// start runs a gateway with the configuration, its listener being l.
func start(t testing.TB, c gateway.Config, l gateway.Listener) *rig {
	return startWith(t, c, l, gateway.Parts{})
}

func startWith(t testing.TB, c gateway.Config, l gateway.Listener, p gateway.Parts) *rig {
	t.Helper()
	r := &rig{t: t, ledger: new(budget.Memory), log: new(lockedBuffer), kinds: map[transport.Kind]int{}}
	if p.Ledger == nil {
		p.Ledger = r.ledger
	}
	if p.Log == nil {
		p.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	p.OnEvent = func(_ context.Context, e transport.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.kinds[e.Kind]++; !r.quiet {
			r.events = append(r.events, e)
		}
	}
	var err error
	r.gw, err = gateway.New(c, p)
	require.NoError(t, err)
	r.url = r.listen(l)
	tr := &http.Transport{DisableCompression: true}
	r.client = &http.Client{Transport: tr, Timeout: 30 * time.Second}
	t.Cleanup(tr.CloseIdleConnections)
	return r
}

// listen opens another way in, and returns its URL.
func (r *rig) listen(l gateway.Listener) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	srv := r.gw.Server(l)
	done := make(chan struct{})
	go func() { _ = srv.Serve(ln); close(done) }()
	r.t.Cleanup(func() {
		_ = srv.Close()
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.gw.Shutdown(ctx)
	})
	return "http://" + ln.Addr().String()
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// json reads the body as an object.
func (p reply) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.body), &v), p.body)
	return v
}

// do sends a request. A body that is not empty is a form.
func (r *rig) do(method, path, body string, header ...string) reply {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	require.NoError(r.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		if header[i] == "Content-Type" {
			req.Header.Del(header[i])
		}
		req.Header.Add(header[i], header[i+1])
	}
	return r.send(req)
}

func (r *rig) send(req *http.Request) reply {
	r.t.Helper()
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// count counts the events of a kind.
func (r *rig) count(k transport.Kind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds[k]
}

// onlyCount keeps no more events.
func (r *rig) onlyCount() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet = true
}

// totals are those of the budget.
func (r *rig) totals(b budget.Budget) budget.Totals {
	r.t.Helper()
	all, err := r.ledger.Totals(context.Background(), time.Now(), b)
	require.NoError(r.t, err)
	return all[0]
}

// vendor is a provider that remembers what it was sent.
type vendor struct {
	*httptest.Server
	mu  sync.Mutex
	got []request
}

type request struct {
	method, uri, host string
	header            http.Header
	body              string
	trailer           http.Header
	encoding          []string
	length            int64
}

// newVendor starts a vendor that answers by h after the request was read.
func newVendor(t testing.TB, h http.HandlerFunc) *vendor {
	v := new(vendor)
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.got = append(v.got, request{r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(b), r.Trailer, r.TransferEncoding, r.ContentLength})
		v.mu.Unlock()
		if h != nil {
			h(w, r)
		}
	}))
	t.Cleanup(v.Close)
	return v
}

// requests are what the vendor was sent.
func (v *vendor) requests() []request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]request(nil), v.got...)
}

func parse(t testing.TB, s string) *url.URL {
	u, err := url.Parse(s)
	require.NoError(t, err)
	return u
}

// behind is a provider without prices, for the vendor at a URL.
func behind(t testing.TB, name, to string) gateway.Provider {
	return gateway.Provider{Provider: transport.Provider{Name: name}, Upstream: parse(t, to), AllowPrivate: true}
}

// twilio is the preset with a budget, for the fake at a URL.
func twilio(t testing.TB, to string) (gateway.Provider, budget.Budget) {
	p := provider.TwilioSMS(cent)
	p.Name, p.Match, p.Refusal = "twilio", nil, provider.TwilioRefusal
	b := budget.PerDay(50 * budget.Unit)
	b.Name = "twilio-day"
	p.Budgets = []budget.Budget{b}
	return gateway.Provider{Provider: p, Upstream: parse(t, to), AllowPrivate: true}, b
}

func config(p ...gateway.Provider) gateway.Config { return gateway.Config{Providers: p} }

// caller makes a caller with a token.
func caller(name, token string) gateway.Caller {
	return gateway.Caller{Name: name, TokenSHA256: sha256.Sum256([]byte(token))}
}

const (
	messages = "/twilio/2010-04-01/Accounts/AC1/Messages.json"
	sms      = "To=%2B15550009&From=%2B15550001&Body=Hello"
)

// Package gateway is an egress gateway: an [http.Handler] over a [transport.Transport],
// for programs in any language. An SDK is pointed at it by its base URL, and is paced,
// paid for, repeated safely and visible like a Go program that uses the library.
//
//	gw, err := gateway.New(config, gateway.Parts{Ledger: ledger, Log: slog.Default()})
//	srv := gw.Server(gateway.Listener{})
//	err = srv.Serve(listener) // POST http://127.0.0.1:8787/twilio/2010-04-01/…
//
// # Ways in
//
// The first segment of the path names the provider; the rest goes to its upstream byte for
// byte, as does the query. A [Listener] may belong to one provider, without that segment.
// Upstreams come from the configuration alone: no header, query or path can name a host,
// and everything that leaves is metered. CONNECT and URLs of other hosts are refused.
//
// # What a program sees
//
// The provider's own answers, whatever their status, and trailers pass; a redirect of the
// provider to itself leads through the gateway again. A refusal is one
// JSON object that is a problem (RFC 9457) and the vendor's own error shape; "sent" and
// "charged" in it say what it cost. 402 is a refusal for money, 429 for turns, 503 for
// outages. A 502 was not sent; after a 504 nobody knows, and it is presumed to be billed.
// An answer that breaks off on its way breaks the connection.
//
// # Callers who leave
//
// One that leaves while its call waits costs nothing. Once the call was sent,
// [Provider.OnDisconnect] decides. net/http takes a connection that the caller has closed
// for writing as left.
package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// Gateway is an [http.Handler] over a [transport.Transport]; [New] makes one. It is safe
// for concurrent use and starts no goroutine of its own.
type Gateway struct {
	t     *transport.Transport
	parts Parts
	log   *slog.Logger
	proxy *httputil.ReverseProxy
	snap  atomic.Pointer[snapshot]
	// reloading is held by one Reload at a time.
	reloading sync.Mutex
	// buffered counts the bytes of request bodies in memory.
	buffered atomic.Int64
	active   drain
	// outdated says that a newer configuration was refused.
	outdated atomic.Pointer[string]
	own      ownAddrs
	// queue ends for those who wait, and hard for everybody, at Shutdown.
	queue, hard     context.Context
	endQueue, abort context.CancelCauseFunc
	// boot and seq number the calls that no Transport has seen.
	boot uint64
	seq  atomic.Uint64
}

// New validates the configuration and returns a Gateway. Its error names every wrong
// field by its path.
func New(c Config, p Parts) (*Gateway, error) {
	g := &Gateway{parts: p, log: p.Log, boot: rand.Uint64()}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.queue, g.endQueue = context.WithCancelCause(context.Background())
	g.hard, g.abort = context.WithCancelCause(context.Background())
	snap, err := g.compile(c, nil)
	if err != nil {
		return nil, err
	}
	tc := snap.transportConfig()
	tc.Base, tc.Ledger, tc.Limiter, tc.OnEvent = base{g}, p.Ledger, p.Limiter, g.onEvent
	_, plain := p.Base.(*http.Transport)
	tc.TracedBase = p.Base == nil || plain
	if g.t, err = transport.New(tc); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.proxy = &httputil.ReverseProxy{
		Transport: g.t, Rewrite: rewrite, ModifyResponse: modifyResponse, ErrorHandler: errorHandler,
		ErrorLog:   log.New(io.Discard, "", 0), // each call has its line; what is printed there holds addresses and URLs
		BufferPool: &copyBuffers{},
	}
	g.snap.Store(snap)
	return g, nil
}

// Transport is what the calls go through, for pages, metrics and operators. Its
// configuration is that of the gateway; use [Gateway.Reload] to change it.
func (g *Gateway) Transport() *transport.Transport { return g.t }

// ServeHTTP is Handler([Listener]{}).
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.serve(Listener{}, w, r) }

// Handler returns the handler of one way in. A Provider that is not configured answers
// with 404.
func (g *Gateway) Handler(l Listener) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(l, w, r) })
}

// Server returns a server of one way in, with the bounds that strangers need: 64 KiB of
// header in 10 s, and 2 minutes between requests. Reading a body and writing an answer are
// bounded for each call. The address of its listener is never dialled.
//
// Shut it down together with the gateway: first the server, which closes the listener,
// and at the same time [Gateway.Shutdown], for whose calls it waits.
func (g *Gateway) Server(l Listener) *http.Server {
	return &http.Server{
		Handler:                      g.Handler(l),
		MaxHeaderBytes:               64 << 10,
		ReadHeaderTimeout:            10 * time.Second,
		IdleTimeout:                  2 * time.Minute,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(serverLog{g.log}, "", 0),
		BaseContext: func(ln net.Listener) context.Context {
			g.own.add(ln.Addr())
			return context.Background()
		},
	}
}

// serverLog passes on what net/http says of connections, which is no news: scanners and
// clients that leave.
type serverLog struct{ log *slog.Logger }

func (s serverLog) Write(p []byte) (int, error) {
	first, _, _ := strings.Cut(string(p), "\n")
	s.log.Debug("connection", "text", first)
	return len(p), nil
}

// copyBuffers are the buffers in which answers are copied. A stream keeps one for as long as
// it is open, so that they are smaller than those of ReverseProxy.
type copyBuffers struct{ pool sync.Pool }

type copyBuffer [6 << 10]byte

func (b *copyBuffers) Get() []byte {
	if p, ok := b.pool.Get().(*copyBuffer); ok {
		return p[:]
	}
	return new(copyBuffer)[:]
}

func (b *copyBuffers) Put(p []byte) { b.pool.Put((*copyBuffer)(p)) }

// Plan is what would happen to a call.
type Plan struct {
	// PlanInfo is the transport's part; its Refusal is also set if the gateway refuses.
	transport.PlanInfo
	// Caller and Tenant are who the call would belong to.
	Caller, Tenant string
	// Upstream is the URL that would be called, without the credential and with the keys of
	// the program hidden.
	Upstream string
	// Status is that of the refusal, zero if the call would be sent.
	Status int
}

// Plan says what would happen to a request that came in by the listener. It changes and
// sends nothing, and reads the body of r.
func (g *Gateway) Plan(l Listener, r *http.Request) (Plan, error) {
	c := g.newCall(l, nil, r)
	defer c.stop()
	refused := c.admit()
	p := Plan{Caller: c.who.caller, Tenant: c.who.tenant}
	if c.up != nil {
		p.Provider = c.up.Name
	}
	if refused != nil {
		p.Refusal, p.Status = refused, refused.statusFor(c)
		return p, nil
	}
	p.Upstream = c.up.target(c.req.URL, c.maskedQuery()).String()
	info, err := g.t.Plan(c.req)
	if p.PlanInfo = info; info.Refusal != nil {
		r := c.explain(info.Refusal)
		p.Refusal, p.Status = info.Refusal, r.statusFor(c)
	}
	return p, err
}

// newID numbers a call that no Transport has seen.
func (g *Gateway) newID() transport.CallID {
	return transport.CallID{Boot: g.boot, Seq: g.seq.Add(1)}
}

// pathOf is the first segment of the provider's paths.
func pathOf(p *Provider) string { return cmp.Or(strings.Trim(p.Path, "/"), p.Name) }

// Package vendortest has fake vendors for tests: real HTTP servers on loopback that
// limit, fail and bill as the vendors they stand for do.
//
// A fake enforces its [Limit] strictly, throttles in the dialect of its vendor, fails
// by a plan that a seed decides ([Faults]), and bills what it accepts at the moment
// it accepts it, whether or not the answer reaches the caller. It counts with slow
// code of its own, so its [Invoice] is an oracle for whatever was sent to it.
//
//	sms := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Requests: 30, Window: time.Second}})
//	defer sms.Close()
//	client := &http.Client{Transport: vendortest.Base(sms)}
//
// [Base] sends the vendors' real host names to the fakes and any other host nowhere:
// SDKs and configurations are used as they are, and no test reaches the network.
//
// # Which answers are billed
//
// Lost answers are billed like delivered ones. Refusals for a limit, requests that
// make no sense, 503s and connections reset before the request was taken are not.
// What else a vendor bills stands with its constructor.
package vendortest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// Options say how a fake behaves. The zero value limits nothing, never fails, answers
// at once and asks the vendor's example price.
type Options struct {
	// Limit is enforced on every request.
	Limit Limit
	// Faults is the plan by which the fake fails.
	Faults Faults
	// Latency is how long every answer takes.
	Latency time.Duration
	// Price is charged per billed unit of the vendor. Zero: an example price, stated
	// at the constructor.
	Price budget.Amount
	// OutputPrice is charged per token that a model writes, and Price per token that it
	// reads. Zero: an example price. Only vendors of models look at it.
	OutputPrice budget.Amount
	// Prices replace Price for destinations that begin with one of the keys, such as
	// "+49"; the longest counts. Only vendors with destinations look at it.
	Prices map[string]budget.Amount
	// HTTP2 serves HTTP/2 over TLS instead of plain HTTP/1.1.
	HTTP2 bool
}

// Limit is what a vendor allows. Zero fields allow everything.
type Limit struct {
	// Requests may arrive in each Window. Windows are fixed: they begin at whole
	// multiples of their length, and what arrives is counted, not what is answered.
	Requests int
	Window   time.Duration
	// Concurrent requests may be under way at once.
	Concurrent int
}

// Fake is one fake vendor, listening on loopback until Close. Its methods may be
// called from any goroutine.
type Fake struct {
	vendor vendor
	opts   Options
	server *httptest.Server
	closed chan struct{}

	mu       sync.Mutex // guards what follows
	counts   Counts
	lines    []Line
	arrivals map[fingerprint]int // requests of this content that arrived
	taken    map[fingerprint]bool
	replays  map[string]replay // by idempotency key
	window   int64             // number of the current window
	inWindow int
	inFlight int
	told     time.Time // when a pause was announced,
	until    time.Time // and its end
}

// vendor is what differs from one fake to the next. The functions are pure, and are
// called with the fake locked.
type vendor struct {
	name   string
	hosts  []string // "*.example.com" stands for every name below
	unit   string   // currency of the invoice
	price  budget.Amount
	output budget.Amount // price of a token written
	// answer takes a request: it says what to bill and what to reply.
	answer func(call) reply
	// throttle refuses in the vendor's dialect.
	throttle func(call, refusal) reply
	// fail is the vendor's reply to trouble of its own.
	fail func(status int) reply
	// headers are added to good answers and refusals. It may be nil.
	headers func(call) map[string]string
	// idempotency is the header that makes a repeated request harmless.
	idempotency string
	// free500: what ends in a 500 is not billed.
	free500 bool
}

// start runs a fake. Like httptest, it panics if loopback cannot be listened on.
func start(v vendor, o Options) *Fake {
	if o.Price == 0 {
		o.Price = v.price
	}
	if o.OutputPrice == 0 {
		o.OutputPrice = v.output
	}
	f := &Fake{
		vendor: v, opts: o, closed: make(chan struct{}),
		arrivals: map[fingerprint]int{}, taken: map[fingerprint]bool{}, replays: map[string]replay{},
		counts: Counts{Faults: map[Fault]int{}},
	}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	if o.HTTP2 {
		f.server.EnableHTTP2 = true
		f.server.StartTLS()
	} else {
		f.server.Start()
	}
	return f
}

// Close stops the fake. Answers under way are cut off. The invoice and the counters
// stay readable.
func (f *Fake) Close() {
	select {
	case <-f.closed:
	default:
		close(f.closed)
		f.server.Close()
	}
}

// URL is the address of the fake itself, for clients whose base URL can be set.
func (f *Fake) URL() string { return f.server.URL }

// Hosts are the vendor's real host names, which [Base] sends here.
func (f *Fake) Hosts() []string { return append([]string(nil), f.vendor.hosts...) }

// Base returns a round tripper that sends requests for the real hosts of the fakes'
// vendors to the fakes, whatever their port and scheme. A request for any other host
// fails, and the network is never used. The requests are not changed.
//
// Its CloseIdleConnections closes the idle connections to the fakes.
func Base(fakes ...*Fake) http.RoundTripper {
	plain := func(ctx context.Context, network, addr string) (net.Conn, error) {
		f, err := find(fakes, addr)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, f.server.Listener.Addr().String())
	}
	secure := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := plain(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		f, err := find(fakes, addr)
		if err != nil || !f.opts.HTTP2 {
			return conn, err // net/http speaks HTTP/1.1 on it, in the clear
		}
		roots := x509.NewCertPool()
		roots.AddCert(f.server.Certificate())
		tc := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"h2"}})
		return tc, tc.HandshakeContext(ctx)
	}
	return &http.Transport{DialContext: plain, DialTLSContext: secure, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 256}
}

// find returns the fake that stands for the host of addr.
func find(fakes []*Fake, addr string) (*Fake, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	host = strings.ToLower(host)
	for _, f := range fakes {
		for _, h := range f.vendor.hosts {
			below, wild := strings.CutPrefix(h, "*")
			if host == h || wild && strings.HasSuffix(host, below) {
				return f, nil
			}
		}
	}
	return nil, fmt.Errorf("vendortest: no fake stands for %s", host)
}

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport/dialect"
)

// attempt is one transmission and what came of it.
type attempt struct {
	sentAt  time.Time
	resp    *http.Response
	err     error
	reading dialect.Reading
	date    time.Time // the answer's Date, a witness for the ledger's clock
	// notSent: there is proof that no byte of the request was written.
	notSent bool
	// notTaken: the provider said that it did not take the request.
	notTaken bool
	// gate is when the scope that the answer closed opens again.
	gate time.Time
	// pending: the hold is resolved at the end of the body, by meter.
	meter   io.Writer
	cost    costFunc
	pending bool
	amount  budget.Amount // what cost told
	known   bool
	trace   *wireTrace
	resends int // by net/http below us, of requests it had not written
}

// wireTrace sees how far net/http came. Both hooks run on the goroutine of RoundTrip;
// whether a header was written is no proof, because a cancelled RoundTrip returns while
// another goroutine may be about to write it.
type wireTrace struct {
	hooks httptrace.ClientTrace
	asked atomic.Bool  // Base reports to httptrace at all
	conns atomic.Int32 // connections the request was put on
}

// scratch is the memory of one call: its state, and hooks whose closures would cost
// more than what they do. It is used again, unless the end of a body still needs it.
type scratch struct {
	call  call
	wire  wireTrace
	queue func(throttle.Forecast)
}

func newScratch() any {
	s := new(scratch)
	s.queue = func(f throttle.Forecast) { s.call.queued(f) }
	s.wire.hooks.GetConn = func(string) { s.wire.asked.Store(true) }
	s.wire.hooks.GotConn = func(httptrace.GotConnInfo) { s.wire.conns.Add(1) }
	return s
}

// nextAttempt begins an attempt. Most calls make one, which is part of the call.
func (c *call) nextAttempt() *attempt {
	a := &c.first
	if c.attempt > 0 {
		a = new(attempt)
	}
	if len(c.budgets) > 0 {
		a.trace = &c.scratch.wire
		a.trace.asked.Store(false)
		a.trace.conns.Store(0)
	}
	c.current = a
	return a
}

// outgoing builds the request of the attempt: a clone with a fresh body, whose silent
// replay by net/http is prevented if it holds money.
func (c *call) outgoing(a *attempt) (*http.Request, error) {
	ctx := c.ctx
	if a.trace != nil {
		ctx = httptrace.WithClientTrace(ctx, &a.trace.hooks)
	}
	if c.t.attemptInContext {
		ctx = context.WithValue(ctx, attemptKey{}, attemptInfo{c.p.Name, c.attempt + 1})
	}
	req := c.req.WithContext(ctx)
	if c.header != nil {
		req.Header = c.header
	}
	if hasBody(req) && !c.bodyOurs {
		body, err := c.req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	if len(c.budgets) > 0 {
		preventReplay(req)
	}
	return req, nil
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// preventReplay keeps net/http from sending the request a second time inside one
// RoundTrip. It does so on a reused connection that dies (transport.go, isReplayable):
// if the body can be had again, and the method is a safe one or an idempotency key is
// there. The provider would see two requests and bill both, and we would count one.
func preventReplay(req *http.Request) {
	req.GetBody = nil
	if hasBody(req) {
		return
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		// A body at its end is not sent for these methods.
		req.Body, req.ContentLength = atEOF{}, 0
		return
	}
	// With an empty body of ours another method would be sent chunked. net/http looks for
	// the key under its canonical name only; on the wire names have no case.
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := req.Header[name]; ok {
			h := req.Header.Clone()
			delete(h, name)
			h[strings.ToLower(name)] = v
			req.Header = h
		}
	}
}

// atEOF is a request body that has ended.
type atEOF struct{}

func (atEOF) Read([]byte) (int, error) { return 0, io.EOF }
func (atEOF) Close() error             { return nil }

var errNoResponse = errors.New("base returned neither response nor error")

// readAnswer looks at what Base returned.
func (a *attempt) readAnswer(c *call) {
	if a.resp == nil && a.err == nil {
		a.err = errNoResponse
	}
	if a.err != nil {
		if a.resp != nil && a.resp.Body != nil {
			_ = a.resp.Body.Close() // against the contract of RoundTripper; the error counts
		}
		a.resp = nil
		a.notSent = a.provenNotSent()
		a.notTaken = http2NotTaken(a.err)
	} else {
		if a.resp.Body == nil {
			a.resp.Body = http.NoBody
		}
		a.resp.Request = c.req // not the clone, whose body cannot be had again
		a.read(c)
	}
	if a.trace != nil {
		a.resends = max(0, int(a.trace.conns.Load())-1)
		a.trace = nil
	}
}

// read has the provider's dialect read the answer.
func (a *attempt) read(c *call) {
	d := c.p.dialect
	ans := dialect.Answer{Status: a.resp.StatusCode, Header: a.resp.Header, Now: c.now}
	if d.WantsBody(ans.Status, ans.Header) {
		ans.Body = peekBody(a.resp)
	}
	a.reading = d.Read(ans)
	for _, s := range c.p.Retry.NotTaken {
		a.notTaken = a.notTaken || s == a.resp.StatusCode
	}
}

// provenNotSent reports whether nothing can have been written: net/http never put the
// request on a connection, or (for a Base that does not tell) the dial or the TLS
// handshake failed.
func (a *attempt) provenNotSent() bool {
	if a.trace != nil && a.trace.asked.Load() {
		return a.trace.conns.Load() == 0
	}
	return isDialError(a.err)
}

func isDialError(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	return isTLSError(err)
}

// isTLSError reports whether the TLS handshake failed.
func isTLSError(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	return strings.Contains(err.Error(), "TLS handshake timeout") // net/http's type is not exported
}

// http2NotTaken reports whether net/http would have sent the request again because the
// server did not process it (RFC 9113, sections 6.8 and 8.7), had it been allowed to.
func http2NotTaken(err error) bool {
	return strings.Contains(err.Error(), "http2: Transport: cannot retry err [")
}

// errorClass puts an error of Base into a few words.
func errorClass(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		return "cancelled"
	case isTLSError(err):
		return "tls"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "timeout"
	case isDialError(err):
		return "dial"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "reset"
	}
	return "other"
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// failOutcome is how a call without an answer ended.
func failOutcome(ctx context.Context, err error) string {
	if errorClass(ctx, err) == "cancelled" {
		return "cancelled"
	}
	return "failed"
}

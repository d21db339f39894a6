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
)

// What this file knows of net/http and cannot see in its exported types was read in Go
// 1.26.8 (transport.go, h2_bundle.go) and is pinned by tests against real servers.

// wireTrace sees that net/http looks for a connection, and counts those that it put the
// request on. The hooks run on the goroutine of RoundTrip. Whether a header was written
// would be no proof, because a cancelled RoundTrip returns while another goroutine may be
// about to write it.
type wireTrace struct {
	hooks httptrace.ClientTrace
	asked atomic.Bool
	conns atomic.Int32
}

// watch returns the context of the attempt. An attempt that holds money is watched where
// Base reports all that it does. One that net/http may replay over HTTP/2, and that no body
// of ours keeps from it, is ended before its header goes out on a second connection (which
// HTTP/2 looks at once more under its lock; HTTP/1 does not, see hideKey).
func (a *attempt) watch(c *call, ctx context.Context) context.Context {
	guarded := len(c.budgets) > 0 && !hasBody(c.req) && !lacksBody(c.req.Method)
	if len(c.budgets) == 0 || !c.t.traced && !guarded {
		return ctx
	}
	if guarded {
		ctx, a.cancel = context.WithCancel(ctx)
	}
	w, cancel := new(wireTrace), a.cancel
	w.hooks.GotConn = func(httptrace.GotConnInfo) {
		if w.conns.Add(1) > 1 && cancel != nil {
			cancel()
		}
	}
	w.hooks.GetConn = func(string) { w.asked.Store(true) }
	a.wire = w
	return httptrace.WithClientTrace(ctx, &w.hooks)
}

// preventReplay keeps net/http from sending the request a second time inside one
// RoundTrip. It does so on a connection that dies (isReplayable, http2canRetryError), if
// there is no body or it can be had again. The provider would see two requests and bill
// both, and we would count one.
func preventReplay(req *http.Request) {
	req.GetBody = nil
	switch {
	case hasBody(req):
	case lacksBody(req.Method):
		req.Body, req.ContentLength = atEOF{}, 0
	case req.Method == http.MethodTrace:
		// Safe, so replayed, but not looked into: without this it would be sent chunked.
		req.Body, req.ContentLength, req.TransferEncoding = atEOF{}, 0, []string{"identity"}
	default:
		hideKey(req)
	}
}

// hideKey renames an idempotency key so that HTTP/1 does not take it for leave to send
// again: isReplayable looks for the canonical name only, and on the wire names have no
// case. HTTP/2 does not look at the key; see watch.
func hideKey(req *http.Request) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := req.Header[name]; ok {
			h := req.Header.Clone()
			delete(h, name)
			h[strings.ToLower(name)] = append(h[strings.ToLower(name)], v...)
			req.Header = h
		}
	}
}

// lacksBody reports whether net/http looks whether a body of unknown length has anything
// in it before it is sent (requestMethodUsuallyLacksBody). With other methods an empty
// body of ours would be sent chunked.
func lacksBody(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return true
	}
	return false
}

// atEOF is a request body that has ended.
type atEOF struct{}

func (atEOF) Read([]byte) (int, error) { return 0, io.EOF }
func (atEOF) Close() error             { return nil }

var errReplayStopped = errors.New("net/http was about to send the request a second time")

// provenNotSent reports whether nothing can have been written: net/http never put the
// request on a connection, or (for a Base that does not tell) the dial or the TLS
// handshake failed.
func (a *attempt) provenNotSent(traced bool) bool {
	if traced && a.wire != nil && a.wire.asked.Load() {
		return a.wire.conns.Load() == 0
	}
	return isDialError(a.err) || traced && isRefusedByNetHTTP(a.err)
}

// isRefusedByNetHTTP reports whether net/http found the request itself to be wrong. A
// request that it handed to a protocol registered with it is another matter.
func isRefusedByNetHTTP(err error) bool {
	text := err.Error()
	for _, s := range []string{"net/http: invalid ", "unsupported protocol scheme", "http: no Host in request URL", "http: nil Request.URL"} {
		if strings.HasPrefix(text, s) {
			return true
		}
	}
	return false
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
	// A broken record may also come later, when the request was written.
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && strings.HasPrefix(e.Msg, "first record does not look like a TLS handshake") {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout() && t.Error() == "net/http: TLS handshake timeout" // its type is not exported
}

// http2NotTaken reports whether the server did not process the request (RFC 9113,
// sections 6.8 and 8.7): net/http would have sent it again, had its body been had again.
// It does the same after a PROTOCOL_ERROR, which proves nothing.
func http2NotTaken(err error) bool {
	_, why, ok := strings.Cut(err.Error(), "http2: Transport: cannot retry err [")
	return ok && (strings.Contains(why, "; REFUSED_STREAM") || strings.HasPrefix(why, "http2: Transport received Server's graceful shutdown GOAWAY]"))
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

package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/outlay-go/outlay/transport/dialect"
)

// attempt is one transmission and what came of it.
type attempt struct {
	sentAt  time.Time
	doneAt  time.Time // when Base came back
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
	// asked is the wait that the provider asked for, if it did.
	asked   time.Duration
	wire    *wireTrace
	cancel  context.CancelFunc // ends the context of the attempt, if it has one
	resends int                // by net/http below us
}

// word is what an answer was, for events.
func (a *attempt) word() string {
	if a.reading.Throttled || a.reading.Wall {
		return "throttled"
	}
	return "answered"
}

// release ends the context of the attempt, once its body is done.
func (a *attempt) release() {
	if a.cancel != nil {
		a.cancel()
	}
}

// nextAttempt begins an attempt. Most calls make one, which is part of the call.
func (c *call) nextAttempt() *attempt {
	a := &c.first
	if c.attempt > 0 {
		a = new(attempt)
	}
	c.current = a
	return a
}

// outgoing builds the request of the attempt: a clone with a fresh body, whose silent
// replay by net/http is prevented if it holds money.
func (c *call) outgoing(a *attempt) (*http.Request, error) {
	ctx := c.ctx
	if c.t.attemptInContext {
		ctx = context.WithValue(ctx, attemptKey{}, attemptInfo{c.p.Name, c.attempt})
	}
	req := c.req.WithContext(a.watch(c, ctx))
	if req.Header = c.req.Header; c.header != nil {
		req.Header = c.header
	}
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if hasBody(req) && !c.bodyOurs {
		body, err := c.req.GetBody()
		if body == nil {
			err = cmp.Or(err, errNoBody)
		}
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

var errNoBody = errors.New("GetBody gave no body")

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

var errNoResponse = errors.New("base returned neither response nor error")

// readAnswer looks at what Base returned.
func (a *attempt) readAnswer(c *call) {
	if a.resp == nil && a.err == nil {
		a.err = errNoResponse
	}
	if w := a.wire; w != nil {
		a.resends = max(0, int(w.conns.Load())-1)
	}
	if a.err == nil {
		if a.resp.Body == nil {
			a.resp.Body = http.NoBody
		} else if c.isEmpty(a.resp) {
			_ = a.resp.Body.Close()
			a.resp.Body = http.NoBody
		}
		a.resp.Request = c.req // not the clone, whose body cannot be had again
		a.read(c)
		return
	}
	if a.resp != nil && a.resp.Body != nil {
		_ = a.resp.Body.Close() // against the contract of RoundTripper; the error counts
	}
	a.resp = nil
	if a.resends > 0 && a.cancel != nil && c.ctx.Err() == nil {
		a.err = errReplayStopped
	}
	a.notSent = a.provenNotSent(c.t.traced)
	a.notTaken = http2NotTaken(a.err)
}

// isEmpty reports whether nothing can follow the header. Over HTTP/2 net/http says so by a
// body that is not http.NoBody, and callers rarely close what they know to be empty.
func (c *call) isEmpty(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return false // its body is the connection
	case http.StatusNoContent, http.StatusNotModified:
		return true
	}
	return c.req.Method == http.MethodHead || resp.ProtoMajor > 1 && resp.ContentLength == 0
}

// read has the provider's dialect read the answer.
func (a *attempt) read(c *call) {
	d := c.p.dialect
	ans := dialect.Answer{Status: a.resp.StatusCode, Header: a.resp.Header, Now: c.now}
	if d.WantsBody(ans.Status, ans.Header) {
		whole := false
		ans.Body, whole = peekBody(c.ctx, a.resp)
		ans.Cut, c.stale = !whole, true
	}
	a.reading = d.Read(ans)
	for _, s := range c.p.Retry.NotTaken {
		a.notTaken = a.notTaken || s == a.resp.StatusCode
	}
}

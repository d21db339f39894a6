package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// peekLimit bounds how much of a body is read to find a signal in it.
const peekLimit = 64 << 10

// peekBody reads a prefix of the body and gives it back to the response byte for byte.
// It returns the prefix decoded. Event streams are left alone.
func peekBody(resp *http.Response) []byte {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	prefix, err := io.ReadAll(io.LimitReader(resp.Body, peekLimit))
	var rest io.Reader = resp.Body
	if err != nil {
		rest = errReader{err}
	}
	resp.Body = &restored{io.MultiReader(bytes.NewReader(prefix), rest), resp.Body}
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return prefix
	}
	z, err := gzip.NewReader(bytes.NewReader(prefix))
	if err != nil {
		return prefix
	}
	plain, _ := io.ReadAll(io.LimitReader(z, peekLimit)) // a cut stream gives what it has
	return plain
}

type restored struct {
	io.Reader
	io.Closer
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// watchBody arranges that the turn ends, and a metered cost is booked, when the body
// ends. A body is wrapped only if there is something to wait for.
func (c *call) watchBody(a *attempt) *http.Response {
	resp := a.resp
	if resp.Body == http.NoBody && a.pending {
		a.pending = false
		a.amount, a.known = a.cost()
		c.settleMetered(a, true)
	}
	// A turn is kept for its slot, or until its real weight is known.
	keep := c.turning && resp.Body != http.NoBody && (c.p.slots || a.pending)
	if !a.pending && !keep {
		c.endTurn()
		return resp
	}
	e := &bodyEnd{c: c, a: a, turn: keep}
	c.turning = false
	b := &body{r: resp.Body, e: e}
	// What waits for the end must not keep the response alive.
	a.resp, c.current, c.kept = nil, nil, true
	e.until(c.ctx)
	// The response may be dropped without a Close.
	runtime.AddCleanup(b, func(e *bodyEnd) { e.unclosed() }, e)
	if rw, ok := b.r.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &upgraded{b, rw}
		return resp
	}
	resp.Body = b
	return resp
}

// body passes a response body through and notices its end.
type body struct {
	r io.ReadCloser
	e *bodyEnd
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 {
		b.e.feed(p[:n])
	}
	if err != nil {
		b.e.end(err == io.EOF)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.r.Close()
	b.e.end(false)
	return err
}

// upgraded is the body of a 101: a connection.
type upgraded struct {
	*body
	rw io.ReadWriteCloser
}

func (u *upgraded) Write(p []byte) (int, error) { return u.rw.Write(p) }

// bodyEnd is what happens once, at the first of: end of the body, error, Close, end of
// the context, collection of the response.
type bodyEnd struct {
	c    *call
	a    *attempt
	turn bool
	stop func() bool
	once atomic.Bool
	mu   sync.Mutex // guards stop and the meter: the context may end during a Read
}

func (e *bodyEnd) feed(p []byte) {
	if e.a.meter == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.a.meter.Write(p)
}

func (e *bodyEnd) end(whole bool) {
	if e.once.Swap(true) {
		return
	}
	e.mu.Lock()
	e.c.now = time.Now()
	stop := e.stop
	if e.a.pending {
		e.a.amount, e.a.known = e.a.cost()
	}
	e.mu.Unlock()
	if stop != nil {
		stop()
	}
	if e.turn {
		e.c.reweigh(e.a)
		e.c.turn.Done()
	}
	if e.a.pending {
		e.c.settleMetered(e.a, whole)
	}
}

// until ends the body with the context.
func (e *bodyEnd) until(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop = context.AfterFunc(ctx, func() { e.end(false) })
}

func (e *bodyEnd) unclosed() {
	if e.once.Load() {
		return
	}
	e.c.emit(Event{Kind: KindUnclosed, Took: time.Since(e.c.start)})
	e.end(false)
}

// reweigh corrects what the turn took from scopes that count units.
func (c *call) reweigh(a *attempt) {
	u, ok := a.meter.(interface{ Units() (int64, bool) })
	if !ok {
		return
	}
	t, ok := c.t.limiter.(throttle.Tuner)
	if !ok {
		return
	}
	n, known := u.Units()
	if !known || n < 0 {
		return
	}
	for i := range c.p.Scopes {
		if s := &c.p.Scopes[i]; s.Units {
			if key, ok := c.p.keyOfScope(c.legs, s.Name); ok {
				t.Adjust(c.turn, key, int(min(n, math.MaxInt32)))
			}
		}
	}
}

// settleMetered books what the meter saw. Without a known cost the hold is presumed
// spent: a stream that was cut may have been billed in full.
func (c *call) settleMetered(a *attempt, whole bool) {
	o := budget.Presumed(max(0, a.amount))
	o.Why = "body_cut"
	switch {
	case a.known && a.amount >= 0:
		o = settled(a.amount, "usage")
	case whole:
		o.Why = "usage_missing"
	}
	o.Ref, o.Seen = a.reading.Ref, a.date
	c.close(o)
}

package gateway

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// serve is the life of one request.
func (g *Gateway) serve(l Listener, w http.ResponseWriter, r *http.Request) {
	c := g.newCall(l, w, r)
	defer c.end()
	if !g.active.enter() {
		c.refuse(shuttingDown(errShuttingDown))
		return
	}
	defer g.active.leave()
	if refused := c.admit(); refused != nil {
		c.refuse(refused)
		return
	}
	c.watch()
	g.proxy.ServeHTTP(c.w, c.req)
}

// admit is all that comes before the Transport: what is asked for, who asks, whether it
// may be, and the body. Only its last step reads from the caller.
func (c *call) admit() *refusal {
	for _, step := range [...]func(*call) *refusal{
		(*call).checkForm, (*call).checkHost, (*call).checkBrowser, (*call).find, (*call).identify,
		(*call).checkPath, (*call).checkQuery, (*call).checkHeader, (*call).checkRoute, (*call).settings, (*call).checkUpgrade,
		(*call).prepare, (*call).checkStopped, (*call).readBody,
	} {
		if refused := step(c); refused != nil {
			return refused
		}
	}
	return nil
}

// checkStopped refuses what is refused for certain without its body, which a caller that
// asked first ("Expect: 100-continue") then need not send.
func (c *call) checkStopped() *refusal {
	if c.up.Stopped {
		return c.frozen()
	}
	if c.w == nil || c.in.Header.Get("Expect") == "" {
		return nil
	}
	out := c.req.WithContext(c.ctx)
	out.Body, out.GetBody, out.ContentLength = nil, nil, 0
	info, err := c.g.t.Plan(out)
	if err != nil || info.Refusal == nil {
		return nil // what is wrong shows itself in earnest
	}
	if r := c.explain(info.Refusal); r.reason != "unpriced" {
		return r
	}
	return nil
}

// frozen is the refusal of a provider that the configuration stops.
func (c *call) frozen() *refusal {
	return &refusal{reason: transport.ReasonFrozen, text: c.up.Name + ": " + errStopped.Error()}
}

// leftovers is how long the rest of a body may take that nobody wants: net/http reads it, so
// that the caller sees the answer, and would wait for ever for one that does not come.
func (c *call) leftovers() time.Duration {
	c.mu.Lock()
	failed := c.failed != nil
	c.mu.Unlock()
	if c.in.Header.Get("Expect") != "" || failed || c.refused != nil && c.refused.reason == "body_timeout" {
		return 100 * time.Millisecond // it is not on its way
	}
	return 2 * time.Second
}

// end closes the books of the call, whatever became of it.
func (c *call) end() {
	c.stop()
	if c.in.Body != nil && c.in.Body != http.NoBody && !c.bodyRead {
		c.w.boundRead(c.leftovers())
	}
	if v := recover(); v != nil {
		if c.w.status != 0 {
			_ = c.w.FlushError() // what is there shows that the answer broke off, not the connection
		}
		c.logEnd(true)
		if v != http.ErrAbortHandler {
			c.g.log.Error("panic", "call", c.id().String(), "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler) // net/http breaks the connection and prints nothing
	}
	c.logEnd(false)
}

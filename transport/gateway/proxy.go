package gateway

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// rewrite gives back what ReverseProxy takes away: query parameters that Go cannot read,
// which the provider gets byte for byte.
func rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.RawQuery = p.In.URL.RawQuery
}

// modifyResponse passes the answer of a provider on.
func modifyResponse(resp *http.Response) error {
	c := callOf(resp.Request.Context())
	c.answer(resp)
	c.announce(resp)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	c.releaseBody() // it cannot be sent again
	c.req.Header = nil
	if resp.Body != http.NoBody {
		resp.Body = c.watchBody(resp.Body)
	}
	return nil
}

// announce adds what we have to say to the header of a provider's answer.
func (c *call) announce(resp *http.Response) {
	h := resp.Header
	s := c.seen()
	h.Del("Alt-Svc") // it leads around us
	if len(h["Content-Type"]) == 0 {
		c.w.Header()["Content-Type"] = nil // net/http would guess one
	}
	c.hideKey(h)
	c.keepInside(resp)
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
		h.Add("Proxy-Status", "outlay; received-status="+strconv.Itoa(resp.StatusCode))
	}
	if s.would != "" {
		v := string(s.would)
		if s.wouldBudget != "" {
			v += "; budget=" + quoted(s.wouldBudget)
		}
		h.Set("Outlay-Would-Refuse", v)
	}
	if c.snap.HideOutlay {
		return
	}
	h.Set("Outlay-Provider", c.up.Name)
	h.Set("Outlay-Call", s.id.String())
	h.Set("Outlay-Attempts", strconv.Itoa(s.attempts))
	h.Set("Outlay-Waited-Ms", strconv.FormatInt(s.waited.Milliseconds(), 10))
}

// keepInside lets a redirect of the provider to itself lead through us again. As it is, a
// path would be one of ours, without its provider; and a URL would take the program, perhaps
// with its token, to the vendor, where nothing is metered.
func (c *call) keepInside(resp *http.Response) {
	values := resp.Header["Location"]
	if resp.StatusCode/100 != 3 || len(values) != 1 {
		return
	}
	u, err := url.Parse(values[0])
	if err != nil || u.Host == "" && u.Scheme != "" || u.Host != "" && !isSameOrigin(u, c.up.Upstream) {
		return
	}
	path, below := strings.CutPrefix(u.EscapedPath(), c.up.prefix)
	if u.Host != "" && path == "" {
		path = "/"
	}
	if !below || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return // a relative path leads where it should
	}
	if c.listener.Provider == "" {
		path = "/" + c.up.Path + path
	}
	if i := strings.IndexAny(values[0], "?#"); i >= 0 {
		path += values[0][i:] // byte for byte
	}
	values[0] = path
}

// isSameOrigin compares scheme, host and port; without one, a port is that of the scheme.
func isSameOrigin(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// hideKey takes our key out of URLs in the header of an answer: vendors repeat that of a call
// in Location and Link. Who follows one with the key would call the vendor around us.
func (c *call) hideKey(h http.Header) {
	cred := &c.up.Credential
	if cred.Slot.In != InQuery {
		return
	}
	secret := cred.Secret()
	for _, key := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		for _, values := range h {
			for i, v := range values {
				if key != "" && strings.Contains(v, key) {
					values[i] = strings.ReplaceAll(v, key, "hidden-by-outlay")
				}
			}
		}
	}
}

// errorHandler answers a call that the Transport refused, or that failed.
func errorHandler(_ http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r.Context())
	c.releaseBody()
	c.refuse(c.explain(err))
}

// watchBody wraps the body of an answer.
func (c *call) watchBody(b io.ReadCloser) io.ReadCloser {
	w := &answerBody{ReadCloser: b, c: c}
	w.idle = time.AfterFunc(c.up.Timeouts.Idle, func() { c.cancel(errIdle) })
	w.idle.Stop()
	return w
}

// answerBody is the body of an answer on its way to the caller.
type answerBody struct {
	io.ReadCloser
	c     *call
	idle  *time.Timer
	ended bool
}

// Read waits no longer than is allowed between two pieces.
func (b *answerBody) Read(p []byte) (int, error) {
	b.idle.Reset(b.c.up.Timeouts.Idle)
	n, err := b.ReadCloser.Read(p)
	b.idle.Stop()
	if err != nil && !b.ended {
		b.ended = true
		b.c.noteLeft()
	}
	return n, err
}

// finishAtMost bounds what is read of an answer that nobody waits for any more.
const finishAtMost = 64 << 20

// Close reads the answer to its end, if that is wanted although the caller has left: what
// the call cost often stands there. That takes at most [finishFor].
func (b *answerBody) Close() error {
	if !b.ended {
		if b.c.w.slow {
			b.c.cancel(errSlowReader)
		}
		b.c.unwant(errCallerLeft)
		b.c.noteLeft()
		if b.c.ctx.Err() == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(b, finishAtMost)) // the Transport reads along
		}
	}
	b.idle.Stop()
	return b.ReadCloser.Close()
}

// fail notes why the body of the request could not be passed on.
func (c *call) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
}

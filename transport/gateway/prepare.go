package gateway

import (
	"cmp"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// prepare makes of the request what the provider is sent: its path and query as they came,
// our credential, and nothing that is for us or that tells where the call came from.
func (c *call) prepare() *refusal {
	c.req.Header = c.in.Header.Clone()
	escaped := c.escaped // below the upstream's own path, which no price and no rule knows
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return badPath("the path is not encoded well")
	}
	c.req.URL = &url.URL{
		Scheme: c.up.Upstream.Scheme, Host: c.up.host, Path: path, RawPath: escaped,
		RawQuery: c.rawQuery, ForceQuery: c.in.URL.ForceQuery,
	}
	c.req.Host = ""
	c.dropNamed()
	for name := range c.req.Header {
		if isOutlay(name) || name == c.snap.TenantHeader || isTrace(name) {
			delete(c.req.Header, name)
		}
	}
	if !c.up.Upgrades {
		c.req.Header.Del("Upgrade")
	} else if len(c.req.Header["Upgrade"]) > 0 {
		c.req.Header.Set("Connection", "Upgrade")
	}
	c.limitEncodings()
	c.inject()
	return c.checkLeaks()
}

// isTrace reports whether a header tells on which way a request came: the addresses inside
// are nobody's business.
func isTrace(name string) bool {
	switch name {
	case "Via", "Forwarded", "Referer", "X-Real-Ip", "Http2-Settings", "Proxy-Authorization":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded")
}

// dropNamed removes the headers that Connection names, as a proxy must, but none on which
// depends what the call means: else a caller could take it away after it was looked at.
func (c *call) dropNamed() {
	h := c.req.Header
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.TrimString(name); name != "" && !c.isProtected(name) {
				h.Del(name)
			}
		}
	}
	h.Del("Connection")
}

// isProtected reports whether a header stays although Connection names it.
func (c *call) isProtected(name string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Authorization", "Cookie", "Host", "Expect", "Upgrade", "Te", "Idempotency-Key", "X-Idempotency-Key", c.up.IdempotencyHeader, c.snap.TenantHeader:
		return true
	}
	if slices.Contains(keyHeaders, name) {
		return true
	}
	for _, s := range c.up.slots {
		if s.In == InHeader && strings.EqualFold(s.Name, name) {
			return true
		}
	}
	return isOutlay(name) || strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "If-")
}

// limitEncodings keeps the provider from answering in an encoding that we cannot read,
// where the answer is read.
func (c *call) limitEncodings() {
	accepted := c.req.Header["Accept-Encoding"]
	if !c.up.decodes || len(accepted) == 0 {
		return
	}
	gzip, star := "", false
	for _, v := range accepted {
		for part := range strings.SplitSeq(v, ",") {
			name, q, _ := strings.Cut(part, ";")
			switch name = strings.ToLower(strings.TrimSpace(name)); {
			case name == "*":
				star = !isNone(q)
			case name == "gzip" && isNone(q):
				gzip = "identity"
			case name == "gzip":
				gzip = "gzip"
			}
		}
	}
	if gzip == "" && star {
		gzip = "gzip"
	}
	c.req.Header.Set("Accept-Encoding", cmp.Or(gzip, "identity"))
}

// isNone reports whether a weight (RFC 9110, section 12.4.2) says: not this one.
func isNone(weight string) bool {
	name, q, _ := strings.Cut(weight, "=")
	f, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
	return strings.EqualFold(strings.TrimSpace(name), "q") && err == nil && f == 0
}

package gateway

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkForm refuses what is no request to us: tunnels, and URLs of other hosts.
func (c *call) checkForm() *refusal {
	r := c.in
	switch {
	case r.Method == http.MethodConnect:
		return &refusal{
			status: http.StatusMethodNotAllowed, reason: "connect_refused", allow: usualMethods,
			text: "this is no proxy: what goes through a tunnel cannot be metered. A program has HTTPS_PROXY set to this gateway; " +
				"set the base URL of its SDK instead, as in http://" + c.ourName() + "/twilio, and NO_PROXY=" + hostOnly(c.ourName()),
		}
	case r.Method == http.MethodTrace:
		return &refusal{
			status: http.StatusMethodNotAllowed, reason: "bad_request", allow: usualMethods,
			text: "TRACE would send our key back to the caller",
		}
	case r.URL.Host != "" && !c.isOurs(r.URL.Host):
		return &refusal{
			status: http.StatusForbidden, reason: "not_a_proxy",
			text: "this is no proxy: write the provider into the path, as in http://" + c.ourName() + "/twilio/…, and take this gateway out of HTTP_PROXY",
		}
	case r.URL.Opaque != "", !strings.HasPrefix(r.URL.Path, "/"):
		return badPath("the path must begin with a slash")
	}
	return nil
}

const usualMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// isOurs reports whether a URL's host is a name of this gateway. An address is ours only if
// the connection came in by it.
func (c *call) isOurs(host string) bool {
	name := hostOnly(host)
	if c.snap.hosts[name] {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	local, ok := c.in.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if err != nil || !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap() == ip.Unmap()
}

// ourName is an address under which the gateway can be called.
func (c *call) ourName() string {
	if local, ok := c.in.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return local.String()
	}
	return "localhost"
}

// hostOnly lower-cases a host and cuts its port and final dot.
func hostOnly(host string) string {
	host = strings.ToLower((&url.URL{Host: host}).Hostname())
	return strings.TrimSuffix(host, ".")
}

// checkHost refuses names that nobody gave us: a web page can make a browser send requests
// to this machine under a name of its own. A bare address cannot be such a name.
func (c *call) checkHost() *refusal {
	name := hostOnly(c.in.Host)
	if c.snap.hosts[name] {
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	return &refusal{
		status: http.StatusMisdirectedRequest, reason: "unknown_host",
		text: "this gateway is not known under that host name; call it by its address or localhost, or add the name to its configuration",
	}
}

// checkBrowser refuses what browsers send for web pages: our key would pay for it.
func (c *call) checkBrowser() *refusal {
	h := c.in.Header
	foreign := func(v string) bool { return v != "none" } // typed by the user
	if len(h["Origin"]) == 0 && !slices.ContainsFunc(h["Referer"], c.isElsewhere) && !slices.ContainsFunc(h["Sec-Fetch-Site"], foreign) {
		return nil
	}
	return &refusal{
		status: http.StatusForbidden, reason: "browser_request",
		text: "requests from web pages are refused (Origin, Referer, Sec-Fetch-Site): any page could spend money; a program leaves these headers out",
	}
}

// isElsewhere reports whether a Referer is not a URL of this gateway. That comes from programs
// that follow a redirect, as those in Go say where they were sent from: there is no page here.
func (c *call) isElsewhere(referer string) bool {
	u, err := url.Parse(referer)
	return err != nil || u.Host == "" || !strings.EqualFold(u.Host, c.in.Host)
}

// find finds the provider, by listener or by the first segment of the path, which is cut.
func (c *call) find() *refusal {
	c.rawQuery = c.in.URL.RawQuery
	c.escaped = c.in.URL.EscapedPath()
	if name := c.listener.Provider; name != "" {
		c.up = c.snap.byName[name]
	} else {
		first, rest, _ := strings.Cut(strings.TrimPrefix(c.escaped, "/"), "/")
		if c.up = c.snap.byPath[first]; c.up != nil {
			c.escaped = "/" + rest
		}
	}
	if c.up != nil {
		c.w.boundEach(c.up.Timeouts.ClientWrite)
		return nil
	}
	if refused := c.identify(); refused != nil {
		return refused
	}
	text := "no provider is at this path"
	if c.listener.Provider == "" {
		text += "; there are: /" + strings.Join(slices.Sorted(maps.Keys(c.snap.byPath)), ", /")
	}
	return &refusal{status: http.StatusNotFound, reason: "no_such_provider", text: text + c.g.outdatedHint()}
}

func badPath(text string) *refusal {
	return &refusal{status: http.StatusBadRequest, reason: "bad_path", text: text}
}

// checkPath refuses paths that the provider may read otherwise than we do: what was priced
// must be what is done.
func (c *call) checkPath() *refusal {
	path, err := url.PathUnescape(c.escaped)
	if err != nil {
		return badPath("the path is not encoded well")
	}
	switch {
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return badPath("the path has control characters")
	case strings.Contains(path, `\`):
		return badPath("the path has a backslash")
	case hasDots(path):
		return badPath("the path has segments of dots")
	case !c.up.strict:
		return nil
	case !utf8.ValidString(path):
		return badPath("the path is not UTF-8")
	case strings.Contains(c.escaped, "//"):
		return badPath("the path has empty segments")
	case strings.Contains(c.escaped, "%") && hidesSyntax(strings.ToLower(c.escaped)):
		return badPath("the path has an encoded slash, percent, question mark or hash")
	}
	return nil
}

// hasDots reports whether a segment means this folder or the one above, also for servers
// that cut what follows a semicolon, and those that decode twice.
func hasDots(path string) bool {
	if !strings.Contains(path, ".") && !strings.Contains(path, "%") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		segment, _, _ = strings.Cut(segment, ";")
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".", "..":
			return true
		}
	}
	return false
}

// hidesSyntax reports whether a lower-case path has characters encoded that would mean
// something if they were not.
func hidesSyntax(escaped string) bool {
	return strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%25") || strings.Contains(escaped, "%3f") || strings.Contains(escaped, "%23")
}

// checkQuery refuses queries in which the provider may find another value than we do.
func (c *call) checkQuery() *refusal {
	if c.rawQuery == "" || !c.up.strict && c.up.Credential.Slot.In == InNone {
		return nil
	}
	q, err := url.ParseQuery(c.rawQuery)
	if err != nil {
		return &refusal{status: http.StatusBadRequest, reason: "bad_request", text: "the query is not encoded well: pairs are joined by &, and a semicolon is written %3B"}
	}
	for _, name := range c.up.QueryKeys {
		n := 0
		for key, values := range q {
			if strings.EqualFold(key, name) {
				n += len(values)
			}
		}
		if n > 1 {
			return &refusal{status: http.StatusBadRequest, reason: "bad_request", text: "the query parameter " + name + " decides what the call costs, and stands there more than once"}
		}
	}
	return nil
}

// overrides are headers by which some servers take a request for one of another method.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// checkHeader refuses headers that make of a request another one than was priced.
func (c *call) checkHeader() *refusal {
	for _, name := range c.up.HeaderKeys {
		if len(c.in.Header.Values(name)) > 1 {
			return badHeader(http.CanonicalHeaderKey(name) + " decides by which limit the call is counted, and stands there more than once")
		}
	}
	if !c.up.strict {
		return nil
	}
	for _, name := range overrides {
		if len(c.in.Header[name]) > 0 {
			return badHeader(name + " would make the call another one than is priced")
		}
	}
	for name := range c.in.Header {
		if strings.Contains(name, "_") && !c.mayUnderscore(name) {
			return badHeader(strings.ToValidUTF8(name, "?") + " is another spelling of a header on which depends what the call means")
		}
	}
	if len(c.in.Header["Content-Type"]) > 1 {
		return badHeader("Content-Type stands there more than once")
	}
	return nil
}

// mayUnderscore reports whether a header means nothing to servers that take underscores for
// dashes, as those behind CGI do.
func (c *call) mayUnderscore(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return !slices.Contains(overrides, name) && !strings.HasPrefix(name, "Content-") && name != "Transfer-Encoding"
}

// checkRoute refuses paths that the configuration does not allow.
func (c *call) checkRoute() *refusal {
	if c.up.routes == nil {
		return nil
	}
	path, _ := url.PathUnescape(c.escaped) // checked before
	h, pattern := c.up.routes.Handler(&http.Request{Method: c.in.Method, URL: &url.URL{Path: path, RawPath: c.escaped}})
	if _, ok := h.(allowed); !ok {
		return &refusal{status: http.StatusNotFound, reason: "no_such_route", text: c.up.Name + ": this path is not among the routes of the configuration" + c.g.outdatedHint()}
	}
	c.route = pattern
	return nil
}

// checkUpgrade refuses to leave HTTP. Offers to do so that need not be taken, such as h2c,
// are dropped.
func (c *call) checkUpgrade() *refusal {
	if c.up.Upgrades || !strings.EqualFold(c.in.Header.Get("Upgrade"), "websocket") {
		return nil
	}
	return &refusal{
		status: http.StatusPaymentRequired, reason: "upgrade_refused",
		text: c.up.Name + ": nobody can say what is sent and billed over a websocket",
	}
}

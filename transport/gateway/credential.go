package gateway

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// keyHeaders are the headers in which vendors' keys stand, beside Authorization.
var keyHeaders = []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// unfitHeader says why a header can hold neither a key nor what tells scopes apart, or
// nothing. net/http and the gateway write these themselves, or the next hop removes them.
func unfitHeader(name string) string {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Expect":
		return "it says where the request goes and where it ends"
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Upgrade", "Proxy-Authorization", "Proxy-Authenticate", "Http2-Settings":
		return "it is for the next hop alone"
	}
	return ""
}

// unfitSlot is unfitHeader for a key, which must not be taken for something else either.
func unfitSlot(name string) string {
	switch name = http.CanonicalHeaderKey(name); {
	case unfitHeader(name) != "":
		return unfitHeader(name)
	case isOutlay(name):
		return "it is a header of the gateway"
	case isTrace(name):
		return "it tells where a call came from"
	case strings.HasPrefix(name, "Content-"), strings.HasPrefix(name, "Accept"), strings.HasPrefix(name, "If-"), strings.HasPrefix(name, "Sec-"),
		slices.Contains([]string{"Origin", "Referer", "Range", "Date", "Idempotency-Key", "X-Idempotency-Key"}, name), slices.Contains(overrides, name):
		return "it means something else to the vendor"
	}
	return ""
}

// keyParams are the query parameters in which they stand.
var keyParams = []string{"key", "api_key", "apikey", "api_secret", "access_token"}

// tokenInSlots looks for the token of a caller in the places of the vendor's key.
func (c *call) tokenInSlots() (*Caller, string) {
	if len(c.snap.Callers) == 0 {
		return nil, ""
	}
	for _, v := range c.slotValues() {
		if caller := c.snap.byToken(v); caller != nil {
			return caller, v
		}
	}
	return nil, ""
}

// slotValues are what stands in the places of the vendor's key.
func (c *call) slotValues() (all []string) {
	h := c.in.Header
	all = make([]string, 0, 4)
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for _, v := range h[name] {
			all = append(all, inAuthorization(v)...)
		}
	}
	for _, name := range keyHeaders {
		all = append(all, h[name]...)
	}
	if c.up != nil {
		for _, s := range c.up.slots {
			if s.In == InHeader {
				for _, v := range h.Values(s.Name) {
					all = append(all, inAuthorization(v)...)
				}
			}
		}
	}
	if c.rawQuery == "" {
		return all
	}
	for pair := range strings.SplitSeq(c.rawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if c.isKeyParam(name) {
			value, _ = url.QueryUnescape(value) // what is not encoded well is no token
			all = append(all, value)
		}
	}
	return all
}

// inAuthorization returns what may be a token in a value such as "Bearer x", "token x",
// "AccessKey x", "Basic base64(x:x)", or in the whole value.
func inAuthorization(v string) []string {
	scheme, rest, both := strings.Cut(v, " ")
	if !both {
		return []string{v}
	}
	if strings.EqualFold(scheme, "Basic") {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": {v}}}).BasicAuth()
		return []string{user, password}
	}
	return []string{strings.TrimSpace(rest)}
}

// isKeyParam reports whether a query parameter, as it stands in the query, is a place of
// the vendor's key.
func (c *call) isKeyParam(rawName string) bool {
	name, err := url.QueryUnescape(rawName)
	if err != nil {
		return false
	}
	same := func(s string) bool { return strings.EqualFold(s, name) }
	if slices.ContainsFunc(keyParams, same) {
		return true
	}
	return c.up != nil && slices.ContainsFunc(c.up.slots, func(s Slot) bool { return s.In == InQuery && same(s.Name) })
}

// inject empties all places of the vendor's key and puts the real one into its own. Without
// a credential the program's key passes.
func (c *call) inject() {
	cred, h, u := &c.up.Credential, c.req.Header, c.req.URL
	if cred.Slot.In == InNone {
		return
	}
	for _, name := range append([]string{"Authorization", "Cookie"}, keyHeaders...) {
		h.Del(name)
	}
	for _, s := range c.up.Slots {
		if s.In == InHeader {
			h.Del(s.Name)
		}
	}
	u.RawQuery = c.withoutKeys(u.RawQuery)
	secret := cred.Secret()
	switch cred.Slot.In {
	case InBearer:
		h.Set("Authorization", "Bearer "+secret)
	case InBasic:
		c.req.SetBasicAuth(cred.User, secret)
	case InHeader:
		h.Set(cred.Slot.Name, secret)
	case InQuery:
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += url.QueryEscape(cred.Slot.Name) + "=" + url.QueryEscape(secret)
	}
}

// withoutKeys cuts the places of the vendor's key out of a query and leaves the rest as it
// is.
func (c *call) withoutKeys(rawQuery string) string {
	if rawQuery == "" {
		return ""
	}
	kept := make([]string, 0, 8)
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if name, _, _ := strings.Cut(pair, "="); !c.isKeyParam(name) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// maskedQuery is the query as people may see it.
func (c *call) maskedQuery() string {
	if c.rawQuery == "" {
		return ""
	}
	var all []string
	for pair := range strings.SplitSeq(c.rawQuery, "&") {
		if name, _, _ := strings.Cut(pair, "="); c.isKeyParam(name) {
			pair = name + "=(secret)"
		}
		all = append(all, pair)
	}
	return strings.Join(all, "&")
}

// checkLeaks refuses a call in which the token of a caller is about to reach the vendor: one
// that stands in a second place, or in one where nobody looks for it.
func (c *call) checkLeaks() *refusal {
	if len(c.snap.Callers) == 0 || !c.leaks() {
		return nil
	}
	return &refusal{
		status: http.StatusBadRequest, reason: "bad_request",
		text: "the token of a caller stands where it would reach the vendor; send it in Outlay-Token alone, or in place of the vendor's key",
	}
}

func (c *call) leaks() bool {
	u := c.req.URL
	query, _ := url.QueryUnescape(u.RawQuery) // what is not encoded well is found as it is
	if slices.ContainsFunc([]string{u.Path, u.RawQuery, query}, c.holdsToken) {
		return true
	}
	for _, values := range c.req.Header {
		for _, v := range values {
			if c.holdsToken(v) || strings.HasPrefix(strings.ToLower(v), "basic ") && slices.ContainsFunc(inAuthorization(v), c.holdsToken) {
				return true
			}
		}
	}
	return false
}

// holdsToken reports whether the token of this caller is in the text, or that of another
// one as a word of it. Few words can be a token, so that little is hashed.
func (c *call) holdsToken(text string) bool {
	if c.token != "" && strings.Contains(text, c.token) {
		return true
	}
	for len(text) >= minToken {
		end := 0
		for end < len(text) && isTokenByte(text[end]) {
			end++
		}
		if end >= minToken && c.snap.byToken(text[:end]) != nil {
			return true
		}
		text = text[min(end+1, len(text)):]
	}
	return false
}

// holdsTokenIn is holdsToken for a body, of which no copy is made.
func (c *call) holdsTokenIn(body []byte) bool {
	if c.token != "" && bytes.Contains(body, []byte(c.token)) {
		return true
	}
	for begin, i := 0, 0; i <= len(body); i++ {
		if i < len(body) && isTokenByte(body[i]) {
			continue
		}
		if n := i - begin; n >= minToken && n <= maxToken && c.snap.byToken(string(body[begin:i])) != nil {
			return true
		}
		begin = i + 1
	}
	return false
}

func isTokenByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '.' || b == '-' || b == '_'
}

// A token has 16 to 256 letters, digits, dots, dashes and underscores.
const minToken, maxToken = 16, 256

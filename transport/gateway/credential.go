package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// keyHeaders are the headers in which vendors' keys stand, beside Authorization.
var keyHeaders = []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

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
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for _, v := range h[name] {
			all = append(all, inAuthorization(v)...)
		}
	}
	for _, name := range keyHeaders {
		all = append(all, h[name]...)
	}
	if c.up != nil {
		for _, s := range c.up.ownSlots() {
			if s.In == InHeader {
				for _, v := range h.Values(s.Name) {
					all = append(all, inAuthorization(v)...)
				}
			}
		}
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

// ownSlots are those of the configuration.
func (u *upstream) ownSlots() []Slot { return append(slices.Clip(u.Slots), u.Credential.Slot) }

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
	return c.up != nil && slices.ContainsFunc(c.up.ownSlots(), func(s Slot) bool { return s.In == InQuery && same(s.Name) })
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

// checkLeaks refuses a call in which the caller's token is still somewhere: a program that
// puts it into two places would show it to the vendor.
func (c *call) checkLeaks() *refusal {
	if c.token == "" {
		return nil
	}
	query, _ := url.QueryUnescape(c.req.URL.RawQuery) // what is not encoded well is found as it is
	found := strings.Contains(query, c.token) || strings.Contains(c.req.URL.RawQuery, c.token) || strings.Contains(c.req.URL.Path, c.token)
	for name, values := range c.req.Header {
		found = found || strings.Contains(name, c.token)
		for _, v := range values {
			found = found || strings.Contains(v, c.token) || slices.Contains(inAuthorization(v), c.token)
		}
	}
	if !found {
		return nil
	}
	return &refusal{status: http.StatusBadRequest, reason: "bad_request", text: "the caller's token stands in a second place, from which it would reach the vendor"}
}

package gateway

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// localName is the caller that has no token.
const localName = "local"

// addCallers checks and keeps the callers.
func (s *snapshot) addCallers(k *checker) {
	s.local = &Caller{Name: localName}
	for i := range s.Callers {
		c := &s.Callers[i]
		at := fmt.Sprintf("Callers[%d]", i)
		if c.Name == "" {
			k.addf(at+".Name", "empty: a name is required")
		}
		if s.callers[c.Name] != nil {
			k.addf(at+".Name", "%q is taken", c.Name)
		}
		s.callers[c.Name] = c
		if c.Name == localName {
			s.local = c
		}
		for j, p := range c.Providers {
			if s.byName[p] == nil {
				k.addf(fmt.Sprintf("%s.Providers[%d]", at, j), "there is no provider %q", p)
			}
		}
		for j, m := range c.MaySet {
			if m != "tenant" && m != "priority" && m != "max_wait" {
				k.addf(fmt.Sprintf("%s.MaySet[%d]", at, j), "%q: must be tenant, priority or max_wait", m)
			}
		}
		for j := range i {
			if c.TokenSHA256 != [sha256.Size]byte{} && c.TokenSHA256 == s.Callers[j].TokenSHA256 {
				k.addf(at+".TokenSHA256", "is that of caller %q as well", s.Callers[j].Name)
			}
		}
	}
}

// byToken returns the caller with the token, or nil. How long it takes does not depend on
// the token.
func (s *snapshot) byToken(token string) (found *Caller) {
	if len(token) < minToken || len(token) > maxToken {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	for i := range s.Callers {
		c := &s.Callers[i]
		if subtle.ConstantTimeCompare(c.TokenSHA256[:], sum[:]) == 1 {
			found = c
		}
	}
	return found
}

// identify finds out whose call it is: by the token in Outlay-Token, else in one of the
// slots of the vendor's key where the gateway has a key of its own to put there.
func (c *call) identify() *refusal {
	caller, token, shown := c.snap.local, "", false
	if given := c.in.Header.Values("Outlay-Token"); len(given) > 0 {
		if caller = c.snap.byToken(given[0]); caller == nil || len(given) > 1 {
			return c.unknownCaller("Outlay-Token holds no token of this gateway")
		}
		token, shown = given[0], true
	}
	known, inSlot := c.tokenInSlots()
	ours := c.up == nil || c.up.Credential.Slot.In != InNone
	switch {
	case known != nil && !ours:
		// The key of the program goes to the vendor as it is: this one must not.
		return &refusal{
			status: http.StatusBadRequest, reason: "bad_request",
			text: c.up.Name + ": the token of a caller stands in place of the vendor's key, and the gateway has no key of its own for this provider; send the token in Outlay-Token",
		}
	case known != nil && !shown:
		caller, token, shown = known, inSlot, true
	}
	if !shown && c.listener.Token {
		return c.noToken(ours)
	}
	c.who.caller, c.caller, c.token = caller.Name, caller, token
	if c.up != nil && len(caller.Providers) > 0 && !slices.Contains(caller.Providers, c.up.Name) {
		return &refusal{
			status: http.StatusForbidden, reason: "caller_forbidden",
			text: fmt.Sprintf("caller %s may not use provider %s", caller.Name, c.up.Name),
		}
	}
	return nil
}

// noToken tells who shows a key that is no token from who shows none. Without a key of ours
// the key that stands there is the vendor's.
func (c *call) noToken(ours bool) *refusal {
	switch {
	case !ours:
		return c.unknownCaller("a token of this gateway is needed, in Outlay-Token")
	case slices.ContainsFunc(c.slotValues(), func(v string) bool { return v != "" }):
		return c.unknownCaller("the key that was sent is no token of this gateway, and one is needed, in Outlay-Token or in place of the vendor's key")
	}
	return c.unknownCaller("a token of this gateway is needed, in Outlay-Token or in place of the vendor's key, and there is none")
}

// unknownCaller asks for a token in the scheme that the program knows.
func (c *call) unknownCaller(text string) *refusal {
	scheme := `Bearer realm="outlay"`
	if strings.HasPrefix(strings.ToLower(c.in.Header.Get("Authorization")), "basic ") {
		scheme = `Basic realm="outlay"`
	}
	return &refusal{status: http.StatusUnauthorized, reason: "caller_unknown", text: text, authenticate: scheme}
}

// settings reads what the request says of its tenant, its priority and its patience, as
// far as its caller may say so.
func (c *call) settings() *refusal {
	c.priority = c.caller.Priority
	if refused := c.setTenant(); refused != nil {
		return refused
	}
	for _, name := range []string{"Outlay-Priority", "Outlay-Max-Wait"} {
		if len(c.in.Header[name]) > 1 {
			return badHeader(name + " stands there more than once")
		}
	}
	if v := c.in.Header.Get("Outlay-Priority"); v != "" {
		if refused := c.mayNotSet("priority", "Outlay-Priority"); refused != nil {
			return refused
		}
		i := slices.Index([]string{"normal", "critical", "bulk"}, strings.ToLower(v))
		if i < 0 {
			return badHeader("Outlay-Priority must be critical, normal or bulk")
		}
		c.priority = throttle.Priority(i)
	}
	return c.setMaxWait()
}

func badHeader(text string) *refusal {
	return &refusal{status: http.StatusBadRequest, reason: "bad_request", text: text}
}

// maxTenant is the longest name of a tenant, in bytes.
const maxTenant = 100

// setTenant: a caller whose tenant is fixed may name it, and no other.
func (c *call) setTenant() *refusal {
	given := c.in.Header.Values(c.snap.TenantHeader)
	c.who.tenant = c.caller.Tenant
	switch {
	case len(given) > 1:
		return badHeader(c.snap.TenantHeader + " stands there more than once")
	case len(given) == 1 && len(given[0]) > maxTenant:
		return badHeader(c.snap.TenantHeader + " is too long for a name")
	case len(given) == 1 && given[0] != "" && given[0] != c.caller.Tenant:
		if refused := c.mayNotSet("tenant", c.snap.TenantHeader); refused != nil {
			return refused
		}
		c.who.tenant = given[0]
	}
	if c.who.tenant == "" {
		c.who.tenant = c.snap.DefaultTenant
	}
	return nil
}

func (c *call) mayNotSet(what, header string) *refusal {
	if slices.Contains(c.caller.MaySet, what) {
		return nil
	}
	return &refusal{
		status: http.StatusForbidden, reason: "caller_forbidden",
		text: fmt.Sprintf("caller %s may not set %s; leave it out, or add %s to its may_set", c.caller.Name, header, what),
	}
}

// setMaxWait lowers how long the call may wait. An SDK that tells its timeout is answered
// before that ends: else it would leave while it queues.
func (c *call) setMaxWait() *refusal {
	c.wait = cmp.Or(c.up.MaxWait, c.snap.MaxWait)
	if v := c.in.Header.Get("Outlay-Max-Wait"); v != "" {
		if refused := c.mayNotSet("max_wait", "Outlay-Max-Wait"); refused != nil {
			return refused
		}
		d, ok := seconds(v)
		if !ok {
			return badHeader("Outlay-Max-Wait must be a duration such as 5s, or a number of seconds")
		}
		c.waitAtMost(d)
	}
	if d, ok := seconds(c.in.Header.Get("X-Stainless-Timeout")); ok && d > 0 {
		c.waitAtMost(d - d/5)
	}
	if d, ok := preferredWait(c.in.Header.Values("Prefer")); ok {
		c.waitAtMost(d)
	}
	return nil
}

// waitAtMost lets the call wait for d at the most, if that is less than it may anyway.
func (c *call) waitAtMost(d time.Duration) {
	if c.wait == transport.NoWait || d >= c.wait {
		return
	}
	if c.wait = d; d <= 0 {
		c.wait = transport.NoWait
	}
	c.req = c.req.WithContext(transport.WithMaxWait(c.req.Context(), c.wait))
}

// seconds reads "5s", "5" or "5.5".
func seconds(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return max(0, d), d >= 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) || f > math.MaxInt32 {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}

// preferredWait reads "wait=N" (RFC 7240, section 4.3).
func preferredWait(values []string) (time.Duration, bool) {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			part, _, _ = strings.Cut(part, ";")
			name, n, _ := strings.Cut(part, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			if s, err := strconv.ParseUint(strings.Trim(n, ` "`), 10, 31); err == nil {
				return time.Duration(s) * time.Second, true
			}
		}
	}
	return 0, false
}

// isOutlay reports whether a header is for us and never for a vendor.
func isOutlay(name string) bool {
	return strings.HasPrefix(http.CanonicalHeaderKey(name), "Outlay-")
}

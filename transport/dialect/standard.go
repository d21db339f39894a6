package dialect

import (
	"net/http"
	"slices"
	"strings"
)

// Standard reads what the standards and common practice say, for providers that nobody
// has described: Retry-After and its variants in milliseconds, the X-RateLimit-*,
// X-Rate-Limit-* and RateLimit-* families, the RateLimit field of the IETF draft in all
// its shapes, and problem documents (RFC 9457). The zero value is ready.
//
// 429 is a throttle, and so is 503 with a usable Retry-After; 402 is a wall. Other
// statuses are no limit, whatever their bodies say. Retry-After beside an error that is
// no throttle is told as well; it concerns that call alone. Beside a good answer it
// means something else and is not read.
//
// A wait that is zero, or an instant that has passed, is a hint of 0. A wait above 400
// days is no hint, but one that overflows (2^31 seconds or more, RFC 9111 section 1.2.2)
// saturates at 400 days, so that whoever sends it is left alone.
type Standard struct {
	// Reset says what a bare number in a reset header is. Zero: [Auto].
	Reset Form
}

// WantsBody reports whether the answer is a problem document.
func (s Standard) WantsBody(status int, h http.Header) bool {
	return status >= 400 && isType(h, "application/problem+json")
}

// isType reports whether the media type begins with mime, in whatever case.
func isType(h http.Header, mime string) bool {
	t := trim(first(h, "Content-Type"))
	return len(t) >= len(mime) && strings.EqualFold(t[:len(mime)], mime)
}

// Read reads status, headers and a problem document.
func (s Standard) Read(a Answer) (r Reading) {
	c := &clock{h: a.Header, now: a.Now}
	r.status(c, a.Status, nil, nil)
	r.standardWindows(c, s.Reset, a.Status >= 400)
	if len(a.Body) > 0 {
		r.problem(a.Body)
	}
	r.finish(c, rejected(a.Status))
	return r
}

// status reads what the status says, and the hint beside an error. A vendor may have
// further headers to hint with and statuses that mean a limit.
func (r *Reading) status(c *clock, status int, hints []hint, limits []int) {
	if status < 400 {
		return
	}
	r.RetryAfter, r.Hinted = c.retryAfter(hints)
	r.Final = isFalse(c.h, "X-Should-Retry") || isFalse(c.h, "Stripe-Should-Retry")
	switch {
	case status == http.StatusTooManyRequests || slices.Contains(limits, status):
		r.throttle("status")
	case status == http.StatusServiceUnavailable && r.RetryAfter > 0:
		r.throttle("headers")
	case status == http.StatusPaymentRequired:
		r.wall("balance", "status")
	}
}

func isFalse(h http.Header, key string) bool { return strings.EqualFold(trim(first(h, key)), "false") }

// standardWindows reads the headers that everybody may use. Servers tell the same limit
// under several names, old and new; those of a good answer are read up to the first that
// is there, those of a refusal all, since one of them is the reason.
func (r *Reading) standardWindows(c *clock, form Form, refused bool) {
	for i := range families {
		families[i].read(r, c, form, refused)
		if i == 0 && (refused || r.Window.Known == 0) {
			r.ietf(c)
		}
		if !refused && r.Window.Known != 0 {
			return
		}
	}
}

// throttle says that a limit refused the call which time heals.
func (r *Reading) throttle(source string) {
	if r.Wall {
		r.Wall, r.Policy, r.Scope = false, "", ""
	}
	if !r.Throttled {
		r.Throttled, r.Source = true, source
	}
}

// quota says that a quota is used up, and nobody tells until when.
func (r *Reading) quota(policy, source string) {
	r.throttle(source)
	r.Wall, r.Policy = true, policy
}

// wall says that waiting does not help. A balance is everybody's.
func (r *Reading) wall(policy, source string) {
	r.Throttled, r.Wall, r.Policy, r.Source = false, true, policy, source
	r.RetryAfter, r.Hinted = 0, false
	if policy == "balance" {
		r.Scope = Whole
	}
}

// finish picks the limit that binds. Limits told by a cache were true when it stored the
// answer, and what the answer to a rejected credential says about limits is true of
// nobody: both are dropped.
func (r *Reading) finish(c *clock, rejected bool) {
	if r.Window.Known == 0 {
		return
	}
	if rejected && !r.Throttled || c.cached() {
		r.Window, r.Windows = Window{}, nil
		return
	}
	r.bind()
	if r.Policy == "" {
		r.Policy = r.Window.Name
	}
}

func rejected(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// problem reads the problem types of the RateLimit draft.
func (r *Reading) problem(body []byte) {
	var policies []string
	limit := false
	for path, v := range leaves(body) {
		switch string(path) {
		case "type":
			limit = v.endsIn("quota-exceeded") || v.endsIn("temporary-reduced-capacity") || v.endsIn("abnormal-usage-detected")
		case "violated-policies[]":
			if p := word(v.text()); p != "" && len(policies) < maxWindows {
				policies = append(policies, p)
			}
		}
	}
	if limit {
		r.throttle("body")
		r.Policy = strings.Join(policies, ",")
	}
}

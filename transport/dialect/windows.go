package dialect

import (
	"slices"
	"strings"
)

// family is the header names of one limit, in canonical form. Empty: no such header.
type family struct {
	// name is the vendor's name for the limit, if it has several.
	name                    string
	limit, remaining, reset string
	// policy is a header with the policies of the IETF draft.
	policy string
	// after is a header with the seconds to the reset, asked for where reset is absent.
	after string
	// unit is what is counted; see [Window].
	unit string
}

// families are the names that everybody may use.
var families = [...]family{
	{limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset", after: "X-Ratelimit-Reset-After"},
	{limit: "Ratelimit-Limit", remaining: "Ratelimit-Remaining", reset: "Ratelimit-Reset", policy: "Ratelimit-Policy"},
	{limit: "X-Rate-Limit-Limit", remaining: "X-Rate-Limit-Remaining", reset: "X-Rate-Limit-Reset"},
}

// read adds one limit. A reset alone says something only beside a refusal.
func (f *family) read(r *Reading, c *clock, form Form, refused bool) {
	limit, remaining := c.h[f.limit], c.h[f.remaining]
	if len(limit) == 0 && len(remaining) == 0 && !refused {
		return
	}
	w := Window{Name: f.name, Unit: f.unit}
	if len(limit) > 0 {
		w.setLimit(limit[0])
	}
	if len(remaining) > 0 {
		w.setRemaining(remaining[0])
	}
	if reset := c.h[f.reset]; len(reset) > 0 {
		w.setReset(c, reset[0], form)
	} else if f.after != "" {
		w.setReset(c, first(c.h, f.after), DeltaSeconds)
	}
	if w.Name == "" && len(limit) > 0 {
		w.Name = f.policyName(c, limit[0], &w)
	}
	r.add(&w)
}

// policyName finds the policy of the limit, which revision -03 of the IETF draft tells
// behind it ("100, 100;w=60") and -04 to -06 in a header.
func (f *family) policyName(c *clock, limit string, w *Window) string {
	if i := strings.IndexByte(limit, ','); i > 0 {
		return quotaPolicy([]string{limit[i+1:]}, w)
	}
	if f.policy != "" {
		return quotaPolicy(c.h[f.policy], w)
	}
	return ""
}

func (w *Window) setLimit(s string) {
	if n, ok := parseCount(s); ok {
		w.Limit, w.Known = n, w.Known|HasLimit
	}
}

func (w *Window) setRemaining(s string) {
	if n, ok := parseCount(s); ok {
		w.Remaining, w.Known = n, w.Known|HasRemaining
	}
}

func (w *Window) setReset(c *clock, s string, form Form) {
	if s == "" {
		return
	}
	d, ok := c.wait(s, form)
	if !ok { // proxies join lines with commas; what has one of its own was read above
		s, _, _ = strings.Cut(s, ",")
		d, ok = c.wait(s, form)
	}
	if ok {
		w.Reset, w.Known = d, w.Known|HasReset
	}
}

// setUsed reads a pair such as "32/40": used, then the limit.
func (w *Window) setUsed(used, limit string) {
	u, ok := parseCount(used)
	l, ok2 := parseCount(limit)
	if ok && ok2 {
		w.Limit, w.Remaining, w.Known = l, max(l-u, 0), w.Known|HasLimit|HasRemaining
	}
}

// maxWindows bounds the limits of one answer; no vendor tells nearly as many.
const maxWindows = 32

// add takes in one more limit. The same numbers under a second family of names are the
// same limit.
func (r *Reading) add(w *Window) {
	switch {
	case w.Known == 0 || len(r.Windows) == maxWindows:
	case w.Known == HasReset && r.Window.Known != 0: // part of a limit that has been told
	case r.Window.Known == 0:
		r.Window = *w
	case r.Windows == nil && w.Name == r.Window.Name && sameCounts(w, &r.Window):
		r.Window.Known |= w.Known
		r.Window.Reset = max(r.Window.Reset, w.Reset)
	default:
		if r.Windows == nil {
			r.Windows = append(make([]Window, 0, 4), r.Window)
		}
		r.Windows = append(r.Windows, *w)
	}
}

func sameCounts(a, b *Window) bool {
	const counts = HasLimit | HasRemaining
	return a.Limit == b.Limit && a.Remaining == b.Remaining && a.Known&counts == b.Known&counts
}

// bind makes the limit that binds the Window: the exhausted one, and of several
// exhausted ones the one that lasts longest.
func (r *Reading) bind() {
	for _, w := range r.Windows {
		if w.Exhausted() && (!r.Window.Exhausted() || w.Reset > r.Window.Reset) {
			r.Window = w
		}
	}
}

// The families one by one, for vendors that are known to use just one.
var (
	xRateLimit    = families[0:1]
	rateLimit     = families[1:2]
	xRateLimitAlt = families[2:3]
)

// naming is how a vendor makes up header names: the name of the limit stands between
// the prefix and "-Limit" or, if last, behind "Limit-".
type naming struct {
	prefix string
	last   bool
}

// named reads the limits that have names beside those of the families given, in the
// order of their names.
func (r *Reading) named(c *clock, n naming, form Form, but []family) {
	var names []string
	for key := range c.h {
		name := n.cut(key)
		isNamed := func(f family) bool { return strings.EqualFold(f.name, name) }
		if name != "" && len(names) < maxWindows && !slices.Contains(names, name) && !slices.ContainsFunc(but, isNamed) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f := n.family(name)
		f.read(r, c, form, false)
	}
}

func (n naming) family(name string) family {
	key := func(part string) string {
		if n.last {
			return n.prefix + part + "-" + name
		}
		return n.prefix + name + "-" + part
	}
	return family{name: word(lowerASCII(name)), unit: unitOfLimit(name), limit: key("Limit"), remaining: key("Remaining"), reset: key("Reset")}
}

// cut cuts the name of the limit out of a header's name.
func (n naming) cut(key string) string {
	name, ok := strings.CutPrefix(key, n.prefix)
	if !ok {
		return ""
	}
	for _, part := range [...]string{"Limit", "Remaining"} {
		if limit, ok := strings.CutPrefix(name, part+"-"); ok && n.last {
			return limit
		}
		if limit, ok := strings.CutSuffix(name, "-"+part); ok && !n.last {
			return limit
		}
	}
	return ""
}

func unitOfLimit(name string) string {
	name = lowerASCII(name)
	switch {
	case strings.Contains(name, "token"):
		return "tokens"
	case strings.Contains(name, "complexity") || strings.Contains(name, "units"):
		return "points"
	default:
		return ""
	}
}

// exhausted reports whether one of the limits has nothing left.
func (r *Reading) exhausted() bool {
	return r.Window.Exhausted() || slices.ContainsFunc(r.Windows, Window.Exhausted)
}

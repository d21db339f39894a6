package dialect

import (
	"net/http"
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
	// form is what a bare number in reset is, if not what the vendor's others are.
	form Form
	// unit is what is counted; see [Window].
	unit string
}

// families are the names that everybody may use.
var families = [...]family{
	{limit: "X-Ratelimit-Limit", remaining: "X-Ratelimit-Remaining", reset: "X-Ratelimit-Reset", after: "X-Ratelimit-Reset-After"},
	{limit: "Ratelimit-Limit", remaining: "Ratelimit-Remaining", reset: "Ratelimit-Reset", policy: "Ratelimit-Policy"},
	{limit: "X-Rate-Limit-Limit", remaining: "X-Rate-Limit-Remaining", reset: "X-Rate-Limit-Reset"},
}

// window reads one limit. A reset alone says something only beside a refusal.
func (f *family) window(c *clock, form Form, refused bool) (w Window, ok bool) {
	limit, remaining := c.h[f.limit], c.h[f.remaining]
	if len(limit) == 0 && len(remaining) == 0 && !refused {
		return w, false
	}
	w.Name, w.Unit = f.name, f.unit
	if len(limit) > 0 {
		w.setLimit(limit[0])
		if i := strings.IndexByte(limit[0], ','); i > 0 && w.Name == "" {
			w.Name = quotaPolicy([]string{limit[0][i+1:]}, w)
		}
		if f.policy != "" && w.Name == "" {
			w.Name = quotaPolicy(c.h[f.policy], w)
		}
	}
	if len(remaining) > 0 {
		w.setRemaining(remaining[0])
	}
	if f.form != Auto {
		form = f.form
	}
	if reset := c.h[f.reset]; len(reset) > 0 {
		w.setReset(c, reset[0], form)
	} else if f.after != "" {
		w.setReset(c, first(c.h, f.after), DeltaSeconds)
	}
	return w, w.Known != 0
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
	if d, ok := c.wait(s, form); ok {
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
func (r *Reading) add(w Window) {
	switch {
	case w.Known == 0 || len(r.Windows) == maxWindows:
	case w.Known == HasReset && r.Window.Known != 0: // part of a limit that has been told
	case r.Window.Known == 0:
		r.Window = w
	case r.Windows == nil && w.Name == r.Window.Name && sameCounts(w, r.Window):
		r.Window.Known |= w.Known
		r.Window.Reset = max(r.Window.Reset, w.Reset)
	default:
		if r.Windows == nil {
			r.Windows = append(make([]Window, 0, 4), r.Window)
		}
		r.Windows = append(r.Windows, w)
	}
}

func sameCounts(a, b Window) bool {
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

// The families one by one, for vendors that are known to use just one, or none.
var (
	xRateLimit    = families[0:1]
	rateLimit     = families[1:2]
	xRateLimitAlt = families[2:3]
	silent        = []family{}
)

// named reads limits whose names the vendor makes up, between prefix and "-Limit" or,
// if last, behind "Limit-". The requests come first, the others by name.
func (r *Reading) named(c *clock, prefix string, last bool, form Form) {
	var names []string
	for key := range c.h {
		if name := limitName(key, prefix, last); name != "" && len(names) < maxWindows && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if i := slices.Index(names, "Requests"); i > 0 {
		names[0], names[i] = names[i], names[0]
	}
	for _, name := range names {
		f := family{name: word(lowerASCII(name)), unit: unitOfLimit(name), limit: prefix + name + "-Limit", remaining: prefix + name + "-Remaining", reset: prefix + name + "-Reset"}
		if last {
			f.limit, f.remaining, f.reset = prefix+"Limit-"+name, prefix+"Remaining-"+name, prefix+"Reset-"+name
		}
		if w, ok := f.window(c, form, false); ok {
			r.add(w)
		}
	}
}

// limitName cuts the name of the limit out of a header's name.
func limitName(key, prefix string, last bool) string {
	name, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return ""
	}
	for _, part := range [...]string{"Limit", "Remaining"} {
		if last {
			if n, ok := strings.CutPrefix(name, part+"-"); ok {
				return n
			}
			continue
		}
		if n, ok := strings.CutSuffix(name, "-"+part); ok {
			return n
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

// has reports whether one of the fields is there.
func has(h http.Header, keys ...string) bool {
	for _, key := range keys {
		if len(h[key]) > 0 {
			return true
		}
	}
	return false
}

// exhausted reports whether one of the limits has nothing left.
func (r *Reading) exhausted() bool {
	return r.Window.Exhausted() || slices.ContainsFunc(r.Windows, Window.Exhausted)
}

package dialect

import (
	"strings"
	"time"
)

// The RateLimit fields of draft-ietf-httpapi-ratelimit-headers. Revisions -03 to -06
// have three fields, which are one of the families; -07 has one dictionary; -08 to -10
// have lists of named items. A field with a fault in it is ignored as a whole, as the
// draft asks.

// ietf adds the limits of the RateLimit field, with the quotas of RateLimit-Policy.
func (r *Reading) ietf(c *clock) {
	lines := c.h["Ratelimit"]
	if len(lines) == 0 {
		return
	}
	policies := c.h["Ratelimit-Policy"]
	if isDictionary(lines[0]) {
		w, ok := dictionary(lines)
		if ok {
			w.Name = quotaPolicy(policies, w)
			r.add(w)
		}
		return
	}
	before := *r
	for _, line := range lines {
		for rest := trim(line); rest != ""; {
			it, after, ok := parseItem(rest)
			if !ok || it.name == "" || it.r < 0 {
				*r = before
				return
			}
			if len(r.Windows) < maxWindows {
				r.add(it.window(policies))
			}
			rest = after
		}
	}
}

// item is one member of a structured list (RFC 9651 section 3.1) with the parameters
// that matter here; a number that is absent is -1.
type item struct {
	text       string // as it stands in the field
	name       string // if it is a string or a token
	number     int64  // if it is an integer
	r, t, q, w int64
	unit       string
}

func (it *item) window(policies []string) Window {
	w := Window{Name: word(it.name), Remaining: it.r, Known: HasRemaining, Unit: it.unit}
	if d, ok := bounded(number{whole: it.t}.times(time.Second)); ok && it.t >= 0 {
		w.Reset, w.Known = d, w.Known|HasReset
	}
	for _, line := range policies {
		for rest := trim(line); rest != ""; {
			p, after, ok := parseItem(rest)
			if !ok {
				break
			}
			if p.name == it.name && p.q >= 0 {
				w.Limit, w.Unit, w.Known = p.q, p.unit, w.Known|HasLimit
				return w
			}
			rest = after
		}
	}
	return w
}

// quotaPolicy returns the policy of revisions -03 to -07 that the window belongs to,
// for instance "100;w=60".
func quotaPolicy(lines []string, w Window) string {
	for _, line := range lines {
		for rest := trim(line); rest != ""; {
			p, after, ok := parseItem(rest)
			if !ok {
				break
			}
			if p.w >= 0 && p.number == w.Limit && w.Known&HasLimit != 0 {
				return word(p.text)
			}
			rest = after
		}
	}
	return ""
}

// isDictionary tells "limit=100, remaining=50" from `"name";r=50`.
func isDictionary(s string) bool {
	i := strings.IndexAny(s, `=;,"`)
	return i > 0 && s[i] == '='
}

// dictionary reads the field of revision -07.
func dictionary(lines []string) (w Window, ok bool) {
	for _, line := range lines {
		for line != "" {
			var member string
			member, line, _ = strings.Cut(line, ",")
			key, value, _ := strings.Cut(trim(member), "=")
			value, _, _ = strings.Cut(value, ";")
			n, isNumber := parseInteger(value)
			switch key {
			case "limit":
				w.Limit, w.Known = n, w.Known|HasLimit
			case "remaining":
				w.Remaining, w.Known = n, w.Known|HasRemaining
			case "reset":
				if d, ok := bounded(number{whole: n}.times(time.Second)); ok {
					w.Reset, w.Known = d, w.Known|HasReset
				}
			default:
				continue
			}
			if !isNumber {
				return Window{}, false
			}
		}
	}
	return w, w.Known != 0
}

// parseItem reads the first member of a list and returns what follows its comma.
func parseItem(s string) (it item, rest string, ok bool) {
	it = item{number: -1, r: -1, t: -1, q: -1, w: -1}
	value, rest, ok := bareItem(s)
	if !ok {
		return it, "", false
	}
	it.name = unquote(value)
	if n, isNumber := parseInteger(value); isNumber {
		it.name, it.number = "", n
	}
	for strings.HasPrefix(rest, ";") {
		if rest, ok = it.parameter(strings.TrimLeft(rest[1:], " ")); !ok {
			return it, "", false
		}
	}
	it.text = s[:len(s)-len(rest)]
	rest = trim(rest)
	if rest == "" {
		return it, "", true
	}
	next := trim(rest[1:])
	return it, next, rest[0] == ',' && next != ""
}

// parameter reads "r=50" and returns what follows.
func (it *item) parameter(s string) (rest string, ok bool) {
	i := 0
	for i < len(s) && isKey(s[i]) {
		i++
	}
	key, rest := s[:i], s[i:]
	if key == "" || !strings.HasPrefix(rest, "=") {
		return rest, key != "" // true, without a value
	}
	value, rest, ok := bareItem(rest[1:])
	if !ok {
		return "", false
	}
	n, isNumber := parseInteger(value)
	switch key {
	case "r":
		it.r, ok = n, isNumber
	case "t":
		it.t, ok = n, isNumber
	case "q":
		it.q, ok = n, isNumber
	case "w":
		it.w, ok = n, isNumber
	case "qu":
		it.unit = quotaUnit(unquote(value))
	}
	return rest, ok
}

// bareItem cuts a string, a byte sequence, or a number, token or boolean off s.
func bareItem(s string) (value, rest string, ok bool) {
	if s == "" {
		return "", "", false
	}
	if s[0] == '"' || s[0] == ':' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case s[0]:
				return s[:i+1], s[i+1:], true
			}
		}
		return "", "", false
	}
	i := strings.IndexAny(s, " \t,;=\"")
	if i < 0 {
		i = len(s)
	}
	return s[:i], s[i:], i > 0
}

// parseInteger reads a non-negative integer of at most 15 digits (RFC 9651 section 3.3.1).
func parseInteger(s string) (int64, bool) {
	n, ok := parseNumber(s)
	return n.whole, ok && len(s) <= 15 && n.nano == 0 && isDigit(s[len(s)-1]) && strings.IndexByte(s, '.') < 0
}

func quotaUnit(qu string) string {
	switch qu {
	case "requests":
		return ""
	case "content-bytes":
		return "bytes"
	case "concurrent-requests":
		return "concurrent"
	default:
		return "points"
	}
}

func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

func isKey(c byte) bool {
	return 'a' <= c && c <= 'z' || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '*'
}

// word returns s if it can be a word of some documentation, which may go into logs and
// events, else nothing.
func word(s string) string {
	if len(s) > 128 {
		return ""
	}
	for i := range len(s) {
		if c := s[i]; !isKey(c) && !('A' <= c && c <= 'Z') && strings.IndexByte(" /:;=,#", c) < 0 {
			return ""
		}
	}
	return s
}

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
			w.Name = quotaPolicy(policies, &w)
			r.add(&w)
		}
		return
	}
	before := *r
	var it item
	for _, line := range lines {
		line = trim(line)
		for i := 0; i < len(line); {
			if i = it.parse(line, i); i < 0 || it.name == "" || it.r < 0 {
				*r = before
				return
			}
			if len(r.Windows) < maxWindows {
				w := it.window(policies)
				r.add(&w)
			}
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
	var p item
	for _, line := range policies {
		line = trim(line)
		for i := 0; i >= 0 && i < len(line); {
			if i = p.parse(line, i); i >= 0 && p.name == it.name && p.q >= 0 {
				w.Limit, w.Unit, w.Known = p.q, p.unit, w.Known|HasLimit
				return w
			}
		}
	}
	return w
}

// quotaPolicy returns the policy of revisions -03 to -07 that the window belongs to,
// for instance "100;w=60".
func quotaPolicy(lines []string, w *Window) string {
	var p item
	for _, line := range lines {
		line = trim(line)
		for i := 0; i >= 0 && i < len(line); {
			if i = p.parse(line, i); i >= 0 && p.w >= 0 && p.number == w.Limit && w.Known&HasLimit != 0 {
				return word(p.text)
			}
		}
	}
	return ""
}

// isDictionary tells "limit=100, remaining=50" from `"name";r=50`.
func isDictionary(s string) bool {
	i := 0
	for i < len(s) && isKey(s[i]) {
		i++
	}
	return i > 0 && i < len(s) && s[i] == '='
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

// parse reads the member at i and returns where the next begins, or -1.
func (it *item) parse(s string, i int) int {
	start := i
	*it = item{r: -1, t: -1, q: -1, w: -1}
	value, number, i := bareItem(s, i)
	if it.number = number; number < 0 {
		it.name = unquote(value)
	}
	for i > 0 && i < len(s) && s[i] == ';' {
		i = it.parameter(s, i+1)
	}
	if i < 0 {
		return -1
	}
	it.text = s[start:i]
	i = skipSpace(s, i)
	if i == len(s) {
		return i
	}
	next := skipSpace(s, i+1)
	if s[i] != ',' || next == len(s) {
		return -1
	}
	return next
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// parameter reads "r=50" at i and returns where it ends, or -1.
func (it *item) parameter(s string, i int) int {
	i = skipSpace(s, i)
	start := i
	for i < len(s) && isKey(s[i]) {
		i++
	}
	key := s[start:i]
	if key == "" {
		return -1
	}
	if i == len(s) || s[i] != '=' {
		return i // true, without a value
	}
	value, n, end := bareItem(s, i+1)
	switch key {
	case "r":
		it.r = n
	case "t":
		it.t = n
	case "q":
		it.q = n
	case "w":
		it.w = n
	case "qu":
		it.unit = quotaUnit(unquote(value))
		return end
	default:
		return end
	}
	if n < 0 {
		return -1
	}
	return end
}

// bareItem reads a string, a byte sequence, or a number, token or boolean at i and
// returns where it ends, or -1. The number is -1 if it is no integer of at most 15
// digits (RFC 9651 section 3.3.1).
func bareItem(s string, i int) (value string, number int64, end int) {
	start := i
	for ; i < len(s) && isDigit(s[i]); i++ {
		if i-start < 15 {
			number = number*10 + int64(s[i]-'0')
		}
	}
	if i > start && i-start <= 15 && (i == len(s) || isEnd(s[i])) {
		return s[start:i], number, i
	}
	if i = start; i < len(s) && (s[i] == '"' || s[i] == ':') {
		for i++; i < len(s) && s[i] != s[start]; i++ {
			if s[i] == '\\' {
				i++
			}
		}
		if i++; i > len(s) {
			return "", -1, -1
		}
		return s[start:i], -1, i
	}
	for i < len(s) && !isEnd(s[i]) {
		i++
	}
	if i == start {
		return "", -1, -1
	}
	return s[start:i], -1, i
}

func isEnd(c byte) bool {
	return c == ';' || c == ',' || c == ' ' || c == '\t' || c == '=' || c == '"'
}

// parseInteger reads a non-negative integer as bareItem does.
func parseInteger(s string) (int64, bool) {
	_, n, end := bareItem(s, 0)
	return n, n >= 0 && end == len(s)
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
		c := s[i]
		if !isKey(c) && !('A' <= c && c <= 'Z') && strings.IndexByte(" /:;=,#", c) < 0 {
			return ""
		}
	}
	return s
}

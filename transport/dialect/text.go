package dialect

import (
	"bytes"
	"iter"
	"strings"
	"time"
)

// waitIn finds the wait that a message for people asks for, behind one of the phrases
// (in lower case): "retry after 37 seconds", "try again in 6m0s", "wait [ 250 ]",
// "Retry after 2026-01-15T12:00:10Z". A number without a unit counts unit.
func (c *clock) waitIn(message string, unit time.Duration, phrases ...string) (time.Duration, bool) {
	lower := lowerASCII(message)
	for _, phrase := range phrases {
		i := strings.Index(lower, phrase)
		if i < 0 {
			continue
		}
		words := strings.FieldsFunc(message[i+len(phrase):], func(r rune) bool { return strings.ContainsRune(" []()\"'\n", r) })
		if len(words) == 0 {
			continue
		}
		first := strings.TrimRight(words[0], ".,;")
		if s, ok := parseClock(first); ok { // "00:12:34"
			return time.Duration(s) * time.Second, true
		}
		n, ok := parseNumber(first)
		if !ok {
			return c.text(first)
		}
		times := time.Duration(1)
		if len(words) > 1 {
			unit, times = unitOf(lowerASCII(words[1]), unit)
		}
		d, ok := bounded(n.times(unit))
		if !ok || d > longest/times {
			return 0, false
		}
		return d * times, true
	}
	return 0, false
}

// unitOf reads the name of a unit of time.
func unitOf(word string, fallback time.Duration) (unit, times time.Duration) {
	switch {
	case strings.HasPrefix(word, "ms") || strings.HasPrefix(word, "milli"):
		return time.Millisecond, 1
	case strings.HasPrefix(word, "sec") || word == "s" || word == "s.":
		return time.Second, 1
	case strings.HasPrefix(word, "min"):
		return time.Second, 60
	case strings.HasPrefix(word, "hour"):
		return time.Second, 3600
	case strings.HasPrefix(word, "day"):
		return time.Second, 86400
	default:
		return fallback, 1
	}
}

// hint takes in a hint from a body. One in a header comes first.
func (r *Reading) hint(d time.Duration, ok bool) {
	if ok && r.RetryAfter == 0 {
		r.RetryAfter, r.Hinted = d, true
	}
}

// waitSeconds reads a wait in seconds out of a body.
func waitSeconds(s string) (time.Duration, bool) {
	n, ok := parseNumber(s)
	if !ok {
		return 0, false
	}
	return bounded(n.times(time.Second))
}

// mentions reports whether the body has one of the phrases (in lower case), in whatever
// case and markup.
func mentions(body []byte, phrases ...string) bool {
	lower := bytes.ToLower(body[:min(len(body), maxBody)])
	for _, p := range phrases {
		if bytes.Contains(lower, []byte(p)) {
			return true
		}
	}
	return false
}

// element returns what is between the first <name> and its end.
func element(body []byte, name string) string {
	_, rest, ok := bytes.Cut(body[:min(len(body), maxBody)], []byte("<"+name+">"))
	if !ok {
		return ""
	}
	text, _, ok := bytes.Cut(rest, []byte("</"+name+">"))
	if !ok {
		return ""
	}
	return string(bytes.TrimSpace(text))
}

// isXML tells XML from JSON by how it begins.
func isXML(body []byte) bool {
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(body) > 0 && body[0] == '<'
}

// scalars walks the scalars of a body that may be JSON or XML. Of XML these are the
// elements without children, under the paths that names gives them; others are passed
// over.
func scalars(body []byte, names map[string]string) iter.Seq2[[]byte, leaf] {
	return func(yield func([]byte, leaf) bool) {
		if isXML(body) {
			elements(body[:min(len(body), maxBody)], names, yield)
			return
		}
		for path, v := range leaves(body) {
			if !yield(path, v) {
				return
			}
		}
	}
}

func elements(rest []byte, names map[string]string, yield func([]byte, leaf) bool) {
	for {
		_, after, ok := bytes.Cut(rest, []byte{'<'})
		tag, text, ok2 := bytes.Cut(after, []byte{'>'})
		if !ok || !ok2 {
			return
		}
		rest = text
		name, _, _ := bytes.Cut(tag, []byte{' '})
		path, known := names[string(name)]
		text, end, _ := bytes.Cut(text, []byte{'<'})
		if !known || !bytes.HasPrefix(end, append([]byte{'/'}, name...)) {
			continue
		}
		if !yield([]byte(path), leaf{'s', bytes.TrimSpace(text)}) {
			return
		}
	}
}

// period names the span of time that a message speaks of, if it does.
func period(message string) string {
	lower := lowerASCII(message)
	for _, p := range [...]struct{ word, name string }{
		{"daily", "daily"}, {"per day", "daily"}, {"month", "monthly"}, {"hour", "hourly"}, {"week", "weekly"},
	} {
		if strings.Contains(lower, p.word) {
			return p.name
		}
	}
	return ""
}

// lowerASCII keeps every byte in its place, also those that are no UTF-8: what is found in
// its result is cut from s.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

package price

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a scanner: what is longer or deeper passes without being kept.
const (
	maxDepth = 12
	maxValue = 256 // every letter of a name that matters may be an escape of six bytes
)

// scanner reads JSON as it passes, in pieces of any size, and reports the scalars in
// it. It keeps the path to where it is and the beginning of one value, whatever the
// size of the document; it is no validator, and survives anything.
type scanner struct {
	// value is called for each scalar down to maxDepth, with its path: the keys that
	// lead to it joined by dots. Elements have the path of their array. It is called for
	// the beginning of each object too, with "{". Both slices are the scanner's own, and
	// raw is without escapes, and cut at maxValue bytes with them.
	value func(path, raw []byte, quoted bool)
	// end is called after each whole value at the top.
	end func()

	depth  int
	kinds  [maxDepth + 1]byte // of the containers around: '{' or '['
	ends   [maxDepth + 1]int  // length of their paths
	keyed  [maxDepth + 1]bool // a key leads to them
	path   []byte
	raw    []byte
	key    bool // the next string in an object is a key
	quoted bool // inside a string
	escape bool // after a backslash
	scalar bool // inside a number or a word
	cut    bool // raw is not all of the string
}

// reset forgets a document that did not end.
func (s *scanner) reset() {
	s.depth, s.path, s.raw = 0, s.path[:0], s.raw[:0]
	s.key, s.quoted, s.escape, s.scalar = false, false, false, false
}

// Write never fails.
func (s *scanner) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		if s.quoted {
			i += s.inString(p[i:]) - 1
			continue
		}
		s.outside(p[i])
	}
	return len(p), nil
}

// inString reads on in a string and says how far it came.
func (s *scanner) inString(p []byte) int {
	for i := 0; i < len(p); i++ {
		if s.escape {
			s.escape = false
			s.keep(p[i : i+1])
			continue
		}
		plain := i
		for i < len(p) && p[i] != '"' && p[i] != '\\' {
			i++
		}
		s.keep(p[plain:i])
		if i == len(p) {
			break
		}
		if p[i] == '"' {
			s.quoted = false
			s.closeString()
			return i + 1
		}
		s.escape = true
		s.keep(p[i : i+1])
	}
	return len(p)
}

func (s *scanner) keep(p []byte) {
	s.cut = s.cut || len(p) > maxValue-len(s.raw)
	s.raw = append(s.raw, p[:min(len(p), maxValue-len(s.raw))]...)
}

func (s *scanner) closeString() {
	if s.depth > maxDepth {
		return
	}
	s.raw = withoutEscapes(s.raw)
	if s.key && s.kinds[s.depth] == '{' {
		s.path = s.path[:s.ends[s.depth]]
		if s.keyed[s.depth] { // also behind an empty key: its members are not those of the top
			s.path = append(s.path, '.')
		}
		s.path = append(s.path, s.raw...)
		return
	}
	s.emit(true)
}

func (s *scanner) emit(quoted bool) {
	if s.depth > 0 && s.depth <= maxDepth {
		s.value(s.path, s.raw, quoted)
	}
}

// outside reads one byte that is not inside a string.
func (s *scanner) outside(c byte) {
	if s.scalar && (c <= ' ' || c == ',' || c == '}' || c == ']') {
		s.scalar = false
		s.emit(false)
	}
	switch c {
	case '"':
		s.quoted, s.cut, s.raw = true, false, s.raw[:0]
	case '{', '[':
		s.open(c)
	case '}', ']':
		s.close()
	case ',':
		if s.depth <= maxDepth {
			s.path = s.path[:s.ends[s.depth]]
			s.key = s.kinds[s.depth] == '{'
		}
	case ':':
		s.key = false
	case ' ', '\t', '\r', '\n':
	default:
		if !s.scalar {
			s.scalar, s.raw = true, s.raw[:0]
		}
		s.keep([]byte{c})
	}
}

func (s *scanner) open(c byte) {
	if c == '{' {
		s.raw = append(s.raw[:0], c)
		s.emit(false)
	}
	s.depth++
	if s.depth <= maxDepth {
		s.kinds[s.depth], s.ends[s.depth] = c, len(s.path)
		s.keyed[s.depth] = s.keyed[s.depth-1] || s.kinds[s.depth-1] == '{' && s.depth > 1
		s.key = c == '{'
	}
}

func (s *scanner) close() {
	if s.depth == 0 {
		return // more ends than beginnings
	}
	if s.depth <= maxDepth {
		s.path = s.path[:s.ends[s.depth]]
	}
	s.depth--
	if s.depth <= maxDepth {
		s.key = false
	}
	if s.depth == 0 {
		s.path = s.path[:0]
		s.end()
	}
}

// withoutEscapes resolves the escapes of a JSON string in place: names must not hide behind them.
// One that is cut off or broken stays as it is.
func withoutEscapes(b []byte) []byte {
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return b
	}
	out := b[:i]
	for i < len(b) {
		switch {
		case b[i] != '\\' || i+1 == len(b) || b[i+1] == 'u' && i+6 > len(b):
			out = append(out, b[i])
			i++
		case b[i+1] == 'u' && i+6 <= len(b):
			n, err := strconv.ParseUint(string(b[i+2:i+6]), 16, 16)
			if err != nil {
				n = utf8.RuneError
			}
			out = utf8.AppendRune(out, rune(n)) // three bytes at most, of six
			i += 6
		default:
			c := b[i+1]
			if at := strings.IndexByte("bfnrt", c); at >= 0 {
				c = "\b\f\n\r\t"[at]
			}
			out = append(out, c)
			i += 2
		}
	}
	return out
}

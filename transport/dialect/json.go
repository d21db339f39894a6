package dialect

import (
	"encoding/json"
	"iter"
	"slices"
)

// maxBody bounds what is read of a body; no refusal is nearly as long.
const maxBody = 64 << 10

// maxDepth is how deep a value may lie to be told. Deeper ones are passed over.
const maxDepth = 12

// leaf is a scalar of a JSON text.
type leaf struct {
	kind byte   // 's' for a string, 'n' for a number, 't', 'f', '0' for null
	raw  []byte // without quotes, escapes as they stand
}

func (v leaf) is(s string) bool { return v.kind == 's' && string(v.raw) == s }

func (v leaf) endsIn(s string) bool {
	return v.kind == 's' && len(v.raw) >= len(s) && string(v.raw[len(v.raw)-len(s):]) == s
}

// text returns a string's value, or the digits of a number; a vendor may write
// either. Other leaves are empty.
func (v leaf) text() string {
	switch v.kind {
	case 'n':
		return string(v.raw)
	case 's':
		if slices.Contains(v.raw, '\\') {
			return unescape(v.raw)
		}
		return string(v.raw)
	default:
		return ""
	}
}

func unescape(raw []byte) string {
	quoted := append(append([]byte{'"'}, raw...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return string(raw)
	}
	return s
}

// leaves walks the scalars of a JSON text in their order, with the path to each: keys
// joined by dots, "[]" for any element of an array, as in "errors[].code". An array
// around everything leaves no trace in the path, because some vendors wrap an error in
// an array of one. The walk ends where the text is cut off or broken, or is no JSON at
// all. A path is only valid until the next step.
func leaves(body []byte) iter.Seq2[[]byte, leaf] {
	return func(yield func([]byte, leaf) bool) {
		s := scanner{b: body[:min(len(body), maxBody)], path: make([]byte, 0, 128)}
		for s.step(yield) {
		}
	}
}

// scanner walks a JSON text. It keeps a path, no tree, and does not recurse.
type scanner struct {
	b    []byte
	i    int
	path []byte
	open []container
}

type container struct {
	start int // the length of the path to its members
	array bool
	keyed bool // the path ends in the key of an object's member
}

// step reads one token and reports whether to go on.
func (s *scanner) step(yield func([]byte, leaf) bool) bool {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
	if s.i == len(s.b) {
		return false
	}
	switch c := s.b[s.i]; c {
	case '{', '[':
		return s.enter(c == '[')
	case '}', ']':
		return s.leave()
	case ',':
		return s.comma()
	case '"':
		raw, ok := s.quoted()
		if !ok || s.wantsKey() {
			return ok && s.key(raw)
		}
		return len(s.open) > 0 && yield(s.path, leaf{'s', raw})
	default:
		v, ok := s.literal()
		return ok && len(s.open) > 0 && !s.wantsKey() && yield(s.path, v)
	}
}

func (s *scanner) enter(array bool) bool {
	s.i++
	if s.wantsKey() {
		return false
	}
	if len(s.open) == maxDepth {
		return s.pass()
	}
	if array && len(s.open) > 0 {
		s.path = append(s.path, "[]"...)
	}
	s.open = append(s.open, container{start: len(s.path), array: array})
	return true
}

// pass goes behind the end of a container that lies too deep.
func (s *scanner) pass() bool {
	for depth := 1; depth > 0; {
		if s.i == len(s.b) {
			return false
		}
		switch s.b[s.i] {
		case '"':
			if _, ok := s.quoted(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.i++
	}
	return true
}

func (s *scanner) leave() bool {
	s.i++
	if len(s.open) > 0 {
		s.open = s.open[:len(s.open)-1]
	}
	return len(s.open) > 0
}

func (s *scanner) comma() bool {
	s.i++
	if len(s.open) == 0 {
		return false
	}
	c := &s.open[len(s.open)-1]
	s.path, c.keyed = s.path[:c.start], false
	return true
}

func (s *scanner) wantsKey() bool {
	if len(s.open) == 0 {
		return false
	}
	c := s.open[len(s.open)-1]
	return !c.array && !c.keyed
}

// key takes in a key and its colon. A dot inside a key cannot pass for a deeper path.
func (s *scanner) key(raw []byte) bool {
	for s.i < len(s.b) && s.b[s.i] != ':' {
		if s.b[s.i] > ' ' {
			return false
		}
		s.i++
	}
	if s.i == len(s.b) {
		return false
	}
	s.i++
	if len(s.path) > 0 {
		s.path = append(s.path, '.')
	}
	at := len(s.path)
	s.path = append(s.path, raw...)
	for i := at; i < len(s.path); i++ {
		if s.path[i] == '.' {
			s.path[i] = 0
		}
	}
	s.open[len(s.open)-1].keyed = true
	return true
}

// quoted reads a string and returns what is between its quotes.
func (s *scanner) quoted() ([]byte, bool) {
	for i := s.i + 1; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			raw := s.b[s.i+1 : i]
			s.i = i + 1
			return raw, true
		}
	}
	return nil, false
}

// literal reads a number or a word. One at the very end may be cut off.
func (s *scanner) literal() (leaf, bool) {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] > ' ' && s.b[s.i] != ',' && s.b[s.i] != '}' && s.b[s.i] != ']' {
		s.i++
	}
	raw := s.b[start:s.i]
	switch string(raw) {
	case "true":
		return leaf{kind: 't', raw: raw}, true
	case "false":
		return leaf{kind: 'f', raw: raw}, true
	case "null":
		return leaf{kind: '0', raw: raw}, true
	}
	number := len(raw) > 0 && (isDigit(raw[0]) || raw[0] == '-')
	return leaf{kind: 'n', raw: raw}, number && s.i < len(s.b)
}

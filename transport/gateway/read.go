package gateway

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxProblems is how many problems are told at once.
const maxProblems = 20

// Problem is something that is wrong with a configuration file, or, if it is a warning,
// something that is probably not meant. Its text never holds a secret.
type Problem struct {
	// File, Line and Column say where. Line and Column are zero if it is the file itself.
	File         string
	Line, Column int
	// Text says what is wrong and what to do.
	Text string
	// Warning: the file can be used all the same.
	Warning bool
}

// String is "file:line:column: what: what to do", as editors and terminals know it.
func (p Problem) String() string {
	s := p.Text
	if p.Warning {
		s += " (warning)"
	}
	if p.Line == 0 {
		return p.File + ": " + s
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, s)
}

// reader collects the problems of a file.
type reader struct {
	file     string
	options  LoadOptions
	problems []Problem
	secrets  []string // files that were read, beside the configuration
	sums     [][sha256.Size]byte
	visited  int
}

func (r *reader) add(at place, warning bool, text string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: at.line, Column: at.column, Text: text, Warning: warning})
}

func (r *reader) errorf(at place, format string, args ...any) {
	r.add(at, false, fmt.Sprintf(format, args...))
}

func (r *reader) warnf(at place, format string, args ...any) {
	r.add(at, true, fmt.Sprintf(format, args...))
}

// failed reports whether there is a problem that is no warning.
func (r *reader) failed() bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool { return !p.Warning })
}

// sorted returns the problems in the order of the file: all errors, at most maxProblems,
// or else all warnings. Warnings beside errors would hide them.
func (r *reader) sorted() []Problem {
	all := r.problems
	if r.failed() {
		all = slices.DeleteFunc(slices.Clone(all), func(p Problem) bool { return p.Warning })
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	all = slices.Compact(all)
	if more := len(all) - maxProblems; more > 0 {
		all = append(all[:maxProblems:maxProblems], Problem{File: r.file, Text: fmt.Sprintf("and %d more: mend these first", more), Warning: !r.failed()})
	}
	return all
}

// visit counts the work, which anchors can multiply.
func (r *reader) visit(n *node) bool {
	r.visited += 1 + len(n.keys) + len(n.items)
	if r.visited > maxNodes {
		if r.visited < 2*maxNodes {
			r.errorf(n.place, "its anchors make this file too large")
		}
		r.visited = 2 * maxNodes
		return false
	}
	return true
}

// section is a table that is being read. Every key is asked for once, and what nobody
// asked for is unknown.
type section struct {
	r     *reader
	path  string // "providers.twilio"; empty at the top
	at    place
	node  *node
	asked []string
	empty bool // nothing is written there
}

// section begins to read a table. What is no table is a problem, and reads as an empty one.
func (r *reader) section(n *node, path string, at place) *section {
	s := &section{r: r, path: path, at: at, node: &node{place: at, form: table}, empty: n == nil || n.form == absent}
	if s.empty || !r.visit(n) {
		return s
	}
	s.at = n.place
	if n.form != table {
		r.errorf(n.place, "%s must be a table of keys and values, not %s", cmpOr(path, "the file"), n.kind())
		return s
	}
	s.node = r.unrepeated(n, path)
	return s
}

func cmpOr(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// unrepeated reports keys that stand twice, of which the first counts.
func (r *reader) unrepeated(n *node, path string) *node {
	first := map[string]place{}
	for _, e := range n.keys {
		if at, ok := first[e.key.text]; ok {
			r.errorf(e.key.place, "key %s is repeated%s: it stands in line %d already", show(e.key.text), inPath(path), at.line)
			continue
		}
		first[e.key.text] = e.key.place
	}
	return n
}

func inPath(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// kind names what a node is, for messages.
func (n *node) kind() string {
	switch n.form {
	case list:
		return "a list"
	case table:
		return "a table"
	case scalar:
		return "one value"
	}
	return "nothing"
}

// of is the path of a key.
func (s *section) of(key string) string {
	if s.path == "" {
		return key
	}
	return s.path + "." + key
}

// get asks for a key.
func (s *section) get(key string) *node {
	s.asked = append(s.asked, key)
	return s.node.find(key)
}

// has reports whether a key is written, without asking for it.
func (s *section) has(key string) bool { return s.node.find(key) != nil }

// whereIs is the place of a key's value, or of the section.
func (s *section) whereIs(key string) place {
	if n := s.node.find(key); n != nil {
		return n.place
	}
	return s.at
}

// keyAt is the place of a key itself, or of the section.
func (s *section) keyAt(key string) place {
	for _, e := range s.node.keys {
		if e.key.text == key {
			return e.key.place
		}
	}
	return s.at
}

// sub asks for a key that is a table.
func (s *section) sub(key string) *section {
	return s.r.section(s.get(key), s.of(key), s.keyAt(key))
}

// done reports the keys that nobody asked for.
func (s *section) done() {
	seen := map[string]bool{}
	for _, e := range s.node.keys {
		if slices.Contains(s.asked, e.key.text) || seen[e.key.text] {
			continue
		}
		seen[e.key.text] = true
		s.r.errorf(e.key.place, "unknown key %s%s: %s", show(e.key.text), inPath(s.path), s.suggest(e.key.text))
	}
}

func (s *section) suggest(key string) string {
	free := slices.DeleteFunc(slices.Clone(s.asked), s.has)
	if hint := suggestion(key, free, keySynonyms); hint != "" {
		return "did you mean " + strconv.Quote(hint) + "?"
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(s.asked)), ", ")
}

// scalar returns the value of a key that is one value.
func (s *section) scalar(key string) (*node, bool) {
	n := s.get(key)
	if n == nil || !s.r.visit(n) {
		return nil, false
	}
	return n, s.r.isScalar(n, s.of(key))
}

func (r *reader) isScalar(n *node, path string) bool {
	switch n.form {
	case scalar:
		return true
	case absent:
		r.errorf(n.place, "%s has no value: write one, or remove the key", path)
	default:
		r.errorf(n.place, "%s must be one value, not %s", path, n.kind())
	}
	return false
}

// field reads the value of a key by a function whose errors say what is wrong.
func field[T any](s *section, key string, parse func(what, text string) (T, error)) (v T, at place) {
	n, ok := s.scalar(key)
	if !ok {
		return v, s.at
	}
	v, err := parse(key, n.text)
	if err != nil {
		s.r.errorf(n.place, "%s", err)
	}
	return v, n.place
}

// values are the elements of a key that is a list of values. One value alone is not a
// list: it would hide a missing dash.
func (s *section) values(key string) []*node {
	n := s.get(key)
	if n == nil || !s.r.visit(n) {
		return nil
	}
	if n.form != list {
		hint := ""
		if n.form == scalar && !looksSecret(n.text) {
			hint = fmt.Sprintf(": write [%s]", brief(n.text))
		}
		s.r.errorf(n.place, "%s must be a list%s", s.of(key), hint)
		return nil
	}
	return n.items
}

// fields reads a list of values.
func fields[T any](s *section, key string, parse func(what, text string) (T, error)) (all []T) {
	for _, n := range s.values(key) {
		if !s.r.isScalar(n, s.of(key)) {
			continue
		}
		v, err := parse(strings.TrimSuffix(key, "s"), n.text)
		if err != nil {
			s.r.errorf(n.place, "%s", err)
			continue
		}
		all = append(all, v)
	}
	return all
}

// each goes through a table whose keys are names. What says what they name.
func (s *section) each(key, what string, f func(name *node, value *node)) {
	sub := s.sub(key)
	seen := map[string]bool{}
	for _, e := range sub.node.keys {
		if seen[e.key.text] {
			continue // reported
		}
		seen[e.key.text] = true
		if e.key.number {
			s.r.errorf(e.key.place, "%s %s is a number to YAML (you wrote %s): put it in quotes, %q", what, e.key.reads, brief(e.key.text), brief(e.key.text))
			continue
		}
		f(e.key, e.value)
	}
}

// brief cuts a text for a message.
func brief(s string) string {
	if saysSecret(s) {
		return "(not shown)"
	}
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, s)
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}

// show quotes a text of the file, unless it may be a secret in the wrong place.
func show(s string) string {
	if looksSecret(s) {
		return "(not shown)"
	}
	return strconv.Quote(brief(s))
}

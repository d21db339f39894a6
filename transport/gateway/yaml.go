package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a configuration. A file beyond them is no configuration, and the parser
// takes more than linear time over deep nesting.
const (
	maxFile  = 1 << 20
	maxDepth = 64
	maxNodes = 200_000 // anchors expanded
)

// place is where something stands in the file, counted from one.
type place struct{ line, column int }

// form is what a node is.
type form uint8

const (
	absent form = iota // nothing is written there
	scalar
	list
	table
)

// node is a value of the file. Scalars are kept as they are written: what YAML would make
// of 0044 or +1 is no use to anyone.
type node struct {
	place
	form form
	text string
	// number says that YAML takes a scalar for a number, which reads is.
	number bool
	reads  string
	items  []*node
	keys   []entry
}

// entry is one key of a table.
type entry struct{ key, value *node }

// parseFile makes the tree of a file. It reports everything that keeps it from being read.
func parseFile(text []byte, r *reader) *node {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark would become part of the first key
	if at, what := unreadable(text); what != "" {
		r.errorf(at, "%s", what)
		return nil
	}
	tokens := lexer.Tokenize(string(blankLines.ReplaceAll(text, nil)))
	if at, deep := tooDeep(tokens); deep {
		r.errorf(at, "more than %d levels of nesting: this is no configuration", maxDepth)
		return nil
	}
	file, err := parseTokens(tokens)
	if err != nil {
		r.syntax(err)
		return nil
	}
	t := tree{r: r, anchors: map[string]*node{}}
	var root *node
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); directive || doc.Body == nil {
			continue
		}
		if root != nil {
			r.errorf(placeOf(doc.Body), "a second document begins here: one file is one configuration; remove the line ---")
			break
		}
		root = t.node(doc.Body, 0)
	}
	if root == nil && len(r.problems) == 0 {
		r.errorf(place{1, 1}, "the file is empty: begin with version: 1")
	}
	return root
}

// blankLines are lines of blanks, among which the parser does not bear tabs.
var blankLines = regexp.MustCompile(`(?m)^[ \t]+\r?$`)

// unreadable finds bytes that are no YAML.
func unreadable(text []byte) (place, string) {
	for i, line := range bytes.Split(text, []byte("\n")) {
		if n := len(line) - len(bytes.TrimLeft(line, " \t")); n < len(line) && bytes.IndexByte(line[:n], '\t') >= 0 && line[n] != '#' && line[n] != '\r' {
			return place{i + 1, bytes.IndexByte(line, '\t') + 1}, "a tab in the indentation: YAML wants spaces"
		}
		for j, c := range line {
			if c < ' ' && c != '\t' && (c != '\r' || j != len(line)-1) {
				return place{i + 1, j + 1}, fmt.Sprintf("a control character (byte %#02x): this is no text", c)
			}
		}
		if !utf8.Valid(line) {
			return place{i + 1, 1}, "this line is not UTF-8: save the file in that encoding"
		}
	}
	return place{}, ""
}

// tooDeep finds nesting beyond maxDepth before the parser does.
func tooDeep(tokens token.Tokens) (place, bool) {
	flow, line, inLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, inLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType:
			inLine++
		}
		if flow > maxDepth || inLine > maxDepth {
			return place{t.Position.Line, max(1, t.Position.Column)}, true
		}
	}
	return place{}, false
}

// parseTokens is the parser, whose panics are errors.
func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("the parser fails on it")
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntax reports what the parser found, in words that do not hold a part of the file: it
// could be a secret.
func (r *reader) syntax(err error) {
	at, said := place{1, 1}, ""
	if e, ok := errors.AsType[*yaml.SyntaxError](err); ok && e.Token != nil {
		said = e.Message
		if p := e.Token.Position; p != nil {
			at = place{p.Line, max(1, p.Column)}
		}
	}
	for _, known := range [][2]string{
		{"end token ']'", "a list that begins here is not closed: write ]"},
		{"end token '}'", "a table that begins here is not closed: write }"},
		{"must be specified", "a comma or a closing bracket is missing here"},
		{"end character", "a quoted text that begins here has no end: write the closing quote"},
		{"reserved character", "a value cannot begin with this character: put it in quotes"},
		{"escape", "an unknown escape in double quotes: use single quotes"},
		{"mapping value is not allowed", "a second colon in one line: put the value in quotes"},
		{"value is not allowed", "the indentation does not fit the lines above"},
		{"invalid key", "a key must be plain text"},
		{"directive", "a value cannot begin with %: put it in quotes"},
		{"alias", "an alias (*name) stands here without a name"},
		{"anchor", "an anchor (&name) stands here without a name"},
	} {
		if strings.Contains(said, known[0]) {
			r.errorf(at, "%s", known[1])
			return
		}
	}
	r.errorf(at, "this is not valid YAML here: look at quotes, colons and indentation of this line and the one above")
}

// tree makes nodes of a document.
type tree struct {
	r       *reader
	anchors map[string]*node
}

func placeOf(n ast.Node) place {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return place{1, 1}
	}
	t := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return placeOf(m.Values[0].Key)
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return placeOf(m.Key)
	}
	return place{t.Position.Line, max(1, t.Position.Column)}
}

// node converts a node. Deep ones are cut off, with a problem.
func (t *tree) node(in ast.Node, depth int) *node {
	at := placeOf(in)
	if depth > maxDepth {
		t.r.errorf(at, "more than %d levels of nesting: this is no configuration", maxDepth)
		return &node{place: at}
	}
	switch n := in.(type) {
	case *ast.MappingNode:
		return t.table(at, n.Values, depth)
	case *ast.MappingValueNode:
		return t.table(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := &node{place: at, form: list}
		for _, v := range n.Values {
			out.items = append(out.items, t.node(v, depth+1))
		}
		return out
	case *ast.AnchorNode:
		out := t.node(n.Value, depth+1)
		if n.Name != nil {
			t.anchors[n.Name.String()] = out
		}
		return out
	case *ast.AliasNode:
		if n.Value != nil {
			if out := t.anchors[n.Value.String()]; out != nil {
				return out
			}
		}
		t.r.errorf(at, "an alias of an anchor that is not above it: define it with & first")
		return &node{place: at}
	case *ast.TagNode:
		t.r.errorf(at, "tags (!!) have no meaning here: remove it")
		return &node{place: at}
	}
	return scalarNode(at, in)
}

func scalarNode(at place, in ast.Node) *node {
	out := &node{place: at, form: scalar}
	switch n := in.(type) {
	case nil, *ast.NullNode:
		out.form = absent
	case *ast.StringNode:
		out.text = n.Value
	case *ast.LiteralNode:
		out.text = n.Value.Value
	case *ast.MergeKeyNode:
		out.text = "<<"
	case *ast.IntegerNode:
		out.text, out.number, out.reads = n.GetToken().Value, true, fmt.Sprint(n.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.text, out.number = n.GetToken().Value, true
		out.reads = out.text
	case *ast.BoolNode:
		out.text = n.GetToken().Value
	default:
		out.form = absent
	}
	return out
}

// table converts the keys of a table, and those merged into it by <<.
func (t *tree) table(at place, values []*ast.MappingValueNode, depth int) *node {
	out := &node{place: at, form: table}
	var merged []*node
	for _, v := range values {
		k := v.Key.(ast.Node)
		if explicit, ok := k.(*ast.MappingKeyNode); ok { // "? key"
			k = explicit.Value
		}
		key, value := t.node(k, depth+1), t.node(v.Value, depth+1)
		switch {
		case key.form == absent:
			t.r.errorf(key.place, "an empty key: write a name before the colon")
		case key.form != scalar:
			t.r.errorf(key.place, "a key must be plain text")
		case key.text != "<<":
			out.keys = append(out.keys, entry{key, value})
		case value.form == list:
			merged = append(merged, value.items...)
		default:
			merged = append(merged, value)
		}
	}
	for _, m := range merged {
		if m.form != table {
			t.r.errorf(m.place, "<< merges tables, and this is none")
			continue
		}
		for _, e := range m.keys {
			if out.find(e.key.text) == nil {
				out.keys = append(out.keys, e)
			}
		}
	}
	return out
}

// find returns the value of a key, or nil.
func (n *node) find(key string) *node {
	for _, e := range n.keys {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

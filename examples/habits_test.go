package examples_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// longest are the most lines of a file, of a file of tests with its tables, and of a
// function: what fits into a head.
const (
	longestFile     = 400
	longestTests    = 600
	longestFunction = 60
)

// mayBeLong are the functions that may have more lines, with the reason.
var mayBeLong = map[string]string{}

func TestSizes(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			assert.LessOrEqual(t, s.size, longestTests, "lines of %s", s.name)
			continue
		}
		assert.LessOrEqual(t, s.size, longestFile, "lines of %s", s.name)
		for _, f := range s.functions() {
			where := s.name + " " + f.Name.Name
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > longestFunction {
				assert.Contains(t, mayBeLong, where, "%d lines", n)
				used[where] = true
			}
		}
	}
	for where := range mayBeLong {
		assert.True(t, used[where], "%s is short by now", where)
	}
}

// mayPanic are the functions outside Must that may, with the reason.
var mayPanic = map[string]string{
	"transport/ledgerstatus.go within":     "a ledger's own panic, on the goroutine of whoever asked",
	"transport/peekbody.go Read":           "a body's own panic, on the goroutine of its reader",
	"transport/vendortest/serve.go object": "a value of the package's own that JSON cannot say: an impossible state",
	"transport/vendortest/models.go event": "the same",
}

// TestPanics: nothing that a user or a provider sends makes the library panic.
// panic(http.ErrAbortHandler) is how a handler of net/http breaks a connection.
func TestPanics(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, f := range s.functions() {
			where := s.name + " " + f.Name.Name
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isPanic(call) || strings.HasPrefix(f.Name.Name, "Must") {
					return true
				}
				assert.Contains(t, mayPanic, where, "panics in line %d", s.line(call.Pos()))
				used[where] = true
				return true
			})
		}
	}
	for where := range mayPanic {
		assert.True(t, used[where], "%s does not panic any more", where)
	}
}

func isPanic(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.Ident)
	if !ok || f.Name != "panic" {
		return false
	}
	arg, ok := call.Args[0].(*ast.SelectorExpr)
	return !ok || arg.Sel.Name != "ErrAbortHandler"
}

// TestMoneyIsNoFloat: no float takes part in a decision about money.
func TestMoneyIsNoFloat(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.dir != "transport" && s.dir != "budget" && !strings.HasPrefix(s.dir, "budget/") {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				assert.NotContains(t, []string{"float32", "float64", "ParseFloat", "ColumnFloat"}, id.Name, "%s:%d", s.name, s.line(id.Pos()))
			}
			return true
		})
	}
}

// TestDocComments: every exported name says what it is, and every package. Names in a
// group may share the comment of the group; fields and methods of interfaces are free.
func TestDocComments(t *testing.T) {
	packages := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		packages[s.dir] = packages[s.dir] || s.ast.Doc != nil
		if s.ast.Name.Name == "main" {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && isExportedReceiver(d) {
					begins(t, s, d.Doc, d.Name)
				}
			case *ast.GenDecl:
				documented(t, s, d)
			}
		}
	}
	for dir, has := range packages {
		assert.True(t, has, "package %s has no comment", dir)
	}
}

func documented(t *testing.T, s source, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				doc := spec.Doc
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				begins(t, s, doc, spec.Name)
			}
		case *ast.ValueSpec:
			if spec.Names[0].IsExported() {
				assert.True(t, d.Doc != nil || spec.Doc != nil || spec.Comment != nil,
					"%s:%d: %s has no comment", s.name, s.line(spec.Pos()), spec.Names[0])
			}
		}
	}
}

// begins checks that a comment begins with the name, after an article if any.
func begins(t *testing.T, s source, doc *ast.CommentGroup, name *ast.Ident) {
	t.Helper()
	words := regexp.MustCompile(`^((A|An|The) )?` + name.Name + `\b`)
	assert.Regexp(t, words, doc.Text(), "%s:%d: the comment of %s", s.name, s.line(name.Pos()), name.Name)
}

// isExportedReceiver reports whether d is a function, or a method that users can see.
func isExportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && token.IsExported(name.Name)
}

// TestEveryPackageHasAnExample: the documentation of a package shows it at work.
func TestEveryPackageHasAnExample(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		for _, f := range s.functions() {
			has[s.dir] = has[s.dir] || s.test && strings.HasPrefix(f.Name.Name, "Example")
		}
	}
	for dir := range edges {
		if dir == "transport/gateway" || dir == "throttle/redislimiter/redisstore" || strings.HasSuffix(dir, "test") && dir != "transport/vendortest" {
			continue // suites are used by the tests of this module; the gateway by its command, the store by our two packages
		}
		assert.True(t, has[dir], "%s has no example", dir)
	}
}

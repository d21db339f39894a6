package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = ".." // of the module, seen from here
	module = "github.com/outlay-go/outlay"
)

// source is one Go file of the module.
type source struct {
	name string // its path from the root, with slashes
	dir  string // ... and that of its package
	test bool
	fset *token.FileSet
	ast  *ast.File
	size int // lines
}

// sources lists every Go file of this module. Nested modules and what git or the go
// command ignore are left out.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parseAll()
	require.NoError(t, err)
	require.Greater(t, len(all), 20, "the tree was not found")
	return all
}

var parseAll = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && leftOut(p, d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		s, err := parse(p)
		all = append(all, s)
		return err
	})
	return all, err
})

func leftOut(p, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	return err == nil
}

func parse(p string) (source, error) {
	name, err := filepath.Rel(root, p)
	if err != nil {
		return source{}, err
	}
	s := source{name: filepath.ToSlash(name), fset: token.NewFileSet()}
	s.dir, s.test = path.Dir(s.name), strings.HasSuffix(p, "_test.go")
	s.ast, err = parser.ParseFile(s.fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err == nil {
		s.size = s.fset.File(s.ast.Pos()).LineCount()
	}
	return s, err
}

// imports lists the import paths of the file.
func (s source) imports() []string {
	var paths []string
	for _, i := range s.ast.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}

// functions lists the functions and methods of the file.
func (s source) functions() []*ast.FuncDecl {
	var all []*ast.FuncDecl
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			all = append(all, f)
		}
	}
	return all
}

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

package examples_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages are the texts for users. What they claim of behaviour is tested where the behaviour
// lives; here it is seen that what they name exists, and that their numbers are the code's.
var pages = []string{"README.md", "transport/MIGRATING.md", "examples/gateway/README.md", "transport/provider/README.md", "transport/peerbench/README.md"}

var fences = regexp.MustCompile("(?ms)^```.*?^```|<!--.*?-->")

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, name := range pages {
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(page(t, name), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			_, err := os.Stat(filepath.Join(root, target))
			if assert.NoError(t, err, "%s links to %s", name, m[1]) && anchor != "" {
				assert.Contains(t, anchors(page(t, target)), anchor, "%s links to %s", name, m[1])
			}
		}
	}
}

// anchors are those of the headings, as GitHub makes them.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		s := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(m[1])), " ", "-")
		all = append(all, regexp.MustCompile(`[^\w-]`).ReplaceAllString(s, ""))
	}
	return all
}

// names are what the packages of the module export: their own names, by package, and
// fields and methods, by type.
type names struct {
	exported, members map[string]map[string]bool
	any               map[string]bool
}

func (n *names) add(m map[string]map[string]bool, of, name string) {
	if m[of] == nil {
		m[of] = map[string]bool{}
	}
	m[of][name], n.any[name] = true, true
}

func exportedNames(t *testing.T) *names {
	n := &names{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}}
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.dir, "examples") {
			continue
		}
		pkg := s.ast.Name.Name
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					n.add(n.exported, pkg, d.Name.Name)
				} else {
					typ := d.Recv.List[0].Type
					if star, ok := typ.(*ast.StarExpr); ok {
						typ = star.X
					}
					if id, ok := typ.(*ast.Ident); ok {
						n.add(n.members, id.Name, d.Name.Name)
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					n.addSpec(pkg, spec)
				}
			}
		}
	}
	return n
}

func (n *names) addSpec(pkg string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range spec.Names {
			n.add(n.exported, pkg, id.Name)
		}
	case *ast.TypeSpec:
		n.add(n.exported, pkg, spec.Name.Name)
		var fields *ast.FieldList
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			fields = typ.Fields
		case *ast.InterfaceType:
			fields = typ.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, id := range f.Names {
				n.add(n.members, spec.Name.Name, id.Name)
			}
		}
	}
}

var (
	code      = regexp.MustCompile("`([^`\n]+)`")
	ofPackage = regexp.MustCompile(`(?:^|[^\w.])([a-z]+)\.([A-Z]\w*)(?:[.{]([A-Z]\w*))?`)
	ofType    = regexp.MustCompile(`(?:^|[^\w.])([A-Z]\w*)[.{]([A-Z]\w*)`)
	alone     = regexp.MustCompile(`^([A-Z]\w*)(\(\))?$`)
)

// foreign are names of others that the pages mention.
var foreign = regexp.MustCompile(`^(Accept|Location|Origin|Referer|Timeout|Wait|Close|Request|GetBody|Dockerfile|[A-Z_]+|` + // HTTP, clients, vendors
	`Allow|WaitN|ReserveN|SetLimit|SetBurst|Take|RetryMax|RetryWaitM(in|ax)|CheckRetry|(Passthrough)?ErrorHandler|Logger|(Request|Response)LogHook|` +
	`With(MaxWaitTime|Budget|SingleSleepLimit)|DelayFunc|ErrExceeded|ErrRateLimitExceeded|SetBody|BaseURL|TwilioRestError|ContextTimeoutEnabled)$`)

// Names in the running text exist: those of snippets are compiled.
func TestNamesOfThePagesExist(t *testing.T) {
	n := exportedNames(t)
	found := 0
	for _, name := range pages {
		for _, span := range code.FindAllStringSubmatch(fences.ReplaceAllString(page(t, name), ""), -1) {
			for _, m := range ofPackage.FindAllStringSubmatch(span[1], -1) {
				if n.exported[m[1]] == nil {
					continue
				}
				found++
				assert.True(t, n.exported[m[1]][m[2]], "%s: %s", name, span[0])
				assert.True(t, m[3] == "" || n.members[m[2]][m[3]], "%s: %s: %s has no %s", name, span[0], m[2], m[3])
			}
			for _, m := range ofType.FindAllStringSubmatch(span[1], -1) {
				found++
				assert.True(t, n.members[m[1]][m[2]] || foreign.MatchString(m[1]), "%s: %s: %s has no %s", name, span[0], m[1], m[2])
			}
			if m := alone.FindStringSubmatch(span[1]); m != nil {
				found++
				assert.True(t, n.any[m[1]] || foreign.MatchString(m[1]), "%s: %s", name, span[0])
			}
		}
	}
	require.Greater(t, found, 150)
}

package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
)

// block is a fenced part of the README. Comments that readers do not see, on the line
// before and the line after it, add what a fragment needs to compile.
type block struct {
	line          int
	before, after string
	lang, text    string
}

var fenced = regexp.MustCompile("(?ms)(?:^<!-- ([^\n]*) -->\n)?^```([a-z]+)\n(.*?)^```\n(?:<!-- ([^\n]*) -->$)?")

func blocks(t *testing.T, lang string) []block {
	t.Helper()
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	var found []block
	for _, m := range fenced.FindAllStringSubmatchIndex(string(text), -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return string(text[m[2*i]:m[2*i+1]])
		}
		if part(2) == lang {
			line := 1 + strings.Count(string(text[:m[4]]), "\n")
			found = append(found, block{line, part(1), part(4), lang, part(3)})
		}
	}
	require.NotEmpty(t, found, "no %s in the README", lang)
	return found
}

// importPaths are what the snippets may import, by package name.
var importPaths = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "os": "os",
	"slog": "log/slog", "testing": "testing", "time": "time", "url": "net/url",
	"budget": module + "/budget", "dialect": module + "/transport/dialect", "price": module + "/budget/price", "provider": module + "/transport/provider",
	"redis": "github.com/redis/go-redis/v9", "redisledger": module + "/budget/redisledger", "redislimiter": module + "/throttle/redislimiter", "sqliteledger": module + "/budget/sqliteledger",
	"promtransport": module + "/transport/promtransport", "statuspage": module + "/transport/statuspage",
	"throttle": module + "/throttle", "transport": module + "/transport", "vendortest": module + "/transport/vendortest",
}

var qualified = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)

// file makes a Go file of a snippet: a fragment becomes the body of a function.
func (b block) file() string {
	code := b.before + "\n" + b.text + b.after + "\n"
	if !strings.HasPrefix(b.text, "func ") {
		if !strings.HasPrefix(b.before, "func ") {
			code = "func _() {\n" + code
		}
		code += "}\n"
	}
	imports := map[string]bool{}
	for _, m := range qualified.FindAllStringSubmatch(code, -1) {
		if p, ok := importPaths[m[1]]; ok {
			imports[p] = true
		}
	}
	var file strings.Builder
	file.WriteString("package snippet\n\n")
	for p := range imports {
		fmt.Fprintf(&file, "import %q\n", p)
	}
	return file.String() + code
}

// TestREADMESnippets compiles every snippet in a program of its own, set up by the
// commands that the README gives to users of a checkout.
func TestREADMESnippets(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(checkout, filepath.Join(dir, "outlay")))
	for i, b := range blocks(t, "go") {
		pkg := filepath.Join(program, fmt.Sprintf("snippet%d", i+1))
		require.NoError(t, os.MkdirAll(pkg, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(pkg, "snippet.go"), []byte(b.file()), 0o644))
		t.Logf("snippet%d: line %d", i+1, b.line)
	}
	run(t, program, "go", "mod", "init", "example.com/program")
	for _, c := range commands(t) {
		if strings.HasPrefix(c, "go mod ") {
			run(t, program, strings.Fields(c)...)
		}
	}
	run(t, program, "go", "vet", "./...")
}

// commands are the lines of the shell blocks, without their remarks.
func commands(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, b := range blocks(t, "sh") {
		for line := range strings.Lines(b.text) {
			c, _, _ := strings.Cut(line, " #")
			if c = strings.TrimSpace(c); c != "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// TestREADMECommands tries every command as far as that is cheap: make targets and
// packages must exist, benchmarks as well.
func TestREADMECommands(t *testing.T) {
	for _, c := range append(commands(t), measured(t)...) {
		words := strings.Fields(c)
		switch {
		case words[0] == "make" && len(words) == 2:
			makes(t, words[1])
		case strings.HasPrefix(c, "go run ./"): // their own tests run them
			assert.Regexp(t, `^main \[.*main_test\.go`, run(t, root, "go", "list", "-f", "{{.Name}} {{.TestGoFiles}}", words[2]))
		case strings.HasPrefix(c, "go mod "): // run by TestREADMESnippets
		case strings.Contains(c, "outlay"): // the gateway's: run by TestREADMEGateway
		case strings.HasPrefix(c, "go test ") && strings.Contains(c, "-bench "):
			pattern := regexp.MustCompile(strings.Trim(between(c, "-bench ", " "), "'"))
			assert.True(t, hasFunction(t, words[len(words)-1], "Benchmark", pattern), c)
		case strings.HasPrefix(c, "go test -run "):
			assert.True(t, hasFunction(t, words[len(words)-1], "Test", regexp.MustCompile(words[3])), c)
		default:
			assert.Fail(t, "a command that nobody tries", c)
		}
	}
}

// The gateway is built, its file copied and checked, as the README says.
func TestREADMEGateway(t *testing.T) {
	folder := t.TempDir()
	tried := 0
	for _, c := range commands(t) {
		switch {
		case strings.HasPrefix(c, "go build -o outlay-gateway "):
			run(t, root, "go", "build", "-o", filepath.Join(folder, "outlay-gateway"), c[strings.LastIndex(c, " ")+1:])
		case strings.HasPrefix(c, "cp ") && strings.HasSuffix(c, " outlay.yaml"):
			run(t, root, "cp", strings.Fields(c)[1], filepath.Join(folder, "outlay.yaml"))
		case strings.HasPrefix(c, "./outlay-gateway check && "):
			out := run(t, folder, "./outlay-gateway", "check")
			assert.Contains(t, out, "outlay.yaml: good")
		default:
			continue
		}
		tried++
	}
	assert.Equal(t, 3, tried)
}

// The bookkeeper's questions are put to a ledger by the shell that the README names.
func TestREADMEQuestions(t *testing.T) {
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("sqlite3 is missing: make deps installs it")
		}
		t.Skip("SKIPPED: sqlite3 is missing; make deps installs it")
	}
	file := t.TempDir() + "/spend.db"
	ledger, err := sqliteledger.Open(file)
	require.NoError(t, err)
	day := budget.PerDay(budget.Unit)
	day.Name = "sms-day"
	for seq := range uint64(2) {
		id := budget.HoldID{Boot: 1, Seq: seq + 1}
		_, err = ledger.Hold(t.Context(), budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{{Budget: day, Amount: budget.MustParse("0.25")}}})
		require.NoError(t, err)
		_, err = ledger.Resolve(t.Context(), id, []budget.Outcome{budget.Settled(budget.MustParse("0.2")), {Ref: "SM1"}}[seq])
		require.NoError(t, err)
	}
	require.NoError(t, ledger.SetLimit(t.Context(), "sms-day", 2*budget.Unit, budget.By{Who: "maria", Why: "campaign"}))
	require.NoError(t, ledger.Close())
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	out := run(t, root, shell, file, "\n"+between(string(text), "```sql\n", "```"))
	for _, answer := range []string{"sms-day|", "|0.2|0.25|USD", "|SM1|0.25|USD|", "|maria|campaign"} {
		assert.Contains(t, out, answer)
	}
}

// hasFunction reports whether a folder has a test or benchmark whose name fits.
func hasFunction(t *testing.T, folder, kind string, pattern *regexp.Regexp) bool {
	t.Helper()
	for _, s := range sources(t) {
		for _, f := range s.functions() {
			if "./"+s.dir == folder && strings.HasPrefix(f.Name.Name, kind) && pattern.MatchString(f.Name.Name) {
				return true
			}
		}
	}
	return false
}

// measured are the commands of the table of figures: code in its last column.
func measured(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(between(string(text), "## Measured\n", "\n## ")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			continue
		}
		if c := between(cells[len(cells)-2], "`", "`"); c != "" {
			all = append(all, c)
		}
	}
	return all
}

// between returns what stands in s after begin and before end, or all the rest.
func between(s, begin, end string) string {
	_, s, ok := strings.Cut(s, begin)
	if !ok {
		return ""
	}
	s, _, _ = strings.Cut(s, end)
	return s
}

// run runs a command and returns what it prints.
func run(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(words, " "), out)
	return string(out)
}

// TestREADMEDependencies compares the table with go.mod.
func TestREADMEDependencies(t *testing.T) {
	text, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	mod, err := os.ReadFile(root + "/go.mod")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \| (v\S+) \|`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, rows)
	listed := map[string]bool{}
	for _, r := range rows {
		listed[r[1]] = true
		assert.True(t, strings.Contains(string(mod), "\t"+r[1]+" "+r[2]), "go.mod has another version of %s", r[1])
	}
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)
	for _, m := range direct.FindAllStringSubmatch(string(mod), -1) {
		assert.True(t, listed[m[1]], "%s is not in the README", m[1])
	}
}

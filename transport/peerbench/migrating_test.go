package peerbench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-resty/resty/v2"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

const outlay = "github.com/outlay-go/outlay"

// importPaths are what the snippets may use, by package name.
var importPaths = map[string]string{
	"http": "net/http", "slog": "log/slog", "time": "time",
	"budget": outlay + "/budget", "price": outlay + "/budget/price", "provider": outlay + "/transport/provider",
	"throttle": outlay + "/throttle", "transport": outlay + "/transport",
	"bulkhead": "github.com/failsafe-go/failsafe-go/bulkhead", "failsafehttp": "github.com/failsafe-go/failsafe-go/failsafehttp",
	"github_ratelimit": "github.com/gofri/go-github-ratelimit/v2/github_ratelimit", "rate": "golang.org/x/time/rate",
	"ratelimiter": "github.com/failsafe-go/failsafe-go/ratelimiter", "resty": "github.com/go-resty/resty/v2",
	"retryablehttp": "github.com/hashicorp/go-retryablehttp",
}

// snippet is a block of Go with the comments before and after it, which readers do not
// see and which add what it needs to compile.
var (
	snippet   = regexp.MustCompile("(?ms)(?:^<!-- ([^\n]*) -->\n)?^```go\n(.*?)^```\n(?:<!-- ([^\n]*) -->$)?")
	qualified = regexp.MustCompile(`\b([a-z_]+)\.[A-Z]`)
)

// TestMigrationSnippets compiles what the page shows of both sides.
func TestMigrationSnippets(t *testing.T) {
	page, err := os.ReadFile("../MIGRATING.md")
	if err != nil {
		t.Fatal(err)
	}
	all := snippet.FindAllStringSubmatch(string(page), -1)
	if n := strings.Count(string(page), "```go\n"); n != len(all) || n < 11 {
		t.Fatalf("%d snippets of %d were found", len(all), n)
	}
	program := t.TempDir()
	for i, m := range all {
		write(t, filepath.Join(program, fmt.Sprintf("snippet%d", i+1), "snippet.go"), goFile(m[1]+"\n"+m[2]+m[3]+"\n"))
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(program, "go.mod"), strings.Replace(string(mod), "=> ../..", "=> "+checkout, 1))
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(program, "go.sum"), string(sums))
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir = program
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func goFile(code string) string {
	imports := map[string]bool{}
	for _, m := range qualified.FindAllStringSubmatch(code, -1) {
		imports[importPaths[m[1]]] = true
	}
	delete(imports, "") // a name of the snippet's own
	var file strings.Builder
	file.WriteString("package snippet\n\n")
	for p := range imports {
		fmt.Fprintf(&file, "import %q\n", p)
	}
	return file.String() + "\n" + code
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What the page says of resty: refusals of the transport below keep their type.
func TestRefusalsComeThroughResty(t *testing.T) {
	p := fullProvider(free)
	p.Price, p.Budgets = price.PerCall(budget.Unit), []budget.Budget{budget.PerDay(1)}
	_, err := resty.New().SetTransport(newOutlay(t, newBare(), p)).SetLogger(quiet{}).R().Get(lookup)
	var over *budget.ExceededError
	if !errors.As(err, &over) || !transport.NotSent(err) {
		t.Errorf("%T: %v", err, err)
	}
}

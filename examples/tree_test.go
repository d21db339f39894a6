package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// topLevel is everything that may stand at the root.
var topLevel = []string{
	".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "budget", "examples", "go.mod", "go.sum",
	"throttle", "transport",
}

func TestTopLevel(t *testing.T) {
	assert.Subset(t, topLevel, tracked(t))
	for _, name := range topLevel {
		_, err := os.Stat(filepath.Join(root, name))
		assert.NoError(t, err)
	}
}

// tracked lists the names at the root that belong to the project: those that git does
// not ignore, or all if this is no checkout of it.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Logf("no git here: %v", err)
		entries, err := os.ReadDir(root)
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	var names []string
	for line := range bytes.Lines(out) {
		name, _, _ := strings.Cut(strings.TrimSpace(string(line)), "/")
		names = append(names, name)
	}
	return names
}

func TestMakefile(t *testing.T) {
	text, err := os.ReadFile(root + "/Makefile")
	require.NoError(t, err)
	assert.LessOrEqual(t, bytes.Count(text, []byte("\n")), 40, "lines")
	for _, target := range []string{"help", "run", "test", "deps", "race", "lint", "fuzz", "bench", "prove"} {
		assert.Regexp(t, regexp.MustCompile(`(?m)^`+target+`:.* ## `), string(text), "no target, or no help for it")
		makes(t, target)
	}
	first := regexp.MustCompile(`(?m)^[a-z]+:`).FindString(string(text))
	assert.Equal(t, "help:", first, "the default target")
}

// makes checks that make knows the target. It runs nothing.
func makes(t *testing.T, target string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", target)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func TestContinuousIntegration(t *testing.T) {
	info, err := os.Stat(root + "/.ci/run")
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&0o100, ".ci/run is executable")
	text, err := os.ReadFile(root + "/.ci/run")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	assert.Equal(t, "make test", lines[len(lines)-1], "what go test prints comes last")
	assert.Contains(t, lines, "set -euo pipefail")
}

// TestOtherPlatforms compiles what the README says of other systems. It takes minutes.
func TestOtherPlatforms(t *testing.T) {
	if os.Getenv("OUTLAY_PROVE") == "" {
		t.Skip("a long proof: set OUTLAY_PROVE=1")
	}
	for system, packages := range map[string][]string{
		"darwin":  {"./..."},
		"windows": {"./budget", "./budget/redisledger", "./throttle", "./throttle/redislimiter", "./transport", "./transport/provider"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build"}, packages...)...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+system)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", system, out)
		t.Logf("prove: %s compiles on %s", strings.Join(packages, " "), system)
	}
}

package promtransport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// promtool runs the tool of that name. Where it is missing the test is skipped, except
// in continuous integration.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing: install the Debian package prometheus")
		}
		t.Skip("SKIPPED: promtool is missing: install the Debian package prometheus")
	}
	out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestRules(t *testing.T) {
	require.Contains(t, promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "outlay.rules.yaml"), "26 rules found")
	require.Contains(t, promtool(t, "test", "rules", "outlay.rules.test.yaml"), "SUCCESS")
}

var alert = regexp.MustCompile(`(?m)alert: (Outlay\w+),`)

// A rule whose alert the tests do not expect is not tested.
func TestEveryAlertIsExpectedSomewhere(t *testing.T) {
	text, err := os.ReadFile("outlay.rules.yaml")
	require.NoError(t, err)
	tests, err := os.ReadFile("outlay.rules.test.yaml")
	require.NoError(t, err)
	alerts := alert.FindAllStringSubmatch(string(text), -1)
	require.Len(t, alerts, 15)
	for _, a := range alerts {
		require.True(t, bytes.Contains(tests, []byte(a[1])), "no test expects %s", a[1])
	}
}

// Who is woken finds in the alert what to do, in words of the page.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	text, err := os.ReadFile("outlay.rules.yaml")
	require.NoError(t, err)
	for _, rule := range strings.Split(string(text), "{alert: ")[1:] {
		name, rest, _ := strings.Cut(rule, ",")
		for _, part := range []string{"summary: '", "description: '", "action: '"} {
			_, words, ok := strings.Cut(rest, part)
			require.True(t, ok, "%s has no %s", name, part)
			words, _, _ = strings.Cut(words, "'}}")
			require.Greater(t, len(words), 30, name)
		}
	}
}

// Without any one of the alerts the tests of the rules fail. It takes minutes.
func TestEachAlertIsNeeded(t *testing.T) {
	if os.Getenv("OUTLAY_PROVE") == "" {
		t.Skip("a long proof: set OUTLAY_PROVE=1")
	}
	promtool(t, "--version")
	text, err := os.ReadFile("outlay.rules.yaml")
	require.NoError(t, err)
	tests, err := os.ReadFile("outlay.rules.test.yaml")
	require.NoError(t, err)
	caught := 0
	for _, a := range alert.FindAllStringSubmatch(string(text), -1) {
		dir := t.TempDir()
		renamed := strings.Replace(string(text), "alert: "+a[1]+",", "alert: "+a[1]+"Gone,", 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "outlay.rules.yaml"), []byte(renamed), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "test.yaml"), tests, 0o600))
		require.Error(t, exec.CommandContext(t.Context(), "promtool", "test", "rules", filepath.Join(dir, "test.yaml")).Run(), "%s can go", a[1])
		caught++
	}
	t.Logf("prove: %d of %d alerts are missed by the tests of the rules when they are gone", caught, caught)
}

func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d struct {
		UID    string
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, "outlay", d.UID)
	for _, p := range d.Panels {
		require.True(t, p.Type == "row" || len(p.Targets) > 0, "%s has no query", p.Title)
		for _, q := range p.Targets {
			queries = append(queries, q.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		queries = append(queries, a.Expr)
	}
	require.Greater(t, len(queries), 30)
	return queries
}

func TestDashboardParses(t *testing.T) {
	fill := strings.NewReplacer("$provider", "maps", "$budget", "sms-day", "$one_budget", "sms-day")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	queries := dashboardQueries(t)
	for i, q := range queries {
		fmt.Fprintf(&rules, "  - {record: 'panel:query:%d', expr: %q}\n", i, fill.Replace(q))
	}
	require.NotContains(t, rules.String(), "$")
	file := filepath.Join(t.TempDir(), "dashboard.rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	require.Contains(t, promtool(t, "check", "rules", file), fmt.Sprintf("%d rules found", len(queries)))
}

package peerbench

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var tableFile = flag.String("table", "", "write the tables of who does what to this `file` instead of comparing them with README.md")

// TestWhoDoesWhat plays every fault to every library and compares what was seen with the
// tables of README.md, so that they say what the versions in go.mod do.
func TestWhoDoesWhat(t *testing.T) {
	answers, turns := answersTable(t), turnsTable(t)
	if *tableFile != "" {
		if err := os.WriteFile(*tableFile, []byte(answers+"\n"+turns), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{answers, turns} {
		for line := range strings.Lines(table) {
			if !strings.Contains(string(readme), line) {
				t.Errorf("README.md does not say what was seen (make bench-peers writes it): %s", line)
			}
		}
	}
}

func answersTable(t *testing.T) string {
	rows := [][]string{names("what the server does", contenders)}
	for _, f := range faults() {
		rows = append(rows, cells(f.name, contenders, func(c contender) string { return f.observe(t, c) }))
	}
	rows = append(rows, cells("429, Retry-After: 2; another caller begins after 1 s", contenders, func(c contender) string { return latecomer(t, c) }))
	return markdown(rows)
}

func turnsTable(t *testing.T) string {
	rows := [][]string{names("what the callers do", limiters)}
	for _, f := range contests() {
		rows = append(rows, cells(f.name, limiters, func(c contender) string { return f.observe(t, c) }))
	}
	return markdown(rows)
}

func names(first string, all []contender) []string {
	return cells(first, all, func(c contender) string { return c.name })
}

func cells(first string, all []contender, cell func(contender) string) []string {
	row := []string{first}
	for _, c := range all {
		row = append(row, cell(c))
	}
	return row
}

func markdown(rows [][]string) string {
	var s strings.Builder
	for i, row := range rows {
		s.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			s.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return s.String()
}

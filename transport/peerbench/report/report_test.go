package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func measured() figures {
	f := figures{}
	for _, line := range []string{
		"goos: linux", "PASS",
		"BenchmarkGET/outlay \t 10\t 300 ns/op\t 144 B/op\t 3 allocs/op",
		"BenchmarkGET/outlay \t 10\t 9000 ns/op\t 144 B/op\t 3 allocs/op",
		"BenchmarkGET/outlay \t 10\t 200 ns/op\t 144 B/op\t 3 allocs/op",
		"BenchmarkGET/xtime \t 10\t 150.5 ns/op\t 144 B/op\t 1 allocs/op",
		"BenchmarkPacing/xtime \t 10\t 5000000 ns/op\t 21 most/100ms\t 0.9996 of-rate",
	} {
		f.add(line)
	}
	return f
}

func TestOneSlowPassChangesNoMedian(t *testing.T) {
	if v, ok := measured().median("GET/outlay", "ns/op"); !ok || v != 300 {
		t.Errorf("%v %v", v, ok)
	}
	if _, ok := measured().median("GET/uber", "ns/op"); ok {
		t.Error("a median of nothing")
	}
}

func TestWhatWasNotMeasuredIsLeftEmpty(t *testing.T) {
	table := measured().callsTable()
	if want := "| GET, an answer without a body | 300 ns, 3 |  |  | 150 ns, 1 |  |"; !strings.Contains(table, want) {
		t.Errorf("%s\nis not in\n%s", want, table)
	}
	if parts := measured().partsTable(); strings.Contains(parts, "Redis") {
		t.Error(parts)
	}
}

func TestPrintedRatioIsToOutlay(t *testing.T) {
	var s strings.Builder
	measured().print(&s)
	if !regexp.MustCompile(`GET/xtime .* 0\.50 +144 +1\n`).MatchString(s.String()) {
		t.Error(s.String())
	}
}

func TestOneBenchmarkIsNamedExactly(t *testing.T) {
	if got := exactly("BenchmarkGET/open=10"); got != "^BenchmarkGET$/^open=10$" {
		t.Error(got)
	}
}

func TestTablesReplaceWhatIsBetweenTheMarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + begin + "old\n" + end + "after\n")
	if err := insert(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "before\n"+begin+"new\n"+end+"after\n" {
		t.Errorf("%s", got)
	}
	write("no marks\n")
	if err := insert(file, "new\n"); err == nil {
		t.Error("no error for a file without the marks")
	}
}

func TestEveryLibraryHasItsVersion(t *testing.T) {
	t.Chdir("..")
	table, err := librariesTable()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table, "| failsafe-go 0.9.8 (github.com/failsafe-go/failsafe-go) | MIT |") {
		t.Error(table)
	}
}

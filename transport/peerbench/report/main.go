// Command report measures outlay beside other libraries and writes the tables of the
// README. It runs in the folder of peerbench: make bench-peers.
//
// A machine is never as quiet as it looks, so no figure comes from one run: every
// benchmark runs in several passes, in an order drawn anew for each, so that all of them
// meet the same moments; what is told is the median, on one processor.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// group is a set of benchmarks that run for the same time.
type group struct {
	pattern, benchtime string
}

var plan = []group{
	{"^Benchmark(GET|Read|POST4KiB|Refusal|Headers|Loopback|Durable)$", "100ms"},
	{"^BenchmarkWait$", "500x"},
	{"^BenchmarkPacing$", "300x"},
	{"^BenchmarkRedis$", "100ms"},
}

// once are benchmarks whose preparation takes seconds: they run in the first pass alone.
var once = regexp.MustCompile("open=100000|beside")

func main() {
	log.SetFlags(0)
	passes := flag.Int("passes", 5, "how often each benchmark runs")
	only := flag.String("only", "", "measure the benchmarks whose names match this `pattern`, print them and write nothing")
	readme := flag.String("readme", "README.md", "write the tables to this `file`; empty: print them")
	flag.Parse()
	if err := run(*passes, *only, *readme); err != nil {
		log.Fatal("report: ", err)
	}
}

func run(passes int, only, readme string) error {
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "peerbench.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	began := time.Now()
	figures, err := measure(binary, passes, only)
	if err != nil {
		return err
	}
	figures.print(os.Stdout)
	log.Printf("%d passes in %v", passes, time.Since(began).Round(time.Second))
	if only != "" {
		return nil
	}
	faults, err := observe(binary, filepath.Join(dir, "table.md"))
	if err != nil {
		return err
	}
	text, err := figures.chapter(passes, faults)
	if err != nil {
		return err
	}
	if readme == "" {
		fmt.Print(text)
		return nil
	}
	return insert(readme, text)
}

// observe lets the tests write who does what, once they have seen the same over real
// connections.
func observe(binary, table string) (string, error) {
	real := exec.Command(binary, "-test.run", "^TestRealConnectionsAgree$", "-test.parallel", "200")
	real.Env = append(os.Environ(), "OUTLAY_PROVE=1")
	for _, cmd := range []*exec.Cmd{real, exec.Command(binary, "-test.run", "^TestWhoDoesWhat$", "-table", table)} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("who does what: %w\n%s", err, out)
		}
	}
	text, err := os.ReadFile(table)
	return string(text), err
}

// task is one process: some benchmarks, for some time.
type task struct {
	pattern, benchtime string
}

// measure runs every group once to learn the names in it, then every name alone, in
// random order.
func measure(binary string, passes int, only string) (figures, error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	all := figures{}
	var again []task
	for _, g := range plan {
		names, err := all.bench(binary, task{cmp.Or(only, g.pattern), g.benchtime})
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if wanted.MatchString(n) && !once.MatchString(n) {
				again = append(again, task{exactly(n), g.benchtime})
			}
		}
		if only != "" {
			break
		}
	}
	for range passes - 1 {
		rand.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		for _, t := range again {
			if _, err := all.bench(binary, t); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// exactly is the pattern of one benchmark: each level of its name by itself.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// bench runs a task and adds what it prints.
func (f figures) bench(binary string, t task) (names []string, err error) {
	cmd := exec.Command(binary, "-test.run", "^$", "-test.bench", t.pattern, "-test.benchtime", t.benchtime, "-test.cpu", "1", "-test.benchmem")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", t.pattern, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if n := f.add(line); n != "" {
			names = append(names, n)
		}
	}
	return names, nil
}

// The marks between which the chapter stands in README.md.
const (
	begin = "<!-- peers:begin -->\n"
	end   = "<!-- peers:end -->\n"
)

func insert(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the tables: %s … %s", file, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}

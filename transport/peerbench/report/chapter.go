package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// column is a library in the table of HTTP calls: its title and its names in benchmarks.
type column struct {
	title string
	names []string
}

var columns = []column{
	{"outlay", []string{"outlay"}},
	{"outlay, traced", []string{"outlay_traced"}},
	{"bare", []string{"bare"}},
	{"x/time", []string{"xtime"}},
	{"uber", []string{"uber"}},
	{"failsafe-go", []string{"failsafe_all", "failsafe"}},
	{"go-retryablehttp", []string{"retryablehttp"}},
	{"go-github-ratelimit", []string{"gofri"}},
	{"http.Client", []string{"bare_client"}},
	{"resty", []string{"resty"}},
}

// calls are the rows of that table.
var calls = []struct{ title, group string }{
	{"GET, an answer without a body", "GET"},
	{"GET, an answer of 512 bytes, read to its end", "Read"},
	{"POST of 4 KiB that can be had again", "POST4KiB"},
	{"GET of 512 bytes over a real connection on loopback", "Loopback"},
	{"a refusal: no turn in time", "Refusal/rate"},
	{"a refusal: the budget is used up", "Refusal/budget"},
}

func (f figures) callsTable() string {
	rows := [][]string{{"one call"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.title)
	}
	for _, r := range calls {
		row := []string{r.title}
		for _, c := range columns {
			row = append(row, f.cell(r.group, c.names))
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}

func (f figures) cell(group string, names []string) string {
	for _, n := range names {
		if s := f.cost(group + "/" + n); s != "" {
			return s
		}
	}
	return ""
}

// cost is time and allocations: the processor's time where that is all there is to a call.
func (f figures) cost(name string) string {
	ns, ok := f.median(name, f.unit(name))
	if !ok {
		return ""
	}
	allocs, _ := f.median(name, "allocs/op")
	return fmt.Sprintf("%s, %.0f", span(ns), allocs)
}

// part is a row of the second table: ours, and what stands beside it.
type part struct {
	title, ours string
	beside      [][2]string // title and name
	cell        func(figures, string) string
}

func (f figures) paced(name string) string {
	share, ok := f.median(name, "of-rate")
	most, _ := f.median(name, "most/100ms")
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.4f of the rate, at most %.0f", share, most)
}

var parts = []part{
	{"a wait, 64 callers at 2,000 a second", "Wait/outlay", limitersOf("Wait"), figures.cost},
	{"200 a second, 64 callers: share of the rate, calls in 100 ms (20 are right)", "Pacing/outlay", limitersOf("Pacing"), figures.paced},
	{"reading an answer without such headers", "Headers/nothing/outlay", nil, figures.cost},
	{"reading X-RateLimit-Limit, -Remaining, -Reset", "Headers/trio/outlay", [][2]string{{"Get and Atoi", "Headers/trio/by_hand"}}, figures.cost},
	{"reading RateLimit and RateLimit-Policy", "Headers/RateLimit/outlay", [][2]string{{"httpsfv", "Headers/RateLimit/httpsfv"}}, figures.cost},
	{"reading a date in Retry-After", "Headers/date/outlay", [][2]string{{"http.ParseTime", "Headers/date/ParseTime"}}, figures.cost},
	{"a hold on the disk and its outcome, one caller", "Durable/one/outlay", [][2]string{{"bbolt Update", "Durable/one/bbolt_update"}, {"append and fdatasync", "Durable/one/fsync"}}, figures.cost},
	{"the same, each of 64 callers", "Durable/64/outlay", [][2]string{
		{"bbolt Update", "Durable/64/bbolt_update"}, {"bbolt Batch", "Durable/64/bbolt_batch"}, {"one fdatasync for all who wait", "Durable/64/fsync"},
	}, figures.cost},
	{"a turn through Redis, each asked for alone", "Redis/outlay_single", [][2]string{{"redis_rate", "Redis/redis_rate"},
		{"redis_rate at a rate so high that it writes nothing", "Redis/redis_rate_nothing"}, {"a script that does nothing", "Redis/floor"}}, figures.cost},
	{"a turn through Redis, 50 taken at once", "Redis/outlay_batch50", [][2]string{{"redis_rate", "Redis/redis_rate"}}, figures.cost},
	{"a hold and its outcome through Redis, 10 others open", "Redis/outlay_hold_resolve/open=10", [][2]string{
		{"1,000 open", "Redis/outlay_hold_resolve/open=1000"}, {"100,000 open", "Redis/outlay_hold_resolve/open=100000"},
	}, figures.cost},
}

func limitersOf(group string) [][2]string {
	return [][2]string{{"x/time", group + "/xtime"}, {"uber", group + "/uber"}, {"failsafe-go", group + "/failsafe"}}
}

func (f figures) partsTable() string {
	rows := [][]string{{"a part", "outlay", "beside"}}
	for _, p := range parts {
		ours := p.cell(f, p.ours)
		if ours == "" {
			continue
		}
		var beside []string
		for _, b := range p.beside {
			if s := p.cell(f, b[1]); s != "" {
				beside = append(beside, b[0]+": "+s)
			}
		}
		rows = append(rows, []string{p.title, ours, strings.Join(beside, "; ")})
	}
	return markdown(rows)
}

// chapter is what stands in README.md between the marks.
func (f figures) chapter(passes int, faults string) (string, error) {
	libraries, err := librariesTable()
	if err != nil {
		return "", err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s on one of %d processors, medians of %d interleaved passes: time (of the processor, but for disk and Redis) and allocations. ", runtime.Version(), runtime.NumCPU(), passes)
	s.WriteString(intro + "\n\n" + f.callsTable() + "\n" + f.partsTable() + "\n" + aboutFaults + "\n\n" + faults + "\n" + aboutLibraries + "\n\n" + libraries)
	return s.String(), nil
}

const intro = `All have the same base,
which does nothing (*bare*), and all answers are read and closed. outlay has everything on (match, rate, slot, price, hold and
settle in memory, headers, hook) and does more than the others; *traced* is over a base that reports its connections, as
*http.Transport does. resty brings a client of its own and stands beside http.Client. What is empty is not offered.`

const aboutFaults = `Who does what: the same faults, played by a server to each library as configured below: exact times come from
a bubble of testing/synctest, and real connections agreed. A cell says
how often the request arrived, when it came the second time, and what the caller got. *As told*: when the server asked for it;
*own pause*: after a backoff; *error*: the library's or the context's. A GET or POST that is not repeated is left to the caller.`

const aboutLibraries = `Configured as their documentation shows; a different configuration does other things. None of the others has budgets, and a
limit of any of them, outlay's Bucket included, holds for one process (redislimiter and redis_rate share it). Redis is a
redis-server on loopback that appends to its file.`

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

// libraries are what is measured, with licence and configuration.
var libraries = [][4]string{
	{"failsafe-go", "github.com/failsafe-go/failsafe-go", "MIT", "failsafehttp: retry policy with backoff 1 s to 30 s and 3 retries, around a breaker (5 failures, 1 minute), around a limiter that waits up to a minute"},
	{"go-retryablehttp", "github.com/hashicorp/go-retryablehttp", "MPL-2.0", "NewClient, without its log; as RoundTripper of a standard client"},
	{"go-github-ratelimit", "github.com/gofri/go-github-ratelimit/v2", "MIT", "New; it is made for GitHub, so the throttled answers have GitHub's words"},
	{"resty", "github.com/go-resty/resty/v2", "MIT", "3 retries on errors and 429, as in its README; x/time as its limiter, alone where turns are compared"},
	{"x/time", "golang.org/x/time", "BSD-3-Clause", "ten lines: Wait, then the base"},
	{"uber ratelimit", "go.uber.org/ratelimit", "MIT", "ten lines: Take, then the base"},
	{"bbolt", "go.etcd.io/bbolt", "MIT", "defaults; a record and a sum in one transaction"},
	{"httpsfv", "github.com/dunglas/httpsfv", "BSD-3-Clause", "UnmarshalList"},
	{"redis_rate", "github.com/go-redis/redis_rate/v10", "BSD-2-Clause", "Allow, at the same rate and burst"},
}

const ours = `a price, a budget that lasts, default retries; IdempotencyHeader where the request has a key, the dialect "google-maps" where the answer is Google's`

func librariesTable() (string, error) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return "", err
	}
	rows := [][]string{{"library", "licence", "configuration"}, {"outlay", "MIT", ours}}
	for _, l := range libraries {
		version := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(l[1]) + ` v(\S+)`).FindSubmatch(mod)
		if version == nil {
			return "", fmt.Errorf("go.mod has no %s", l[1])
		}
		rows = append(rows, []string{fmt.Sprintf("%s %s (%s)", l[0], version[1], l[1]), l[2], l[3]})
	}
	return markdown(rows), nil
}

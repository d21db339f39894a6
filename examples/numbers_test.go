package examples_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command of the pages has the flags with which it is shown.
func TestFlagsOfThePagesExist(t *testing.T) {
	texts := stringsOf(t)
	flag := regexp.MustCompile(` -{1,2}([a-z][a-z-]*)`)
	found := 0
	for _, name := range pages {
		text := strings.ReplaceAll(page(t, name), "`spend ", "`go run ./examples/spend ")
		text = strings.ReplaceAll(text, "`outlay-gateway ", "`go run ./examples/gateway ")
		for _, m := range regexp.MustCompile("go run \\./(examples/[a-z]+)([^`#\n]*)").FindAllStringSubmatch(text, -1) {
			for _, f := range flag.FindAllStringSubmatch(m[2], -1) {
				found++
				assert.True(t, texts[m[1]][f[1]], "%s: %s: %s has no -%s", name, m[0], m[1], f[1])
			}
			if word, _, _ := strings.Cut(strings.TrimSpace(m[2]), " "); regexp.MustCompile(`^[a-z]+$`).MatchString(word) {
				assert.True(t, texts[m[1]][word], "%s: %s: there is no command %s", name, m[0], word)
			}
		}
	}
	require.Greater(t, found, 15)
}

// stringsOf are the texts in the code of each folder.
func stringsOf(t *testing.T) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range sources(t) {
		if all[s.dir] == nil {
			all[s.dir] = map[string]bool{}
		}
		if s.test {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					all[s.dir][text] = true
				}
			}
			return true
		})
	}
	return all
}

// Each number of the pages stands on a line of the code, whose own tests hold it. Who
// changes the line changes the sentence.
func TestNumbersOfThePages(t *testing.T) {
	standing(t, pages, map[string][2]string{
		"`promtransport` exports 43 families of metrics":                       {"transport/promtransport/promtransport_test.go", "require.Len(t, descs, 43)"},
		"In the configuration zero is one minute":                              {"transport/config.go", "defaultMaxWait = time.Minute"},
		"A call is tried three times at most (`Retry.Attempts`)":               {"transport/validate.go", "r.Attempts = 3"},
		"All retries of a provider together stay below a fifth":                {"transport/validate.go", "r.Share = 20"},
		"ten a minute always allowed":                                          {"transport/retry.go", "shareFloor = 10 "},
		"the effective rate by 30 %":                                           {"throttle/gate.go", "slowBy     = 0.7 "},
		"every second without one gives 2 % back":                              {"throttle/gate.go", "recovery   = 0.02 "},
		"close that provider's gates for up to 31 days":                        {"throttle/gate.go", "maxClosed  = 31 * 24 * time.Hour"},
		"100,000 are kept, the rest share one":                                 {"throttle/bucket.go", "defaultMaxScopes = 100_000"},
		"A rate has a burst of 1 unless you set `Burst`":                       {"throttle/rate.go", "return max(1, r.Burst)"},
		"bulk still gets a tenth and a critical call waits for two turns":      {"throttle/queue.go", "patience = 8"},
		"the Redis (6.2 or later) that you have":                               {"throttle/redislimiter/redisstore/start.go", "major, minor = 6, 2"},
		"grants nothing for the first 10 s (`Options.Learn`)":                  {"budget/redisledger/open.go", "cmp.Or(o.Learn, 10*time.Second)"},
		"After a flush it grants nothing for 10 s":                             {"budget/redisledger/open.go", "cmp.Or(o.Learn, 10*time.Second)"},
		"calls are refused after 250 ms":                                       {"budget/redisledger/open.go", "cmp.Or(o.Timeout, 250*time.Millisecond)"},
		"A changed file is in force within about two seconds":                  {"examples/gateway/reload.go", "lookEvery = 2 * time.Second"},
		"# http://127.0.0.1:8787; page and metrics: http://127.0.0.1:8786/":    {"transport/gateway/loadtop.go", `l.file.Admin.Address = l.address(s, "address", "127.0.0.1:8786")`},
		"An amount is an int64 of 10^-9 units":                                 {"budget/amount.go", "Unit Amount = 1e9"},
		"nginx with `limit_req`, we at its rate: requests refused of 2,000":    {"transport/nginx_test.go", "requests = 2000"},
		"nginx, we three times too fast":                                       {"transport/nginx_test.go", "throttle.PerSecond(3*rate)"},
		"20 hours of simulated trouble (200 in `make prove`): three processes": {"examples/chaos/chaos_test.go", "runs := 20"},
		"with 10 or 100,000 others open":                                       {"budget/redisledger/bench_test.go", "100_000"},
		"beside httputil.ReverseProxy, 32 callers":                             {"transport/gateway/bench_test.go", "32"},
		"(10 s for a header, 2 minutes between calls)":                         {"transport/gateway/gateway.go", "IdleTimeout:                  2 * time.Minute"},
		"tell of a difference within ten seconds":                              {"examples/gateway/limits.go", "limitsEvery = 10 * time.Second"},
		"any other call is finished for 30 s at the most":                      {"transport/gateway/call.go", "finishFor = 30 * time.Second"},
		"A second signal, a second later or more":                              {"examples/gateway/run.go", "sameSignal = time.Second"},
		"it exits with 3 if it would be refused":                               {"examples/gateway/main_test.go", "status = 3"},
		"backoff: 500ms, share: 20%":                                           {"transport/validate.go", "r.Backoff = 500 * time.Millisecond"},
		"{attempts: 3, max_retry_after":                                        {"transport/validate.go", "r.Attempts = 3"},
		"alerts: [50%, 80%, 100%]":                                             {"budget/budget.go", "b.Alerts = []int{50, 80, 100}"},
		"8 s for twilio-go and Google Maps for Node (10 s)":                    {"transport/gateway/preset.go", `8*time.Second, "twilio-go", 10*time.Second`},
		"`Retry.Backoff`; it doubles up to a minute":                           {"transport/retry.go", "backoffCeiling = time.Minute"},
		"(`body.buffer`, 1 MiB)":                                               {"transport/gateway/snapshot.go", "1<<20"},
		"make test # every test, our own under the race detector":              {"Makefile", "go test -race -shuffle=on ./..."},
		"for ten minutes, which takes hours (`LONGFUZZ=1m` for less)":          {"Makefile", "$(or $(LONGFUZZ),10m)"},
		"each of 64 callers, who share commits":                                {"budget/sqliteledger/bench_test.go", "BenchmarkHold64"},
	})
}

// standing checks that some text says each key, and that its number is in the line of code.
func standing(t *testing.T, texts []string, numbers map[string][2]string) {
	t.Helper()
	var all strings.Builder
	for _, name := range texts {
		all.WriteString(strings.Join(strings.Fields(strings.ReplaceAll(page(t, name), "\n//", "\n")), " "))
	}
	for says, stands := range numbers {
		assert.True(t, strings.Contains(all.String(), says), "no text says: %s", says)
		assert.True(t, strings.Contains(page(t, stands[0]), stands[1]), "%s has no %q, on which stands: %s", stands[0], stands[1], says)
	}
}

// The same for the documentation of packages.
func TestNumbersOfThePackages(t *testing.T) {
	const ledger, limiter, file, page = "budget/redisledger/", "throttle/redislimiter/", "budget/sqliteledger/", "transport/statuspage/"
	standing(t, []string{ledger + "doc.go", limiter + "doc.go", file + "doc.go", page + "statuspage.go"}, map[string][2]string{
		"of 96 parts and by each of 64 providers":                       {ledger + "lua/tally.lua", "PARTS, PROVIDERS = 96, 64"},
		"Ended holds are known for 15 minutes":                          {ledger + "lua/resolve.lua", "900000) -- an ended hold"},
		"the last 200 decisions":                                        {page + "memory.go", "maxDecisions = 200"},
		"and 20 changes":                                                {page + "memory.go", "maxChanges   = 20"},
		"in at most 192 steps":                                          {page + "history.go", "maxPoints = 192"},
		"An instance says every two seconds that it is alive":           {ledger + "open.go", "beatEvery  = 2 * time.Second"},
		"what one holds that was silent for fifteen counts as spent":    {ledger + "open.go", "ownerAlive = 15 * time.Second"},
		"outcomes wait in memory, 100,000 of them":                      {ledger + "resolve.go", "maxWaiting = 100_000"},
		"presumed ones for 35 days after their windows":                 {ledger + "keys.go", "keepPresumed = 35 * 24 * time.Hour"},
		"totals for 400 days, and those of rolling":                     {ledger + "keys.go", "keepWindows  = 400 * 24 * time.Hour"},
		"shorter than nine days for a thousand buckets":                 {ledger + "keys.go", "maxBuckets   = 1000"},
		"what people did, the last 10,000":                              {ledger + "audit.go", "maxLog = 10_000"},
		"was booked in each of 96 parts":                                {"budget/historian.go", "HistoryParts = 96"},
		"Above 50 turns per second, unless a window is strict":          {limiter + "ask.go", "batchRate  = 50"},
		"a twentieth of a second's turns at most, valid for one second": {limiter + "ask.go", "batchShare = 20"},
		"A turn may lie up to a second ahead":                           {limiter + "redislimiter.go", "ahead = time.Second"},
		"after 250 ms at first and at once then":                        {limiter + "open.go", "cmp.Or(o.Timeout, 250*time.Millisecond)"},
		"waits in memory for the next commit, at most 50 ms":            {file + "group.go", "settleDelay = 50 * time.Millisecond"},
		"up to 100,000 outcomes wait in memory":                         {file + "sqliteledger.go", "maxOutcomes = 100_000"},
		"of which 140 stay after 15 minutes":                            {file + "resolve.go", "keepClosed   = 15 * time.Minute"},
		"Entries older than 400 days are compacted":                     {file + "compact.go", "keepEntries = 400 * 24 * time.Hour"},
		"the use of the present windows in 96 parts":                    {"budget/historian.go", "HistoryParts = 96"},
	})
}

func TestCountsOfTheREADME(t *testing.T) {
	readme := page(t, "README.md")
	rows := func(name string) string {
		all, err := csv.NewReader(strings.NewReader(page(t, "examples/quickstart/"+name))).ReadAll()
		require.NoError(t, err)
		return strconv.Itoa(len(all) - 1) // without the heading
	}
	assert.Contains(t, readme, rows("messages.csv")+" text messages and "+rows("addresses.csv")+" addresses")

	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(page(t, "go.mod"))[1]
	for _, m := range regexp.MustCompile(`\bGo (\d\.\d+)`).FindAllStringSubmatch(readme, -1) {
		assert.Equal(t, version, m[1])
	}

	minimal := page(t, "examples/gateway/minimal.yaml")
	assert.Equal(t, 10, strings.Count(minimal, "\n"))
	for _, part := range []string{"preset: twilio", "rates: [10/s]", "limit: 50 USD, every: day", "path: spend.db"} {
		assert.Contains(t, minimal, part)
	}
	for _, name := range []string{"README.md", "examples/gateway/README.md"} {
		assert.Contains(t, page(t, name), "# ten lines: Twilio, 10 messages a second, 50 USD a day")
	}
}

func TestRefusalsOfTheREADME(t *testing.T) {
	names := func(expr, text string) (all []string) {
		for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	known := between(page(t, "transport/errors.go"), "func ReasonOf(", "\n}")
	want := append(names(`AsType\[\*(?:\w+\.)?(\w+)\]`, known), names(`{(?:\w+\.)?(Err\w+), Reason`, known)...)
	require.Greater(t, len(want), 5)
	assert.ElementsMatch(t, want, names("`\\w+\\.(\\w+)`", between(page(t, "README.md"), "Our refusals are errors", "; `transport.ReasonOf`")))
}

// Who is woken finds every reason of a refusal explained, and no word that never comes.
func TestReasonsOfTheREADME(t *testing.T) {
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`).FindAllStringSubmatch(page(t, "transport/errors.go"), -1) {
		want = append(want, m[1])
	}
	require.Greater(t, len(want), 10)
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(between(page(t, "README.md"), "the label\n`reason` of the metrics): ", "Every\n[alert]"), -1) {
		got = append(got, m[1])
	}
	assert.ElementsMatch(t, want, got)
}

func TestVendorsOfTheREADME(t *testing.T) {
	presets := page(t, "transport/provider/README.md")
	other := map[string]string{"Amazon SNS": "AWSSNS", "SES": "AWSSES", "Google Maps": "GoogleGeocoding", "Azure": "AzureOpenAI"}
	list := between(page(t, "README.md"), "lists hosts, what is billed, default rates and scopes: ", " and more.")
	vendors := regexp.MustCompile(`,\s+|\s+and\s+`).Split(list, -1)
	require.Greater(t, len(vendors), 30)
	for _, v := range vendors {
		function := regexp.MustCompile(`\W`).ReplaceAllString(v, "")
		if other[v] != "" {
			function = other[v]
		}
		assert.Regexp(t, "\\| `"+function+"(SMS)?` \\|", presets, "a preset for %s", v)
	}
}

// licences are known by words of their texts.
var licences = map[string]string{
	"MIT": "Permission is hereby granted, free of charge", "Apache-2.0": "Apache License", "BSD-2-Clause": "Redistributions in binary form",
	"BSD-3-Clause": "Neither the name of",
}

func TestLicencesOfTheREADME(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \| v\S+ \| (\S+) \|`).FindAllStringSubmatch(page(t, "README.md"), -1)
	require.NotEmpty(t, rows)
	for _, r := range rows {
		dir := strings.TrimSpace(run(t, root, "go", "list", "-m", "-f", "{{.Dir}}", r[1]))
		text, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
		require.NoError(t, err)
		for name, words := range licences {
			is := name == r[2] || name == "BSD-2-Clause" && r[2] == "BSD-3-Clause"
			assert.Equal(t, is, bytes.Contains(text, []byte(words)), "%s: %s", r[1], name)
		}
	}
	assert.Contains(t, page(t, "LICENSE"), licences["MIT"])
}

// Who imports only transport builds the first two modules of the table.
func TestTransportBuildsTwoModules(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \| v`).FindAllStringSubmatch(page(t, "README.md"), 2)
	var got, want []string
	for m := range strings.Lines(run(t, root, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./transport")) {
		if m = strings.TrimSpace(m); m != "" && m != module && (len(got) == 0 || got[len(got)-1] != m) {
			got = append(got, m)
		}
	}
	for _, r := range rows {
		want = append(want, r[1])
	}
	assert.ElementsMatch(t, want, got)
}

// The figures of the long proofs are those that were kept when they ran last.
func TestFiguresOfTheProofs(t *testing.T) {
	readme, proofs := strings.ReplaceAll(page(t, "README.md"), "2,000", "2000"), page(t, ".ci/prove.txt")
	for kept, says := range map[string]func(n []float64) string{
		`nginx at its rate: (\d+) passed, (\d+) refused`: func(n []float64) string {
			return fmt.Sprintf("requests refused of %.0f from 50 callers | %.0f |", n[0], n[1])
		},
		`nginx three times too fast: after 10s ([\d.]+) % of attempts refused, ([\d.]+)/s of 100/s`: func(n []float64) string {
			return fmt.Sprintf("| %.1f %%, %.0f of 100 a second |", n[0], n[1])
		},
		`a bare commit ([\d.]+)µs; a hold, with the outcome before it, ([\d.]+)µs .*; 64 callers ([\d.]+)µs each`: func(n []float64) string {
			return fmt.Sprintf("%.2f ms and %.2f ms, beside %.2f ms for a bare commit", n[1]/1000, n[2]/1000, n[0]/1000)
		},
		`killed (\d+) times in \d+ runs`: func(n []float64) string { return fmt.Sprintf("a process killed %.0f times", n[0]) },
		`prove: (\d+) hours of three processes, three vendors`: func(n []float64) string {
			return fmt.Sprintf("(%.0f in `make prove`): three processes, three vendors", n[0])
		},
	} {
		all := regexp.MustCompile(kept).FindAllStringSubmatch(proofs, -1)
		if !assert.NotEmpty(t, all, kept) {
			continue
		}
		var n []float64
		for _, s := range all[len(all)-1][1:] {
			f, err := strconv.ParseFloat(s, 64)
			require.NoError(t, err)
			n = append(n, f)
		}
		assert.True(t, strings.Contains(readme, says(n)), "the README does not say: %s", says(n))
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// fakeURL names the fake of a parent process to the program that the test starts.
const fakeURL = "BULKSMS_TEST_FAKE"

func TestMain(m *testing.M) {
	if to := os.Getenv(fakeURL); to != "" {
		os.Exit(start(context.Background(), os.Args[1:], redirect(to), os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// redirect sends every request to another server, as it is.
type redirect string

func (to redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := url.Parse(string(to))
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host = u.Scheme, u.Host
	return http.DefaultTransport.RoundTrip(out)
}

// files are where a test's results go.
func files(t *testing.T) (results string) { return filepath.Join(t.TempDir(), "results.csv") }

// states reads the results: the state of each line, and how many rows are in each.
func states(t *testing.T, results string) map[string]int {
	t.Helper()
	f, err := os.Open(results)
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	n := map[string]int{}
	for _, r := range records[1:] {
		n[r[3]]++
	}
	return n
}

// work runs the program against a fake and returns its exit status and what it printed.
func work(t *testing.T, ctx context.Context, fake *vendortest.Fake, args ...string) (code int, out string) {
	t.Helper()
	var printed, errs bytes.Buffer
	code = start(ctx, args, vendortest.Base(fake), &printed, &errs)
	return code, printed.String() + errs.String()
}

func TestAllAreSentOnce(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	results := files(t)
	code, out := work(t, t.Context(), fake, "-results", results, "-rate", "2000")
	require.Zero(t, code, out)
	require.Contains(t, out, "bulksms: 82 done, 0 failed, 0 of unknown outcome, 0 waiting")
	require.Equal(t, map[string]int{"done": 82}, states(t, results))

	code, out = work(t, t.Context(), fake, "-results", results, "-rate", "2000")
	require.Zero(t, code, out)
	require.Equal(t, 82, fake.Counts().Received, "what was sent is not sent again")
	require.Zero(t, fake.Counts().Double)
}

// TestKills starts the program again and again after killing it in the middle.
func TestKills(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Latency: 15 * time.Millisecond})
	defer fake.Close()
	results := files(t)
	program := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-results", results, "-rate", "2000")
		cmd.Env = append(os.Environ(), fakeURL+"="+fake.URL())
		return cmd
	}
	kills := 0
	for at := 12; at <= 36; at += 12 { // a row that is lost in a kill never arrives
		cmd := program()
		require.NoError(t, cmd.Start())
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		require.Eventually(t, func() bool { return fake.Counts().Received >= at }, time.Minute, time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		<-ended
		kills++
	}
	out, err := program().CombinedOutput()
	n := states(t, results)
	t.Logf("after %d kills: %v\n%s", kills, n, out)
	require.Equal(t, 82, n["done"]+n["unknown"], "every row was sent, or may have been")
	require.LessOrEqual(t, n["unknown"], kills*16, "only what was on its way")
	require.Equal(t, n["unknown"] > 0, err != nil, "the exit status tells that some are unknown")
	require.Equal(t, n["unknown"], strings.Count(string(out), "nobody knows whether it was sent"))
	require.Zero(t, fake.Counts().Double, "no message twice")

	ledger, err := sqliteledger.Open(results + ".db")
	require.NoError(t, err)
	defer ledger.Close()
	day := budget.PerDay(50 * budget.Unit)
	day.Name = "twilio-sms-day"
	totals, err := ledger.Totals(t.Context(), time.Now(), day)
	require.NoError(t, err)
	invoice := fake.Invoice().Total
	require.LessOrEqual(t, totals[0].Settled, invoice)
	require.LessOrEqual(t, invoice, totals[0].Settled+totals[0].Presumed)
}

func TestAStopAndGoingOn(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Latency: 10 * time.Millisecond})
	defer fake.Close()
	results := files(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for fake.Counts().Received < 30 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	code, out := work(t, ctx, fake, "-results", results, "-rate", "2000")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "stopped; start it again to go on")
	n := states(t, results)
	require.Positive(t, n["waiting"])
	require.Equal(t, 82, n["waiting"]+n["done"], "what was on its way was waited for")

	code, out = work(t, t.Context(), fake, "-results", results, "-rate", "2000")
	require.Zero(t, code, out)
	require.Equal(t, 82, fake.Counts().Received)
	require.Zero(t, fake.Counts().Double)
}

func TestBudgets(t *testing.T) {
	day := time.Now().UTC()
	tests := []struct {
		name  string
		args  []string
		want  []string
		cents float64
	}{
		{"of the day", []string{"-day", "0.25"}, []string{"budget twilio-sms-day is used up"}, 25},
		{"of a country", []string{"-country", "0.1"}, []string{"budget country +1 is used up", "budget country +44 is used up"}, 60},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := vendortest.NewSMS(vendortest.Options{})
			defer fake.Close()
			results := files(t)
			args := append([]string{"-results", results, "-rate", "2000"}, tt.args...)
			code, out := work(t, t.Context(), fake, args...)
			require.Equal(t, 1, code, out)
			for _, want := range tt.want {
				require.Contains(t, out, want)
			}
			require.Contains(t, out, "go on after "+day.AddDate(0, 0, 1).Format("2006-01-02")+" 00:00:00 UTC")
			n := states(t, results)
			require.Positive(t, n["done"])
			require.Equal(t, 82, n["done"]+n["waiting"], "nothing is lost")
			require.LessOrEqual(t, fake.Invoice().Total, budget.Amount(tt.cents)*budget.Unit/100)

			sent := fake.Counts().Received
			code, _ = work(t, t.Context(), fake, args...)
			require.Equal(t, 1, code)
			require.Equal(t, sent, fake.Counts().Received, "a new start is no new budget")

			code, out = work(t, t.Context(), fake, "-results", results, "-rate", "2000", "-day", "10", "-country", "5")
			require.Zero(t, code, out)
			require.Equal(t, 82, fake.Counts().Received)
			require.Zero(t, fake.Counts().Double)
		})
	}
}

func TestMessagesOfUnknownOutcome(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.ResetAfterRead}}})
	defer fake.Close()
	dir := t.TempDir()
	messages, results := filepath.Join(dir, "m.csv"), filepath.Join(dir, "r.csv")
	require.NoError(t, os.WriteFile(messages, []byte("to,text\n+12025550123,Hello\n"), 0o600))
	for range 2 {
		code, out := work(t, t.Context(), fake, "-results", results, "-messages", messages)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "line 2: nobody knows whether it was sent; it is not sent again")
		require.Equal(t, 1, fake.Counts().Received)
	}
	code, out := work(t, t.Context(), fake, "-results", results, "-messages", messages, "-again")
	require.Zero(t, code, out)
	require.Equal(t, 1, fake.Counts().Double, "as was asked for")
}

func TestRejectedMessagesAreNotRepeated(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	dir := t.TempDir()
	messages, results := filepath.Join(dir, "m.csv"), filepath.Join(dir, "r.csv")
	require.NoError(t, os.WriteFile(messages, []byte("to,text\n+12025550123,Hello\nnobody,Hello\n+12025550124,\n+1 202 555 0123,Hello\n"), 0o600))
	code, out := work(t, t.Context(), fake, "-results", results, "-messages", messages)
	require.Zero(t, code, out)
	require.Contains(t, out, "m.csv:3: to is no number such as +12025550123: row left out")
	require.Contains(t, out, "m.csv:4: text is empty: row left out")
	require.Contains(t, out, "m.csv:5: it repeats line 2: row left out")
	require.Equal(t, 1, fake.Counts().Received)
}

func TestJudge(t *testing.T) {
	answer := func(status int, header string) *http.Response {
		h := http.Header{}
		if header != "" {
			h.Set("Retry-After", header)
		}
		return &http.Response{StatusCode: status, Header: h}
	}
	tests := []struct {
		name  string
		resp  *http.Response
		body  string
		err   error
		state string
		wrong string
	}{
		{"accepted", answer(201, ""), `{"sid":"SM1"}`, nil, "done", ""},
		{"accepted, the answer cut", answer(201, ""), `{"sid":"SM1"}`, fmt.Errorf("cut"), "unknown", ""},
		{"accepted, no JSON", answer(201, ""), `<html>`, nil, "unknown", ""},
		{"rejected", answer(400, ""), `{"code":21211,"message":"no"}`, nil, "failed", ""},
		{"throttled", answer(429, ""), `{}`, nil, "", "later"},
		{"away for a while", answer(503, "5"), ``, nil, "", "later"},
		{"away", answer(503, ""), ``, nil, "unknown", ""},
		{"broken", answer(500, ""), ``, nil, "unknown", ""},
		{"no such account", answer(401, ""), `{}`, nil, "", "the account is refused"},
	}
	for _, tt := range tests {
		r, err := judge(tt.resp, []byte(tt.body), tt.err)
		require.Equal(t, tt.state, string(r.State), tt.name)
		if tt.wrong == "" {
			require.NoError(t, err, tt.name)
		} else {
			require.ErrorContains(t, err, tt.wrong, tt.name)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for _, name := range []string{"TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_FROM"} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.csv")
	require.NoError(t, os.WriteFile(damaged+".journal", []byte("nonsense\n"), 0o600))
	tests := []struct {
		name string
		args []string
		code int
		errs string
	}{
		{"help", []string{"-h"}, 0, "-country"},
		{"no results", nil, 2, "say where the results go"},
		{"unknown flag", []string{"-x"}, 2, "flag provided but not defined"},
		{"argument", []string{"-results", "x", "y"}, 2, `unexpected argument "y"`},
		{"no such file", []string{"-results", dir + "/r", "-messages", dir + "/none"}, 2, "no such file"},
		{"no rate", []string{"-results", dir + "/r", "-rate", "0"}, 2, "Rates[0]"},
		{"no budget", []string{"-results", dir + "/r", "-day", "0"}, 2, "Budgets[0]"},
		{"a price that is no number", []string{"-results", dir + "/r", "-price", "cheap"}, 2, "invalid value"},
		{"made-up messages", []string{"-results", dir + "/r", "-live"}, 2, "-live sends nothing made up"},
		{"no account", []string{"-results", dir + "/r", "-live", "-messages", "m.csv"}, 2, "TWILIO_ACCOUNT_SID"},
		{"a damaged journal", []string{"-results", damaged}, 2, "damaged.csv.journal: line 1 is damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := start(t.Context(), tt.args, nil, &out, &errs)
			require.Equal(t, tt.code, code, errs.String())
			require.Contains(t, errs.String(), tt.errs)
		})
	}
}

func TestTheSampleAndItsFake(t *testing.T) {
	var out, errs bytes.Buffer
	results := files(t)
	code := start(t.Context(), []string{"-results", results, "-rate", "200"}, nil, &out, &errs)
	require.Contains(t, []int{0, 1}, code, errs.String())
	require.Empty(t, errs.String())
	require.Contains(t, out.String(), "0 waiting")
	require.Contains(t, out.String(), "0 of them sent twice")
}

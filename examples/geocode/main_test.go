package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/vendortest"
)

// fakeURL names the fake of a parent process to the program that the test starts.
const fakeURL = "GEOCODE_TEST_FAKE"

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

// results reads the lines of the results, without the heading.
func results(t *testing.T, path string) (lines [][]string, states map[string]int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	states = map[string]int{}
	for _, r := range records[1:] {
		states[r[2]]++
	}
	return records[1:], states
}

// work runs the program against a fake and returns its exit status and what it printed.
func work(t *testing.T, fake *vendortest.Fake, args ...string) (code int, out string) {
	t.Helper()
	var printed, errs bytes.Buffer
	code = start(t.Context(), args, vendortest.Base(fake), &printed, &errs)
	return code, printed.String() + errs.String()
}

func TestPlacesAreFound(t *testing.T) {
	fake := vendortest.NewGeocoder(vendortest.Options{})
	defer fake.Close()
	dir := t.TempDir()
	addresses, path := filepath.Join(dir, "a.csv"), filepath.Join(dir, "r.csv")
	require.NoError(t, os.WriteFile(addresses, []byte("name,address\nA,\"Pariser Platz, Berlin\"\nB,Nowhere at all\nC, \nD,\" Pariser  Platz,  Berlin\"\n"), 0o600))
	for range 2 { // the second time there is nothing left to do
		code, out := work(t, fake, "-results", path, "-addresses", addresses)
		require.Zero(t, code, out)
		require.Contains(t, out, "a.csv:4: address is empty: row left out")
		require.Contains(t, out, "geocode: 2 done, 1 failed, 0 of unknown outcome, 0 waiting")
		require.Equal(t, 2, fake.Counts().Received, "the same address is asked for once")
	}
	lines, states := results(t, path)
	require.Equal(t, map[string]int{"done": 2, "failed": 1}, states)
	require.Equal(t, "ZERO_RESULTS", lines[1][5])
	require.NotEmpty(t, lines[0][6])
	require.Equal(t, lines[0][6:], lines[2][6:], "both rows have the place")
}

// TestTheVendorFails: lookups are repeated until they are answered, and nothing is lost.
func TestTheVendorFails(t *testing.T) {
	fake := vendortest.NewGeocoder(vendortest.Options{Faults: vendortest.Faults{
		Seed: 5, Throttle: 20, Error500: 20, ResetBeforeRead: 20, ResetAfterRead: 20, Cut: 20,
	}})
	defer fake.Close()
	path := filepath.Join(t.TempDir(), "r.csv")
	code, out := work(t, fake, "-results", path)
	require.Zero(t, code, out)
	_, states := results(t, path)
	require.Equal(t, map[string]int{"done": 60}, states)
	require.Greater(t, fake.Counts().Received, 60)
}

func TestAKillAndGoingOn(t *testing.T) {
	fake := vendortest.NewGeocoder(vendortest.Options{Latency: 15 * time.Millisecond})
	defer fake.Close()
	path := filepath.Join(t.TempDir(), "r.csv")
	program := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-results", path)
		cmd.Env = append(os.Environ(), fakeURL+"="+fake.URL())
		return cmd
	}
	cmd := program()
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	require.Eventually(t, func() bool { return fake.Counts().Received >= 35 }, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	<-ended
	out, err := program().CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, states := results(t, path)
	require.Equal(t, map[string]int{"done": 60}, states)
	require.LessOrEqual(t, fake.Counts().Received, 60+16, "only what was on its way is asked again")
}

func TestTheBudgetStops(t *testing.T) {
	fake := vendortest.NewGeocoder(vendortest.Options{})
	defer fake.Close()
	path := filepath.Join(t.TempDir(), "r.csv")
	code, out := work(t, fake, "-results", path, "-day", "0.1")
	require.Equal(t, 1, code, out)
	require.Regexp(t, `budget google-geocoding-day is used up: 40 rows wait; go on after 20\d\d-\d\d-\d\d 0[78]:00:00 UTC`, out, "midnight Pacific")
	require.Equal(t, 20, fake.Counts().Received)
	code, out = work(t, fake, "-results", path, "-day", "0.1")
	require.Equal(t, 1, code, out)
	require.Equal(t, 20, fake.Counts().Received, "a new start is no new budget")
	code, out = work(t, fake, "-results", path, "-day", "5")
	require.Zero(t, code, out)
	require.Equal(t, 60, fake.Counts().Received)
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		answer answer
		state  string
		wrong  string
	}{
		{answer{Status: "OK"}, "failed", ""},
		{answer{Status: "INVALID_REQUEST"}, "failed", ""},
		{answer{Status: "OVER_QUERY_LIMIT"}, "", "later"},
		{answer{Status: "UNKNOWN_ERROR"}, "", "later"},
		{answer{Status: "REQUEST_DENIED", ErrorMessage: "no such key"}, "", "the key is refused: no such key"},
	}
	for _, tt := range tests {
		r, err := tt.answer.judge()
		require.Equal(t, tt.state, string(r.State), tt.answer.Status)
		if tt.wrong == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, tt.wrong)
		}
	}
}

func TestExitStatus(t *testing.T) {
	t.Setenv("GOOGLE_MAPS_API_KEY", "")
	dir := t.TempDir()
	tests := []struct {
		name string
		args []string
		code int
		errs string
	}{
		{"help", []string{"-h"}, 0, "-addresses"},
		{"no results", nil, 2, "say where the results go"},
		{"argument", []string{"-results", "x", "y"}, 2, `unexpected argument "y"`},
		{"no such file", []string{"-results", dir + "/r", "-addresses", dir + "/none"}, 2, "no such file"},
		{"no budget", []string{"-results", dir + "/r", "-month", "0"}, 2, "Budgets[1]"},
		{"no key", []string{"-results", dir + "/r", "-live"}, 2, "GOOGLE_MAPS_API_KEY"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, tt.code, start(t.Context(), tt.args, nil, &out, &errs), errs.String())
			require.Contains(t, errs.String(), tt.errs)
		})
	}
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/vendortest"
)

// seen is what a program sees of one call.
type seen struct {
	OK      bool
	Value   any
	Error   string
	Status  int
	Code    any
	Message string
}

// sdk is a real client and what it makes of refusals: the names of its errors for turns,
// money, a freeze and an unknown outcome.
type sdk struct {
	name     string
	command  []string
	preset   string
	own      bool // it needs a listener of its own
	fake     func(vendortest.Options) *vendortest.Fake
	errors   [4]string
	statuses [4]int
	// keyed: calls have an idempotency key, so that the gateway repeats unknown outcomes.
	keyed bool
	// unknown is how often a call of unknown outcome reaches the vendor. Zero: once.
	unknown int
}

var sdks = []sdk{
	{name: "twilio-node", command: []string{"node", "twilio.mjs"}, preset: "twilio", fake: vendortest.NewSMS,
		errors: [4]string{"TwilioServiceException", "TwilioServiceException", "TwilioServiceException", "TwilioServiceException"}, statuses: [4]int{429, 402, 503, 504}},
	{name: "openai-node", command: []string{"node", "openai.mjs"}, preset: "openai", fake: vendortest.NewOpenAI,
		errors: [4]string{"RateLimitError", "APIError", "InternalServerError", "InternalServerError"}, statuses: [4]int{429, 402, 503, 504}},
	{name: "googlemaps-node", command: []string{"node", "googlemaps.mjs"}, preset: "google-maps", fake: vendortest.NewGeocoder, unknown: 2, // it repeats a GET once, whatever it is told
		errors: [4]string{"AxiosError", "AxiosError", "AxiosError", "AxiosError"}, statuses: [4]int{429, 402, 503, 504}},
	{name: "stripe-node", command: []string{"node", "stripe.mjs"}, preset: "stripe", own: true, keyed: true, fake: vendortest.NewStripe,
		errors: [4]string{"StripeRateLimitError", "StripeRateLimitError", "StripeAPIError", "StripeAPIError"}, statuses: [4]int{429, 429, 503, 504}},
	{name: "octokit", command: []string{"node", "octokit.mjs"}, preset: "github", fake: vendortest.NewGitHub,
		errors: [4]string{"RequestError", "RequestError", "RequestError", "RequestError"}, statuses: [4]int{429, 403, 503, 504}},
	{name: "twilio-python", command: []string{"/usr/bin/python3", "twilio_client.py"}, preset: "twilio", fake: vendortest.NewSMS,
		errors: [4]string{"TwilioRestException", "TwilioRestException", "TwilioRestException", "TwilioRestException"}, statuses: [4]int{429, 402, 503, 504}},
	{name: "stripe-python", command: []string{"/usr/bin/python3", "stripe_client.py"}, preset: "stripe", keyed: true, fake: vendortest.NewStripe,
		errors: [4]string{"RateLimitError", "RateLimitError", "APIError", "APIError"}, statuses: [4]int{429, 429, 503, 504}},
	{name: "php", command: []string{"php", "curl.php"}, preset: "twilio", fake: vendortest.NewSMS,
		errors: [4]string{"ApiError", "ApiError", "ApiError", "ApiError"}, statuses: [4]int{429, 402, 503, 504}},
	{name: "curl", command: []string{"sh", "curl.sh"}, preset: "twilio", fake: vendortest.NewSMS,
		errors: [4]string{"exit status 22", "exit status 22", "exit status 22", "exit status 22"}},
}

// states are the ways in which a call is refused, and the calls that a client makes.
var states = []struct {
	name, keys string
	calls      int
	vendor     int // how many reach the vendor
}{
	{"turns", "    rates: [1/day]\n    max_wait: 0s\n", 2, 1},
	{"money", "    budgets: {NAME-calls: {limit: 1 calls, every: rolling 24h}}\n", 2, 1},
	{"frozen", "    frozen: true\n", 1, 0},
	{"unknown", "", 1, 1},
}

// modules installs the packages of npm once, as package-lock.json fixes them.
var modules = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(scratch, "clients")
	if err := os.CopyFS(dir, os.DirFS("clients")); err != nil {
		return dir, err
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return dir, nil
})

// folder returns where the client runs, and skips the test if something of it is missing.
func (s sdk) folder(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath(s.command[0]); err != nil {
		missing(t, "%s is not installed: make deps installs it", s.command[0])
	}
	switch s.command[0] {
	case "node":
		dir, err := modules()
		if err != nil {
			missing(t, "the packages of npm: %v", err)
		}
		return dir
	case "php":
		if err := exec.CommandContext(t.Context(), "php", "-r", "exit(extension_loaded('curl') ? 0 : 1);").Run(); err != nil {
			missing(t, "php-curl is not installed: make deps installs it")
		}
	case "/usr/bin/python3":
		if err := exec.CommandContext(t.Context(), s.command[0], "-c", "import "+s.preset).Run(); err != nil {
			missing(t, "python3-%s is not installed: make deps installs it", s.preset)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("clients")))
	return dir
}

// calls runs the client and returns what it sees, with and without its own retries.
func (s sdk) calls(t *testing.T, dir, base string, n int, env ...string) (all []seen) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.command[0], append(s.command[1:], fmt.Sprint(n))...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "GATEWAY="+base, "NO_PROXY=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, errs.String())
	for line := range strings.Lines(string(out)) {
		var x seen
		require.NoError(t, json.Unmarshal([]byte(line), &x), line)
		all = append(all, x)
	}
	require.Len(t, all, n)
	return all
}

// Every client meets every refusal: it raises, with our sentence; no success object comes
// back; and the SDK, with its own retries on, does not send again.
func TestRealClientsSeeRefusals(t *testing.T) {
	fakes := map[string]*vendortest.Fake{}
	listen, providers := "", ""
	for _, s := range sdks {
		for i := range states {
			name := s.name + "-" + states[i].name
			o := vendortest.Options{}
			if states[i].name == "unknown" {
				for range 12 {
					o.Faults.Script = append(o.Faults.Script, vendortest.ResetAfterRead)
				}
			}
			fakes[name] = s.fake(o)
			defer fakes[name].Close()
			providers += fmt.Sprintf("  %s:\n    preset: %s\n    upstream: %s\n    allow_private: true\n%s", name, s.preset, fakes[name].URL(), strings.ReplaceAll(states[i].keys, "NAME", name))
			if s.own {
				listen += fmt.Sprintf(", {address: \"127.0.0.1:0\", provider: %s}", name)
			}
		}
	}
	p := launch(t, where(t, strings.Replace(head, `"127.0.0.1:0"}]`, `"127.0.0.1:0"}`+listen+"]", 1)+"providers:\n"+providers))
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			dir := s.folder(t)
			for i, state := range states {
				name := s.name + "-" + state.name
				base := p.calls + "/" + name
				if s.own {
					base = p.more["calls to "+name]
				}
				begin := time.Now()
				retries := "SDK_RETRIES=1"
				if state.name == "unknown" && s.keyed {
					retries = "SDK_RETRIES=" // it may repeat a call with a key, and should
				}
				all := s.calls(t, dir, base, state.calls, retries)
				took := time.Since(begin)
				last := all[len(all)-1]
				t.Logf("%s: %+v", state.name, last)
				if len(all) > 1 {
					assert.True(t, all[0].OK, "%s: the first call: %+v", state.name, all[0])
				}
				assert.False(t, last.OK, "%s: a refusal came back as success", state.name)
				assert.Equal(t, s.errors[i], last.Error, state.name)
				assert.Equal(t, s.statuses[i], last.Status, state.name)
				assert.Contains(t, last.Message, ourWords[state.name], state.name)
				assert.Less(t, took, 40*time.Second, "%s: it slept", state.name)
				got := fakes[name].Counts()
				want := state.vendor
				if state.name == "unknown" {
					want = cmp.Or(s.unknown, want)
				}
				if state.name == "unknown" && s.keyed {
					want = 3
					assert.Equal(t, 1, got.Accepted, "the key lets the vendor see that it is one call")
				}
				assert.Equal(t, want, got.Received, "%s: requests at the vendor", state.name)
			}
		})
	}
}

// ourWords are in what people read of a refusal.
var ourWords = map[string]string{
	"turns": "outlay refused this call", "money": "outlay refused this call", "frozen": "outlay refused this call", "unknown": "the outcome of this call is unknown",
}

// The clients work through the gateway: thirty messages at ten a second, no one refused, and
// the money to the last digit.
func TestTwilioForNodeIsPacedAndPaidFor(t *testing.T) {
	s := sdks[0]
	dir := s.folder(t)
	fake := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Requests: 12, Window: time.Second}})
	defer fake.Close()
	p := launch(t, where(t, head+"providers:\n"+strings.Replace(twilio(fake.URL(), "    rates: [10/s]\n    budgets: {day: {limit: 50 USD, every: rolling 24h}}\n"), "0.01 USD", "0.0083 USD", 1)))
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for _, x := range s.calls(t, dir, p.calls+"/twilio", 10, fmt.Sprintf("RUN=%d-", i)) {
				assert.True(t, x.OK, "%+v", x)
			}
		})
	}
	all.Wait()
	assert.Zero(t, fake.Counts().Throttled)
	assert.Equal(t, 30, fake.Counts().Accepted)
	assert.Equal(t, fake.Invoice().Total, p.status().Budgets[0].Settled)
	assert.Equal(t, "0.249", p.status().Budgets[0].Settled.String())
}

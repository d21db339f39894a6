package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// screen is an output that tells when a text appears on it.
type screen struct {
	mu    sync.Mutex
	all   bytes.Buffer
	waits map[*regexp.Regexp]chan string
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Write(p)
	for re, found := range s.waits {
		if m := re.FindStringSubmatch(s.all.String()); m != nil {
			found <- m[len(m)-1]
			delete(s.waits, re)
		}
	}
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// expect returns a channel that gets what the expression finds.
func (s *screen) expect(expr string) <-chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == nil {
		s.waits = map[*regexp.Regexp]chan string{}
	}
	found := make(chan string, 1)
	s.waits[regexp.MustCompile(expr)] = found
	return found
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// hold runs the quick start until its page stays up, calls look with the page's address,
// and interrupts it.
func hold(t *testing.T, look func(page string)) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	out := new(screen)
	address, held := out.expect(`status page: (http://\S+/) `), out.expect(`stays up until`)
	ended := make(chan int, 1)
	go func() { ended <- start(ctx, []string{"-hold"}, fast, out, io.Discard) }()
	page := <-address
	<-held
	require.True(t, strings.HasPrefix(out.text(), "status page: "), "the first line")
	look(page)
	interrupt()
	require.Zero(t, <-ended)
	_, err := http.Get(page)
	require.Error(t, err, "the page is gone with the program")
}

func TestPageStaysUp(t *testing.T) {
	hold(t, func(page string) {
		html := fetch(t, page)
		for _, want := range []string{"outlay quick start", "twilio-sms-day", "refused: "} {
			require.True(t, strings.Contains(html, want), "the page does not say %q", want)
		}
	})
}

var metric = regexp.MustCompile(`\boutlay_[a-z_]+`)

// Every metric that the rules and the dashboard ask for is exported by this program.
func TestMetricsOfRulesAndDashboardAreExported(t *testing.T) {
	const dir = "../../transport/promtransport/"
	rules, err := os.ReadFile(dir + "outlay.rules.yaml")
	require.NoError(t, err)
	text, err := os.ReadFile(dir + "dashboard.json")
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	recorded := regexp.MustCompile(`[a-z_]+:outlay_[a-z_]+:\w+`)
	asked := map[string]bool{}
	for _, source := range []string{string(rules), string(text)} {
		for _, name := range metric.FindAllString(recorded.ReplaceAllString(source, ""), -1) {
			asked[name] = true
		}
	}
	require.Greater(t, len(asked), 20)
	// A limit of slots is not configured here.
	delete(asked, "outlay_in_flight_attempts_limit")
	hold(t, func(page string) {
		scrape := fetch(t, strings.TrimSuffix(page, "/")+"/metrics")
		for name := range asked {
			require.True(t, regexp.MustCompile(`(?m)^`+name+`[ {]`).MatchString(scrape), "no %s", name)
		}
		for _, secret := range []string{"no-secret", "+1202", "ACquickstart", "googleapis"} {
			require.False(t, strings.Contains(scrape, secret), "it tells %s", secret)
		}
	})
}

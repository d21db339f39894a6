package statuspage_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// missing skips a test whose tool is not there, except in continuous integration.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip("SKIPPED: " + what)
}

// axeSource is axe-core, the checker of accessibility, from the npm registry.
func axeSource(t *testing.T) string {
	t.Helper()
	const version = "axe-core@4.10.2"
	npm, err := exec.LookPath("npm")
	if err != nil {
		missing(t, "npm is missing: install Node.js to check accessibility")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", version)
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("npm cannot fetch %s: %v %s", version, err, out))
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	require.NoError(t, err)
	return string(source)
}

// browser is a headless Chromium, spoken to through a pipe.
type browser struct {
	t      *testing.T
	in     *os.File
	out    *bufio.Reader
	id     int
	events []message
}

type message struct {
	ID        int             `json:"id,omitzero"`
	SessionID string          `json:"sessionId,omitzero"`
	Method    string          `json:"method,omitzero"`
	Params    any             `json:"params,omitempty"`
	Raw       json.RawMessage `json:"-"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

func startBrowser(t *testing.T, flags ...string) *browser {
	t.Helper()
	bin, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium is missing: install the Debian package chromium")
	}
	toR, toW, err := os.Pipe()
	require.NoError(t, err)
	fromR, fromW, err := os.Pipe()
	require.NoError(t, err)
	args := []string{
		"--headless", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir=" + t.TempDir(),
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(bin, append(args, flags...)...) // the test's context ends before its cleanup
	cmd.ExtraFiles = []*os.File{toR, fromW}
	require.NoError(t, cmd.Start())
	_, _ = toR.Close(), fromW.Close()
	b := &browser{t: t, in: toW, out: bufio.NewReaderSize(fromR, 1<<20)}
	t.Cleanup(func() {
		b.call("", "Browser.close", nil)
		_ = cmd.Wait()
		_, _ = toW.Close(), fromR.Close()
	})
	return b
}

// next reads one message.
func (b *browser) next() message {
	b.t.Helper()
	line, err := b.out.ReadBytes(0)
	require.NoError(b.t, err, "the browser is gone")
	line = line[:len(line)-1]
	var m message
	require.NoError(b.t, json.Unmarshal(line, &m))
	m.Raw = line
	if m.ID == 0 {
		b.events = append(b.events, m)
	}
	return m
}

// call has the browser do something and returns its result.
func (b *browser) call(session, method string, params any) json.RawMessage {
	b.t.Helper()
	b.id++
	text, err := json.Marshal(message{ID: b.id, SessionID: session, Method: method, Params: params})
	require.NoError(b.t, err)
	_, err = b.in.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		if m := b.next(); m.ID == b.id {
			require.Empty(b.t, string(m.Error), method)
			return m.Result
		}
	}
}

func (b *browser) waitFor(session, method string) {
	b.t.Helper()
	for {
		if m := b.next(); m.Method == method && m.SessionID == session {
			return
		}
	}
}

type object = map[string]any

// open shows a page in a tab of its own and returns the tab's session.
func (b *browser) open(url, scheme string, width, height int) string {
	b.t.Helper()
	var target struct{ TargetID string }
	require.NoError(b.t, json.Unmarshal(b.call("", "Target.createTarget", object{"url": "about:blank"}), &target))
	var attached struct{ SessionID string }
	require.NoError(b.t, json.Unmarshal(b.call("", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}), &attached))
	s := attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(s, domain+".enable", nil)
	}
	b.call(s, "Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
	b.call(s, "Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}})
	b.events = nil
	b.call(s, "Page.navigate", object{"url": url})
	b.waitFor(s, "Page.loadEventFired")
	return s
}

// eval runs a script in the page and returns what it gives as a string.
func (b *browser) eval(session, script string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	raw := b.call(session, "Runtime.evaluate", object{"expression": script, "awaitPromise": true, "returnByValue": true})
	require.NoError(b.t, json.Unmarshal(raw, &r))
	require.Empty(b.t, string(r.ExceptionDetails))
	return fmt.Sprint(r.Result.Value)
}

// calm checks that the page asked nobody else for anything and complained of nothing.
func (b *browser) calm(origin string) {
	b.t.Helper()
	for _, e := range b.events {
		switch e.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			b.t.Errorf("the console says %s", e.Raw)
		case "Network.requestWillBeSent":
			var p struct {
				Params struct{ Request struct{ URL string } }
			}
			require.NoError(b.t, json.Unmarshal(e.Raw, &p))
			require.True(b.t, strings.HasPrefix(p.Params.Request.URL, origin), "a request to %s", p.Params.Request.URL)
		}
	}
}

// shoot keeps a picture of the whole page, for people to look at.
func (b *browser) shoot(session, name string) {
	b.t.Helper()
	var shot struct{ Data string }
	raw := b.call(session, "Page.captureScreenshot", object{"format": "png", "captureBeyondViewport": true})
	require.NoError(b.t, json.Unmarshal(raw, &shot))
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.Greater(b.t, len(png), 10_000, "an empty picture")
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o600))
}

// axeRun gives one line per finding that is serious.
const axeRun = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations
	.filter(v => v.impact == "serious" || v.impact == "critical")
	.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 150) + n.failureSummary).join(" | ")).join("\n"))`

// troubled is a page on which everything is to be seen.
func troubled(t *testing.T) *world {
	t.Helper()
	var providers []transport.Provider
	for _, p := range []struct{ name, limit string }{
		{"twilio-sms", "2"}, {"google-maps", "50"}, {"openai", "20"}, {"stripe", "100"}, {"sendgrid", "30"}, {hostile[1], "9"},
	} {
		providers = append(providers, provider(p.name, p.limit))
	}
	providers[1].Rates = []throttle.Rate{throttle.PerSecond(50)}
	providers[1].Scopes = []transport.Scope{{Name: "to", Key: func(r *http.Request) string { return r.Header.Get("To") }}}
	w := newWorld(t, new(budget.Memory), providers...)
	for range 12 {
		for _, p := range providers[:5] {
			_ = w.send(t.Context(), p.Name, "Fail", strings.Repeat("y", len(p.Name)%2))
		}
	}
	_ = w.send(t.Context(), "google-maps", "To", "1", "Pause", "90")
	_ = w.send(t.Context(), "google-maps", "Pause", "60")
	require.NoError(t, w.Freeze(t.Context(), "stripe", budget.By{Who: "maria", Why: "duplicate charges"}))
	return w
}

// cut lists the tables that do not fit.
const cut = `[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel).join(", ")`

// aDay is what the page and the bill show in the evening of a day with troubles. It runs
// in a bubble.
func aDay(t *testing.T) map[string]*httptest.ResponseRecorder {
	t.Helper()
	providers := []transport.Provider{
		provider("twilio-sms", "40"), provider("google-maps", "60"), provider("openai", "100"), provider("stripe", "80"), provider("sendgrid", "30"),
	}
	all := budget.PerMonth(900 * budget.Unit)
	all.Name = "all-month"
	for i := range providers {
		providers[i].Budgets = append(providers[i].Budgets, all)
	}
	providers[1].Rates = []throttle.Rate{throttle.PerSecond(50)}
	w := newWorld(t, new(budget.Memory), providers...)
	send := func(name string, header ...string) { _ = w.send(t.Context(), name, header...) }
	for minute := range 19 * 60 {
		hour := minute / 60
		if minute%10 == 0 && hour >= 6 {
			send("twilio-sms")
			send("google-maps")
		}
		if minute%7 == 0 && hour >= 8 {
			send("openai", "Fail", strings.Repeat("y", minute/7%4/3))
		}
		if minute%40 == 0 {
			send("stripe")
		}
		if hour >= 17 { // pumping
			send("twilio-sms")
		}
		time.Sleep(time.Minute)
	}
	for range 3 {
		send("twilio-sms")
	}
	open, err := w.Unresolved(t.Context(), "openai", 4)
	require.NoError(t, err)
	for i, u := range open {
		_, err := w.Correct(t.Context(), u.ID, budget.Amount(i)*budget.Unit/4, budget.By{Who: "otto", Why: "invoice of November, lines 12 to 15"})
		require.NoError(t, err)
	}
	send("google-maps", "Pause", "90")
	require.NoError(t, w.Freeze(t.Context(), "stripe", budget.By{Who: "maria", Why: "duplicate charges, see ticket 4711"}))
	require.NoError(t, w.Note(t.Context(), budget.Audited{By: budget.By{Who: "192.0.2.7", Why: "not authorized"}, Action: "limit", Target: budget.Target{Budget: "twilio-sms-day"}, Denied: true}))
	return map[string]*httptest.ResponseRecorder{
		"/day": answerTo(w.page, ask(http.MethodGet, "/?refresh=0")), "/day-bill": answerTo(w.page, ask(http.MethodGet, "/?view=bill")),
	}
}

func TestInChromium(t *testing.T) {
	axe := axeSource(t)
	b := startBrowser(t)
	w := troubled(t)
	answers := map[string]*httptest.ResponseRecorder{}
	synctest.Test(t, func(t *testing.T) { answers = aDay(t) })
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		saved := answers[r.URL.String()]
		if saved == nil {
			w.page.ServeHTTP(rw, r)
			return
		}
		maps.Copy(rw.Header(), saved.Header())
		_, _ = rw.Write(saved.Body.Bytes())
	}))
	defer server.Close()
	for _, size := range []struct {
		name          string
		width, height int
	}{{"desktop", 1280, 900}, {"phone", 360, 740}} {
		for _, scheme := range []string{"light", "dark"} {
			for name, target := range map[string]string{
				"troubled": "/?refresh=0", "day": "/day", "bill": "/day-bill",
			} {
				begin := time.Now()
				s := b.open(server.URL+target, scheme, size.width, size.height)
				require.Regexp(t, "^outlay", b.eval(s, `document.querySelector("h1").textContent`))
				require.Equal(t, "true", b.eval(s, `String(matchMedia("(prefers-color-scheme: `+scheme+`)").matches)`))
				require.NotEqual(t, "rgba(0, 0, 0, 0)", b.eval(s, `getComputedStyle(document.body).backgroundColor`), "the style is not blocked")
				require.Equal(t, "true", b.eval(s, `String(document.documentElement.scrollWidth <= innerWidth)`), "%s scrolls sideways", size.name)
				if size.width > 1000 {
					require.Equal(t, "", b.eval(s, cut), "cut at the right in %s", name)
				}
				b.calm(server.URL)
				if (size.width > 1000) == (scheme == "light") { // each scheme and each width once
					b.eval(s, axe+";0")
					require.Empty(t, b.eval(s, axeRun), "%s %s %s", name, size.name, scheme)
				}
				b.shoot(s, name+"-"+size.name+"-"+scheme)
				t.Logf("%s %s %s: %v", name, size.name, scheme, time.Since(begin).Round(time.Millisecond))
			}
		}
	}
	// Twice as large text fits into half the width.
	s := b.open(server.URL+"/?refresh=0", "light", 640, 900)
	require.Equal(t, "true", b.eval(s, `String(document.documentElement.scrollWidth <= innerWidth)`))
	// On paper nothing can be scrolled: a sheet of A5 on its side holds every column.
	for _, target := range []string{"/?refresh=0", "/day", "/day-bill"} {
		s := b.open(server.URL+target, "light", 800, 600)
		require.NotEmpty(t, b.eval(s, cut), "on a screen of that width it scrolls")
		b.call(s, "Emulation.setEmulatedMedia", object{"media": "print"})
		require.Equal(t, "", b.eval(s, cut), "cut on paper: %s", target)
		require.Equal(t, "none", b.eval(s, `getComputedStyle(document.querySelector("nav")).display`))
	}
	// Inline script and foreign sources are refused by the policy.
	b.events = nil
	b.eval(s, `const i = new Image(); i.src = "http://192.0.2.1/x.png"; document.body.append(i); 0`)
	b.eval(s, `const e = document.createElement("script"); e.textContent = "window.planted = 1"; document.body.append(e); 0`)
	require.Equal(t, "undefined", b.eval(s, `typeof window.planted`))
}

// The page reloads by itself, without scripts.
func TestReloadsWithoutScripts(t *testing.T) {
	b := startBrowser(t)
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	server := httptest.NewServer(w.page)
	defer server.Close()
	s := b.open("about:blank", "light", 800, 600)
	b.call(s, "Emulation.setScriptExecutionDisabled", object{"value": true})
	b.call(s, "Page.navigate", object{"url": server.URL + "/?refresh=5"})
	b.waitFor(s, "Page.loadEventFired")
	b.waitFor(s, "Page.loadEventFired") // five seconds later
	b.calm(server.URL)
}

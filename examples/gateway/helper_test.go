package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// scratch is a folder for what all tests share; TestMain makes and removes it.
var scratch string

// binary builds the program once, static, as users do.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "outlay-gateway")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "outlay-gateway-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

func program1(t testing.TB) string {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	return path
}

// missing skips a test whose tool is not there, except in continuous integration.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	text := "SKIPPED: " + fmt.Sprintf(format, args...)
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Log(text)
	t.Skip(text)
}

// process is a gateway that runs, and what it printed.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	config string
	// calls, tls (with http: too) and admin are base URLs, more those of further listeners by their purpose.
	calls, tls, admin string
	more              map[string]string

	ended chan struct{}
	mu    sync.Mutex // guards log
	log   bytes.Buffer
}

// where puts a configuration into a folder of its own.
func where(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outlay.yaml")
	write(t, path, text)
	return path
}

// write replaces a file as editors do.
func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// launch starts a gateway and waits until it listens.
func launch(t testing.TB, config string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(program1(t), "-config", config)
	cmd.Env = append(os.Environ(), env...)
	return follow(t, cmd, config)
}

// follow starts a command and reads what it prints.
func follow(t testing.TB, cmd *exec.Cmd, config string) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, config: config, more: map[string]string{}, ended: make(chan struct{})}
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ready := make(chan struct{})
	go p.read(out, ready)
	t.Cleanup(func() { p.kill() })
	select {
	case <-ready:
	case <-p.ended:
		require.Fail(t, "the gateway ended", p.text())
	case <-time.After(30 * time.Second):
		require.Fail(t, "the gateway does not listen", p.text())
	}
	return p
}

// read keeps the log until the process ends. The listener of operators is the last.
func (p *process) read(out io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.Write(lines.Bytes())
		p.log.WriteByte('\n')
		p.mu.Unlock()
		var line struct {
			Msg, For, Address string
			TLS               bool
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
			continue
		}
		base := "http://" + line.Address
		switch {
		case line.For == "calls" && line.TLS:
			p.tls = base
		case line.For == "calls":
			p.calls = base
		case line.For == "operators":
			p.admin = base
			close(ready)
		default:
			p.more[line.For] = base
		}
	}
	_ = p.cmd.Wait() // how it ended is in ProcessState
	close(p.ended)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// kill ends it as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) signal(s syscall.Signal) { require.NoError(p.t, p.cmd.Process.Signal(s)) }

// stop ends it as an operator does.
func (p *process) stop() int {
	p.signal(syscall.SIGTERM)
	return p.exit()
}

// exit waits for the end and returns the exit status.
func (p *process) exit() int {
	select {
	case <-p.ended:
	case <-time.After(60 * time.Second):
		require.Fail(p.t, "the gateway does not end", p.text())
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the log has a text: the gateway writes it beside its answers.
func (p *process) says(text string) {
	p.t.Helper()
	until(p.t, "the log says "+text, func() bool { return strings.Contains(p.text(), text) })
}

// until waits for a condition that another process brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(60 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			require.Fail(t, "it never happens: "+what)
		}
	}
}

// client uses no proxy of the environment and any number of connections.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 500}}

// answer is what a caller got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
	took   time.Duration
}

// problem is a member of the body of a refusal.
func (a answer) problem(member string) string {
	var all map[string]any
	_ = json.Unmarshal([]byte(a.body), &all) // absent then
	return fmt.Sprint(all[member])
}

func send(ctx context.Context, method, target, body string, h ...string) (a answer) {
	begin := time.Now()
	defer func() { a.took = time.Since(begin) }()
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b), err: err}
}

// message sends a text message through the gateway; n makes it one of its own.
func (p *process) message(ctx context.Context, n int) answer {
	form := url.Values{"To": {"+12025550123"}, "From": {"+12025550100"}, "Body": {"Message " + strconv.Itoa(n)}}
	return send(ctx, http.MethodPost, p.calls+"/twilio/2010-04-01/Accounts/AC1/Messages.json", form.Encode())
}

// messages sends some at once and hands out the answers as they come.
func (p *process) messages(ctx context.Context, from, to int) <-chan answer {
	answers := make(chan answer, to-from)
	var all sync.WaitGroup
	for n := from; n < to; n++ {
		all.Go(func() { answers <- p.message(ctx, n) })
	}
	go func() { all.Wait(); close(answers) }()
	return answers
}

// statuses counts answers; zero is a broken connection.
func statuses(answers <-chan answer) map[int]int {
	n := map[int]int{}
	for a := range answers {
		n[a.status]++
	}
	return n
}

// status is the part of the page's JSON that the tests read.
type status struct {
	Providers []struct {
		Name  string
		Queue struct{ Length int }
		Slots struct{ Used int }
	}
	Budgets []struct {
		Name                           string
		Limit, Settled, Presumed, Held budget.Amount
	}
}

func (p *process) status() (s status) {
	a := send(p.t.Context(), http.MethodGet, p.admin+"/status/?format=json", "")
	if a.err == nil && json.Unmarshal([]byte(a.body), &s) != nil {
		p.t.Errorf("the page answers %d: %s", a.status, a.body)
	}
	return s
}

// queued is how many calls wait for a provider.
func (p *process) queued(provider string) int {
	for _, x := range p.status().Providers {
		if x.Name == provider {
			return x.Queue.Length
		}
	}
	return -1
}

// metric is the value of a metric, written with its labels.
func (p *process) metric(name string) string {
	a := send(p.t.Context(), http.MethodGet, p.admin+"/metrics", "")
	for line := range strings.Lines(a.body) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// reloads asks for a reload and returns the answer.
func (p *process) reloads() answer {
	return send(p.t.Context(), http.MethodPost, p.admin+"/-/reload", "{}", "Content-Type", "application/json", "Authorization", "Bearer "+adminToken)
}

const adminToken = "admintokenadmintoken"

// head begins a configuration: ports of its own, an admin token, a ledger beside the file.
const head = `version: 1
listen: [{address: "127.0.0.1:0"}]
admin: {address: "127.0.0.1:0", token: "plain:` + adminToken + `"}
ledger: {kind: sqlite, path: spend.db}
log: {calls: none}
`

// twilio is a provider of text messages in front of a fake, at 0.01 USD each.
func twilio(upstream, more string) string {
	return `  twilio:
    preset: twilio
    upstream: ` + upstream + `
    allow_private: true
    price: {per: sms_segment, table: {"+1": 0.01 USD}}
` + more
}

// run1 runs a command of the program and returns its output and exit status.
func run1(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of one that serves in place of failing
	defer cancel()
	b, err := exec.CommandContext(ctx, program1(t), args...).CombinedOutput()
	if e := new(exec.ExitError); errors.As(err, &e) {
		return string(b), e.ExitCode()
	}
	require.NoError(t, err)
	return string(b), 0
}

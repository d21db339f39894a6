package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// nginx starts one that passes so many requests a second on to a vendor, with a burst of 5,
// and refuses the others with a bare status. It returns its address.
func nginx(t *testing.T, vendor string, perSecond, status int) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path = "/usr/sbin/nginx"; !exists(path) {
			missing(t, "nginx is not installed: make deps installs it")
		}
	}
	address, dir := freeAddress(t), t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	conf := fmt.Sprintf(`
daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  keepalive_requests 100000;
  limit_req_zone all zone=all:1m rate=%[2]dr/s;
  limit_req_status %[3]d;
  server { listen %[4]s; location / { limit_req zone=all burst=5 nodelay; proxy_pass %[5]s; } }
}`, dir, perSecond, status, address, vendor)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644))
	cmd := exec.Command(path, "-p", dir, "-c", filepath.Join(dir, "conf"), "-e", filepath.Join(dir, "error.log"))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	until(t, "nginx listens", func() bool { return answers(address) })
	return "http://" + address
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// freeAddress is one on which nobody listens. Servers of others cannot tell which one they
// found.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func answers(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// get makes so many calls at once and counts their statuses.
func (p *process) get(t *testing.T, n int) map[int]int {
	t.Helper()
	counts := map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			a := send(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/%d", p.calls, i), "")
			mu.Lock()
			counts[a.status]++
			mu.Unlock()
		})
	}
	all.Wait()
	return counts
}

// At the vendor's own rate nothing is refused.
func TestPacedNginxRefusesNothing(t *testing.T) {
	var served atomic.Int64
	vendor := httptestServer(t, &served)
	front := nginx(t, vendor, 50, 429)
	p := launch(t, where(t, head+"providers: {api: {upstream: \""+front+"\", allow_private: true, rates: [50/s burst 1], max_wait: 30s, retry: {attempts: 1}}}\n"))
	begin := time.Now()
	assert.Equal(t, map[int]int{200: 200}, p.get(t, 200))
	assert.Equal(t, int64(200), served.Load())
	assert.Greater(t, time.Since(begin), 3800*time.Millisecond, "it was not paced")
}

// Set too fast, and told nothing but bare refusals, the gateway slows down, and every call
// ends well.
func TestNginxThatRefusesSlowsTheGateway(t *testing.T) {
	for _, status := range []int{429, 503} {
		var served atomic.Int64
		front := nginx(t, httptestServer(t, &served), 50, status)
		taken := ""
		if status == 503 { // nginx says so by itself; that it means a limit, only the owner knows
			taken = ", not_taken: [503], share: 100%"
		}
		p := launch(t, where(t, head+"providers: {api: {upstream: \""+front+"\", allow_private: true, rates: [80/s burst 1], max_wait: 60s, retry: {attempts: 10"+taken+"}}}\n"))
		begin := time.Now()
		got := p.get(t, 200)
		t.Logf("status %d: %v in %v", status, got, time.Since(begin))
		assert.Equal(t, map[int]int{200: 200}, got)
		assert.Equal(t, int64(200), served.Load())
		assert.Greater(t, time.Since(begin), 3500*time.Millisecond, "faster than the vendor lets anyone be")
	}
}

// httptestServer is a vendor that takes everything.
func httptestServer(t *testing.T, served *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = w.Write([]byte("ok"))
	}), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return "http://" + l.Addr().String()
}

// redisServer is one of our own, which can be killed and started again.
type redisServer struct {
	t          *testing.T
	path, dir  string
	host, port string
	cmd        *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server is not installed: make deps installs it")
	}
	r := &redisServer{t: t, path: path, dir: t.TempDir()}
	r.host, r.port, err = net.SplitHostPort(freeAddress(t))
	require.NoError(t, err)
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *redisServer) start() {
	r.cmd = exec.Command(r.path, "--bind", r.host, "--port", r.port, "--dir", r.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
	require.NoError(r.t, r.cmd.Start())
	until(r.t, "redis listens", func() bool { return answers(net.JoinHostPort(r.host, r.port)) })
}

func (r *redisServer) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed
}

// Two gateways share one limit and one purse. While Redis is away they refuse; before and
// after, no cent more is spent than there is.
func TestTwoGatewaysWhileRedisIsAway(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent})
	defer fake.Close()
	store := startRedis(t)
	text := strings.Replace(head, "ledger: {kind: sqlite, path: spend.db}", "ledger: {kind: redis}\nlimiter: {kind: redis}\nredis: {url: \"redis://"+net.JoinHostPort(store.host, store.port)+"\"}", 1) +
		"providers:\n" + twilio(fake.URL(), "    rates: [100/s burst 10]\n    max_wait: 5s\n    budgets: {day: {limit: 1.00 USD, every: rolling 24h}}\n")
	a, b := launch(t, where(t, text)), launch(t, where(t, text))
	until(t, "the books are open", func() bool { return a.message(t.Context(), 1).status == 201 })
	until(t, "also for the other", func() bool { return b.message(t.Context(), 2).status == 201 })

	store.kill()
	for n, p := range []*process{a, b} {
		x := p.message(t.Context(), 10+n)
		assert.Equal(t, 503, x.status, x.body)
		assert.Equal(t, "false", x.problem("sent"))
	}
	before := fake.Counts().Received
	store.start()
	for _, p := range []*process{a, b} {
		until(t, "it goes on", func() bool { return p.message(t.Context(), 100+fake.Counts().Received).status == 201 })
	}
	assert.Greater(t, fake.Counts().Received, before)

	// Both spend at once until there is nothing left. On a slow machine Redis is not always
	// in time, and such calls are refused as well.
	var all sync.WaitGroup
	for i, p := range []*process{a, b} {
		all.Go(func() {
			n := 1000 * (i + 1)
			until(t, "the last cent", func() bool {
				got := statuses(p.messages(t.Context(), n, n+20))
				n += 20
				for status := range got {
					assert.Contains(t, []int{201, 402, 429, 503}, status)
				}
				return got[402] == 20
			})
		})
	}
	all.Wait()
	spent := fake.Invoice().Total
	assert.LessOrEqual(t, spent, budget.Unit, "more was spent than there is")
	assert.Greater(t, spent, budget.Unit*9/10, "what was presumed while Redis was away is little")
	for _, p := range []*process{a, b} {
		x := p.message(t.Context(), 9999)
		assert.Equal(t, 402, x.status, x.body)
		assert.NotContains(t, p.text(), "panic")
	}
}

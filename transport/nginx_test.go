package transport_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// nginx starts a real nginx that lets rate requests a second pass, with a burst of 5, and
// answers the others with a bare 429. It returns its address.
func nginx(t *testing.T, rate int) string {
	path, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("nginx is missing: make deps installs it")
		}
		t.Skip("SKIPPED: nginx is missing; make deps installs it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	dir := t.TempDir()
	conf := fmt.Sprintf(`
daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  keepalive_requests 100000;
  limit_req_zone all zone=all:1m rate=%[2]dr/s;
  limit_req_status 429;
  server { listen %[3]s; location / { limit_req zone=all burst=5 nodelay; alias %[1]s/; index page; } }
}`, dir, rate, addr)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page"), []byte("ok"), 0o644))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644))
	cmd := exec.Command(path, "-p", dir, "-c", filepath.Join(dir, "conf"), "-e", filepath.Join(dir, "error.log"))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	return addr
}

// counts what a real provider answered.
type answerCount struct {
	base            http.RoundTripper
	passed, refused atomic.Int64
}

func (a *answerCount) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.base.RoundTrip(req)
	if err == nil {
		if resp.StatusCode == http.StatusTooManyRequests {
			a.refused.Add(1)
		} else {
			a.passed.Add(1)
		}
	}
	return resp, err
}

func overNginx(t *testing.T, addr string, r throttle.Rate) (*transport.Transport, *answerCount) {
	base := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(base.CloseIdleConnections)
	count := &answerCount{base: base}
	rt, err := transport.New(transport.Config{Base: count, Providers: []transport.Provider{{
		Name: "nginx", Match: []string{addr}, Rates: []throttle.Rate{r}, Retry: transport.Retry{Share: 100, Attempts: 10},
	}}})
	require.NoError(t, err)
	return rt, count
}

// callers makes calls from n goroutines while more says so.
func callers(t *testing.T, rt http.RoundTripper, n int, url string, more func() bool) {
	var wg sync.WaitGroup
	var resets atomic.Int32 // nginx closes connections under load, as servers do
	defer func() { require.LessOrEqual(t, resets.Load(), int32(10)) }()
	for range n {
		wg.Go(func() {
			for more() {
				req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
				if err != nil {
					return
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.Log(err)
					resets.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
}

func proving() bool { return os.Getenv("OUTLAY_PROVE") == "1" }

// At nginx' own rate nobody is refused.
func TestNginxAtItsRateRefusesNobody(t *testing.T) {
	t.Parallel()
	requests := int64(300)
	if proving() {
		requests = 2000
	}
	const rate = 100
	addr := nginx(t, rate)
	rt, count := overNginx(t, addr, throttle.PerSecond(rate))
	var begun atomic.Int64
	start := time.Now()
	callers(t, rt, 50, "http://"+addr+"/", func() bool { return begun.Add(1) <= requests })
	t.Logf("nginx at its rate: %d passed, %d refused, %.1f/s", count.passed.Load(), count.refused.Load(), float64(requests)/time.Since(start).Seconds())
	if proving() {
		require.Zero(t, count.refused.Load())
	}
	// A machine that stops for a moment sends what was due meanwhile together.
	require.Less(t, count.refused.Load(), requests/5)
	require.GreaterOrEqual(t, count.passed.Load(), requests-10)
}

// Configured three times too fast, and told nothing but 429: the rate is found, and held
// with few refusals.
func TestNginxRateIsFoundWithoutHints(t *testing.T) {
	t.Parallel()
	settle, measure := 10*time.Second, 6*time.Second
	if proving() {
		measure = 30 * time.Second
	}
	const rate = 100
	addr := nginx(t, rate)
	rt, count := overNginx(t, addr, throttle.PerSecond(3*rate))
	var passed, refused int64
	start := time.Now()
	var once sync.Once
	callers(t, rt, 50, "http://"+addr+"/", func() bool {
		since := time.Since(start)
		if since > settle {
			once.Do(func() { passed, refused = count.passed.Load(), count.refused.Load() })
		}
		return since < settle+measure
	})
	passed, refused = count.passed.Load()-passed, count.refused.Load()-refused
	share := 100 * float64(refused) / float64(passed+refused)
	found := float64(passed) / (time.Since(start) - settle).Seconds()
	t.Logf("nginx three times too fast: after %v %.2f %% of attempts refused, %.1f/s of %d/s", settle, share, found, rate)
	require.Less(t, share, 2.0)
	if proving() { // a loaded machine finds less
		require.Greater(t, found, 0.8*rate)
	}
}

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

// proving says that the long proofs are wanted.
var proving = os.Getenv("OUTLAY_PROVE") != ""

// crowd is how many callers wait at once.
func crowd() int {
	if proving {
		return 5000
	}
	return 500
}

// held is a provider of which no call gets a turn after the first.
func held(t testing.TB, to string) gateway.Provider {
	p := behind(t, "held", to)
	withBudget(1_000_000*cent, func(b *budget.Budget) { b.Name = "held-day" })(&p)
	p.Rates, p.MaxWait = []throttle.Rate{throttle.PerHour(1)}, 100_000*time.Hour
	return p
}

// open starts calls whose answers are read later.
func (r *rig) open(n int, path string) []net.Conn {
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = dial(r.t, r.url)
		require.NoError(r.t, conns[i].SetDeadline(time.Now().Add(2*time.Minute)))
		_, err := fmt.Fprintf(conns[i], "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\ntext", path)
		require.NoError(r.t, err)
	}
	return conns
}

// waiting waits until n calls wait.
func (r *rig) waiting(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.count(transport.KindWaiting) >= n }, time.Minute, time.Millisecond)
}

// statuses reads the answers and counts them by status.
func statuses(t testing.TB, conns []net.Conn) map[int]int {
	t.Helper()
	got := map[int]int{}
	for _, c := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		got[resp.StatusCode]++
		_ = c.Close()
	}
	return got
}

// TestCrowd: a fifth of those who wait leave, and the rest is re-timed by a reload.
func TestCrowd(t *testing.T) {
	n := crowd()
	v := newVendor(t, nil)
	r := start(t, config(held(t, v.URL)), gateway.Listener{})
	r.onlyCount()
	r.do(http.MethodGet, "/held/first", "")
	before := resident()
	conns := r.open(n, "/held/x")
	r.waiting(n)
	each := (resident() - before) / int64(n)
	t.Logf("%d parked calls take %d bytes each, their callers' ends included", n, each)
	if proving {
		require.Less(t, each, int64(48<<10))
	}
	for _, c := range conns[:n/5] {
		_ = c.Close()
	}
	require.Eventually(t, func() bool { return strings.Count(r.log.String(), "reason=caller_left") == n/5 }, time.Minute, 5*time.Millisecond)
	require.Len(t, v.requests(), 1, "nothing was sent for them")

	faster := held(t, v.URL)
	faster.Rates = []throttle.Rate{{N: 10 * n, Per: time.Second, Burst: n}}
	require.NoError(t, r.gw.Reload(config(faster)))
	require.Equal(t, map[int]int{200: n - n/5}, statuses(t, conns[n/5:]))
	require.Len(t, v.requests(), 1+n-n/5)
	require.Zero(t, r.totals(faster.Budgets[0]).Held)
}

// resident is the memory in use, stacks included.
func resident() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestShutdown: those who wait are told at once, those who were sent are finished.
func TestShutdown(t *testing.T) {
	arrived, goOn := make(chan struct{}, 20), make(chan struct{})
	v := newVendor(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-goOn })
	busy := behind(t, "busy", v.URL)
	withBudget(1000*cent, nil)(&busy)
	h := held(t, v.URL)
	r := start(t, config(busy, h), gateway.Listener{})
	go func() { r.do(http.MethodGet, "/held/first", "") }()
	<-arrived
	flying := r.open(19, "/busy/x")
	for range 19 {
		<-arrived
	}
	waiters := r.open(100, "/held/x")
	r.waiting(100)

	done := make(chan error)
	go func() { done <- r.gw.Shutdown(context.Background()) }()
	require.Equal(t, map[int]int{503: 100}, statuses(t, waiters))
	got := r.do(http.MethodGet, "/busy/x", "")
	require.Equal(t, http.StatusServiceUnavailable, got.status, "new calls are refused")
	require.Equal(t, "shutting_down", got.json(t)["reason"])
	require.Equal(t, "2", got.header.Get("Retry-After"))
	select {
	case <-done:
		t.Fatal("calls are under way")
	default:
	}
	close(goOn)
	require.Equal(t, map[int]int{200: 19}, statuses(t, flying))
	require.NoError(t, <-done)
	require.Equal(t, 19*cent, r.totals(busy.Budgets[0]).Settled)
}

// TestShutdownInAHurry cuts off what is under way, which presumes it.
func TestShutdownInAHurry(t *testing.T) {
	arrived := make(chan struct{})
	v := newVendor(t, func(_ http.ResponseWriter, r *http.Request) { close(arrived); <-r.Context().Done() })
	p := behind(t, "api", v.URL)
	withBudget(1000*cent, nil)(&p)
	r := start(t, config(p), gateway.Listener{})
	conns := r.open(1, "/api/x")
	<-arrived
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, r.gw.Shutdown(ctx), context.Canceled)
	require.Equal(t, map[int]int{504: 1}, statuses(t, conns))
	require.Equal(t, cent, r.totals(p.Budgets[0]).Presumed)
	require.NoError(t, r.gw.Shutdown(context.Background()), "again")
}

// TestReloadThatRemovesAProvider: its waiters are told, its calls under way finish, and
// others see nothing.
func TestReloadThatRemovesAProvider(t *testing.T) {
	arrived, goOn := make(chan struct{}, 5), make(chan struct{})
	v := newVendor(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-goOn
		}
	})
	gone := held(t, v.URL)
	gone.Rates = []throttle.Rate{{N: 1, Per: time.Hour, Burst: 5}}
	other := behind(t, "other", v.URL)
	r := start(t, config(gone, other), gateway.Listener{})
	flying := r.open(5, "/held/slow")
	for range 5 {
		<-arrived
	}
	waiters := r.open(50, "/held/x")
	r.waiting(50)
	require.NoError(t, r.gw.Reload(config(other)))
	require.Equal(t, map[int]int{503: 50}, statuses(t, waiters))
	require.Contains(t, r.log.String(), "reason=provider_removed")
	require.Equal(t, http.StatusNotFound, r.do(http.MethodGet, "/held/x", "").status)
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/other/x", "").status)
	close(goOn)
	require.Equal(t, map[int]int{200: 5}, statuses(t, flying))
	require.Equal(t, 5*cent, r.totals(gone.Budgets[0]).Settled)

	require.NoError(t, r.gw.Reload(config(gone, other)), "it may come back")
	waiters = r.open(1, "/held/x")
	r.waiting(51)
	_ = waiters[0].Close()
}

// TestReloadThatStopsAProvider: who waits has not been sent yet, and will not be.
func TestReloadThatStopsAProvider(t *testing.T) {
	v := newVendor(t, nil)
	p := held(t, v.URL)
	r := start(t, config(p), gateway.Listener{})
	require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/held/x", sms).status)
	waiters := r.open(20, "/held/x")
	r.waiting(20)
	stopped := p
	stopped.Stopped = true
	require.NoError(t, r.gw.Reload(config(stopped)))
	require.Equal(t, map[int]int{503: 20}, statuses(t, waiters))
	require.Contains(t, r.log.String(), "reason=frozen")
	require.Equal(t, cent, r.totals(p.Budgets[0]).Used(), "nothing of them is held")
	require.Equal(t, http.StatusServiceUnavailable, r.do(http.MethodPost, "/held/x", sms).status)

	p.Rates = nil
	require.NoError(t, r.gw.Reload(config(p)), "it goes on")
	require.Equal(t, http.StatusOK, r.do(http.MethodPost, "/held/x", sms).status)
	require.Len(t, v.requests(), 2)
}

// TestReloadsAreWholeOrNothing.
func TestReloadsAreWholeOrNothing(t *testing.T) {
	v := newVendor(t, nil)
	p := behind(t, "api", v.URL)
	r := start(t, config(p), gateway.Listener{})
	bad := behind(t, "more", v.URL)
	bad.Rates = []throttle.Rate{{}}
	require.ErrorContains(t, r.gw.Reload(config(bad)), "Providers[0].Rates[0]")
	bad = behind(t, "more", v.URL)
	bad.Upstream = nil
	require.ErrorContains(t, r.gw.Reload(config(bad)), "Providers[0].Upstream")
	require.Equal(t, http.StatusOK, r.do(http.MethodGet, "/api/x", "").status)
	require.Equal(t, http.StatusNotFound, r.do(http.MethodGet, "/more/x", "").status)
}

// TestReloadsUnderLoadLoseNoCall, whatever changes while they run.
func TestReloadsUnderLoadLoseNoCall(t *testing.T) {
	v := newVendor(t, nil)
	make3 := func(n int) gateway.Config {
		p := keyed(t, v.URL, gateway.Slot{In: gateway.InBearer})
		withBudget(100_000*cent, nil)(&p)
		p.Rates = []throttle.Rate{{N: 100_000 + n, Per: time.Second, Burst: 1000}}
		p.Timeouts.Connect = time.Duration(1000+n) * time.Millisecond // other connections
		all := []gateway.Provider{p, behind(t, "x", v.URL), behind(t, "y", v.URL)}
		return twoCallers(config(all[:1+n%3]...))
	}
	r := start(t, make3(0), gateway.Listener{})
	r.onlyCount()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status := r.do(http.MethodPost, "/api/x", sms, "Outlay-Token", shopToken).status
				mu.Lock()
				got[status]++
				mu.Unlock()
			}
		})
	}
	for n := 0; r.count(transport.KindFinished) < 300; n++ {
		require.NoError(t, r.gw.Reload(make3(n%50)))
	}
	close(stop)
	wg.Wait()
	require.Len(t, got, 1, "%v", got)
	require.Equal(t, got[200], len(v.requests()))
}

// TestOneQueueDoesNotSlowAnother: a crowd waits for one provider while others call another.
func TestOneQueueDoesNotSlowAnother(t *testing.T) {
	if !proving {
		t.Skip("OUTLAY_PROVE is not set")
	}
	v := newVendor(t, nil)
	a := behind(t, "a", v.URL)
	a.Rates, a.MaxWait = []throttle.Rate{throttle.PerSecond(200)}, 10*time.Second
	r := start(t, config(a, behind(t, "b", v.URL)), gateway.Listener{})
	r.onlyCount()
	idle := r.p99("/b/x", 2000)
	conns := r.open(5000, "/a/x")
	busy := r.p99("/b/x", 2000)
	got := statuses(t, conns)
	t.Logf("p99 of b: %v alone, %v while 5000 wait for a, which served %v", idle, busy, got)
	require.LessOrEqual(t, busy, 3*idle+5*time.Millisecond)
	require.Greater(t, got[200], 1500, "10 s of 200/s, on a quiet machine 2,000")
	require.Equal(t, 5000, got[200]+got[429])
}

// p99 makes n calls, one after the other.
func (r *rig) p99(path string, n int) time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		require.Equal(r.t, http.StatusOK, r.do(http.MethodGet, path, "").status)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[n*99/100]
}

// TestIdleStreams: many programs keep a stream open. What the ends themselves take is
// measured without the gateway.
func TestIdleStreams(t *testing.T) {
	n := crowd() / 5
	stop := make(chan struct{})
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: x\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	p := behind(t, "api", v.URL)
	withBudget(100_000*cent, nil)(&p)
	r := start(t, config(p), gateway.Listener{})
	r.onlyCount()
	through := r.streams(n, "/api/x")
	r.url = v.URL
	each := (through - r.streams(n, "/x")) / int64(n)
	close(stop)
	t.Logf("the gateway takes %d bytes for each of %d idle streams", each, n)
	if proving {
		require.Less(t, each, int64(64<<10))
	}
}

// streams opens streams and returns the memory that they take.
func (r *rig) streams(n int, path string) int64 {
	before := resident()
	for _, c := range r.open(n, path) {
		br := bufio.NewReaderSize(c, 16)
		for line := ""; !strings.HasPrefix(line, "data: x"); {
			var err error
			line, err = br.ReadString('\n')
			require.NoError(r.t, err)
		}
	}
	return resident() - before
}

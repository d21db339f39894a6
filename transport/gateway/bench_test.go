package gateway_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
)

// BenchmarkProxy compares the gateway (priced, with a budget, a token and a log line for
// each call) with httputil.ReverseProxy alone, over real connections, 32 callers at once.
func BenchmarkProxy(b *testing.B) {
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"sid":"SM1","status":"queued"}`)
	}))
	defer v.Close()
	for _, name := range []string{"reverseproxy", "outlay"} {
		b.Run(name, func(b *testing.B) {
			h, stop := bareProxy(b, v.URL), func() {}
			if name == "outlay" {
				h, stop = meteredProxy(b, v.URL)
			}
			defer stop()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			srv := &http.Server{Handler: h}
			go func() { _ = srv.Serve(ln) }()
			defer srv.Close()
			measure(b, "http://"+ln.Addr().String()+"/api/v1/x")
		})
	}
}

func bareProxy(b *testing.B, to string) http.Handler {
	u := parse(b, to)
	t := &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: t, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) }}
}

func meteredProxy(b *testing.B, to string) (http.Handler, func()) {
	p := keyed(b, to, gateway.Slot{In: gateway.InBearer})
	withBudget(1_000_000_000*budget.Unit, nil)(&p)
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	g, err := gateway.New(twoCallers(config(p)), gateway.Parts{Ledger: new(budget.Memory), Log: log})
	if err != nil {
		b.Fatal(err)
	}
	return g.Handler(gateway.Listener{Token: true}), g.Transport().CloseIdleConnections
}

// measure makes b.N calls and reports how long the slowest hundredth took.
func measure(b *testing.B, url string) {
	t := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	defer t.CloseIdleConnections()
	var mu sync.Mutex
	var all []time.Duration
	b.SetParallelism(16)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	b.RunParallel(func(pb *testing.PB) {
		var mine []time.Duration
		for pb.Next() {
			began := time.Now()
			req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(sms))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Authorization", "Bearer "+shopToken)
			resp, err := t.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				b.Error(resp.Status)
				return
			}
			mine = append(mine, time.Since(began))
		}
		mu.Lock()
		all = append(all, mine...)
		mu.Unlock()
	})
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-us/op")
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	}
}

// cpuTime is what the process has used. On a busy machine it says more than the time that
// passed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// TestLateAttemptsKeepTheNewestRates: a call that began before a change is repeated after
// it. The rates that it began with must not come back, for it or for anybody else.
func TestLateAttemptsKeepTheNewestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answers(t, answer{status: 503, header: "Retry-After: 1", delay: time.Second}, answer{status: 200})
		config := func(r ...throttle.Rate) transport.Config {
			return transport.Config{Base: s, Providers: []transport.Provider{{Name: "p", Match: []string{"api.example.com"}, Rates: r}}}
		}
		rt, err := transport.New(config(throttle.PerHour(1)))
		require.NoError(t, err)
		done := make(chan time.Duration)
		call := func() {
			began := time.Now()
			resp, err := rt.Client().Get("http://api.example.com/")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			done <- time.Since(began)
		}
		go call()
		synctest.Wait() // it is under way
		require.NoError(t, rt.Update(config(throttle.PerSecond(1))))
		require.LessOrEqual(t, <-done, 5*time.Second)
		go call()
		require.LessOrEqual(t, <-done, 5*time.Second)
	})
}

// TestUpdateRetimesThoseWhoWaitForAScope: no further call needs to come for it.
func TestUpdateRetimesThoseWhoWaitForAScope(t *testing.T) {
	slow, fast := []throttle.Rate{throttle.PerMinute(1)}, []throttle.Rate{throttle.PerSecond(100)}
	of := func(r []throttle.Rate) func(string) []throttle.Rate {
		return func(string) []throttle.Rate { return r }
	}
	key := func(*http.Request) string { return "acme" }
	long := func(*http.Request) string { return strings.Repeat("acme", 100) }
	for name, c := range map[string]struct{ from, to []transport.Scope }{
		"one for all":  {[]transport.Scope{{Name: "s", Rates: slow}}, []transport.Scope{{Name: "s", Rates: fast}}},
		"by key":       {[]transport.Scope{{Name: "s", Key: key, Rates: slow}}, []transport.Scope{{Name: "s", Key: key, Rates: fast}}},
		"by long key":  {[]transport.Scope{{Name: "s", Key: long, Rates: slow}}, []transport.Scope{{Name: "s", Key: long, Rates: fast}}},
		"plans":        {[]transport.Scope{{Name: "s", Key: key, RatesFor: of(slow)}}, []transport.Scope{{Name: "s", Key: key, RatesFor: of(fast)}}},
		"in flight":    {[]transport.Scope{{Name: "s", Key: key, Max: 1}}, []transport.Scope{{Name: "s", Key: key, Max: 4}}},
		"one is gone":  {[]transport.Scope{{Name: "s", Key: key, Rates: slow}}, nil},
		"one is left":  {[]transport.Scope{{Name: "r", Rates: fast}, {Name: "s", Rates: slow}}, []transport.Scope{{Name: "r", Rates: fast}, {Name: "s", Rates: fast}}},
		"nothing left": {[]transport.Scope{{Name: "s", Key: key, Rates: slow, Max: 1}}, []transport.Scope{{Name: "s", Key: key}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var to transport.Config
				w := newWorld(t, answers(t, answer{status: 200, body: "x"}), func(k *transport.Config, p *transport.Provider) {
					p.Scopes = c.to
					to = *k
					to.Providers = []transport.Provider{*p}
					p.Scopes = c.from
				})
				first, err := w.get()
				require.NoError(t, err)
				defer first.Body.Close()
				done := make(chan error, 3)
				for range 3 {
					go func() { _, err := w.get(); done <- err }()
				}
				time.Sleep(time.Second)
				require.Len(t, w.base.at(), 1)
				require.NoError(t, w.Update(to))
				for range 3 {
					require.NoError(t, <-done)
				}
				require.LessOrEqual(t, w.base.at()[3], 1030*time.Millisecond)
			})
		})
	}
}

// TestUpdateLowersAScopeForThoseWhoWait: who could not start in time any more leaves now.
func TestUpdateLowersAScopeForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to transport.Config
		w := newWorld(t, answers(t, answer{status: 200}), func(k *transport.Config, p *transport.Provider) {
			p.Scopes = []transport.Scope{{Name: "s", Rates: []throttle.Rate{throttle.PerHour(1)}}}
			to = *k
			to.Providers = []transport.Provider{*p}
			p.Scopes = []transport.Scope{{Name: "s", Rates: []throttle.Rate{throttle.PerMinute(1)}}}
		})
		_, err := w.get()
		require.NoError(t, err)
		done := make(chan error, 3)
		for range 3 {
			go func() { _, err := w.get(); done <- err }()
		}
		time.Sleep(time.Second)
		require.NoError(t, w.Update(to))
		for range 3 {
			require.Equal(t, transport.ReasonRate, transport.ReasonOf(<-done))
		}
		require.Equal(t, time.Second, time.Since(w.base.start))
	})
}

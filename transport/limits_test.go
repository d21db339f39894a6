package transport_test

import (
	"net/http"
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

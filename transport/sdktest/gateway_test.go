package sdktest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// toward sends what an SDK wants of its vendor to a listener of the gateway, as a base URL
// does.
type toward struct{ gateway *url.URL }

func (to toward) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = to.gateway.Scheme, to.gateway.Host, ""
	return http.DefaultTransport.RoundTrip(out)
}

// TestThroughTheGateway: the SDKs work through the gateway with their own retries on, make
// their own errors of its refusals, and do not send again.
func TestThroughTheGateway(t *testing.T) {
	each(t, func(t *testing.T, s sdk) {
		fake := s.fake(vendortest.Options{})
		t.Cleanup(fake.Close)
		upstream, err := url.Parse(fake.URL())
		require.NoError(t, err)
		p := s.preset()
		p.Match, p.Refusal = nil, s.refusal
		p.Budgets = []budget.Budget{books(), {Name: "three", Limit: 3 * budget.Unit, Unit: budget.Calls, Every: budget.Day}}
		gw, err := gateway.New(gateway.Config{Providers: []gateway.Provider{{Provider: p, Upstream: upstream, AllowPrivate: true}}},
			gateway.Parts{Ledger: new(budget.Memory)})
		require.NoError(t, err)
		var asked atomic.Int32
		handler := gw.Handler(gateway.Listener{Provider: p.Name})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			handler.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		listener, err := url.Parse(server.URL)
		require.NoError(t, err)

		call := s.connect(&http.Client{Transport: toward{listener}}, true)
		for i := range 3 {
			require.NoError(t, call(t.Context(), i+1))
		}
		err = call(t.Context(), 4)
		require.Error(t, err)
		require.True(t, s.own(err), "%T: %v", err, err)
		require.EqualValues(t, 4, asked.Load(), "the refusal was sent again")
		require.Equal(t, 3, fake.Counts().Received)
	})
}

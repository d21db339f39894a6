package transport_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// http.Client puts an error of its own in the place of ours when its Timeout is over, and
// the call may have been billed.
func TestTimeoutOfTheClientIsAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := transport.New(transport.Config{Base: silent{}, Ledger: new(budget.Memory), Providers: []transport.Provider{{
			Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit), Budgets: []budget.Budget{budget.PerDay(5 * budget.Unit)},
		}}})
		require.NoError(t, err)
		client := rt.Client()
		client.Timeout = time.Second
		_, err = client.Get(apiURL)
		require.Error(t, err)
		require.False(t, errors.As(err, new(*transport.CallError)), "or this test is about nothing")
		require.True(t, transport.OutcomeUnknown(err))
		require.False(t, transport.NotSent(err))
		all, err := rt.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, budget.Unit, all.Budgets[0].Presumed)
	})
}

// silent takes every request and never answers.
type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	time.Sleep(time.Millisecond) // the client's own timer is over as well
	return nil, req.Context().Err()
}

// A refusal is none, however short the client's patience: it comes before the Timeout.
func TestRefusalBeforeTheTimeoutOfTheClientIsNoUnknownOutcome(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}), func(_ *transport.Config, p *transport.Provider) {
		p.Rates = []throttle.Rate{throttle.PerHour(1)}
	})
	client := w.Client()
	client.Timeout = time.Minute
	resp, err := client.Get(apiURL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	_, err = client.Get(apiURL)
	require.ErrorAs(t, err, new(*throttle.WaitError))
	require.False(t, transport.OutcomeUnknown(err))
	require.True(t, transport.NotSent(err))
}

// Who queues leaves just before the Timeout, with our error, whatever is waited for.
func TestWhoQueuesIsRefusedBeforeTheTimeoutOfTheClient(t *testing.T) {
	for name, change := range map[string]func(*transport.Config, *transport.Provider){
		"for a slot": func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 },
		"for a turn": rate(throttle.Rate{N: 1, Per: 1001 * time.Millisecond}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200}), change)
				first, err := w.get()
				require.NoError(t, err)
				client := w.Client()
				client.Timeout = time.Second
				_, err = client.Get(apiURL)
				require.Equal(t, transport.ReasonDeadline, transport.ReasonOf(err), "%v", err)
				require.True(t, transport.NotSent(err))
				require.False(t, transport.OutcomeUnknown(err))
				require.NoError(t, first.Body.Close())
			})
		})
	}
}

// Who reads a refused match learns which provider is nearest, and nothing of the request.
func TestRefusedMatchNamesTheNearestProviders(t *testing.T) {
	match := matcher(t, transport.RefuseAll, map[string][]string{
		"send": {"POST api.example.com/v1/messages"}, "read": {"GET api.example.com/v1/"}, "eu": {"*.example.com/eu/"},
	})
	for url, want := range map[string]string{
		"https://api.example.com/v2":    "Match of eu, read, send names its host, but not this method and path",
		"https://b.a.example.com/x":     "Match of eu names its host, but not this method and path",
		"https://secret.example.org/v2": "nobody's Match names its host",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		_, err = match(req)
		require.ErrorIs(t, err, transport.ErrUnmatched)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), req.URL.Path)
		require.NotContains(t, err.Error(), "secret")
	}
}

// net/http looks at Request.Cancel in a goroutine of its own, which may be too late.
func TestACallThatWasCancelledTheOldWayIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)))
		_, err := w.get()
		require.NoError(t, err)
		left := make(chan struct{})
		body := &spyBody{Reader: strings.NewReader("text")}
		req := request(t, t.Context(), body)
		req.Cancel = left //lint:ignore SA1019 callers may still use it
		time.AfterFunc(time.Second, func() { close(left) })
		_, err = w.RoundTrip(req)
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, transport.NotSent(err))
		require.Equal(t, 1, body.closed)
		require.Len(t, w.base.at(), 1)
		w.books("1", "0", "0")
	})
}

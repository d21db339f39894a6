package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
)

// try is one attempt as the scripted provider saw it.
type try struct {
	at     time.Duration // since the script was made
	method string
	url    string
	header http.Header
	body   string
	length int64
}

// script is a Base that answers by a list and remembers what it was sent.
type script struct {
	t     *testing.T
	start time.Time
	mu    sync.Mutex
	tries []try
	// answer gives the answer to attempt n (from 1).
	answer func(n int, req *http.Request) (*http.Response, error)
	closed int // CloseIdleConnections calls
	bodies []*spyBody
}

// answers makes a script that gives each answer once and the last one for ever.
func answers(t *testing.T, list ...answer) *script {
	s := &script{t: t, start: time.Now()}
	s.answer = func(n int, req *http.Request) (*http.Response, error) {
		a := list[min(n, len(list))-1]
		if a.delay > 0 {
			select {
			case <-time.After(a.delay):
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		if a.err != nil {
			return nil, a.err
		}
		return s.response(req, a), nil
	}
	return s
}

type answer struct {
	status int
	header string // "Name: value\nName: value"
	body   string
	delay  time.Duration
	err    error
}

func (s *script) response(req *http.Request, a answer) *http.Response {
	h := http.Header{}
	for line := range strings.Lines(a.header) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		require.True(s.t, ok, "header line %q", line)
		h.Add(name, value)
	}
	b := &spyBody{Reader: strings.NewReader(a.body)}
	s.mu.Lock()
	s.bodies = append(s.bodies, b)
	s.mu.Unlock()
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: b, ContentLength: int64(len(a.body)), Request: req,
	}
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.tries = append(s.tries, try{time.Since(s.start), req.Method, req.URL.String(), req.Header.Clone(), string(body), req.ContentLength})
	n := len(s.tries)
	s.mu.Unlock()
	return s.answer(n, req)
}

func (s *script) CloseIdleConnections() { s.closed++ }

// at lists when the attempts came.
func (s *script) at() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]time.Duration, len(s.tries))
	for i, x := range s.tries {
		out[i] = x.at
	}
	return out
}

// spyBody counts Close and notices use after it.
type spyBody struct {
	io.Reader
	mu     sync.Mutex
	closed int
	read   int
	late   int
}

func (b *spyBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed > 0 {
		b.late++
		return 0, errors.New("read after close")
	}
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *spyBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed++
	return nil
}

// world is a transport over a script, with its books.
type world struct {
	*transport.Transport
	t      *testing.T
	base   *script
	ledger *budget.Memory
	budget budget.Budget
	mu     sync.Mutex
	events []transport.Event
}

const apiURL = "https://api.example.com/v1/messages"

// newWorld makes a transport with one provider: no rate, a dollar a call, ample money,
// four attempts, five minutes to wait. Tests change what they are about.
func newWorld(t *testing.T, base *script, change ...func(*transport.Config, *transport.Provider)) *world {
	t.Helper()
	w := &world{t: t, base: base, ledger: new(budget.Memory), budget: budget.PerDay(1_000_000 * budget.Unit)}
	w.budget.Name = "day"
	p := transport.Provider{
		Name: "api", Match: []string{"api.example.com"}, Price: price.PerCall(budget.Unit),
		Budgets: []budget.Budget{w.budget},
		Retry:   transport.Retry{Attempts: 4, Backoff: time.Second},
	}
	c := transport.Config{Base: base, Ledger: w.ledger, MaxWait: 5 * time.Minute, OnEvent: func(_ context.Context, e transport.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}}
	for _, f := range change {
		f(&c, &p)
	}
	if len(p.Budgets) > 0 {
		w.budget = p.Budgets[0]
	}
	c.Providers = append(c.Providers, p)
	rt, err := transport.New(c)
	require.NoError(t, err)
	w.Transport = rt
	return w
}

func limit(a string) func(*transport.Config, *transport.Provider) {
	return func(_ *transport.Config, p *transport.Provider) {
		p.Budgets = []budget.Budget{budget.PerDay(budget.MustParse(a))}
		p.Budgets[0].Name = "day"
	}
}

func (w *world) get() (*http.Response, error) { return w.send(w.t.Context(), "GET", "") }

func (w *world) post(body string) (*http.Response, error) {
	return w.send(w.t.Context(), "POST", body)
}

func (w *world) send(ctx context.Context, method, body string) (*http.Response, error) {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, apiURL, r)
	require.NoError(w.t, err)
	return w.RoundTrip(req)
}

func (w *world) totals() budget.Totals {
	w.t.Helper()
	b := w.budget
	if b.Unit == "" {
		b.Unit = "USD"
	}
	if b.Label == "" {
		b.Label = b.Name
	}
	totals, err := w.ledger.Totals(w.t.Context(), time.Now(), b)
	require.NoError(w.t, err)
	require.Len(w.t, totals, 1)
	return totals[0]
}

// books checks what is settled, presumed and held.
func (w *world) books(settled, presumed, held string) {
	w.t.Helper()
	got := w.totals()
	require.Equal(w.t, []string{settled, presumed, held},
		[]string{got.Settled.String(), got.Presumed.String(), got.Held.String()}, "settled, presumed, held")
}

func (w *world) kinds() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		out = append(out, e.Kind.String())
	}
	return out
}

func (w *world) eventsOf(k transport.Kind) (out []transport.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Kind == k {
			out = append(out, e)
		}
	}
	return out
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(b)
}

// between checks that d lies in [low, high].
func between(t *testing.T, low, high, d time.Duration) {
	t.Helper()
	require.True(t, d >= low && d <= high, "want a time between %v and %v, got %v", low, high, d)
}

const floor = 100 * time.Millisecond

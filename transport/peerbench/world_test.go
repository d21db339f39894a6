package peerbench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// pipes is a listener whose connections stay in memory, so that a server, its clients
// and the time between them live in one bubble of testing/synctest: an hour passes at
// once, and every wait is seen exactly.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (p *pipes) Addr() net.Addr { return address{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "api.example.com" }

type dialer func(context.Context, string, string) (net.Conn, error)

// arrival is one transmission as the server saw it.
type arrival struct {
	at   time.Duration // since the world began
	path string
	body string
}

// world is a server that answers by a script, and the base through which peers reach it.
type world struct {
	server *httptest.Server
	base   *spy
	start  time.Time
	mu     sync.Mutex // guards got
	got    []arrival
}

// newWorld starts a server that gives the answers in their order, the last one for ever.
func newWorld(t *testing.T, l net.Listener, dial dialer, answers ...http.HandlerFunc) *world {
	w := &world{start: time.Now()}
	w.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.got = append(w.got, arrival{time.Since(w.start), r.URL.Path, string(body)})
		n := len(w.got)
		w.mu.Unlock()
		answers[min(n, len(answers))-1](rw, r)
	})}}
	w.server.Start()
	w.base = &spy{next: &http.Transport{DialContext: dial}}
	t.Cleanup(func() {
		w.base.next.CloseIdleConnections()
		w.server.Close()
	})
	return w
}

func (w *world) arrivals() []arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got)
}

// spy is the base of every peer: a real transport whose answers' bodies are counted until
// they are closed.
type spy struct {
	next *http.Transport
	mu   sync.Mutex
	open int
}

func (s *spy) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(req)
	if resp != nil {
		s.add(1)
		resp.Body = &watched{ReadCloser: resp.Body, closed: sync.OnceFunc(func() { s.add(-1) })}
	}
	return resp, err
}

func (s *spy) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

type watched struct {
	io.ReadCloser
	closed func()
}

func (w *watched) Close() error {
	w.closed()
	return w.ReadCloser.Close()
}

// says is an answer with a status, headers ("Name: value") and a body.
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// dies breaks the connection once the request was read, and answers nothing.
func dies(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// outcome is what a caller got.
type outcome struct {
	status int
	body   string
	err    error
	took   time.Duration
}

// call sends one request and reads its answer as a program would.
func (w *world) call(do sender, req *http.Request) outcome {
	began := time.Now()
	resp, err := do(req)
	if err != nil {
		if e := retrypolicy.AsExceededError(err); e != nil { // failsafe-go's error has the last answer
			if last, ok := e.LastResult.(*http.Response); ok && last != nil {
				_ = last.Body.Close()
			}
		}
		return outcome{err: err, took: time.Since(began)}
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return outcome{resp.StatusCode, string(text), err, time.Since(began)}
}

type sender func(*http.Request) (*http.Response, error)

// request makes a call of the given method. A body given as a stream cannot be had again.
func (w *world) request(ctx context.Context, method, path, body string, stream bool) *http.Request {
	var r io.Reader
	switch {
	case stream:
		r = io.MultiReader(strings.NewReader(body))
	case body != "":
		r = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, r)
	if err != nil {
		panic(fmt.Sprint("a request of our own: ", err))
	}
	return req
}

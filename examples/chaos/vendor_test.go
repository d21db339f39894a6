package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// vendor is an API in the same process, and the oracle: it bills what it takes at the
// moment that arrives, whatever becomes of the answer or of the caller.
type vendor struct {
	name string
	// answer is a good answer, and what it costs.
	answer func(r *rand.Rand) (body string, cost budget.Amount)
	// throttled is a refusal of the vendor.
	throttled func() (status int, h http.Header, body string)

	onWay   sync.WaitGroup // requests
	mu      sync.Mutex
	rng     *rand.Rand
	invoice budget.Amount
	taken   map[string]bool          // messages
	billed  map[holder]budget.Amount // by attempt
	seen    map[string]int           // by what happened
	frozen  time.Time                // since when nothing may be sent
	broken  []string                 // promises
}

// holder is what money is held for: an attempt, from 1, to send a message.
type holder struct {
	message string
	attempt int
}

// fates are what may happen to a request, in hundredths. The rest goes well.
var fates = []struct {
	name  string
	share int
}{
	{"dial", 2}, {"throttle", 4}, {"throttle_hint", 2}, {"unavailable", 2}, {"unavailable_hint", 1}, {"error_billed", 1},
	{"error", 1}, {"reset_before", 1}, {"reset_after", 1}, {"cut", 1}, {"slow", 3},
}

func (v *vendor) draw() (fate string, up, down time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	up, down = time.Duration(v.rng.IntN(100))*time.Millisecond, time.Duration(v.rng.IntN(400))*time.Millisecond
	n := v.rng.IntN(100)
	for _, f := range fates {
		if n -= f.share; n < 0 {
			fate = f.name
			break
		}
	}
	if fate == "slow" {
		down += 10 * time.Second
	}
	return fate, up, down
}

func (v *vendor) RoundTrip(req *http.Request) (*http.Response, error) {
	fate, up, down := v.draw()
	v.sends()
	by := holder{message: req.Context().Value(messageKey{}).(string)}
	_, by.attempt, _ = transport.AttemptFrom(req.Context())
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	if fate == "dial" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	type result struct {
		resp *http.Response
		err  error
	}
	done := make(chan result, 1)
	v.onWay.Go(func() { // what was written arrives, also if the caller has left
		time.Sleep(up)
		resp, err := v.take(fate, by)
		time.Sleep(down)
		done <- result{resp, err}
	})
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case r := <-done:
		return r.resp, r.err
	}
}

// sends notes a transmission, which an operator may have forbidden.
func (v *vendor) sends() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.frozen.IsZero() && time.Now().After(v.frozen) {
		v.broken = append(v.broken, fmt.Sprintf("sent at %v although frozen since %v", time.Now(), v.frozen))
	}
}

func (v *vendor) freeze(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frozen = at
}

// take decides and bills.
func (v *vendor) take(fate string, by holder) (*http.Response, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[fate]++
	switch fate {
	case "throttle", "throttle_hint":
		status, h, body := v.throttled()
		if fate == "throttle_hint" {
			status = http.StatusTooManyRequests
			h.Set("Retry-After", "3")
		}
		return response(status, h, body), nil
	case "unavailable":
		return response(http.StatusServiceUnavailable, http.Header{}, "busy"), nil
	case "unavailable_hint":
		return response(http.StatusServiceUnavailable, http.Header{"Retry-After": {"2"}}, "busy"), nil
	case "error":
		return response(http.StatusInternalServerError, http.Header{}, "broken"), nil
	case "reset_before":
		return nil, syscall.ECONNRESET
	}
	body, cost := v.answer(v.rng)
	v.invoice += cost
	if v.taken[by.message] {
		v.broken = append(v.broken, by.message+" was billed twice")
	}
	v.taken[by.message], v.billed[by] = true, cost
	switch fate {
	case "error_billed":
		return response(http.StatusInternalServerError, http.Header{}, "broken"), nil
	case "reset_after":
		return nil, syscall.ECONNRESET
	case "cut":
		resp := response(http.StatusOK, http.Header{}, "")
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:len(body)/2]), cutOff{}))
		return resp, nil
	}
	return response(http.StatusOK, http.Header{}, body), nil
}

// cutOff is where a connection broke.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func response(status int, h http.Header, body string) *http.Response {
	h.Set("Content-Type", "application/json")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat)) // the right time, whatever our clock says
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
	}
}

// host sends each host to its vendor.
type hosts map[string]*vendor

var errNoVendor = errors.New("no vendor has this host")

func (h hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	v := h[req.URL.Host]
	if v == nil {
		return nil, errNoVendor
	}
	return v.RoundTrip(req)
}

// process is one program: a transport of its own over the shared books, until it dies.
// What is dead sends nothing, and tells the books nothing.
type process struct {
	budget.Ledger // shared
	base          http.RoundTripper
	ctx           context.Context
	kill          context.CancelFunc

	lose func() bool                            // the ledger's answer is lost on its way
	held func(id budget.HoldID, message string) // tells whose hold it is

	mu   sync.Mutex
	open map[budget.HoldID]bool
}

// messageKey finds a call's message in its context.
type messageKey struct{}

func (p *process) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	if p.ctx.Err() != nil {
		return budget.Report{}, budget.ErrUnavailable
	}
	if len(h.Legs) == 0 {
		return p.Ledger.Hold(ctx, h) // asks only whether the provider is frozen
	}
	p.note(h.ID, true)
	p.held(h.ID, ctx.Value(messageKey{}).(string))
	report, err := p.Ledger.Hold(ctx, h)
	if err != nil {
		p.note(h.ID, false)
	}
	if err == nil && p.lose() {
		return budget.Report{}, budget.ErrUnavailable
	}
	return report, err
}

func (p *process) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	if p.ctx.Err() != nil {
		return budget.Report{}, budget.ErrUnavailable
	}
	report, err := p.Ledger.Resolve(ctx, id, o)
	p.note(id, false)
	return report, err
}

func (p *process) note(id budget.HoldID, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[id] = true
	} else {
		delete(p.open, id)
	}
}

func (p *process) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.ctx.Err() != nil {
		return nil, p.ctx.Err()
	}
	return p.base.RoundTrip(req)
}

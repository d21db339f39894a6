package gateway

import (
	"errors"
	"net/http"
	"os"
	"time"
)

// writer is the way back to the caller. Each of its writes is bounded in time.
type writer struct {
	http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration // of a write
	armed time.Time     // until when the deadline need not be moved
	// status is what was answered, zero if nothing was.
	status int
	// slow: the caller did not take the answer in time.
	slow bool
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{ResponseWriter: w, rc: http.NewResponseController(w), limit: time.Minute}
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// boundEach sets how long a write may take.
func (w *writer) boundEach(limit time.Duration) {
	if w != nil {
		w.limit = limit
	}
}

// boundWrite moves the deadline of writes, not more often than needed. It stays when the
// call is over: what is still in net/http's buffer is written under it, and the next call on
// the connection moves it before it writes.
func (w *writer) boundWrite() {
	now := time.Now()
	if now.Before(w.armed) {
		return
	}
	w.armed = now.Add(w.limit / 4)
	_ = w.rc.SetWriteDeadline(now.Add(w.limit + w.limit/4)) // not possible in tests without a connection
}

// boundRead sets the deadline of reads from the caller; zero takes it away, since net/http
// goes on reading to see that the caller leaves.
func (w *writer) boundRead(d time.Duration) {
	if w == nil {
		return
	}
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
		w.boundWrite() // a 100 Continue
	}
	_ = w.rc.SetReadDeadline(t)
}

// WriteHeader passes the header on.
func (w *writer) WriteHeader(status int) {
	w.boundWrite()
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write passes a piece of the answer on.
func (w *writer) Write(p []byte) (int, error) {
	w.boundWrite()
	n, err := w.ResponseWriter.Write(p)
	w.note(err)
	return n, err
}

// FlushError is what [http.ResponseController] looks for.
func (w *writer) FlushError() error {
	w.boundWrite()
	err := w.rc.Flush()
	w.note(err)
	return err
}

func (w *writer) note(err error) {
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		w.slow = true
	}
}

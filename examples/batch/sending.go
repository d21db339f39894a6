package batch

import (
	"context"
	"net"
	"net/http"
)

// rowKey carries the key of the row for which a call is made.
type rowKey struct{}

// Sending returns a RoundTripper for Config.Base that writes to the journal, right before
// a request leaves, that the row of its context is on its way. A row that only waited for
// its turn when the program died is so known not to have been sent.
func (j *Journal) Sending(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return sending{j, base}
}

type sending struct {
	journal *Journal
	base    http.RoundTripper
}

// RoundTrip sends nothing that could not be written down. Its error is that of a dial,
// which outlay knows as a proof that nothing was sent.
func (s sending) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := s.journal.begin(req.Context()); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &net.OpError{Op: "dial", Net: "journal", Err: err}
	}
	return s.base.RoundTrip(req)
}

// CloseIdleConnections closes those of the base.
func (s sending) CloseIdleConnections() {
	if c, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// begin writes that the row of ctx is on its way, once.
func (j *Journal) begin(ctx context.Context) error {
	key, ok := ctx.Value(rowKey{}).(string)
	if !ok {
		return nil
	}
	last := j.Last(key)
	if last.State == Begun {
		return nil
	}
	return j.Write(key, Result{State: Begun, Cost: last.Cost})
}

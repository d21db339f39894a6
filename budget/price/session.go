package price

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// Bounds of what a Session remembers. Google's session tokens live "a few minutes";
// what is forgotten starts anew and costs more, never less.
const (
	sessionAge  = 3 * time.Minute
	maxSessions = 10_000
	maxToken    = 128
)

// Session prices calls that a vendor bills per request or, together with others of one
// session, at most at a price per session, as place autocompletion is. Make one with
// [PerSession]; it must not be copied.
//
// A request costs its price until the session has cost its own; what follows is free.
// A call that ends a session pays what is missing of the session's price. Only calls
// that were answered count, by Meter. Where a session is not sure, because it has no
// token, has been forgotten or is older than three minutes, the dearer reading holds.
type Session struct {
	perRequest, perSession budget.Amount
	unit                   string
	token                  func(*http.Request) string
	ends                   func(*http.Request) bool

	mu    sync.Mutex // guards what follows
	open  map[string]*session
	queue []*session // by begin
}

type session struct {
	token string
	begin time.Time
	paid  budget.Amount
}

// PerSession prices requests in US dollars; see [Session.In] for other currencies. The
// token function finds the session of a request and the ends function reports whether
// a request ends it; they look at URL and header only. A nil ends function: none does.
func PerSession(request, session budget.Amount, token func(*http.Request) string, ends func(*http.Request) bool) *Session {
	return &Session{perRequest: request, perSession: session, token: token, ends: ends}
}

// In sets the currency of the prices, an ISO 4217 code, and returns s. It must be
// called before the first quote.
func (s *Session) In(unit string) *Session { s.unit = unit; return s }

// Unit is the currency of the prices.
func (s *Session) Unit() string { return unitOr(s.unit) }

// Quote gives what the request adds to its session. It changes nothing.
func (s *Session) Quote(r *http.Request) (budget.Quote, error) {
	if s.token == nil || s.perRequest < 0 || s.perSession < 0 {
		return budget.Quote{}, unpriced("the price of a session is not known")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, _ := s.price(r, time.Now())
	return budget.Quote{Amount: a, Unit: s.Unit(), Units: 1}, nil
}

// Meter books an answered request to its session. There is no body to read.
func (s *Session) Meter(resp *http.Response) (io.Writer, func() (budget.Amount, bool)) {
	r := resp.Request
	if r == nil || s.token == nil {
		return nil, nil
	}
	return nil, func() (budget.Amount, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.book(r, time.Now()), true
	}
}

// price is what a request costs now, and its session if it is known.
func (s *Session) price(r *http.Request, now time.Time) (budget.Amount, *session) {
	var paid budget.Amount
	o := s.open[s.token(r)]
	if o != nil && now.Sub(o.begin) >= sessionAge {
		o = nil
	}
	if o != nil {
		paid = o.paid
	}
	if s.ends != nil && s.ends(r) {
		return max(0, s.perSession-paid), o
	}
	if o == nil {
		return s.perRequest, nil
	}
	return min(s.perRequest, max(0, s.perSession-paid)), o
}

// book adds a request to its session, or begins one.
func (s *Session) book(r *http.Request, now time.Time) budget.Amount {
	a, o := s.price(r, now)
	token := s.token(r)
	switch {
	case token == "" || len(token) > maxToken:
	case s.ends != nil && s.ends(r):
		delete(s.open, token) // the vendor begins a new one if the token comes again
	case o != nil:
		o.paid += a
	default:
		s.begin(&session{token: token, begin: now, paid: a})
	}
	return a
}

// begin remembers a session, and forgets those that are old or too many.
func (s *Session) begin(o *session) {
	if s.open == nil {
		s.open = make(map[string]*session)
	}
	for len(s.queue) > 0 && (len(s.queue) >= maxSessions || o.begin.Sub(s.queue[0].begin) >= sessionAge) {
		old := s.queue[0]
		s.queue[0], s.queue = nil, s.queue[1:]
		if s.open[old.token] == old {
			delete(s.open, old.token)
		}
	}
	s.open[o.token] = o
	s.queue = append(s.queue, o)
}

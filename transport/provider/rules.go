package provider

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// rule prices the requests of one method to some paths.
type rule struct {
	method string // empty: all
	// path is a pattern of [path.Match], or a prefix if it ends with a slash.
	path string
	// price is nil if the calls are billed in a way that the preset does not know.
	price transport.Pricer
}

func (r *rule) fits(method, p string) bool {
	if r.method != "" && r.method != method {
		return false
	}
	if prefix, ok := strings.CutSuffix(r.path, "/"); ok {
		return strings.HasPrefix(p, prefix) && (len(p) == len(prefix) || p[len(prefix)] == '/')
	}
	ok, _ := path.Match(r.path, p) // the patterns are ours, and tested
	return ok
}

// rules is the price of a preset whose host has calls of several prices. The first rule
// that fits decides.
type rules struct {
	list []rule
	// reads: what only reads or deletes is free if no rule fits it.
	reads bool
}

// Unit is the currency of the prices.
func (s rules) Unit() string {
	for _, r := range s.list {
		if u, ok := r.price.(interface{ Unit() string }); ok {
			return u.Unit()
		}
	}
	return budget.USD
}

// Quote gives the price of the rule that fits.
func (s rules) Quote(r *http.Request) (budget.Quote, error) {
	p, free := s.find(r)
	switch {
	case free:
		return budget.Quote{Unit: s.Unit()}, nil
	case p == nil:
		return budget.Quote{}, fmt.Errorf("%w: the preset does not know how the vendor bills this call", budget.ErrUnpriced)
	}
	q, err := p.Quote(r)
	if q.Unit == "" {
		q.Unit = s.Unit() // what is free is so in any currency
	}
	return q, err
}

// Meter is that of the price that fits. Without the request in the answer nobody knows
// which that is.
func (s rules) Meter(resp *http.Response) (io.Writer, func() (budget.Amount, bool)) {
	if resp.Request == nil || resp.Request.URL == nil {
		return nil, func() (budget.Amount, bool) { return 0, false }
	}
	p, _ := s.find(resp.Request)
	if m, ok := p.(transport.Metered); ok {
		return m.Meter(resp)
	}
	return nil, nil
}

// find returns the price of a request, or reports that it is free. Both absent: there is
// no price.
func (s rules) find(r *http.Request) (p transport.Pricer, free bool) {
	if r.URL.Opaque != "" {
		return nil, false // a path that is not seen
	}
	at := path.Clean("/" + r.URL.Path)
	for i := range s.list {
		if s.list[i].fits(r.Method, at) {
			return s.list[i].price, false
		}
	}
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return nil, s.reads
	}
	return nil, false
}

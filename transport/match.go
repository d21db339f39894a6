package transport

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// routes finds the provider of a request. It is immutable.
type routes struct {
	hosts     map[string]*hostRoutes // exact hosts
	wildcards map[string]*hostRoutes // "example.com" for *.example.com
}

// hostRoutes are the patterns of one host, or of all names below one.
type hostRoutes struct {
	// whole owns every request to the host: it is found without the mux, whose lookup
	// costs more than everything else on the way of a call.
	whole *provider
	// mux finds the most specific of several patterns; owners maps what it returns.
	mux    *http.ServeMux
	owners map[string]*provider
	// found remembers what the mux said of some paths; see foundAt.
	found  [maxFound]atomic.Pointer[foundRoute]
	nFound atomic.Int32 // how often it was written
}

// foundRoute is what the mux looks at, and what it said.
type foundRoute struct {
	method, path string
	owner        *provider
}

const (
	maxFound     = 1024 // so that paths that never come again do not cost memory for ever
	maxFoundPath = 128  // longer paths are not worth it
)

var foundSeed = maphash.MakeSeed()

// foundAt is where a path is remembered; a later one may take its place.
func (h *hostRoutes) foundAt(path string) *atomic.Pointer[foundRoute] {
	return &h.found[maphash.String(foundSeed, path)%maxFound]
}

var (
	errNoURL     = errors.New("transport: request without URL")
	errHostASCII = errors.New("host is not ASCII")
)

// match returns the provider that req belongs to. Without one, named tells whether some
// pattern names its host.
func (r *routes) match(req *http.Request) (p *provider, named bool, err error) {
	if req.URL == nil {
		return nil, false, errNoURL
	}
	host, err := normalHost(req.URL.Host)
	if err != nil {
		return nil, false, err
	}
	if h := r.hosts[host]; h != nil {
		if p := h.find(req); p != nil {
			return p, true, nil
		}
		named = true
	}
	if len(r.wildcards) == 0 {
		return nil, named, nil
	}
	for rest := host; ; {
		_, parent, ok := strings.Cut(rest, ".")
		if !ok {
			return nil, named, nil
		}
		if h := r.wildcards[parent]; h != nil {
			if p := h.find(req); p != nil {
				return p, true, nil
			}
			named = true
		}
		rest = parent
	}
}

func (h *hostRoutes) find(req *http.Request) *provider {
	if h.whole != nil {
		return h.whole
	}
	if req.URL.RawPath != "" || req.URL.Opaque != "" || len(req.URL.Path) > maxFoundPath {
		return h.ask(req)
	}
	method, path := cmp.Or(req.Method, http.MethodGet), req.URL.Path
	at := h.foundAt(path)
	if f := at.Load(); f != nil && f.path == path && f.method == method {
		return f.owner
	}
	p := h.ask(req)
	if h.nFound.Load() < maxFound {
		h.nFound.Add(1)
		at.Store(&foundRoute{strings.Clone(method), strings.Clone(path), p})
	}
	return p
}

// ask asks the mux. The returned pattern is compared, not the handler: for paths that it
// would clean the mux returns a redirecting handler, by which //path would slip through.
func (h *hostRoutes) ask(req *http.Request) *provider {
	q := muxQueries.Get().(*muxQuery)
	defer muxQueries.Put(q)
	q.url = pathOnly(req.URL)
	q.req.Method, q.req.URL = cmp.Or(req.Method, http.MethodGet), &q.url
	_, pattern := h.mux.Handler(&q.req)
	return h.owners[pattern]
}

// muxQuery is the request by which the mux is asked; it is used again.
type muxQuery struct {
	req http.Request
	url url.URL
}

var muxQueries = sync.Pool{New: func() any { return new(muxQuery) }}

func pathOnly(u *url.URL) url.URL {
	p := url.URL{Path: u.Path, RawPath: u.RawPath}
	if u.Opaque != "" {
		// net/http sends the opaque part as the request target.
		if unescaped, err := url.PathUnescape(opaquePath(u.Opaque)); err == nil {
			p.Path, p.RawPath = unescaped, ""
		}
	}
	if p.Path == "" || p.Path[0] != '/' {
		p.Path = "/" + p.Path
	}
	return p
}

// opaquePath is the path of an opaque "//host/path", or the opaque part itself.
func opaquePath(opaque string) string {
	if rest, ok := strings.CutPrefix(opaque, "//"); ok {
		_, tail, _ := strings.Cut(rest, "/")
		return "/" + tail
	}
	return opaque
}

// normalHost lower-cases a host and cuts its port and one final dot. A host that is not
// ASCII is an error: net/http would map full-width letters and soft hyphens to the
// vendor's name and dial it, but no pattern would match.
func normalHost(host string) (string, error) {
	plain := true
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 0x80:
			return "", errHostASCII
		case c >= 'A' && c <= 'Z', c == ':', c == '[':
			plain = false
		}
	}
	if !plain {
		host = strings.ToLower((&url.URL{Host: host}).Hostname())
	}
	return strings.TrimSuffix(host, "."), nil
}

// pattern is one parsed entry of Provider.Match.
type pattern struct {
	method, host, path string
	wildcard           bool
}

func parsePattern(s string) (p pattern, err error) {
	rest := strings.TrimSpace(s)
	if method, after, ok := strings.Cut(rest, " "); ok {
		p.method, rest = method, strings.TrimLeft(after, " \t")
	}
	if strings.Contains(rest, "://") {
		return p, errors.New("write host/path, without a scheme")
	}
	host, tail, _ := strings.Cut(rest, "/")
	p.path = "/" + tail
	if p.host, err = normalHost(host); err != nil {
		return p, fmt.Errorf("%w; write the punycode form", err)
	}
	p.host, p.wildcard = strings.CutPrefix(p.host, "*.")
	switch {
	case p.host == "" && p.wildcard:
		return p, errors.New("write a host after the wildcard, as in *.example.com")
	case p.host == "":
		return p, errors.New("a host is required, as in api.example.com or api.example.com/v1/")
	case strings.ContainsRune(p.host, '*'):
		return p, fmt.Errorf("host %q: only a leading *. is understood", p.host)
	case strings.ContainsFunc(p.host, notOfHosts):
		return p, fmt.Errorf("%q is no host", p.host)
	case p.method != strings.ToUpper(p.method):
		return p, fmt.Errorf("method %q is never sent; write %s", p.method, strings.ToUpper(p.method))
	case path.Clean(p.path) != strings.TrimSuffix(p.path, "/") && p.path != "/":
		return p, fmt.Errorf("path %q is never matched: requests are matched by their cleaned path", p.path)
	}
	return p, nil
}

// notOfHosts reports what no host name has: a pattern with it would match nothing, and
// calls to the host that was meant would pass uncounted.
func notOfHosts(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:", r)
}

// muxPattern is how the pattern is written for the mux of its host.
func (p pattern) muxPattern() string {
	if p.method == "" {
		return p.path
	}
	return p.method + " " + p.path
}

// buildRoutes makes the routes of ps and reports patterns that are wrong, taken or
// unreachable, by the path of the field.
func buildRoutes(ps []*provider, report func(path string, err error)) *routes {
	r := &routes{hosts: map[string]*hostRoutes{}, wildcards: map[string]*hostRoutes{}}
	for i, p := range ps {
		for j, s := range p.Match {
			if err := r.add(p, s); err != nil {
				report(fmt.Sprintf("Providers[%d].Match[%d]", i, j), fmt.Errorf("%q: %w", s, err))
			}
		}
	}
	for _, m := range []map[string]*hostRoutes{r.hosts, r.wildcards} {
		for _, h := range m {
			if len(h.owners) == 1 && h.owners["/"] != nil {
				h.whole = h.owners["/"]
			}
		}
	}
	return r
}

func (r *routes) add(p *provider, s string) error {
	parsed, err := parsePattern(s)
	if err != nil {
		return err
	}
	m := r.hosts
	if parsed.wildcard {
		m = r.wildcards
	}
	h := m[parsed.host]
	if h == nil {
		h = &hostRoutes{mux: http.NewServeMux(), owners: map[string]*provider{}}
		m[parsed.host] = h
	}
	mp := parsed.muxPattern()
	if owner := h.owners[mp]; owner != nil {
		return fmt.Errorf("taken by provider %q", owner.Name)
	}
	if err := register(h.mux, mp); err != nil {
		return err
	}
	h.owners[mp] = p
	return nil
}

// near names the providers of which some pattern names the host of a request.
func (r *routes) near(req *http.Request) []string {
	host, err := normalHost(req.URL.Host)
	if err != nil {
		return nil
	}
	var names []string
	add := func(h *hostRoutes) {
		if h != nil {
			for _, p := range h.owners {
				names = append(names, p.Name)
			}
		}
	}
	add(r.hosts[host])
	for rest, found := host, true; found; {
		_, rest, found = strings.Cut(rest, ".")
		add(r.wildcards[rest])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// register turns the panic by which the mux refuses a pattern into an error.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			text, _, _ := strings.Cut(fmt.Sprint(r), "\n")
			err = errors.New(strings.TrimSpace(text))
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

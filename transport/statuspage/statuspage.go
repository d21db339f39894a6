// Package statuspage shows what a [transport.Transport] does, and why calls wait or are
// refused: one page, readable without scripts, and the same as JSON.
//
//	page := statuspage.New(statuspage.Options{})
//	rt, err := transport.New(transport.Config{OnEvent: page.Observe, ...})
//	page.Watch(rt)
//	mux.Handle("GET /debug/outlay/", page)
//
// With other hooks: OnEvent: transport.Tee(metrics.Observe, page.Observe).
//
// # Who may see it
//
// Until Options.Allow says otherwise, only this machine: the peer and the name asked for
// are loopback, and no proxy stands between. The page shows names of providers and
// budgets, amounts and times; never a URL, header, body, key or tenant. It writes
// nothing: [Admin] is a handler of its own.
//
// # Where the money went
//
// ?view=bill shows the owner of the bill what each provider spent in the present windows,
// what corrections changed, between which amounts the invoice should lie, and the windows
// of the last 35 days. With ?format=csv or "Accept: text/csv" it is a table in which no
// cell is a formula. While the ledger does not tell all of it, programs get a 503 instead.
//
// # What it remembers
//
// Limits, use, queues and gates are read when the page is asked for, and so are, from a
// ledger that is a [budget.Historian] or a [budget.Auditor], the use of the present
// windows in 96 parts and what people did, of all processes. What else is past comes
// from the events of this process, in bounded memory: the last 200 decisions and 20
// changes (about 130 KiB), the last hour of each provider by minutes (about 9 KiB each, and 5
// more where budgets refuse calls),
// and the present window of each budget in at most 192 steps (about 10 KiB each), which
// are shown where they are finer. The steps begin at one second and grow with the time
// that is watched. Between two readings of the page the history of a budget grows by what
// this process spends; each reading puts it at what the ledger says, so that the spending
// of others shows as a step there.
//
// # JSON
//
// "Accept: application/json" or ?format=json gives the schema outlay.status/1: amounts
// are decimal strings, instants RFC 3339 in UTC or null, names that end in _s are seconds,
// lists are never null. Fields may be added; a breaking change gets another schema.
package statuspage

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// Options sets who may see the page. The zero value is usable.
type Options struct {
	// Allow reports whether a request may see the page. Nil: only requests from this
	// machine, for a loopback name, without a proxy between.
	Allow func(*http.Request) bool
	// Title stands at the top. Empty: outlay.
	Title string
	// Notices, if set, are sentences of the program around it that stand first under "now",
	// such as that a configuration was refused. It is asked for every page, from several
	// goroutines, and must not wait. What it returns is shown as it is, so that it must
	// hold no secret.
	Notices func() []string
	// Timeout bounds the reading of the ledger. Zero: 2 s.
	Timeout time.Duration
}

// Page is an [http.Handler] for GET and HEAD; [New] makes one. It is safe for concurrent
// use.
type Page struct {
	o      Options
	source atomic.Pointer[transport.Transport]
	mem    *memory
}

// New returns a page that watches nothing yet.
func New(o Options) *Page {
	if o.Allow == nil {
		o.Allow = fromHere
	}
	if o.Title == "" {
		o.Title = "outlay"
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Second
	}
	return &Page{o: o, mem: newMemory(time.Now())}
}

// Watch has the page show t. A second call replaces the transport.
func (p *Page) Watch(t *transport.Transport) {
	p.source.Store(t)
	p.know(t)
}

// know reads what is configured, so that what happens to it is remembered.
func (p *Page) know(t *transport.Transport) {
	ctx, cancel := context.WithTimeout(context.Background(), p.o.Timeout)
	defer cancel()
	if s, err := t.Status(ctx); err == nil {
		p.mem.read(s)
	}
	_, _ = t.History(ctx) // a ledger without a log begins to remember
	_, _ = t.Spending(ctx)
}

// Observe is a hook for [transport.Config.OnEvent]. After an Update it reads the ledger,
// for at most Options.Timeout.
func (p *Page) Observe(_ context.Context, e transport.Event) {
	p.mem.observe(e)
	if t := p.source.Load(); t != nil && e.Kind == transport.KindChanged && e.Action == "update" {
		p.know(t)
	}
}

// ServeHTTP answers with the page, or with JSON if the request prefers that.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept")
	h.Set("Content-Security-Policy", policy)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "This page is only read.", http.StatusMethodNotAllowed)
		return
	}
	if !p.o.Allow(r) {
		http.Error(w, "Not from here. Until the program sets statuspage.Options.Allow, the page answers only\n"+
			"requests from its own machine, for localhost, without a proxy between.", http.StatusForbidden)
		return
	}
	body, kind, err := p.answer(r)
	if err != nil {
		http.Error(w, "There is nothing to show: "+reasonOf(err), http.StatusServiceUnavailable)
		return
	}
	if strings.HasPrefix(kind, "text/csv") {
		h.Set("Content-Disposition", `attachment; filename="outlay-bill.csv"`)
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// answer writes the page or the bill in the form that the request prefers.
func (p *Page) answer(r *http.Request) (body []byte, kind string, err error) {
	q, form := queryOf(r), wants(r)
	if r.URL.Query().Get("view") == "bill" || form == "csv" {
		b, err := p.bill(r.Context(), q)
		if err != nil {
			return nil, "", err
		}
		if b.partial && form != "html" {
			return nil, "", errPartial // a program would take what is left out for nothing spent
		}
		body, kind = renderBill(b, q, form)
		return body, kind, nil
	}
	v, err := p.look(r.Context())
	if err != nil {
		return nil, "", err
	}
	v.filter(q)
	body, kind = render(v, q, form == "json")
	return body, kind, nil
}

// look reads the state and joins it with what is remembered.
func (p *Page) look(ctx context.Context) (*view, error) {
	t := p.source.Load()
	if t == nil {
		return nil, errUnwatched
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	s, err := t.Status(ctx)
	if err != nil {
		return nil, err
	}
	p.mem.read(s)
	v := newView(&s, p.mem, p.recall(ctx, t, &s))
	v.Title = p.o.Title
	v.Notices = []string{}
	if p.o.Notices != nil {
		v.Notices = append(v.Notices, p.o.Notices()...)
	}
	if len(v.Notices) > 0 && severity[v.Level] < severity[levelWarn] {
		v.Level = levelWarn
	}
	return v, nil
}

// query is what the address asks for.
type query struct {
	Provider, Budget, Call string
	Refresh                int // seconds; 0: never
}

// Any reports whether the query leaves something out.
func (q query) Any() bool { return q.Provider != "" || q.Budget != "" || q.Call != "" }

// Keep is the query as it goes on behind another parameter.
func (q query) Keep() template.URL {
	var s strings.Builder
	for _, p := range [...][2]string{{"provider", q.Provider}, {"budget", q.Budget}, {"call", q.Call}} {
		if p[1] != "" {
			s.WriteString("&" + p[0] + "=" + escape(p[1]))
		}
	}
	return template.URL(s.String()) // every part is escaped
}

func queryOf(r *http.Request) query {
	f := r.URL.Query()
	q := query{Provider: f.Get("provider"), Budget: f.Get("budget"), Call: f.Get("call"), Refresh: 15}
	for _, s := range refreshes {
		if f.Get("refresh") == strconv.Itoa(s) {
			q.Refresh = s
		}
	}
	return q
}

// refreshes are the pauses between two readings that one may choose from.
var refreshes = []int{5, 15, 60, 0}

// render never fails: the view holds nothing that JSON or the template cannot write.
func render(v *view, q query, asJSON bool) (body []byte, kind string) {
	var b bytes.Buffer
	if asJSON {
		e := json.NewEncoder(&b)
		e.SetIndent("", " ")
		if err := e.Encode(v); err != nil {
			return []byte(`{"schema":"outlay.status/1"}`), "application/json"
		}
		return b.Bytes(), "application/json"
	}
	if err := pages.Execute(&b, struct {
		*view
		View      *view
		Query     query
		Refreshes []int
	}{v, v, q, refreshes}); err != nil {
		return []byte("The page cannot be written."), "text/plain; charset=utf-8"
	}
	return b.Bytes(), "text/html; charset=utf-8"
}

// wants is the form that a request asks for: csv or json if it names one and likes it no
// less than HTML, else html.
func wants(r *http.Request) string {
	if f := r.URL.Query().Get("format"); f == "json" || f == "csv" {
		return f
	} else if f != "" {
		return "html"
	}
	likes := map[string]float64{}
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			kind, rest, _ := strings.Cut(strings.TrimSpace(part), ";")
			q := 1.0
			for param := range strings.SplitSeq(strings.ToLower(rest), ";") {
				if v, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
					q, _ = strconv.ParseFloat(v, 64)
				}
			}
			likes[strings.ToLower(strings.TrimSpace(kind))] = q
		}
	}
	inJSON, inCSV, inHTML := likes["application/json"], likes["text/csv"], likes["text/html"]
	switch {
	case inJSON > 0 && inJSON >= inHTML && inJSON >= inCSV:
		return "json"
	case inCSV > 0 && inCSV >= inHTML:
		return "csv"
	}
	return "html"
}

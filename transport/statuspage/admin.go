package statuspage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// Action is what a request to [Admin] wants to do.
type Action string

// The actions. Freezing and releasing are the same for providers and budgets. Reading the
// holds or the audit log shows amounts, ids and what people wrote, and changes nothing.
const (
	ActionFreeze   Action = "freeze"
	ActionRelease  Action = "release"
	ActionOpenGate Action = "open_gate"
	ActionLimit    Action = "limit"
	ActionHolds    Action = "holds"
	ActionCorrect  Action = "correct"
	ActionAudit    Action = "audit"
)

// ErrForbidden is what Authorize returns for someone who is known but may not do the
// action: the answer is 403 instead of 401.
var ErrForbidden = errors.New("statuspage: not allowed")

// AdminOptions says who may change what.
type AdminOptions struct {
	// Authorize is asked before every action and returns who does it. The name is kept
	// in the ledger's entries, also if it comes with [ErrForbidden]. An error refuses,
	// with 401, or 403 for [ErrForbidden]; its text is not sent. A peer that failed ten
	// times within a minute is not asked any more in that minute: behind a proxy that is
	// everybody, unless the proxy's own peer is set as RemoteAddr before. Required.
	Authorize func(*http.Request, Action) (actor string, err error)
	// Hosts are the names under which the handler may be asked, with or without a port.
	// Browsers do not mark requests to plain HTTP as cross-site, so the name is what
	// protects them there. Empty: loopback names only.
	Hosts []string
}

// Admin returns a handler by which people change a transport: it does not exist without
// an authorizer. Mount it beside the page, under [http.StripPrefix]:
//
//	POST providers/{name}/freeze     reason           refuse all calls, for all processes
//	POST providers/{name}/release    reason           let them go on
//	POST providers/{name}/gate/open  reason           end a pause although the provider asked for it
//	POST budgets/{name}/freeze       reason           refuse all calls that the budget pays for
//	POST budgets/{name}/release      reason           let them go on
//	POST budgets/{name}/limit        reason, amount   a new limit at once, until the configured one changes;
//	                                                  above twice that it needs force=true
//	GET  holds                       provider, limit  the holds of unknown outcome, oldest first
//	POST holds/{id}/correct          reason, amount   what the call really cost
//	GET  audit                       after, limit     what people did and tried, the oldest first; without
//	                                                  after the newest; after=0 from the beginning
//
// A body is a form or a JSON object of strings, of the fields above and no others; a
// reason has 8 to 500 characters. The
// answer to a change is JSON with what was left before and after; errors are
// application/problem+json. Requests from other sites are refused
// ([http.CrossOriginProtection]). Who and why go into the ledger's entries with the
// change, and so do tries that Authorize refused (at most 60 in a minute), for ledgers
// that keep entries.
func Admin(t *transport.Transport, o AdminOptions) (http.Handler, error) {
	switch {
	case t == nil:
		return nil, errors.New("statuspage: Admin without a transport")
	case o.Authorize == nil:
		return nil, errors.New("statuspage: AdminOptions.Authorize is required")
	}
	a := &admin{t: t, o: o}
	mux := http.NewServeMux()
	mux.Handle("POST /providers/{name}/freeze", a.change(ActionFreeze, a.freeze))
	mux.Handle("POST /providers/{name}/release", a.change(ActionRelease, a.release))
	mux.Handle("POST /providers/{name}/gate/open", a.change(ActionOpenGate, a.openGate))
	mux.Handle("POST /budgets/{name}/freeze", a.change(ActionFreeze, a.freezeBudget))
	mux.Handle("POST /budgets/{name}/release", a.change(ActionRelease, a.releaseBudget))
	mux.Handle("POST /budgets/{name}/limit", a.change(ActionLimit, a.limit, "amount", "force"))
	mux.Handle("GET /holds", a.guard(ActionHolds, a.holds))
	mux.Handle("POST /holds/{id}/correct", a.change(ActionCorrect, a.correct, "amount"))
	mux.Handle("GET /audit", a.guard(ActionAudit, a.audit))
	sameSite := new(http.CrossOriginProtection)
	sameSite.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerProblem(w, fail(http.StatusForbidden, "another site asked for this"))
	}))
	return a.hosts(sameSite.Handler(mux)), nil
}

type admin struct {
	t    *transport.Transport
	o    AdminOptions
	door doorman
}

// problem is an error as RFC 9457 has it.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Title }

func fail(status int, detail string) error {
	return &problem{status, http.StatusText(status), detail}
}

func answerProblem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		p = &problem{http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError), "nothing was changed"}
	}
	answer(w, p.Status, "application/problem+json", p)
}

func answer(w http.ResponseWriter, status int, kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// hosts refuses names that a page of the web may have pointed here.
func (a *admin) hosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.knows(r.Host) {
			answerProblem(w, fail(http.StatusMisdirectedRequest, "AdminOptions.Hosts does not name this host"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *admin) knows(host string) bool {
	if len(a.o.Hosts) == 0 {
		return isLoopback(host)
	}
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	for _, h := range a.o.Hosts {
		if strings.EqualFold(h, host) || strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// guard lets through whom Authorize lets through.
func (a *admin) guard(action Action, do func(r *http.Request, actor string) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.tooMany(w, r) {
			return
		}
		actor, err := a.o.Authorize(r, action)
		switch {
		case errors.Is(err, ErrForbidden):
			a.denied(w, r, action, actor, http.StatusForbidden)
			return
		case err != nil || actor == "":
			a.denied(w, r, action, "", http.StatusUnauthorized)
			return
		}
		result, err := do(r, clip(actor))
		if err != nil {
			answerProblem(w, err)
			return
		}
		answer(w, http.StatusOK, "application/json", result)
	})
}

// order is what a change is asked for with.
type order struct {
	by     budget.By
	amount string
	force  bool
}

// change reads the reason before anything is done.
// Fields that it does not know are refused: whoever sends one means something by it.
func (a *admin) change(action Action, do func(*http.Request, order) (any, error), more ...string) http.Handler {
	return a.guard(action, func(r *http.Request, actor string) (any, error) {
		fields, err := fieldsOf(r)
		if err != nil {
			return nil, err
		}
		for name := range fields {
			if name != "reason" && !slices.Contains(more, name) {
				return nil, fail(http.StatusUnprocessableEntity, fmt.Sprintf("the field %q is not known here; nothing was changed", clip(name)))
			}
		}
		reason := strings.TrimSpace(fields["reason"])
		if n := utf8.RuneCountInString(reason); n < 8 || n > 500 {
			return nil, fail(http.StatusUnprocessableEntity, "reason must have 8 to 500 characters")
		}
		return do(r, order{budget.By{Who: actor, Why: printable(reason)}, fields["amount"], fields["force"] == "true"})
	})
}

// maxBody bounds what is read of a request.
const maxBody = 16 << 10

func fieldsOf(r *http.Request) (map[string]string, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	fields := map[string]string{}
	switch kind {
	case "application/json":
		if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
			return nil, fail(http.StatusBadRequest, "the body must be a JSON object of strings")
		}
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return nil, fail(http.StatusBadRequest, "the body must be a form")
		}
		for name := range r.PostForm {
			fields[name] = r.PostForm.Get(name)
		}
	default:
		return nil, fail(http.StatusUnsupportedMediaType, "send a form or application/json")
	}
	return fields, nil
}

// done is the answer to a change.
type done struct {
	Action Action    `json:"action"`
	Target string    `json:"target"`
	Actor  string    `json:"actor"`
	At     time.Time `json:"at"`
	// Left is what the budgets concerned have left, by name.
	Left map[string]effect `json:"left"`
}

// effect is what a change means for a budget.
type effect struct {
	Before budget.Amount `json:"before"`
	After  budget.Amount `json:"after"`
	Unit   string        `json:"unit"`
}

// perform does a change and tells its effect on the money of the budgets concerned.
func (a *admin) perform(r *http.Request, action Action, target string, o order, concerns func(*budget.Totals) bool, do func() error) (any, error) {
	before, err := a.t.Status(r.Context())
	if err != nil {
		return nil, failed(err)
	}
	if err := do(); err != nil {
		return nil, failed(err)
	}
	d := done{action, target, o.by.Who, time.Now().UTC(), map[string]effect{}}
	after, err := a.t.Status(r.Context())
	if err != nil {
		return d, nil // it is done, only the effect is not known
	}
	for i := range before.Budgets {
		b := &before.Budgets[i]
		if !concerns(b) {
			continue
		}
		for _, t := range after.Budgets {
			if t.Budget.Name == b.Budget.Name {
				d.Left[b.Budget.Label] = effect{b.Available(), t.Available(), b.Budget.Unit}
			}
		}
	}
	return d, nil
}

// failed puts an error into a problem, without the text of a store.
func failed(err error) error {
	_, isProblem := errors.AsType[*problem](err)
	switch {
	case isProblem:
		return err
	case errors.Is(err, transport.ErrUnsupported):
		return fail(http.StatusNotImplemented, "the ledger cannot do that")
	case errors.Is(err, budget.ErrUnknownHold):
		return fail(http.StatusNotFound, "the ledger does not know the hold")
	case errors.Is(err, budget.ErrConflict):
		return fail(http.StatusConflict, "the ledger holds something else; nothing was changed")
	case errors.Is(err, budget.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fail(http.StatusServiceUnavailable, "the ledger did not answer: if this was a change, the page or the audit log tells whether it was done, and to do it again does no harm")
	}
	return fail(http.StatusConflict, "the ledger refused it and nothing was changed")
}

func (a *admin) freeze(r *http.Request, o order) (any, error) {
	return a.onProvider(r, ActionFreeze, o, func(name string) error { return a.t.Freeze(r.Context(), name, o.by) })
}

func (a *admin) release(r *http.Request, o order) (any, error) {
	return a.onProvider(r, ActionRelease, o, func(name string) error { return a.t.Release(r.Context(), name, o.by) })
}

func (a *admin) openGate(r *http.Request, o order) (any, error) {
	return a.onProvider(r, ActionOpenGate, o, func(name string) error { return a.t.OpenGate(r.Context(), name, o.by) })
}

func (a *admin) onProvider(r *http.Request, action Action, o order, do func(string) error) (any, error) {
	name := r.PathValue("name")
	s, err := a.t.Status(r.Context())
	if err != nil {
		return nil, failed(err)
	}
	for i := range s.Providers {
		p := &s.Providers[i]
		if p.Name == name {
			concerns := func(t *budget.Totals) bool {
				return slices.Contains(p.Budgets, t.Budget.Label)
			}
			return a.perform(r, action, name, o, concerns, func() error { return do(name) })
		}
	}
	return nil, fail(http.StatusNotFound, "no provider of that name is configured")
}

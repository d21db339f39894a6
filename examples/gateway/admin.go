package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// adminHandler is what operators and their tools see, on an address of its own:
//
//	GET  /status/        the page; from other machines with the token
//	*    /status/admin/  changes (see package statuspage), with the token
//	GET  /metrics        for Prometheus
//	GET  /healthz        200 while the program runs
//	GET  /readyz         200 while it takes calls and its ledger answers; then who may see the
//	                     page reads what else is amiss, such as a configuration that was refused
//	POST /-/reload       with the token and Content-Type: application/json
func adminHandler(p *program, page *statuspage.Page, registry *prometheus.Registry) (http.Handler, error) {
	change, err := statuspage.Admin(p.gw.Transport(), statuspage.AdminOptions{
		Authorize: func(r *http.Request, _ statuspage.Action) (string, error) {
			if !hasToken(p.file.Admin, r) {
				return "", errors.New("the admin token is needed")
			}
			return "admin token", nil
		},
		Hosts: adminHosts(p.file),
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /status/{$}", page)
	mux.Handle("/status/admin/", http.StripPrefix("/status/admin", change))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", p.ready)
	mux.HandleFunc("POST /-/reload", p.reloadByRequest)
	mux.Handle("GET /{$}", http.RedirectHandler("/status/", http.StatusFound))
	return known(adminHosts(p.file), mux), nil
}

// ready asks the ledger itself: a gateway that is left alone because it is not ready gets no
// calls from which it would learn that the ledger is back.
func (p *program) ready(w http.ResponseWriter, r *http.Request) {
	if p.reload.draining.Load() {
		say(w, http.StatusServiceUnavailable, "shutting down")
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), time.Second)
	defer stop()
	look := mayLook(p.file.Admin)(r)
	switch s, err := p.gw.Transport().Status(ctx); {
	case errors.Is(s.LedgerErr, budget.ErrConflict):
		text := "a budget contradicts the ledger: calls that it pays for are refused"
		if look {
			text += "\n" + s.LedgerErr.Error()
		}
		say(w, http.StatusServiceUnavailable, text)
		return
	case err != nil || s.LedgerErr != nil:
		say(w, http.StatusServiceUnavailable, "the ledger does not answer: calls that budgets pay for are refused")
		return
	}
	text := "ok"
	if look {
		text = strings.Join(append([]string{text}, p.notices()...), "\n")
	}
	say(w, http.StatusOK, text)
}

// known refuses names that a page of the web can make point here. A literal address cannot
// be one, so that probes and scrapers by address pass.
func known(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if net.ParseIP(host) == nil && !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			say(w, http.StatusMisdirectedRequest, "this name is not known here: add it to hosts, or use the address")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // who has left hears nothing
}

// reloadByRequest reloads: 200, or 422 with all problems. A page of the web cannot ask for
// it: it has no token, and cannot send that Content-Type without being asked first.
func (p *program) reloadByRequest(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case p.file.Admin.TokenSHA256 == [sha256.Size]byte{}:
		say(w, http.StatusForbidden, "there is no admin.token in the configuration: send SIGHUP, or change the file")
		return
	case !hasToken(p.file.Admin, r):
		w.Header().Set("WWW-Authenticate", `Bearer realm="outlay"`)
		say(w, http.StatusUnauthorized, "the admin token is needed: Authorization: Bearer ...")
		return
	case kind != "application/json":
		say(w, http.StatusUnsupportedMediaType, "send Content-Type: application/json")
		return
	}
	problems := p.reload.now("a request")
	status := http.StatusOK
	if len(problems) > 0 {
		status = http.StatusUnprocessableEntity
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"reloaded": len(problems) == 0, "problems": append([]string{}, problems...)})
}

// hasToken reports whether a request shows the admin token, as Bearer, or as the password
// of Basic, which browsers ask people for.
func hasToken(a gateway.Admin, r *http.Request) bool {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		_, token, _ = r.BasicAuth()
	}
	sum := sha256.Sum256([]byte(token))
	return token != "" && a.TokenSHA256 != [sha256.Size]byte{} && subtle.ConstantTimeCompare(sum[:], a.TokenSHA256[:]) == 1
}

// mayLook says who sees the page: this machine, or who has the token.
func mayLook(a gateway.Admin) func(*http.Request) bool {
	return func(r *http.Request) bool { return hasToken(a, r) || fromHere(r) }
}

// fromHere reports whether a request comes from this machine, asks for a name of it (a page
// of the web could have another name point here), and was passed on by nobody.
func fromHere(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	return isLoopback(r.RemoteAddr) && isLoopback(r.Host)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// adminHosts are the names under which changes may be asked for.
func adminHosts(f *gateway.File) []string {
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, f.Config.Hosts...)
	if host, _, err := net.SplitHostPort(f.Admin.Address); err == nil {
		hosts = append(hosts, host)
	}
	return hosts
}

// healthCommand asks a running gateway.
func healthCommand(ctx context.Context, c *invocation) (int, error) {
	address := c.set.String("address", "", "ask here in place of admin.address of the configuration, `HOST:PORT`")
	if _, err := c.parse(); err != nil {
		return misused, errors.Join(errUsage, err)
	}
	if *address == "" {
		*address = gateway.AdminAddress(c.config)
	}
	host, port, err := net.SplitHostPort(*address)
	if err != nil {
		return failed, errors.New("there is no admin listener to ask")
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return ask(ctx, "http://"+net.JoinHostPort(host, port)+"/healthz")
}

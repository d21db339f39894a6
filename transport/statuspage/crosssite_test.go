package statuspage_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// A real browser visits a page that attacks an admin handler whose authorizer trusts
// whoever comes, as one does that looks at a cookie or at loopback alone.
func TestOtherSitesCannotActInChromium(t *testing.T) {
	b := startBrowser(t, "--host-resolver-rules=MAP evil.example 127.0.0.1")
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	h, err := statuspage.Admin(w.Transport, statuspage.AdminOptions{
		Authorize: func(*http.Request, statuspage.Action) (string, error) { return "whoever", nil },
	})
	require.NoError(t, err)
	var mu sync.Mutex
	seen := map[string]int{} // by method, host and status
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/attacker" || r.URL.Path == "/friend" || r.URL.Path == "/favicon.ico" {
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, "<!doctype html><title>x</title><body>")
			return
		}
		rec := answerTo(h, r)
		host, _, _ := strings.Cut(r.Host, ":")
		mu.Lock()
		seen[fmt.Sprintf("%s %s %d", r.Method, host, rec.Code)]++
		mu.Unlock()
		maps.Copy(rw.Header(), rec.Header())
		rw.WriteHeader(rec.Code)
		_, _ = rw.Write(rec.Body.Bytes())
	}))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	local, evil := "http://127.0.0.1"+port, "http://evil.example"+port

	// From a page of another site: a form, and every kind of request that needs no consent.
	send := func(to string) string {
		return fmt.Sprintf(`(async () => {
			const out = [];
			for (const [type, body] of [["application/x-www-form-urlencoded", "reason=duplicate+charges"], ["text/plain", '{"reason":"duplicate charges"}'], ["application/json", '{"reason":"duplicate charges"}']]) {
				for (const mode of ["no-cors", "cors"]) {
					try { const r = await fetch(%q, {method: "POST", mode, credentials: "include", headers: {"Content-Type": type}, body}); out.push(r.status) } catch (e) { out.push("failed") }
				}
			}
			return out.join(" ")
		})()`, to+"/providers/maps/freeze")
	}
	frozen := func() bool {
		s, err := w.Status(t.Context())
		require.NoError(t, err)
		return !s.Providers[0].Frozen.IsZero()
	}
	for _, page := range []string{evil, "http://localhost" + port} { // other names, the same machine
		s := b.open(page+"/attacker", "light", 800, 600)
		t.Logf("from %s: %s", page, b.eval(s, send(local)))
		b.eval(s, `const f = document.createElement("form"); f.method = "post"; f.action = "`+local+`/providers/maps/freeze"; f.innerHTML = '<input name=reason value="duplicate charges">'; document.body.append(f); f.submit(); 0`)
		b.waitFor(s, "Page.loadEventFired")
		require.False(t, frozen(), "from %s", page)
		// What it may ask for, it cannot read.
		s = b.open(page+"/attacker", "light", 800, 600)
		require.Equal(t, "failed", b.eval(s, `fetch("`+local+`/audit").then(r => r.text()).catch(() => "failed")`))
	}
	// A rebound name: the browser takes it for the same site and sends no mark over plain HTTP.
	s := b.open(evil+"/attacker", "light", 800, 600)
	require.Regexp(t, `421`, b.eval(s, send(evil)))
	require.Equal(t, "421", b.eval(s, `fetch("/audit").then(r => String(r.status))`))
	require.False(t, frozen())

	// Its own page may.
	s = b.open(local+"/friend", "light", 800, 600)
	require.Regexp(t, `^\S+ 200 `, b.eval(s, send(local)))
	require.True(t, frozen())
	mu.Lock()
	defer mu.Unlock()
	t.Log(seen)
	require.GreaterOrEqual(t, seen["POST 127.0.0.1 403"], 2)
	require.GreaterOrEqual(t, seen["POST evil.example 421"], 2)
}

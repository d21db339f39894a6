package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// answer is a Base whose answers a test chooses.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

// byHeader answers with the status and the Retry-After that the request asks for.
var byHeader = answer(func(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Fail") != "" {
		return nil, errors.New("read: connection reset")
	}
	w := httptest.NewRecorder()
	if v := req.Header.Get("Pause"); v != "" {
		w.Header().Set("Retry-After", v)
		w.WriteHeader(http.StatusTooManyRequests)
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
})

type world struct {
	*transport.Transport
	page   *statuspage.Page
	ledger budget.Ledger
}

func provider(name, limit string) transport.Provider {
	b := budget.PerDay(budget.MustParse(limit))
	b.Name = name + "-day"
	return transport.Provider{
		Name: name, Match: []string{hostOf(name)}, Price: price.PerCall(budget.Unit / 2),
		Budgets: []budget.Budget{b}, Retry: transport.Retry{Attempts: 1},
	}
}

// hostOf makes a host of any name.
func hostOf(name string) string {
	host := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	return host[:min(len(host), 50)] + ".example.com"
}

func newWorld(t testing.TB, ledger budget.Ledger, providers ...transport.Provider) *world {
	t.Helper()
	return newWorldOn(t, byHeader, ledger, providers...)
}

func newWorldOn(t testing.TB, base http.RoundTripper, ledger budget.Ledger, providers ...transport.Provider) *world {
	t.Helper()
	w := &world{page: statuspage.New(statuspage.Options{Timeout: 100 * time.Millisecond}), ledger: ledger}
	rt, err := transport.New(transport.Config{Base: base, Ledger: ledger, Providers: providers, OnEvent: w.page.Observe})
	require.NoError(t, err)
	w.Transport = rt
	w.page.Watch(rt)
	return w
}

func (w *world) send(ctx context.Context, provider string, header ...string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+hostOf(provider)+"/v1", nil)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.RoundTrip(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// ask is a request from this machine.
func ask(method, target string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func answerTo(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (w *world) html(t testing.TB, target string) string {
	t.Helper()
	rec := answerTo(w.page, ask(http.MethodGet, target))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	require.Contains(t, rec.Header().Get("Content-Type"), "text/html")
	return rec.Body.String()
}

// state is what tests read of the JSON.
type state struct {
	Schema, Level string
	Providers     []struct {
		Name, Level, State, Say string
		Until                   *time.Time
		Conditions              []struct {
			What string
			OK   bool
		}
		Scopes int
		Gates  []struct{ Scope, Cause string }
		More   int `json:"gates_more"`
		Queue  struct{ Length int }
		Hour   struct {
			Calls, Throttled int
			Refused          map[string]int
			WaitP99S         float64 `json:"wait_p99_s"`
			Minutes          []struct{ Queue int }
		}
	}
	Budgets []struct {
		Name, Level, Say, Settled, Presumed, Left string
		Forecast                                  struct{ State string }
		History                                   struct {
			StepS  float64 `json:"step_s"`
			Points []struct {
				At                time.Time
				Settled, Presumed string
			}
		}
	}
	Stores []struct {
		Store, Kind, Say string
		Up               bool
	}
	Decisions []struct{ Call, Kind, Reason, Budget, Amount, Say, Why string }
	Changes   []struct{ Actor, Action, Target, Reason, Result string }
}

func (w *world) json(t testing.TB, target string) (s state) {
	t.Helper()
	rec := answerTo(w.page, ask(http.MethodGet, target, "Accept", "application/json"))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
	require.NotContains(t, strings.ReplaceAll(rec.Body.String(), `"per_hour": null`, ""), "[null")
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &s))
	require.Equal(t, "outlay.status/1", s.Schema)
	return s
}

func TestWhoMaySee(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	tests := []struct {
		name, peer, host string
		header           []string
		code             int
	}{
		{"this machine", "127.0.0.1:1", "localhost:8080", nil, 200},
		{"this machine, by number", "[::1]:1", "[::1]:8080", nil, 200},
		{"a mapped address", "[::ffff:127.0.0.1]:1", "127.0.0.1", nil, 200},
		{"another machine", "192.0.2.7:1", "localhost:8080", nil, 403},
		{"a rebound name", "127.0.0.1:1", "evil.example:8080", nil, 403},
		{"a name that looks local", "127.0.0.1:1", "localhost.evil.example", nil, 403},
		{"a proxy", "127.0.0.1:1", "localhost", []string{"X-Forwarded-For", "192.0.2.7"}, 403},
		{"a newer proxy", "127.0.0.1:1", "localhost", []string{"Forwarded", "for=192.0.2.7"}, 403},
		{"no peer", "", "localhost", nil, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ask(http.MethodGet, "/", tt.header...)
			r.RemoteAddr, r.Host = tt.peer, tt.host
			rec := answerTo(w.page, r)
			require.Equal(t, tt.code, rec.Code)
			require.Equal(t, tt.code == 403, strings.Contains(rec.Body.String(), "statuspage.Options.Allow"))
		})
	}
	open := statuspage.New(statuspage.Options{Allow: func(*http.Request) bool { return true }})
	open.Watch(w.Transport)
	r := ask(http.MethodGet, "/")
	r.RemoteAddr, r.Host = "192.0.2.7:1", "outlay.example"
	require.Equal(t, 200, answerTo(open, r).Code)
}

func TestHeadersAndMethods(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	rec := answerTo(w.page, ask(http.MethodGet, "/"))
	h := rec.Header()
	require.Equal(t, "no-store", h.Get("Cache-Control"))
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
	require.Equal(t, "Accept", h.Get("Vary"))
	require.Regexp(t, `^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$`, h.Get("Content-Security-Policy"))
	require.NotContains(t, rec.Body.String(), "<script")
	require.NotContains(t, rec.Body.String(), "style=")

	head := answerTo(w.page, ask(http.MethodHead, "/"))
	require.Equal(t, 200, head.Code)
	require.Zero(t, head.Body.Len())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		require.Equal(t, http.StatusMethodNotAllowed, answerTo(w.page, ask(method, "/")).Code)
	}
	require.Equal(t, http.StatusServiceUnavailable, answerTo(statuspage.New(statuspage.Options{}), ask(http.MethodGet, "/")).Code)
}

func TestAccept(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	for accept, want := range map[string]string{
		"":                                       "text/html",
		"*/*":                                    "text/html",
		"text/html,application/xhtml+xml,*/*":    "text/html",
		"application/json":                       "application/json",
		"application/json;q=0.5, text/html":      "text/html",
		"text/html;q=0.4, application/json;q=.4": "application/json",
		"application/json;q=0":                   "text/html",
		"application/json; v=1; Q=0.1,text/html": "text/html",
		"application/json;q=nonsense":            "text/html",
	} {
		rec := answerTo(w.page, ask(http.MethodGet, "/", "Accept", accept))
		require.True(t, strings.HasPrefix(rec.Header().Get("Content-Type"), want), "%q: %s", accept, rec.Header().Get("Content-Type"))
	}
	rec := answerTo(w.page, ask(http.MethodGet, "/?format=json"))
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
}

// Each state of a provider is reached by calls, and says what, until when and what helps.
func TestWhyCallsWaitOrAreRefused(t *testing.T) {
	by := budget.By{Who: "maria", Why: "duplicate charges"}
	tests := []struct {
		name, state, level string
		change             func(*transport.Provider)
		do                 func(*testing.T, *world)
		say                string
	}{
		{"well", "ok", "ok", nil, func(*testing.T, *world) {}, "^Calls leave at once.$"},
		{"frozen", "frozen", "bad", nil, func(t *testing.T, w *world) {
			require.NoError(t, w.Freeze(t.Context(), "maps", by))
		}, `^maria froze maps at .* UTC \("duplicate charges"\). All its calls are refused until someone releases it.$`},
		{"paused by the provider", "gate", "warn", nil, func(t *testing.T, w *world) {
			require.NoError(t, w.send(t.Context(), "maps", "Pause", "18"))
		}, `^The provider asked for a pause until 00:00:18 UTC \(in 18 s\).$`},
		{"used up", "exhausted", "bad", nil, func(t *testing.T, w *world) {
			for range 4 {
				_ = w.send(t.Context(), "maps")
			}
			_ = w.send(t.Context(), "maps", "Fail", "yes")
		}, `^Budget maps-day is used up: 2.00 of 2.00 USD \(settled 2.00, presumed 0.00\). Nothing helps before 2 Jan 00:00 UTC \(in 24 h 0 min\) but a higher limit.$`},
		{"used up by unknown outcomes", "exhausted", "bad", nil, func(t *testing.T, w *world) {
			for range 4 {
				_ = w.send(t.Context(), "maps", "Fail", "yes")
			}
		}, `4 calls of unknown outcome count for 2.00 USD; correcting them may free some.$`},
		{"too little left", "exhausted", "bad", func(p *transport.Provider) { p.Budgets[0].Limit = budget.MustParse("1.80") }, func(t *testing.T, w *world) {
			for range 4 {
				_ = w.send(t.Context(), "maps")
			}
		}, `^Budget maps-day has 0.30 USD left \(1.50 of 1.80 used\). Refused in the last 5 minutes because they needed more: 1 call.`},
		{"no price", "unpriced", "warn", func(p *transport.Provider) { p.Price = noPrice{} }, func(t *testing.T, w *world) {
			require.Error(t, w.send(t.Context(), "maps"))
		}, `^1 calls of the last hour had no price`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := provider("maps", "2")
				if tt.change != nil {
					tt.change(&p)
				}
				w := newWorld(t, new(budget.Memory), p)
				tt.do(t, w)
				s := w.json(t, "/")
				require.Equal(t, []string{tt.state, tt.level}, []string{s.Providers[0].State, s.Providers[0].Level})
				require.Regexp(t, tt.say, s.Providers[0].Say)
				require.Len(t, s.Providers[0].Conditions, 9)
				require.Contains(t, w.html(t, "/"), `<li class="`+tt.level+`">`)
			})
		})
	}
}

type noPrice struct{}

func (noPrice) Quote(*http.Request) (budget.Quote, error) { return budget.Quote{}, budget.ErrUnpriced }

func TestQueueAndSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider("maps", "100")
		p.Rates = []throttle.Rate{throttle.PerMinute(6)}
		p.MaxWait = time.Hour
		w := newWorld(t, new(budget.Memory), p)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = w.send(t.Context(), "maps") })
		}
		synctest.Wait()
		s := w.json(t, "/")
		require.Equal(t, "rate", s.Providers[0].State)
		require.Equal(t, 3, s.Providers[0].Queue.Length)
		require.Equal(t, "3 calls wait, for 6 a minute. The last leaves in about 30 s.", s.Providers[0].Say)
		wg.Wait()
		s = w.json(t, "/")
		require.Equal(t, "ok", s.Providers[0].State)
		require.Equal(t, 4, s.Providers[0].Hour.Calls)
		require.InDelta(t, 30, s.Providers[0].Hour.WaitP99S, 0.1)
		require.Len(t, s.Decisions, 3, "waits over a second")
		require.Contains(t, w.html(t, "/"), "longest queue 3, longest wait 30 s")
	})
}

// deaf is a ledger that does not answer while it is told so.
type deaf struct {
	budget.Memory
	mu   sync.Mutex
	away bool
}

func (d *deaf) be(away bool) { d.mu.Lock(); d.away = away; d.mu.Unlock() }

func (d *deaf) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	d.mu.Lock()
	away := d.away
	d.mu.Unlock()
	if away {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: dial redis://:planted@10.0.0.1", budget.ErrUnavailable)
	}
	return d.Memory.Totals(ctx, at, b...)
}

func TestALedgerThatDoesNotAnswerIsNotZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(deaf)
		w := newWorld(t, d, provider("maps", "10"))
		require.NoError(t, w.send(t.Context(), "maps"))
		require.Contains(t, w.html(t, "/"), "0.50")
		d.be(true)
		page := w.html(t, "/")
		require.Contains(t, page, "Totals are unknown since 00:00 UTC; calls that cost money are refused.")
		require.NotContains(t, page, "0.50")
		require.NotContains(t, page, "planted")
		s := w.json(t, "/")
		require.Equal(t, "bad", s.Level)
		require.Equal(t, "ledger", s.Providers[0].State)
		require.Empty(t, s.Budgets)
		d.be(false)
		require.Equal(t, "ok", w.json(t, "/").Level)
	})
}

func TestEmptyStates(t *testing.T) {
	w := newWorld(t, nil)
	page := w.html(t, "/")
	require.Contains(t, page, "No provider is configured.")
	require.Contains(t, page, "There is no ledger: nothing is counted in money.")
	p := provider("maps", "10")
	p.Budgets = nil
	w = newWorld(t, new(budget.Memory), p)
	page = w.html(t, "/")
	require.Contains(t, page, "No budget is configured: spending is not limited.")
	require.Contains(t, page, "It forgets on exit.")
	require.Contains(t, page, "No call was refused, throttled, repeated or presumed.")
	require.Contains(t, page, "Nobody changed anything")
}

func TestACallIsFoundByItsID(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "1"), provider("sms", "1"))
	for range 3 {
		_ = w.send(t.Context(), "maps")
		_ = w.send(t.Context(), "sms")
	}
	all := w.json(t, "/").Decisions
	require.Len(t, all, 2)
	one := w.json(t, "/?call="+all[0].Call).Decisions
	require.Len(t, one, 1)
	require.Equal(t, "refused: exhausted", one[0].Say)
	require.Equal(t, "1.00 of 1.00 USD used; nothing was sent, nothing was charged; may work at", one[0].Why[:strings.LastIndex(one[0].Why, " at ")+3])
	require.Len(t, w.json(t, "/?provider=sms").Providers, 1)
	require.Len(t, w.json(t, "/?budget=sms-day").Budgets, 1)
	require.Contains(t, w.html(t, "/?provider=sms"), "what is looked at for sms")
	require.Contains(t, w.html(t, "/?provider=sms&refresh=5"), `href="?refresh=60&amp;provider=sms"`)
}

// plain is a ledger without the optional parts.
type plain struct{ budget.Ledger }

func TestHistoryFollowsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plain{new(budget.Memory)}, provider("maps", "1000"))
		require.NoError(t, w.send(t.Context(), "maps"))
		w.json(t, "/")
		time.Sleep(4 * time.Second)
		require.Contains(t, w.html(t, "/"), "Watched for 4 s; the window ends")
		for i := range 400 {
			time.Sleep(3 * time.Minute)
			_ = w.send(t.Context(), "maps", "Fail", strings.Repeat("y", i%2))
		}
		b := w.json(t, "/").Budgets[0]
		require.Equal(t, []string{"100.5", "100"}, []string{b.Settled, b.Presumed})
		points := b.History.Points
		require.LessOrEqual(t, len(points), 192)
		require.Greater(t, len(points), 96)
		for i := 1; i < len(points); i++ {
			require.True(t, points[i].At.After(points[i-1].At))
		}
		require.Equal(t, "100.5", points[len(points)-1].Settled)
		require.Equal(t, "lasts", b.Forecast.State)
		page := w.html(t, "/")
		require.Equal(t, 1, strings.Count(page, `class="chart"`))
		require.NotContains(t, page, "Watched for", "the whole window is drawn")

		time.Sleep(5 * time.Hour) // the next day
		b = w.json(t, "/").Budgets[0]
		require.Len(t, b.History.Points, 1, "a new window begins anew")

		time.Sleep(24 * time.Hour) // and the next, which nobody looks at before it is used
		require.NoError(t, w.send(t.Context(), "maps"))
		time.Sleep(time.Minute)
		b = w.json(t, "/").Budgets[0]
		require.Len(t, b.History.Points, 2)
		require.Equal(t, []string{"0.5", "0.5"}, []string{b.History.Points[0].Settled, b.History.Points[1].Settled})
	})
}

// A rolling period has no end: what has left it is forgotten, and the steps stay fine.
func TestHistoryOfARollingPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider("maps", "1000")
		p.Budgets[0].Every = budget.Rolling(6 * time.Hour)
		w := newWorld(t, new(budget.Memory), p)
		for range 1000 {
			time.Sleep(3 * time.Minute)
			require.NoError(t, w.send(t.Context(), "maps"))
		}
		h := w.json(t, "/").Budgets[0].History
		require.LessOrEqual(t, h.StepS, 256.0)
		require.Greater(t, len(h.Points), 60)
		require.LessOrEqual(t, time.Since(h.Points[0].At), 7*time.Hour)
		w.html(t, "/")
	})
}

// The clock is set back and forward: nothing breaks, and no minute counts twice.
func TestClockJumps(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "1000"))
	now := time.Now()
	for _, at := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour, 40 * 24 * time.Hour, -400 * 24 * time.Hour, time.Second, -200 * 365 * 24 * time.Hour} {
		for _, kind := range []transport.Kind{transport.KindWaiting, transport.KindStarted, transport.KindFinished, transport.KindResolved, transport.KindThrottled} {
			w.page.Observe(t.Context(), transport.Event{
				Kind: kind, Time: now.Add(at), Provider: "maps", Outcome: "settled", Cost: 1, Unit: "USD", Wait: time.Second, Queue: 3,
			})
		}
		s := w.json(t, "/")
		require.LessOrEqual(t, s.Providers[0].Hour.Calls, 2)
		w.html(t, "/")
	}
}

var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `</title><svg onload=alert(1)>`, `{{.}}`, `a&b=c#d?e`, "\u202eevil",
}

func TestHostileNames(t *testing.T) {
	var providers []transport.Provider
	for i, name := range hostile[:6] {
		p := provider(fmt.Sprint("host", i), "1")
		p.Name = name
		p.Budgets[0].Name = name
		p.Scopes = []transport.Scope{{Name: name, Key: func(*http.Request) string { return "+4917012345678" }}}
		p.ScopeAlias = func(string) string { return strings.Repeat("<b>\x00\x1b[31m", 2000) }
		p.Tenant = func(*http.Request) string { return strings.Repeat("<i>", 4000) }
		providers = append(providers, p)
	}
	w := newWorld(t, new(budget.Memory), providers...)
	for i := range providers {
		for range 3 {
			_ = w.send(t.Context(), fmt.Sprint("host", i))
		}
		_ = w.send(t.Context(), fmt.Sprint("host", i), "Pause", "60")
	}
	require.NoError(t, w.Freeze(t.Context(), hostile[0], budget.By{Who: strings.Repeat("<u>\x00\u202e", 10_000), Why: "x"}))
	for _, target := range []string{"/", "/?provider=%3Cscript%3Ealert(1)%3C/script%3E", "/?call=%22%3E%3Cscript%3E", "/?refresh=javascript:alert(1)"} {
		page := w.html(t, target)
		for _, bad := range []string{"<script", "<img", "<svg onload", "<b>\x00", "<u>", "<i>", "\x00", "\x1b", "4917012345678", "javascript:"} {
			require.NotContains(t, page, bad)
		}
		require.Less(t, len(page), 100_000)
	}
	w.json(t, "/")
}

func TestTenThousandScopes(t *testing.T) {
	p := provider("maps", "1000000")
	p.Scopes = []transport.Scope{{Name: "to", Key: func(r *http.Request) string { return r.Header.Get("To") }}}
	w := newWorld(t, new(budget.Memory), p)
	for i := range 10_000 {
		require.NoError(t, w.send(t.Context(), "maps", "To", fmt.Sprint(i), "Pause", "600"))
	}
	s := w.json(t, "/")
	require.Equal(t, 10_000, s.Providers[0].Scopes)
	require.Len(t, s.Providers[0].Gates, 10)
	require.Equal(t, 9990, s.Providers[0].More)
	require.Regexp(t, `^to s-[0-9a-f]{8}$`, s.Providers[0].Gates[0].Scope)
	require.Regexp(t, `for to s-[0-9a-f]{8}. So are 9999 other scopes.`, s.Providers[0].Say)
	require.Less(t, len(w.html(t, "/")), 256<<10)
}

// full is 50 providers and budgets at work for an hour, and 200 decisions. It runs in a
// bubble.
func full(t testing.TB) *world {
	var providers []transport.Provider
	for i := range 50 {
		p := provider(fmt.Sprint("provider-number-", i), fmt.Sprint(30+i))
		p.Rates = []throttle.Rate{throttle.PerSecond(1)}
		p.MaxWait = time.Minute
		providers = append(providers, p)
	}
	w := newWorld(t, new(budget.Memory), providers...)
	for minute := range 60 {
		var wg sync.WaitGroup
		for i := range 50 {
			for range 1 + (i+minute)%4 {
				wg.Go(func() {
					_ = w.send(context.Background(), fmt.Sprint("provider-number-", i), "Fail", strings.Repeat("y", (i*minute)%2))
				})
			}
		}
		wg.Wait()
		time.Sleep(time.Minute)
	}
	return w
}

func TestSizeAndTimeOfAFullPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(t)
		s := w.json(t, "/")
		require.Len(t, s.Decisions, 200)
		require.Len(t, s.Providers, 50)
		require.Greater(t, len(s.Providers[0].Hour.Minutes), 50)
		page := w.html(t, "/")
		t.Logf("%d KiB", len(page)>>10)
		require.Less(t, len(page), 256<<10)
	})
}

func TestSavedPageIsWhole(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	page := w.html(t, "/")
	require.True(t, strings.HasPrefix(page, "<!doctype html>"))
	require.True(t, strings.HasSuffix(page, "</html>\n"))
	for _, foreign := range []string{"http://", "https://", "src=", "@import", "url(h"} {
		require.NotContains(t, page, foreign)
	}
}

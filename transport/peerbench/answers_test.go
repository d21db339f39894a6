package peerbench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// contender is one column of a table.
type contender struct {
	name string
	open func(testing.TB, http.RoundTripper, pace, func(*transport.Provider)) sender
}

func wraps(f func(http.RoundTripper, pace) http.RoundTripper) func(testing.TB, http.RoundTripper, pace, func(*transport.Provider)) sender {
	return func(_ testing.TB, base http.RoundTripper, p pace, _ func(*transport.Provider)) sender {
		return (&http.Client{Transport: f(base, p)}).Do
	}
}

func openOutlay(tb testing.TB, base http.RoundTripper, p pace, change func(*transport.Provider)) sender {
	provider := fullProvider(p)
	provider.Match = []string{"api.example.com"}
	if change != nil {
		change(&provider)
	}
	return newOutlay(tb, base, provider, traced).Client().Do
}

func openResty(_ testing.TB, base http.RoundTripper, p pace, _ func(*transport.Provider)) sender {
	return restyAs(newResty(base, p))
}

// contenders of the table of answers. The ten lines pass every answer on.
var contenders = []contender{
	{"outlay", openOutlay},
	{"x/time, uber (ten lines)", wraps(newXtime)},
	{"failsafe-go", wraps(newFailsafe)},
	{"go-retryablehttp", wraps(newRetryable)},
	{"go-github-ratelimit", wraps(newGofri)},
	{"resty", openResty},
}

// GitHub's words, which go-github-ratelimit looks for; the others do not read them.
const secondary = `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#secondary-rate-limits"}`

var ok = says(200, `{"status":"OK"}`)

func throttled(retryAfter string) http.HandlerFunc {
	if retryAfter == "" {
		return says(429, secondary)
	}
	return says(429, secondary, "Retry-After: "+retryAfter)
}

// fault is one row: what the server answers to which request.
type fault struct {
	name    string
	answers []http.HandlerFunc
	told    time.Duration // how long the answer asks to wait, if it does
	body    string        // of the request: a POST if there is one
	stream  bool          // ... which cannot be had again
	key     bool          // the request has an Idempotency-Key
	warm    bool          // another call goes before, so that the connection is used again
	patient time.Duration // the deadline of the caller
	timed   bool          // the row is about when the caller knows
	change  func(*transport.Provider)
}

const message = `{"to":"+15550100","text":"your code is 123456"}`

// faults are the rows. Dates are those of a bubble, which begins with the year 2000.
func faults() []fault {
	date := func(layout string) string { return time.Now().UTC().Add(2 * time.Second).Format(layout) }
	broken := says(500, "{}")
	google := func(p *transport.Provider) { p.Dialect = dialect.For("google-maps") }
	keyed := func(p *transport.Provider) { p.IdempotencyHeader = "Idempotency-Key" }
	return []fault{
		{name: "429, Retry-After: 2", answers: script(throttled("2"), ok), told: 2 * time.Second},
		{name: "429, a date (IMF-fixdate) in 2 s", answers: script(throttled(date(http.TimeFormat)), ok), told: 2 * time.Second},
		{name: "429, the same date as RFC 850 has it", answers: script(throttled(date("Monday, 02-Jan-06 15:04:05 GMT")), ok), told: 2 * time.Second},
		{name: "429, the same date as asctime has it", answers: script(throttled(date(time.ANSIC)), ok), told: 2 * time.Second},
		{name: "429, Retry-After: 1.5", answers: script(throttled("1.5"), ok), told: 1500 * time.Millisecond},
		{name: "429, Retry-After: soon", answers: script(throttled("soon"), ok)},
		{name: "429, Retry-After: -5", answers: script(throttled("-5"), ok)},
		{name: "429, Retry-After: 18446744074 (as nanoseconds it overflows)", answers: script(throttled("18446744074"), ok), told: 1 << 62, patient: time.Hour, timed: true},
		{name: "429, no Retry-After", answers: script(throttled(""), ok)},
		{name: "429, Retry-After: 3600", answers: script(throttled("3600"), ok), told: time.Hour, timed: true},
		{name: "429, Retry-After: 10, the caller's deadline is in 3 s", answers: script(throttled("10"), ok), told: 10 * time.Second, patient: 3 * time.Second, timed: true},
		{name: "POST, 429, Retry-After: 2", answers: script(throttled("2"), ok), told: 2 * time.Second, body: message},
		{name: "POST of a stream without GetBody, 429, Retry-After: 2", answers: script(throttled("2"), ok), told: 2 * time.Second, body: message, stream: true},
		{name: "GET, 500", answers: script(broken, ok)},
		{name: "POST, 500", answers: script(broken, ok), body: message},
		{name: "POST, 503 without Retry-After", answers: script(says(503, "{}"), ok), body: message},
		{name: "POST, 503, Retry-After: 2", answers: script(says(503, "{}", "Retry-After: 2"), ok), told: 2 * time.Second, body: message},
		{name: "POST with Idempotency-Key, 500", answers: script(broken, ok), body: message, key: true, change: keyed},
		{name: "POST, the connection dies when the request was read", answers: script(dies, ok), body: message},
		{name: "GET, the same", answers: script(dies, ok)},
		{name: "GET, the same on a connection used before", answers: script(ok, dies, ok), warm: true},
		{name: "200 with OVER_QUERY_LIMIT in the body", answers: script(says(200, `{"status":"OVER_QUERY_LIMIT","results":[]}`, "Content-Type: application/json"), ok), change: google},
		{name: "always 429, Retry-After: 1, the caller's deadline is in 30 s", answers: script(throttled("1")), told: time.Second, patient: 30*time.Second - time.Millisecond},
		{name: "always 500 (POST)", answers: script(broken), body: message},
	}
}

func script(h ...http.HandlerFunc) []http.HandlerFunc { return h }

// observe plays a fault to one contender, in a bubble.
func (f fault) observe(t *testing.T, c contender) (cell string) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		w := newWorld(t, l, l.dial, f.script()...)
		sent, o := f.play(t, w, c)
		synctest.Wait()
		cell = f.cell(sent, o, w.base.open)
	})
	return cell
}

// play makes the call and returns what arrived and what the caller got.
func (f fault) play(t *testing.T, w *world, c contender) ([]arrival, outcome) {
	do := c.open(t, w.base, pace{100, time.Second, 100}, f.change)
	before := 0
	if f.warm {
		w.call(do, w.request(t.Context(), "GET", "/v1/lookup", "", false))
		before = 1
	}
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if f.patient > 0 {
		ctx, cancel = context.WithTimeout(ctx, f.patient)
	}
	defer cancel()
	method := "GET"
	if f.body != "" {
		method = "POST"
	}
	req := w.request(ctx, method, "/v1/messages", f.body, f.stream)
	if f.key {
		req.Header.Set("Idempotency-Key", "5f0c")
	}
	o := w.call(do, req)
	return w.arrivals()[before:], o
}

// TestRealConnectionsAgree plays the faults over TCP and in real time: what arrives and
// what the caller gets must be the same. With -parallel 200 it takes as long as the
// slowest backoff; make bench-peers runs it so.
func TestRealConnectionsAgree(t *testing.T) {
	if os.Getenv("OUTLAY_PROVE") == "" {
		t.Skip("OUTLAY_PROVE is not set: it waits out real backoffs")
	}
	for _, f := range faults() {
		for _, c := range contenders {
			if f.timed {
				continue // an hour is an hour
			}
			bubble := f.observe(t, c)
			t.Run(f.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, l, nil, f.script()...)
				f.change = here(f.change)
				sent, o := f.play(t, w, c)
				if got := fmt.Sprint(len(sent)); !strings.HasPrefix(bubble, got+" ") && !strings.HasPrefix(bubble, got+",") || !strings.Contains(bubble, "→ "+o.what()) {
					t.Errorf("%s sent, %s; in the bubble %s", got, o.what(), bubble)
				}
			})
		}
	}
}

// here lets the provider match the loopback address.
func here(change func(*transport.Provider)) func(*transport.Provider) {
	return func(p *transport.Provider) {
		if change != nil {
			change(p)
		}
		p.Match = []string{"127.0.0.1"}
	}
}

// script makes the answers inside the bubble, whose time the dates are.
func (f fault) script() []http.HandlerFunc {
	for _, again := range faults() {
		if again.name == f.name {
			return again.answers
		}
	}
	return nil
}

// cell says how often the request was sent, when it was sent again, what the caller got,
// and what else there was to see.
func (f fault) cell(sent []arrival, o outcome, open int) string {
	what := fmt.Sprint(len(sent))
	if len(sent) > 1 {
		what += ", " + f.pause(sent[1].at-sent[0].at)
	}
	what += " → " + o.what()
	if f.timed {
		what += " " + after(o.took)
	}
	parts := []string{what}
	changed := func(a arrival) bool { return a.body != f.body }
	if i := slices.IndexFunc(sent, changed); i >= 0 {
		parts = append(parts, "resent with "+describe(sent[i].body))
	}
	if open > 0 {
		parts = append(parts, fmt.Sprintf("bodies left open: %d", open))
	}
	return strings.Join(parts, "; ")
}

func describe(body string) string {
	if body == "" {
		return "an empty body"
	}
	return "another body"
}

func (f fault) pause(gap time.Duration) string {
	switch {
	case gap < time.Millisecond:
		return "at once"
	case f.told > 0 && gap >= f.told && gap <= f.told+time.Second:
		return "as told"
	case f.told > 0 && gap < f.told:
		return "earlier than told"
	default:
		return "own pause"
	}
}

func (o outcome) what() string {
	switch {
	case o.err != nil:
		return "error"
	case strings.Contains(o.body, "OVER_QUERY_LIMIT"):
		return "200, the refusal"
	default:
		return fmt.Sprint(o.status)
	}
}

func after(d time.Duration) string {
	switch d = d.Round(100 * time.Millisecond); {
	case d == 0:
		return "at once"
	case d >= time.Hour:
		return fmt.Sprintf("after %.4g h", d.Hours())
	default:
		return fmt.Sprintf("after %.3g s", d.Seconds())
	}
}

// latecomer is the row about another call that begins 1 s into a pause of 2 s.
func latecomer(t *testing.T, c contender) (cell string) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		w := newWorld(t, l, l.dial, throttled("2"), ok)
		do := c.open(t, w.base, pace{100, time.Second, 100}, nil)
		first := make(chan outcome, 1)
		go func() { first <- w.call(do, w.request(t.Context(), "GET", "/first", "", false)) }()
		time.Sleep(time.Second)
		w.call(do, w.request(t.Context(), "GET", "/second", "", false))
		<-first
		for _, a := range w.arrivals() {
			if a.path == "/second" {
				cell = "sent " + after(a.at)
				return
			}
		}
	})
	return cell
}

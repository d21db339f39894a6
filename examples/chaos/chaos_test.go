// Package chaos runs everything together: processes that share their books, vendors that
// fail in every way they know, people who freeze, change limits and rates, kills and
// clocks that jump; and compares the books with the invoices.
package chaos_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

const (
	perSegment = 8_300_000
	perLookup  = 5_000_000
	perRead    = 150 // a token
	perWritten = 600
)

// limits of a day. Operators move them, never above twice.
var limits = map[string]budget.Amount{"twilio-sms": 4 * budget.Unit, "google-geocoding": 2 * budget.Unit, "openai": budget.Unit / 30}

const together = 5 * budget.Unit

// world is one run.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	ledger  budget.Ledger
	vendors map[string]*vendor // by provider
	base    hosts
	zone    *time.Location
	pause   time.Duration // between two calls, at most

	mu       sync.Mutex
	step     time.Duration // of the ledger's clock
	messages int
	tally    map[string]int // of what happened
	started  []*process
	holds    map[budget.HoldID]holder
	attempts map[string]int // held for, by message
}

func TestBooksHoldWhateverHappens(t *testing.T) {
	runs := 20
	if os.Getenv("OUTLAY_PROVE") != "" {
		runs = 200
	}
	all := map[string]int{}
	for seed := range runs {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for what, n := range newWorld(t, uint64(seed)).hour() {
					all[what] += n
				}
			})
		})
	}
	for _, f := range fates {
		require.NotZero(t, all[f.name]+all["call dial"], f.name)
	}
	for _, what := range []string{"kill", "freeze", "limit", "update", "clock", "open gate", "refused exhausted", "refused frozen", "answer lost"} {
		require.NotZero(t, all[what], what)
	}
	t.Logf("prove: %d hours of three processes, three vendors, two stores: %v", runs, all)
}

func newWorld(t *testing.T, seed uint64) *world {
	zone, err := time.LoadLocation("Asia/Kolkata") // its midnight is 18:30 UTC
	require.NoError(t, err)
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), vendors: map[string]*vendor{}, zone: zone, tally: map[string]int{}, holds: map[budget.HoldID]holder{}, attempts: map[string]int{}}
	time.Sleep(18 * time.Hour) // the day ends in the middle of the hour
	w.pause = 15 * time.Second
	if seed%10 != 0 {
		w.ledger = &budget.Memory{Clock: &budget.Clock{Source: w.clock, Suspended: func() (time.Duration, bool) { return 0, true }}}
	} else {
		l, err := sqliteledger.Open(filepath.Join(t.TempDir(), "spend.db"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		w.ledger, w.pause = l, time.Minute // it syncs for every hold
	}
	add := func(name string, answer func(*rand.Rand) (string, budget.Amount), throttled func() (int, http.Header, string)) *vendor {
		v := &vendor{name: name, answer: answer, throttled: throttled, taken: map[string]bool{}, billed: map[holder]budget.Amount{}, seen: map[string]int{}}
		v.rng = rand.New(rand.NewPCG(seed, uint64(len(name))))
		w.vendors[name] = v
		return v
	}
	w.base = hosts{
		"api.twilio.com": add("twilio-sms", func(*rand.Rand) (string, budget.Amount) {
			return `{"sid":"SM1","status":"queued","num_segments":"1"}`, perSegment
		}, func() (int, http.Header, string) {
			return 429, http.Header{}, `{"code":20429,"message":"Too many requests"}`
		}),
		"maps.googleapis.com": add("google-geocoding", func(*rand.Rand) (string, budget.Amount) {
			return `{"results":[],"status":"ZERO_RESULTS"}`, perLookup
		}, func() (int, http.Header, string) {
			return 200, http.Header{}, `{"status":"OVER_QUERY_LIMIT","results":[]}`
		}),
		"api.openai.com": add("openai", func(r *rand.Rand) (string, budget.Amount) {
			in, out := 5+r.IntN(10), 1+r.IntN(20)
			return fmt.Sprintf(`{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, in, out, in+out),
				budget.Amount(in*perRead + out*perWritten)
		}, func() (int, http.Header, string) {
			return 429, http.Header{"Retry-After-Ms": {"700"}}, `{"error":{"code":"rate_limit_exceeded","type":"requests","message":"slow down"}}`
		}),
	}
	return w
}

// clock is what the ledger takes for the time.
func (w *world) clock() (wall time.Time, steady time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	return now.Add(w.step).Round(0), time.Duration(now.UnixNano())
}

func (w *world) config(p *process, rate int, factor budget.Amount) transport.Config {
	sms := provider.TwilioSMS(perSegment)
	geo := provider.GoogleGeocoding(perLookup)
	llm := provider.OpenAI(price.Tokens{Models: map[string]price.Model{"m": {Input: perRead * 1e6, Output: perWritten * 1e6}}})
	c := transport.Config{Base: p, Ledger: p, MaxWait: 20 * time.Second, OnEvent: w.observe, AttemptInContext: true}
	for _, pr := range []transport.Provider{sms, geo, llm} {
		pr.Rates = []throttle.Rate{{N: rate, Per: time.Second, Burst: rate}}
		pr.MaxInFlight = 16
		b := budget.PerDay(limits[pr.Name] * factor / 4)
		b.Name, b.Zone = pr.Name+"-day", w.zone
		pr.Budgets = []budget.Budget{b}
		c.Providers = append(c.Providers, pr)
	}
	b := budget.PerDay(together)
	b.Name, b.Zone, b.Keep = "all-day", w.zone, budget.Unit
	c.Budgets = []budget.Budget{b}
	return c
}

func (w *world) observe(_ context.Context, e transport.Event) {
	switch e.Kind {
	case transport.KindRefused:
		w.count("refused " + string(e.Reason))
	case transport.KindAnswered:
		if e.ErrorClass != "" {
			w.count("call " + e.ErrorClass)
		}
	case transport.KindResolved:
		w.count(e.Outcome)
	case transport.KindClock:
		w.count("clock seen")
	}
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what]++
}

// between draws a number; the world's source is shared.
func (w *world) between(from, to int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return from + w.rng.IntN(to-from)
}

// hour runs it all and checks the books.
func (w *world) hour() map[string]int {
	end, stop := context.WithTimeout(w.t.Context(), time.Hour)
	defer stop()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { w.livesOf(end) })
	}
	all.Go(func() { w.operate(end) })
	all.Wait()
	for _, v := range w.vendors {
		v.onWay.Wait()
	}
	w.recover(w.started...)
	w.check()
	for _, v := range w.vendors {
		for fate, n := range v.seen {
			w.tally[fate] += n
		}
	}
	return w.tally
}

// livesOf is a process that is killed and started again, until the end.
func (w *world) livesOf(end context.Context) {
	for end.Err() == nil {
		p := &process{Ledger: w.ledger, base: w.base, open: map[budget.HoldID]bool{}}
		p.ctx, p.kill = context.WithTimeout(end, time.Duration(w.between(60, 900))*time.Second)
		p.lose = func() bool {
			lost := w.between(0, 300) == 0
			if lost {
				w.count("answer lost")
			}
			return lost
		}
		p.held = func(id budget.HoldID, message string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.attempts[message]++
			w.holds[id] = holder{message, w.attempts[message]}
		}
		w.mu.Lock()
		w.started = append(w.started, p)
		w.mu.Unlock()
		w.live(p)
		w.count("kill")
		time.Sleep(time.Duration(w.between(0, 20_000)) * time.Millisecond)
		w.recover(p)
	}
}

// live makes calls until the process dies.
func (w *world) live(p *process) {
	rt, err := transport.New(w.config(p, 5, 4))
	require.NoError(w.t, err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for p.ctx.Err() == nil {
				w.call(p, rt)
				select {
				case <-p.ctx.Done():
				case <-time.After(time.Duration(w.between(0, int(w.pause.Milliseconds()))) * time.Millisecond):
				}
			}
		})
	}
	all.Go(func() {
		for p.ctx.Err() == nil {
			select {
			case <-p.ctx.Done():
			case <-time.After(time.Duration(w.between(30, 300)) * time.Second):
				require.NoError(w.t, rt.Update(w.config(p, w.between(1, 8), budget.Amount(w.between(2, 8)))))
				w.count("update")
				if w.between(0, 3) == 0 {
					require.NoError(w.t, rt.OpenGate(p.ctx, "twilio-sms", budget.By{Who: "op", Why: "chaos"}))
					w.count("open gate")
				}
			}
		}
	})
	all.Wait()
}

// call is one call of a program, which may be impatient.
func (w *world) call(p *process, rt *transport.Transport) {
	ctx := p.ctx
	if n := w.between(0, 10); n < 5 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(w.between(1, 20_000/(n+1)))*time.Millisecond)
		defer stop()
	}
	ctx = transport.WithPriority(ctx, []throttle.Priority{throttle.Normal, throttle.Critical, throttle.Bulk}[w.between(0, 3)])
	ctx = transport.WithTenant(ctx, fmt.Sprint("tenant-", w.between(0, 5)))
	resp, err := rt.RoundTrip(w.request(ctx))
	if err != nil {
		time.Sleep(time.Duration(w.between(0, 20_000)) * time.Millisecond)
		return
	}
	if w.between(0, 10) > 0 {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	_ = resp.Body.Close()
}

func (w *world) request(ctx context.Context) *http.Request {
	which := w.between(0, 3)
	w.mu.Lock()
	w.messages++
	message := fmt.Sprintf("message-%d", w.messages)
	w.mu.Unlock()
	ctx = context.WithValue(ctx, messageKey{}, message)
	to, kind, body := "https://api.openai.com/v1/chat/completions", "application/json",
		fmt.Sprintf(`{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"%s"}]}`, message)
	switch which {
	case 0:
		to, kind = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", "application/x-www-form-urlencoded"
		body = url.Values{"To": {"+15550100"}, "From": {"+15550101"}, "Body": {message}}.Encode()
	case 1:
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://maps.googleapis.com/maps/api/geocode/json?address="+message, nil)
		require.NoError(w.t, err)
		return req
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", kind)
	return req
}

// recover is what the successor of a dead process does, and what a ledger of its own does
// when it is opened.
func (w *world) recover(dead ...*process) {
	for _, p := range dead {
		for id := range p.open {
			_, err := w.ledger.Resolve(context.Background(), id, budget.Outcome{Why: "recovery"})
			require.NoError(w.t, err)
			w.count("recovered")
		}
		clear(p.open)
	}
}

// operate is what people and clocks do meanwhile.
func (w *world) operate(end context.Context) {
	op := w.ledger.(budget.Operator)
	by := budget.By{Who: "op", Why: "chaos"}
	for end.Err() == nil {
		select {
		case <-end.Done():
			return
		case <-time.After(time.Duration(w.between(20, 200)) * time.Second):
		}
		name := []string{"twilio-sms", "google-geocoding", "openai"}[w.between(0, 3)]
		switch w.between(0, 3) {
		case 0:
			w.freeze(op, name, by)
		case 1:
			limit := limits[name] * budget.Amount(w.between(1, 8)) / 4
			require.NoError(w.t, op.SetLimit(context.Background(), name+"-day", limit, by))
			w.count("limit")
		case 2:
			steps := []time.Duration{0, 0, time.Minute, -time.Minute, 2 * time.Hour, -2 * time.Hour, 24 * time.Hour}
			step := steps[w.between(0, len(steps))]
			w.mu.Lock()
			w.step = step
			w.mu.Unlock()
			w.count("clock")
		}
	}
}

func (w *world) freeze(op budget.Operator, name string, by budget.By) {
	target := budget.Target{Provider: name}
	require.NoError(w.t, op.Freeze(context.Background(), target, by))
	w.vendors[name].freeze(time.Now())
	time.Sleep(time.Duration(w.between(1, 60)) * time.Second)
	w.vendors[name].freeze(time.Time{})
	require.NoError(w.t, op.Release(context.Background(), target, by))
	w.count("freeze")
}

// check compares the books with the invoices.
func (w *world) check() {
	all := budget.Totals{}
	for name, v := range w.vendors {
		require.Empty(w.t, v.broken, name)
		sum := w.sum(name+"-day", 2*limits[name])
		require.LessOrEqual(w.t, sum.Settled, v.invoice, "%s: more was booked as certain than was billed", name)
		require.Equal(w.t, v.invoice, sum.Settled+w.billedAmongPresumed(name, v), "%s: a billed call is not in the books", name)
		all.Settled, all.Presumed = all.Settled+sum.Settled, all.Presumed+sum.Presumed
		require.Positive(w.t, v.invoice)
	}
	sum := w.sum("all-day", together)
	require.Equal(w.t, all.Settled, sum.Settled, "the budget of all is the sum of the others")
	require.Equal(w.t, all.Presumed, sum.Presumed)
}

// billedAmongPresumed is what those calls cost in truth that the books only presume.
func (w *world) billedAmongPresumed(name string, v *vendor) (sum budget.Amount) {
	unresolved, err := w.ledger.(budget.Operator).Unresolved(context.Background(), name, 0)
	require.NoError(w.t, err)
	for _, u := range unresolved {
		cost := v.billed[w.holds[u.ID]]
		require.LessOrEqual(w.t, cost, u.Legs[0].Amount, "a call cost more than is presumed for it")
		sum += cost
	}
	return sum
}

// sum adds the windows of a budget, each of which was funded once.
func (w *world) sum(name string, most budget.Amount) (sum budget.Totals) {
	b := budget.PerDay(most)
	b.Name, b.Zone = name, w.zone
	for day := -3; day <= 3; day++ {
		all, err := w.ledger.Totals(context.Background(), time.Now().AddDate(0, 0, day), b)
		require.NoError(w.t, err)
		t := all[0]
		require.Zero(w.t, t.OpenHolds, "%s: holds are left in flight", name)
		require.Zero(w.t, t.Held)
		require.LessOrEqual(w.t, t.Settled+t.Presumed, most+t.Overrun, "%s: window %v is over", name, t.Window)
		sum.Settled, sum.Presumed = sum.Settled+t.Settled, sum.Presumed+t.Presumed
	}
	return sum
}

package vendortest

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// maxBody is the largest request that a fake reads.
const maxBody = 64 << 20

// grace is how long after a pause was announced an arrival is still innocent: it was
// on its way already.
const grace = 250 * time.Millisecond

// replay is the answer to a request with an idempotency key.
type replay struct {
	id    fingerprint
	reply reply
}

// fingerprint is the hash of what a request says, without its headers.
type fingerprint [sha256.Size]byte

// call is one request as a vendor sees it.
type call struct {
	*http.Request
	fake *Fake
	body []byte
	now  time.Time
	id   fingerprint
	nth  int // how often this content arrived before
	// What is left of the current window, and until when it lasts.
	remaining int
	reset     time.Duration
}

// form reads the parameters of a form body.
func (c call) form() url.Values {
	v, _ := url.ParseQuery(string(c.body)) // what does not parse is absent
	return v
}

// decode reads a JSON body into v and reports whether it could.
func (c call) decode(v any) bool { return json.Unmarshal(c.body, v) == nil }

// serial numbers what the vendor accepts.
func (c call) serial() int { return c.fake.counts.Accepted + 1 }

// windowed reports whether the fake limits requests in windows, so that there is
// something to tell about them.
func (c call) windowed() bool { return c.reset > 0 }

// refusal says why a request is refused for a limit.
type refusal struct {
	after   time.Duration // the pause to announce; zero: none
	planned bool          // a plain 429, whatever the vendor's own dialect
	busy    bool          // too many at once, rather than too many in a window
}

// reply is what a vendor answers.
type reply struct {
	status int
	header map[string]string
	body   string
	// parts, if any, are sent one by one instead of body, as in a stream.
	parts []string
	// pause is the pause that the reply announces, in whatever way.
	pause time.Duration
	// line is billed if its Units are not zero.
	line Line
	// refused: for what the request says. It is neither accepted nor billed.
	refused bool
}

// empty reports whether there is nothing that could be cut in the middle.
func (r reply) empty() bool { return r.body == "" && len(r.parts) == 0 }

// object makes a JSON reply.
func object(status int, v any) reply {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own values come here
	}
	return reply{status: status, header: map[string]string{"Content-Type": "application/json"}, body: string(b)}
}

// with adds a header.
func (r reply) with(key, value string) reply {
	r.header = maps.Clone(r.header)
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[key] = value
	return r
}

// hint adds Retry-After in whole seconds, rounded up, if there is a pause to announce.
func (r reply) hint(after time.Duration) reply {
	if after <= 0 {
		return r
	}
	r.pause = after
	return r.with("Retry-After", strconv.FormatInt(seconds(after), 10))
}

// seconds are whole ones, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// refuse marks a reply to a request that makes no sense.
func (r reply) refuse() reply { r.refused = true; return r }

// bill puts the reply on the invoice: n units for a destination.
func (r reply) bill(c call, ref, to string, n int64) reply {
	r.line = Line{Ref: ref, Time: c.now, To: to, Units: n, Amount: c.fake.priceOf(to) * budget.Amount(n)}
	return r
}

// serve is the life of one request: it arrives whole, is judged and billed, and only
// then does the answer set out, and may be lost.
func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // the caller left before all of the request was here
	}
	a, fault := f.judge(r, body)
	defer f.leave()
	if fault == ResetBeforeRead {
		reset(w)
		return
	}
	if !f.pause(r, fault) {
		panic(http.ErrAbortHandler) // net/http only breaks the connection
	}
	if fault == ResetAfterRead || fault == Cut && a.empty() {
		reset(w)
		return
	}
	write(w, a, fault == Cut)
}

// judge counts an arrival and decides about it: the plan's faults come first, then
// the limits, then the vendor's own answer, which is billed here.
func (f *Fake) judge(r *http.Request, body []byte) (reply, Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, over := f.arrive(r, body)
	fault := f.opts.Faults.draw(c.id, c.nth, f.counts.Received)
	if over != nil && !fault.refuses() {
		fault = None // the limit stands before what may befall an accepted request
	}
	f.counts.Faults[fault]++
	var a reply
	switch {
	case fault == ResetBeforeRead:
		return a, fault
	case fault == Unavailable503:
		return f.vendor.fail(http.StatusServiceUnavailable), fault
	case fault == Unavailable503Hint:
		a = f.vendor.fail(http.StatusServiceUnavailable).hint(f.opts.Faults.retryAfter())
	case fault == Throttle429Hint:
		a = f.refuse(c, refusal{planned: true, after: f.opts.Faults.retryAfter()})
	case fault == Throttle429Bare:
		a = f.refuse(c, refusal{planned: true})
	case fault == Throttle:
		a = f.refuse(c, refusal{after: f.opts.Faults.retryAfter()})
	case over != nil:
		a = f.refuse(c, *over)
	case fault == Error500 && f.vendor.free500:
		return f.vendor.fail(http.StatusInternalServerError), fault
	default:
		a = f.accept(c)
	}
	f.announce(c, a)
	if fault == Error500 && a.status < http.StatusMultipleChoices {
		return f.vendor.fail(http.StatusInternalServerError), fault
	}
	return a, fault
}

// arrive counts a request, and says whether it is over a limit.
func (f *Fake) arrive(r *http.Request, body []byte) (call, *refusal) {
	c := call{Request: r, fake: f, body: body, now: time.Now(), id: fingerprintOf(r, body)}
	c.nth = f.arrivals[c.id]
	f.arrivals[c.id]++
	f.counts.Received++
	f.inFlight++
	f.counts.MaxInFlight = max(f.counts.MaxInFlight, f.inFlight)
	if c.now.After(f.told.Add(grace)) && c.now.Before(f.until) {
		f.counts.Early++
	}
	l := f.opts.Limit
	if l.Requests > 0 && l.Window > 0 {
		if n := c.now.UnixNano() / int64(l.Window); n != f.window {
			f.window, f.inWindow = n, 0
		}
		f.inWindow++
		f.counts.MaxInWindow = max(f.counts.MaxInWindow, f.inWindow)
		c.remaining = max(0, l.Requests-f.inWindow)
		c.reset = time.Duration((f.window+1)*int64(l.Window) - c.now.UnixNano())
	}
	switch {
	case l.Concurrent > 0 && f.inFlight > l.Concurrent:
		return c, &refusal{busy: true}
	case c.reset > 0 && f.inWindow > l.Requests:
		return c, &refusal{after: c.reset}
	}
	return c, nil
}

// accept lets the vendor answer, and bills the answer unless an idempotency key says
// that it was billed before.
func (f *Fake) accept(c call) reply {
	key := c.Header.Get(f.vendor.idempotency)
	if first, again := f.replays[key]; again && key != "" {
		if first.id != c.id {
			f.counts.Invalid++ // one key, two requests
			return f.vendor.fail(http.StatusBadRequest)
		}
		f.counts.Replayed++
		return first.reply.with("Idempotent-Replayed", "true")
	}
	a := f.decorate(c, f.vendor.answer(c))
	if a.refused {
		f.counts.Invalid++
		return a
	}
	f.counts.Accepted++
	if a.line.Units > 0 {
		f.lines = append(f.lines, a.line)
	}
	if a.line.Units > 0 || c.Method != http.MethodGet {
		if f.taken[c.id] {
			f.counts.Double++
		}
		f.taken[c.id] = true
	}
	if key != "" {
		f.replays[key] = replay{c.id, a}
	}
	return a
}

// refuse counts a throttle and says it in the vendor's dialect.
func (f *Fake) refuse(c call, why refusal) reply {
	f.counts.Throttled++
	return f.decorate(c, f.vendor.throttle(c, why))
}

// decorate adds the vendor's headers about its limits.
func (f *Fake) decorate(c call, a reply) reply {
	if f.vendor.headers == nil {
		return a
	}
	for k, v := range f.vendor.headers(c) {
		if _, set := a.header[k]; !set {
			a = a.with(k, v)
		}
	}
	return a
}

// announce remembers a pause that callers have been told to make.
func (f *Fake) announce(c call, a reply) {
	if until := c.now.Add(a.pause); a.pause > 0 && until.After(f.until) {
		f.told, f.until = c.now.Add(f.opts.Latency), until
	}
}

func (f *Fake) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
}

// pause takes the time of an answer. It reports false if the fake was closed or the
// caller left meanwhile: nobody will read the answer.
func (f *Fake) pause(r *http.Request, fault Fault) bool {
	d := f.opts.Latency
	if fault == Slow {
		d += f.opts.Faults.slowFor()
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.closed:
	case <-r.Context().Done():
	}
	return false
}

// write sends an answer, or the first half of it and then nothing more.
func write(w http.ResponseWriter, a reply, cut bool) {
	for k, v := range a.header {
		w.Header()[k] = []string{v} // as on the wire, also where it is not canonical
	}
	parts := a.parts
	if parts == nil {
		parts = []string{a.body}
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	flusher := http.NewResponseController(w)
	for i, p := range parts {
		if cut && i == len(parts)/2 {
			_, _ = io.WriteString(w, p[:len(p)/2]) // the caller may have left
			_ = flusher.Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, p)
		_ = flusher.Flush()
	}
}

// reset breaks the connection with a TCP reset, or an HTTP/2 stream.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // without it the close would be an orderly one
	}
	_ = conn.Close()
}

// priceOf is the price of one unit to a destination.
func (f *Fake) priceOf(to string) budget.Amount {
	price, longest := f.opts.Price, -1
	for prefix, p := range f.opts.Prices {
		if strings.HasPrefix(to, prefix) && len(prefix) > longest {
			price, longest = p, len(prefix)
		}
	}
	return price
}

func fingerprintOf(r *http.Request, body []byte) fingerprint {
	h := sha256.New()
	_, _ = io.WriteString(h, r.Method+" "+r.URL.RequestURI()+"\n")
	_, _ = h.Write(body)
	return fingerprint(h.Sum(nil))
}

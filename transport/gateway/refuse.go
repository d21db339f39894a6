package gateway

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

// The reasons of refusals that are the gateway's own.
const (
	reasonUnreachable = "upstream_unreachable" // nothing was sent
	reasonRefused     = "upstream_refused"     // sent, and known not to be taken
	reasonUnknown     = "outcome_unknown"      // sent, and nobody knows
	reasonShutdown    = "shutting_down"
	reasonRemoved     = "provider_removed"
	reasonLoop        = "loop"
	reasonLeft        = "caller_left"
)

// refusal is what a caller is told in place of a provider's answer.
type refusal struct {
	// status is zero if the reason is the Transport's and says it.
	status int
	reason transport.Reason
	text   string
	// err is the refusal of the Transport, whose text it is then.
	err     error
	retryAt time.Time
	retryIn time.Duration
	// unknown: the call was sent, and may be billed.
	unknown bool
	// proxyError is the error type of RFC 9209. Empty: by the reason.
	proxyError string
	// allow and authenticate are headers that the status needs.
	allow, authenticate string
}

// Error is the sentence for people.
func (r *refusal) Error() string {
	if r.err != nil {
		return r.err.Error()
	}
	return r.text
}

// Unwrap returns the refusal of the Transport.
func (r *refusal) Unwrap() error { return r.err }

// isMoney reports whether it is refused for its price.
func (r *refusal) isMoney() bool {
	switch r.reason {
	case transport.ReasonExhausted, transport.ReasonFloor, transport.ReasonUnpriced:
		return true
	}
	return false
}

// refuse answers the call.
func (c *call) refuse(r *refusal) {
	c.refused = r
	c.noteLeft()
	c.tell(r)
	status, h, body := c.shape(r)
	out := c.w.Header()
	maps.Copy(out, h)
	out.Set("Cache-Control", "no-store")
	out.Set("Content-Length", strconv.Itoa(len(body)))
	out.Set("Proxy-Status", "outlay; error="+r.proxyStatus()+"; details="+quoted(string(r.reason)))
	out.Set("Outlay-Call", c.id().String())
	if c.up != nil && !c.snap.HideOutlay {
		out.Set("Outlay-Provider", c.up.Name)
	}
	if r.allow != "" {
		out.Set("Allow", r.allow)
	}
	if r.authenticate != "" {
		out.Set("Www-Authenticate", r.authenticate)
	}
	c.tellRate(out, r)
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // who has left hears nothing
}

// tell lets the hook know of a refusal before the Transport saw the call, so that metrics
// and pages count it. What belongs to no provider is told by the log alone: strangers must
// not make series.
func (c *call) tell(r *refusal) {
	if c.g.parts.OnEvent == nil || c.up == nil || c.seen().outcome != "" {
		return
	}
	now := time.Now()
	e := transport.Event{Kind: transport.KindRefused, Time: now.UTC(), Call: c.id(), Provider: c.up.Name, Priority: c.priority, Reason: r.reason}
	c.g.parts.OnEvent(c.ctx, e)
	e.Kind, e.Outcome, e.Took = transport.KindFinished, "refused", now.Sub(c.start)
	c.g.parts.OnEvent(c.ctx, e)
}

// shape is the refusal in the vendor's own error shape. Where that says it with a status of
// success it is overruled: a program must not take a refusal for an answer.
func (c *call) shape(r *refusal) (int, http.Header, []byte) {
	refused := transport.Refused{
		Reason: r.reason, RetryAt: r.retryAt, Err: r, Call: c.id(), Status: r.status, OutcomeUnknown: r.unknown,
	}
	form := provider.MessageRefusal
	if c.up != nil {
		refused.Provider, form = c.up.Name, c.up.Refusal
		if r.isMoney() {
			refused.Status = cmp.Or(r.status, c.up.MoneyStatus)
		}
	}
	if r.retryIn > 0 {
		refused.RetryAt = time.Now().Add(r.retryIn)
	}
	status, h, body := form(refused)
	if status < 400 {
		status, _, _ = provider.MessageRefusal(refused)
	}
	if h == nil {
		h = http.Header{}
	}
	if r.unknown && c.up.IdempotencyHeader != "" && c.in.Header.Get(c.up.IdempotencyHeader) != "" {
		h.Del("X-Should-Retry") // the vendor knows the call by its key
		h.Del("Stripe-Should-Retry")
	}
	return status, h, body
}

// statusFor is the status by which the call is told.
func (r *refusal) statusFor(c *call) int {
	status, _, _ := c.shape(r)
	return status
}

// proxyStatus is the error type of RFC 9209, section 2.3.
func (r *refusal) proxyStatus() string {
	if r.proxyError != "" {
		return r.proxyError
	}
	switch r.reason {
	case transport.ReasonSlots, transport.ReasonQueueFull:
		return "connection_limit_reached"
	case transport.ReasonLedger, transport.ReasonLimiter, "buffers_full", reasonShutdown:
		return "proxy_internal_response"
	case reasonRemoved, "no_such_provider":
		return "destination_not_found"
	case reasonLoop:
		return "proxy_loop_detected"
	}
	return "http_request_denied"
}

// tellRate tells the rate that refused the call (draft-ietf-httpapi-ratelimit-headers),
// where it is known which one that is.
func (c *call) tellRate(h http.Header, r *refusal) {
	if r.reason != transport.ReasonRate || c.up == nil || !c.up.plainRate || r.retryAt.IsZero() {
		return
	}
	rate, name := c.up.Rates[0], quoted(c.up.Name)
	if rate.Per%time.Second != 0 {
		return
	}
	wait := int64((max(0, time.Until(r.retryAt)) + time.Second - 1) / time.Second)
	h.Set("Ratelimit-Policy", name+";q="+strconv.Itoa(rate.N)+";w="+strconv.FormatInt(int64(rate.Per/time.Second), 10))
	h.Set("Ratelimit", name+";r=0;t="+strconv.FormatInt(wait, 10))
}

// quoted writes a structured field's string (RFC 9651), which is ASCII.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
		case r < ' ' || r > '~':
			r = '?'
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}

func shuttingDown(err error) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, reason: reasonShutdown, text: err.Error(), retryIn: 2 * time.Second}
}

// explain says what came of a call that the Transport refused, or that failed.
func (c *call) explain(err error) *refusal {
	if e, ok := errors.AsType[*transport.CallError](err); ok {
		return c.explainFailure(e)
	}
	reason := transport.ReasonOf(err)
	switch {
	case reason == transport.ReasonUnmatched:
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonRemoved, text: errRemoved.Error(), retryIn: 2 * time.Second}
	case reason == transport.ReasonUnpriced && c.streamed:
		r := bodyTooLarge(c.up)
		r.text = c.up.Name + ": the price stands in the body, which is larger than what is read to find it (body.buffer)"
		return r
	case reason != "":
		at, _ := transport.RetryAt(err)
		return &refusal{reason: reason, err: err, retryAt: at}
	}
	return c.outcomeUnknown("the provider's answer could not be passed on")
}

// explainFailure tells what was sent from what was not.
func (c *call) explainFailure(e *transport.CallError) *refusal {
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	if failed != nil {
		r := c.bodyRefusal(failed)
		if e.OutcomeUnknown { // a part of it has left, and only the vendor knows what it made of that
			return c.outcomeUnknown(strings.TrimPrefix(r.text, c.up.Name+": "))
		}
		return r
	}
	switch {
	case e.OutcomeUnknown:
		return c.outcomeUnknown(trouble(c, e.Err))
	case e.NotSent:
		return c.notSent(e.Err)
	}
	if r := c.stopped(); r != nil {
		return r
	}
	return &refusal{
		status: http.StatusServiceUnavailable, reason: reasonRefused, retryIn: time.Second,
		text: c.up.Name + ": the provider did not take the call (" + trouble(c, e.Err) + ")", proxyError: "connection_terminated",
	}
}

func (c *call) outcomeUnknown(why string) *refusal {
	r := &refusal{status: http.StatusGatewayTimeout, reason: reasonUnknown, unknown: true, text: c.up.Name + ": " + why, proxyError: "connection_terminated"}
	if strings.HasPrefix(why, "no answer") {
		r.proxyError = "http_response_timeout"
	}
	return r
}

// stopped is the refusal of a call that was stopped while it waited, or nil.
func (c *call) stopped() *refusal {
	c.mu.Lock()
	why := c.unwanted
	c.mu.Unlock()
	switch {
	case why == nil:
		return nil
	case errors.Is(why, errStopped):
		return c.frozen()
	case errors.Is(why, errRemoved):
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonRemoved, text: why.Error(), retryIn: 2 * time.Second}
	case errors.Is(why, errShuttingDown):
		return shuttingDown(why)
	}
	return &refusal{status: http.StatusBadRequest, reason: reasonLeft, text: why.Error() + ", or closed its side of the connection, while the call waited"}
}

// statusCallerLeft is for the log, as nginx has it. On the wire it would be a status without
// a name: one that only closed its side of the connection reads a 400.
const statusCallerLeft = 499

// notSent is the refusal of a call of which no byte was written.
func (c *call) notSent(err error) *refusal {
	if r := c.stopped(); r != nil {
		return r
	}
	r := &refusal{status: http.StatusBadGateway, reason: reasonUnreachable, retryIn: time.Second, proxyError: "destination_unavailable"}
	r.text = c.up.Name + ": the provider cannot be reached (" + trouble(c, err) + ")"
	dns := new(net.DNSError)
	switch {
	case errors.Is(err, errLoop):
		r.status, r.reason, r.proxyError, r.retryIn = http.StatusLoopDetected, reasonLoop, "", 0
	case errors.Is(err, errPrivate):
		r.proxyError, r.retryIn = "destination_ip_prohibited", 0
	case errors.As(err, &dns):
		r.proxyError = "dns_error"
	}
	return r
}

// trouble puts an error of net/http into words that hold no address and no URL.
func trouble(c *call, err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch cause := causeOf(c); {
	case errors.Is(err, errLoop), errors.Is(err, errPrivate):
		return unwrapped(err)
	case cause != nil:
		return cause.Error()
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case strings.Contains(err.Error(), "timeout awaiting response headers"):
		return "no answer within " + c.up.Timeouts.Response.String() + " (timeouts.response)"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it took too long"
	case strings.Contains(err.Error(), "certificate"), strings.Contains(err.Error(), "tls:"):
		return "the TLS handshake failed"
	case strings.Contains(err.Error(), "connection refused"):
		return "the connection was refused"
	}
	return "the connection broke"
}

func unwrapped(err error) string {
	if errors.Is(err, errLoop) {
		return errLoop.Error()
	}
	return errPrivate.Error()
}

// causeOf is why we ended the call ourselves, or nil.
func causeOf(c *call) error {
	if c.ctx.Err() == nil {
		return nil
	}
	return contextCause(c)
}

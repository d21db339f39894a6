package transport

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// RoundTrip sends one call. It waits for a turn, has the attempt paid for, sends it,
// books what it cost, then learns what the answer says about limits, and repeats the
// attempt where a repeat cannot bill twice.
//
// The error is the provider's own trouble as Base reported it (see [CallError]), or a
// refusal, after which nothing was sent and nothing was charged: [throttle.WaitError],
// [budget.ExceededError], [budget.FrozenError], [RepeatedError], [budget.ErrUnpriced],
// [budget.ErrUnavailable], [budget.ErrConflict], [throttle.ErrUnavailable] or
// [ErrUnmatched]. A throttled call that may not wait any longer returns the provider's
// own response.
//
// It is safe for concurrent use and never changes req.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	set := t.setup.Load()
	p, named, err := set.routes.match(req)
	if p == nil {
		return t.unmatched(set, req, named, err)
	}
	c := t.newCall(p, req)
	defer c.leave()
	if err := c.prepare(); err != nil {
		return c.refuse(err)
	}
	for {
		if err := c.peek(); err != nil {
			return c.refuse(err)
		}
		if err := c.wait(); err != nil {
			return c.refuse(err)
		}
		if err := c.hold(); err != nil {
			return c.refuse(err)
		}
		a := c.send()
		c.resolve(a)
		c.learn(a)
		delay, again := c.decide(a)
		if !again {
			return c.finish(a)
		}
		if err := c.backOff(a, delay); err != nil {
			return c.refuse(err)
		}
	}
}

// prepare asks the configuration what it says of the request: where it queues, what an
// attempt may cost and which budgets pay for it.
func (c *call) prepare() error {
	c.rec = recorderOf(c.ctx, c.id, c.p.Name)
	c.priority, c.tenant = c.p.order(c.ctx, c.req)
	c.maxWait = c.p.maxWaitFor(c.ctx)
	c.attempts, c.nested = c.p.attemptsFor(c)
	c.p.state.share.call(c.start)
	if err := c.monitored(c.p.state.repeats.check(c)); err != nil {
		return err
	}
	return c.price()
}

// price asks what the attempt may cost and which budgets pay for it.
func (c *call) price() error {
	q, err := c.p.quote(c.req)
	if err = c.monitored(err); err != nil {
		return err
	}
	c.quote = q
	c.legs = c.p.legsFor(c.req, q)
	c.budgets, err = c.p.budgetLegs(c.legBuf[:0], c.req, q)
	err = c.monitored(err)
	c.rec.call(func(i *CallInfo) { i.Quote = q })
	if c.p.asks {
		c.lap() // a turn counts from now, not from when the call began
	}
	return err
}

// peek refuses what the ledger refused a moment ago, without asking it again: a hot
// loop on an exhausted budget must cost nothing. Whether it would refuse now is asked
// when the call would have to wait (see unpaid).
func (c *call) peek() error {
	if c.p.Monitor || len(c.budgets) == 0 {
		return nil
	}
	return c.p.state.exhausted.refuses(c)
}

// wait takes a turn on every leg. The money is held afterwards, so that queued calls
// pin none and the window charged is the one in which the call really leaves.
func (c *call) wait() error {
	c.waitedFor, c.queuedUp, c.turnWait = "", false, 0
	c.limits()
	turn, err := c.t.limiter.Wait(c.ctx, throttle.Ask{
		Legs: c.legs, Priority: c.priority, Tenant: c.tenant,
		MaxWait: c.mayWait(), Now: c.now, OnQueue: c.scratch.queue, Still: c.scratch.still,
	})
	c.retune()
	if c.queuedUp || err != nil {
		now := time.Now() // not lap: the machine may have slept
		c.turnWait, c.now = now.Sub(c.now), now
		c.waited += c.turnWait
	}
	if err != nil && c.ctx.Err() != nil && errors.Is(err, throttle.ErrUnavailable) {
		err = c.ctx.Err() // the caller left; the limiter need not be at fault
	}
	c.t.limiterHealth.note(c, "wait", err)
	err = c.lasting(err)
	if err != nil && c.p.Monitor && !isContextEnd(err) {
		c.wouldRefuse(err)
		err = nil
	}
	if err != nil {
		if c.queuedUp {
			c.left = c.turnWait
		}
		if errors.Is(err, throttle.ErrUnavailable) {
			err = scrub(err)
		}
		return err
	}
	c.turn, c.turning, c.sent = turn, true, false
	return nil
}

// hold sets the money aside, durably, before anything is sent.
func (c *call) hold() error {
	if len(c.budgets) == 0 {
		return c.checkFrozen()
	}
	id := budget.HoldID{Boot: c.t.boot, Seq: c.t.holds.Add(1)}
	if c.t.onEvent != nil {
		c.holdBegan = c.lap()
	}
	changes := c.p.state.exhausted.changes.Load()
	report, err := c.t.ledger.Hold(c.ctx, budget.Hold{
		ID: id, Provider: c.p.Name, Legs: c.budgets,
		Critical: c.priority == throttle.Critical, Assumed: c.quote.Assumed,
	})
	c.holdID, c.holding = id, err == nil
	c.t.ledgerHealth.note(c, "hold", err)
	c.noticed(report)
	if err == nil {
		return nil
	}
	if !isRefusal(err) {
		// The answer may be lost while the hold exists: nothing was sent, say so.
		report, _ := c.t.ledger.Resolve(c.books(), id, budget.Voided("not_sent"))
		c.noticed(report)
		if gone := c.ctx.Err(); gone != nil {
			return gone // the caller left; the ledger need not be at fault
		}
	}
	if c.p.Monitor && !isFrozen(err) {
		c.wouldRefuse(err)
		return nil
	}
	c.p.state.exhausted.keep(c, err, changes)
	c.giveTurnBack()
	if !isRefusal(err) {
		err = scrub(err)
	}
	return err
}

// send hands one attempt to Base and reads the answer.
func (c *call) send() *attempt {
	a := c.nextAttempt()
	c.attempt++
	req, err := c.outgoing(a)
	if err != nil {
		a.err, a.notSent = err, true
		return a
	}
	c.lap()
	c.started()
	if err := c.callerGone(); err != nil { // while the money was held, or in the queue by the old way
		if req.Body != nil && !c.bodyOurs {
			_ = req.Body.Close()
		}
		a.err, a.notSent = err, true
		return a
	}
	c.sent, c.bodyOurs = true, false
	a.sentAt = c.now
	a.resp, a.err = c.t.base.RoundTrip(req)
	c.lap()
	a.doneAt = c.now
	a.readAnswer(c)
	c.sentAny = c.sentAny || !a.notSent
	c.answered(a)
	return a
}

// resolve ends the hold by the evidence of the attempt, and the turn unless its body
// is still to come.
func (c *call) resolve(a *attempt) {
	o := a.outcome(c.quote.Amount)
	c.unknown = c.unknown || o.State == budget.StatePresumed
	c.lastErr = a.err
	if c.holding {
		c.resolveHold(a, o)
	}
	if a.err != nil && !c.sent {
		c.giveTurnBack()
	}
}

// finish hands the attempt's outcome to the caller.
func (c *call) finish(a *attempt) (*http.Response, error) {
	if a.err != nil {
		a.release()
		c.endTurn()
		c.closeBody()
		c.forget()
		c.finished(failOutcome(c.ctx, a.err), "", 0)
		c.done, c.last = true, nil
		return nil, c.callError(a.err)
	}
	c.finished(a.word(), "", a.resp.StatusCode)
	c.done = true
	return c.watchBody(a), nil
}

// refuse ends the call without another attempt. If the provider has answered before,
// its last answer is what the caller gets.
func (c *call) refuse(err error) (*http.Response, error) {
	c.lap()
	c.giveTurnBack()
	c.closeBody()
	c.forget()
	defer func() { c.done = true }()
	reason := ReasonOf(err)
	c.rec.call(func(i *CallInfo) { i.Reason = reason })
	if reason == "" {
		c.finished(failOutcome(c.ctx, err), "", 0)
		return nil, c.callError(err)
	}
	c.refused(err, reason)
	if last := c.lastAnswer(); last != nil {
		c.finished(c.lastOutcome, reason, last.StatusCode)
		return last, nil
	}
	if c.sentAny { // what was sent may be charged: only the repeat was refused
		c.finished("failed", reason, 0)
		return nil, c.stopped(err)
	}
	c.finished("refused", reason, 0)
	if resp := c.refusalResponse(err, reason); resp != nil {
		return resp, nil
	}
	return nil, err
}

// stopped is the error of a call that may not be repeated: the trouble that asked for the
// repeat, for which something was sent. The refusal is told, but cannot be taken for the
// call's own.
func (c *call) stopped(refusal error) error {
	err := c.lastErr
	if err == nil {
		err = errAnswerGone
	}
	e := c.callError(err)
	e.Refusal = refusal
	return e
}

var errAnswerGone = errors.New("the answer was too long or too slow to keep, and the call may not be repeated")

// refuses reports whether a request without a provider is refused: named says that some
// pattern names its host, cause that it cannot be matched at all.
func (s *setup) refuses(named bool, cause error) bool {
	return cause != nil || s.unmatched == RefuseAll || s.unmatched == PassUnknownHosts && named
}

// unmatchedError says what is nearest to the request, which itself stays out of errors.
func (s *setup) unmatchedError(req *http.Request, cause error) error {
	if cause != nil {
		return fmt.Errorf("%w: %w", ErrUnmatched, cause)
	}
	near := s.routes.near(req)
	if len(near) == 0 {
		return fmt.Errorf("%w: nobody's Match names its host", ErrUnmatched)
	}
	return fmt.Errorf("%w: Match of %s names its host, but not this method and path", ErrUnmatched, strings.Join(near, ", "))
}

// unmatched treats a request that belongs to no provider.
func (t *Transport) unmatched(set *setup, req *http.Request, named bool, cause error) (*http.Response, error) {
	e := Event{Kind: KindFinished, Time: time.Now().UTC(), Call: CallID{t.boot, t.calls.Add(1)}, Outcome: "passed"}
	if set.refuses(named, cause) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		e.Outcome, e.Reason = "refused", ReasonUnmatched
		t.emit(req.Context(), e)
		return nil, set.unmatchedError(req, cause)
	}
	resp, err := t.base.RoundTrip(req)
	if t.onEvent != nil {
		e.Took = time.Since(e.Time)
		if resp != nil {
			e.Status = resp.StatusCode
		}
		t.emit(req.Context(), e)
	}
	return resp, err
}

package transport

import (
	"context"
	"errors"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

func (t *Transport) emit(ctx context.Context, e Event) {
	if t.onEvent != nil {
		if e.Time.IsZero() {
			e.Time = time.Now().UTC()
		}
		t.onEvent(ctx, e)
	}
}

// emit adds what all events of a call have in common. The clock was read at its last
// step.
func (c *call) emit(e *Event) {
	if c.t.onEvent == nil {
		return
	}
	e.Time, e.Call, e.Provider, e.Attempt, e.Priority = c.now.UTC(), c.id, c.p.Name, c.attempt, c.priority
	c.t.onEvent(c.ctx, *e)
}

// queued is what the limiter calls when the call begins to wait.
func (c *call) queued(f throttle.Forecast) {
	c.waitedFor, c.queuedUp = f.Cause, true
	c.retune()
	c.emit(&Event{Kind: KindWaiting, Cause: string(f.Cause), Expected: f.Wait, Queue: f.Ahead})
}

// started tells that the attempt is about to be sent. c.now was read after the hold.
func (c *call) started() {
	if c.t.onEvent == nil {
		return
	}
	e := Event{Kind: KindStarted, Wait: c.turnWait, Hold: c.quote.Amount, Unit: c.quote.Unit}
	if !c.holdBegan.IsZero() {
		e.Took = c.now.Sub(c.holdBegan)
	}
	c.emit(&e)
}

// answered tells what came of an attempt, and begins its line in the record.
func (c *call) answered(a *attempt) {
	status := 0
	if a.resp != nil {
		status = a.resp.StatusCode
	}
	c.rec.attempt(c.attempt, func(i *AttemptInfo) {
		i.Waited, i.WaitedFor, i.Status, i.Throttled = c.turnWait, Reason(c.waitedFor), status, a.reading.Throttled
		if c.holding {
			i.Hold, i.Unit, i.State = c.holdID, c.quote.Unit, budget.StateHeld
		}
	})
	if c.t.onEvent != nil {
		c.emit(&Event{Kind: KindAnswered, Status: status, ErrorClass: errorClass(c.ctx, a.err), Took: c.now.Sub(a.sentAt), Resends: a.resends})
	}
}

// refusedEvent fills in what a refusal says.
func refusedEvent(kind Kind, err error, reason Reason) Event {
	e := Event{Kind: kind, Reason: reason}
	e.RetryAt, _ = RetryAt(err)
	if x, ok := errors.AsType[*budget.ExceededError](err); ok {
		e.Budget, e.Window, e.Unit = x.Budget, x.Window, x.Unit
		e.Need, e.Used, e.Limit = x.Need, x.Used, x.Limit
	}
	if f, ok := errors.AsType[*budget.FrozenError](err); ok {
		e.Budget = f.Budget
	}
	if !e.RetryAt.IsZero() {
		e.Expected = max(0, time.Until(e.RetryAt))
	}
	return e
}

func (c *call) refused(err error, reason Reason) {
	if c.t.onEvent != nil {
		e := refusedEvent(KindRefused, err, reason)
		c.emit(&e)
	}
}

// wouldRefuse tells what a monitor let pass.
func (c *call) wouldRefuse(err error) {
	reason := ReasonOf(err)
	c.rec.call(func(i *CallInfo) { i.Reason = reason })
	if c.t.onEvent != nil {
		e := refusedEvent(KindWouldRefuse, err, reason)
		c.emit(&e)
	}
}

// noticed tells what the ledger reported beside its answer.
func (c *call) noticed(r budget.Report) {
	if r.WouldRefuse != nil {
		c.wouldRefuse(r.WouldRefuse)
	}
	if c.t.onEvent == nil {
		return
	}
	for _, n := range r.Notices {
		if e, ok := noticeEvent(n); ok {
			c.emit(&e)
		}
	}
}

// noticeEvent is what a notice of the ledger is told as.
func noticeEvent(n budget.Notice) (Event, bool) {
	switch n.Kind {
	case budget.NoticeThreshold:
		return Event{Kind: KindThreshold, Budget: n.Budget, Window: n.Window, Percent: n.Percent, Used: n.Used, Limit: n.Limit, Unit: n.Unit}, true
	case budget.NoticeClock:
		return Event{Kind: KindClock, Store: "ledger", Skew: n.Skew}, true
	case budget.NoticeStore:
		return Event{Kind: KindStore, Store: "ledger", Op: "notice", ErrorClass: "learning"}, true
	case budget.NoticeRecovery:
		return Event{Kind: KindResolved, Outcome: "presumed", Evidence: "recovery", Pending: n.Holds}, true
	case budget.NoticeLimit:
		return Event{Kind: KindChanged, Action: "limit", Actor: "configuration", Budget: n.Budget, From: n.Was.String(), To: n.Limit.String(), Unit: n.Unit}, true
	}
	return Event{}, false
}

// finished ends the call's events: one wide line per call.
func (c *call) finished(outcome string, reason Reason, status int) {
	c.rec.call(func(i *CallInfo) { i.Waited, i.Delayed = c.waited, c.delayed })
	if c.t.onEvent == nil {
		return
	}
	c.freshen()
	e := Event{Kind: KindFinished, Outcome: outcome, Reason: reason, Status: status, Attempts: c.attempt, Wait: c.waited,
		Delay: c.delayed, Took: c.now.Sub(c.start), Left: c.left, Cost: c.cost, Unit: c.quote.Unit, Nested: c.nested}
	if c.holding {
		e.Pending = 1
	}
	c.emit(&e)
}

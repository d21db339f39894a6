package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/outlay-go/outlay/budget"
)

func contextCause(c *call) error { return context.Cause(c.ctx) }

// logEnd writes the line of the call; broke says that its answer broke off. It holds names
// of the configuration, numbers and words of closed lists: never a URL, a query, a header, a
// body or a key.
func (c *call) logEnd(broke bool) {
	level := slog.LevelInfo
	if c.refused != nil {
		level = slog.LevelWarn
	}
	ctx := c.in.Context()
	if !c.g.log.Enabled(ctx, level) {
		return
	}
	s := c.seen()
	a := make(line, 0, 24)
	a.text("call", c.id().String())
	if c.up != nil {
		a.text("provider", c.up.Name)
		a.text("route", cmp.Or(c.route, "/"))
	}
	a.text("caller", c.who.caller)
	a.text("tenant", c.who.tenant)
	a.text("method", method(c.in.Method))
	if status := c.w.status; status != 0 {
		if c.refused != nil && c.refused.reason == reasonLeft {
			status = statusCallerLeft
		}
		a = append(a, slog.Int("status", status))
	}
	if c.refused != nil {
		a.refusal(c.refused)
	} else {
		a.text("reason", string(s.reason))
	}
	a.text("outcome", s.outcome)
	a.text("cut", c.cut(broke))
	a = append(a, slog.Int("attempts", s.attempts))
	a.seconds("waited_s", s.waited)
	a.seconds("upstream_s", s.below)
	a.seconds("took_s", time.Since(c.start))
	if s.hold != 0 || s.cost != 0 {
		a.text("hold", s.hold.String())
		a.text("cost", s.cost.String())
		a.text("unit", s.unit)
		a.text("resolved", s.resolved)
	}
	c.g.log.LogAttrs(ctx, level, "call", a...)
}

// cut says why the caller did not get the whole answer, if it did not: the status alone
// says what the provider answered.
func (c *call) cut(broke bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch cause := contextCause(c); {
	case c.w.slow:
		return "slow_reader"
	case c.left && (c.refused == nil || c.refused.reason != reasonLeft):
		return reasonLeft
	case !broke:
		return ""
	case errors.Is(cause, errIdle):
		return "idle"
	case errors.Is(cause, errAborted):
		return reasonShutdown
	}
	return "upstream"
}

// line is what stands in the line of a call.
type line []slog.Attr

func (a *line) text(key, v string) {
	if v != "" {
		*a = append(*a, slog.String(key, v))
	}
}

// seconds rounds to microseconds.
func (a *line) seconds(key string, d time.Duration) {
	*a = append(*a, slog.Float64(key, d.Round(time.Microsecond).Seconds()))
}

// refusal is why the call was refused, and what a budget had.
func (a *line) refusal(r *refusal) {
	a.text("reason", string(r.reason))
	if e, ok := errors.AsType[*budget.ExceededError](r.err); ok {
		a.text("budget", e.Budget)
		a.text("need", e.Need.String())
		a.text("used", e.Used.String())
		a.text("limit", e.Limit.String())
	}
	if errors.Is(r.err, budget.ErrConflict) {
		a.text("detail", r.err.Error()) // which budget, and what contradicts what
	}
	if !r.retryAt.IsZero() {
		*a = append(*a, slog.Time("retry_at", r.retryAt.UTC()))
	}
}

// method is one that is known, so that nobody writes what he likes into the log.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return m
	}
	return "other"
}

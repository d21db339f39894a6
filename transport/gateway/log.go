package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

func contextCause(c *call) error { return context.Cause(c.ctx) }

// logEnd writes the line of the call. It holds names of the configuration, numbers and
// words of closed lists: never a URL, a query, a header, a body or a key.
func (c *call) logEnd() {
	level := slog.LevelInfo
	if c.refused != nil {
		level = slog.LevelWarn
	}
	ctx := c.in.Context()
	if !c.g.log.Enabled(ctx, level) {
		return
	}
	s := c.seen()
	a := make([]slog.Attr, 0, 16)
	text := func(key, v string) {
		if v != "" {
			a = append(a, slog.String(key, v))
		}
	}
	text("call", c.id().String())
	if c.up != nil {
		text("provider", c.up.Name)
		text("route", cmp.Or(c.route, "/"))
	}
	text("caller", c.who.caller)
	text("tenant", c.who.tenant)
	text("method", method(c.in.Method))
	if status := c.w.status; status != 0 {
		if c.refused != nil && c.refused.reason == reasonLeft {
			status = statusCallerLeft
		}
		a = append(a, slog.Int("status", status))
	}
	if c.refused != nil {
		text("reason", string(c.refused.reason))
		text("budget", budgetOf(c.refused.err))
	} else {
		text("reason", string(s.reason))
	}
	text("outcome", s.outcome)
	a = append(a, slog.Int("attempts", s.attempts), slog.Duration("waited", s.waited.Round(time.Microsecond)),
		slog.Duration("upstream", s.below.Round(time.Microsecond)), slog.Duration("took", time.Since(c.start).Round(time.Microsecond)))
	if s.hold != 0 || s.cost != 0 {
		text("hold", s.hold.String())
		text("cost", s.cost.String())
		text("unit", s.unit)
		text("resolved", s.resolved)
	}
	c.g.log.LogAttrs(ctx, level, "call", a...)
}

// method is one that is known, so that nobody writes what he likes into the log.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return m
	}
	return "other"
}

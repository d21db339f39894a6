package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
)

// logger writes as the configuration says.
func logger(c gateway.LogChoice, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[c.Level]}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// callLogger is that of the calls: all of them, only refusals, or none.
func callLogger(l *slog.Logger, c gateway.LogChoice) *slog.Logger {
	switch c.Calls {
	case "refusals":
		return slog.New(atLeast{l.Handler(), slog.LevelWarn})
	case "none":
		return slog.New(atLeast{l.Handler(), slog.LevelError})
	}
	return l
}

// eventLogger logs the events that have no line of a call: that tells of a refusal already,
// unless no calls are logged.
func eventLogger(l *slog.Logger, c gateway.LogChoice) func(context.Context, transport.Event) {
	all := transport.LogTo(l, transport.LogOptions{})
	if c.Calls == "none" {
		return all
	}
	return func(ctx context.Context, e transport.Event) {
		if e.Kind != transport.KindRefused {
			all(ctx, e)
		}
	}
}

// atLeast drops what is below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(a), h.level}
}
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}

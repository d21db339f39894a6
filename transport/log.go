package transport

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// LogOptions sets what [LogTo] writes. The zero value is usable.
type LogOptions struct {
	// Calls is the level of the one line per finished call. Nil: slog.LevelDebug.
	Calls slog.Leveler
	// Every bounds repeated lines: of one message, provider, store, reason and budget the
	// first is written at once, then one per Every, with the number of those left out.
	// Zero: 10 s. Lines below INFO, finished calls, changes, thresholds and corrections are
	// never left out, nor that a store works again after a line that it failed.
	Every time.Duration
}

// LogTo returns a hook for Config.OnEvent that writes events to l, with the call's
// context. Messages are constant; durations are seconds, amounts decimal strings.
func LogTo(l *slog.Logger, o LogOptions) func(context.Context, Event) {
	if o.Calls == nil {
		o.Calls = slog.LevelDebug
	}
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	f := &flood{every: o.Every, lines: map[floodKey]*floodLine{}}
	return func(ctx context.Context, e Event) {
		level, msg := e.line(o.Calls.Level())
		if msg == "" || !l.Enabled(ctx, level) {
			return
		}
		attrs := e.attrs()
		if level >= slog.LevelInfo && !e.always() {
			suppressed, ok := f.pass(msg, &e)
			if !ok {
				return
			}
			if suppressed > 0 {
				attrs = append(attrs, slog.Int("suppressed", suppressed))
			}
		}
		l.LogAttrs(ctx, level, msg, attrs...)
	}
}

// always reports whether every single event of its sort is worth a line.
func (e Event) always() bool {
	switch e.Kind {
	case KindFinished, KindChanged, KindThreshold:
		return true
	case KindResolved:
		return e.Outcome == "corrected"
	}
	return false
}

// line gives the level and the message of an event.
func (e Event) line(calls slog.Level) (slog.Level, string) {
	switch e.Kind {
	case KindWaiting:
		return pick(e.Expected >= time.Second, slog.LevelInfo, slog.LevelDebug), "call waits"
	case KindStarted:
		return slog.LevelDebug, "attempt started"
	case KindAnswered:
		return pick(e.Resends > 0, slog.LevelWarn, slog.LevelDebug), "attempt answered"
	case KindThrottled:
		return slog.LevelWarn, "provider throttles"
	case KindGate:
		return slog.LevelWarn, "gate closed"
	case KindLearned:
		return slog.LevelDebug, "limit learned"
	case KindRetrying:
		return slog.LevelInfo, "attempt repeated"
	case KindResolved:
		return e.resolvedLine()
	case KindRefused:
		return slog.LevelWarn, "call refused"
	case KindWouldRefuse:
		return slog.LevelInfo, "call would be refused"
	case KindFinished:
		return calls, "call finished"
	case KindUnclosed:
		return slog.LevelWarn, "response body not closed"
	case KindThreshold:
		return pick(e.Percent >= 100, slog.LevelError, pick(e.Percent >= 80, slog.LevelWarn, slog.LevelInfo)), "budget threshold crossed"
	case KindStore:
		if e.Up {
			return slog.LevelInfo, "store reachable again"
		}
		return slog.LevelError, "store operation failed"
	case KindClock:
		return slog.LevelWarn, "clock differs"
	case KindChanged:
		return slog.LevelInfo, "setting changed"
	}
	return 0, ""
}

func (e Event) resolvedLine() (slog.Level, string) {
	switch {
	case e.Overrun > 0:
		return slog.LevelWarn, "cost above hold"
	case e.Outcome == "presumed":
		return slog.LevelWarn, "hold presumed"
	case e.Outcome == "voided":
		return slog.LevelDebug, "hold voided"
	case e.Outcome == "corrected":
		return slog.LevelInfo, "cost corrected"
	}
	return slog.LevelDebug, "hold settled"
}

func pick(yes bool, a, b slog.Level) slog.Level {
	if yes {
		return a
	}
	return b
}

// flood counts the lines that are left out.
type flood struct {
	every time.Duration
	mu    sync.Mutex // guards lines
	lines map[floodKey]*floodLine
}

type floodKey struct {
	msg, provider, store, budget string
	reason                       Reason
}

type floodLine struct {
	last       time.Time
	suppressed int
}

// maxFloodLines bounds the lines remembered; names come from the configuration, so that
// only labels made per request could reach it.
const maxFloodLines = 10_000

func (f *flood) pass(msg string, e *Event) (suppressed int, ok bool) {
	key := floodKey{msg, e.Provider, e.Store, e.Budget, e.Reason}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Kind == KindStore {
		again := floodKey{store: e.Store} // whoever notices it
		if e.Up {
			key = again
		}
		defer func() {
			if ok && !e.Up {
				delete(f.lines, again)
			}
		}()
	}
	l := f.lines[key]
	if l == nil {
		if len(f.lines) >= maxFloodLines {
			clear(f.lines)
		}
		f.lines[key] = &floodLine{last: e.Time}
		return 0, true
	}
	if e.Time.Sub(l.last) < f.every {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed, l.last = l.suppressed, 0, e.Time
	return suppressed, true
}

package dialect

import (
	"strings"
	"time"
)

// hint is a header that asks to wait.
type hint struct {
	key  string
	form Form
}

// hints are the finer headers that everybody may send beside Retry-After.
var hints = [...]hint{{"Retry-After-Ms", DeltaMillis}, {"X-Ms-Retry-After-Ms", DeltaMillis}}

// retryAfter returns the wait that the headers ask for. A finer one tells what
// Retry-After says in whole seconds (the SDKs of OpenAI and Azure ask it first); where
// they differ by more than that, the longest holds: each is a lower bound.
func (c *clock) retryAfter(more []hint) (wait time.Duration, told bool) {
	for _, list := range [...][]hint{more, hints[:]} {
		for _, f := range list {
			d, ok := c.hint(c.h[f.key], f.form)
			wait, told = max(wait, d), told || ok
		}
	}
	d, ok := c.hint(c.h["Retry-After"], Auto)
	if rounded := d - wait; wait == 0 || rounded > time.Second {
		wait = d
	}
	return wait, ok || told
}

// hint reads all values of a field and returns the largest that is valid. Retry-After
// has one value by RFC 9110 section 10.2.3, but proxies join lines with commas, and an
// HTTP-date has a comma of its own.
func (c *clock) hint(lines []string, form Form) (longestWait time.Duration, told bool) {
	for _, line := range lines {
		for line != "" {
			value, rest, _ := strings.Cut(line, ",")
			d, ok := c.hintValue(value, form)
			if !ok {
				date, after, _ := strings.Cut(rest, ",")
				if d, ok = c.hintValue(line[:min(len(value)+1+len(date), len(line))], form); ok {
					rest = after
				}
			}
			longestWait, told = max(longestWait, d), told || ok
			line = rest
		}
	}
	return longestWait, told
}

// hintValue reads one value. A wait that overflows saturates; one between 400 days and
// that is no hint, and neither is an instant that far ahead.
func (c *clock) hintValue(s string, form Form) (time.Duration, bool) {
	s = trim(s)
	n, ok := parseNumber(s)
	if !ok {
		t, ok := parseInstant(s, c.now)
		if !ok {
			return 0, false
		}
		return bounded(c.until(t))
	}
	if d, ok := c.wait(s, form); ok {
		return d, true
	}
	unit := time.Second
	if form == DeltaMillis {
		unit = time.Millisecond
	}
	if n.times(unit) < overflow {
		return 0, false
	}
	return longest, true
}

package dialect

import (
	"net/http"
	"strings"
	"time"
)

// longest is the longest wait that a Reading tells.
const longest = 400 * 24 * time.Hour

// overflow is where a wait in seconds stops to be a number somebody meant
// (RFC 9111 section 1.2.2): it then stands for "very long".
const overflow = (1 << 31) * time.Second

// Form says what a bare number in a reset header is. Text speaks for itself: RFC 3339,
// HTTP-dates and durations such as "6m0s" are read as what they are under every Form.
type Form uint8

// Auto is for providers that nobody has described: a number up to 400 days is a wait in
// seconds; a larger one is an instant, if seconds, milliseconds, microseconds or
// nanoseconds since 1970 put it within 400 days of now; else it is nothing. It cannot
// tell milliseconds to wait from seconds to wait.
const (
	Auto Form = iota
	DeltaSeconds
	DeltaMillis
	EpochSeconds
	EpochMillis
)

// clock turns what the answer says about time into a wait from now.
type clock struct {
	h   http.Header
	now time.Time
	// sent is the Date of the answer, once asked; zero if it tells none.
	sent  instant
	asked bool
}

// date reads the Date of the answer. Most answers need it for nothing, and reading it
// costs more than the limits beside it.
func (c *clock) date() instant {
	if c.asked {
		return c.sent
	}
	c.asked = true
	if date := first(c.h, "Date"); date != "" && !c.cached() {
		c.sent, _ = parseInstant(trim(date), c.now)
	}
	return c.sent
}

// cached reports whether a cache gave the answer: what it says about time and limits
// was true when it was stored.
func (c *clock) cached() bool {
	age := first(c.h, "Age")
	return age != "" && trim(age) != "0"
}

// until returns the time from now to t by the server's own clock, that is by its Date
// header, since nobody knows how wrong ours is. A cached answer has an old Date; and
// where the Date makes the wait absurd, it is the Date that is.
func (c *clock) until(t instant) time.Duration {
	sent := c.date()
	if d := time.Duration(t - sent); sent > 0 && -longest <= d && d <= longest {
		return d
	}
	return time.Duration(t - instantOf(c.now))
}

// wait reads a wait or an instant as a wait that is not negative. It is absent if it is
// longer than 400 days.
func (c *clock) wait(s string, form Form) (time.Duration, bool) {
	s = trim(s)
	n, ok := parseNumber(s)
	if !ok {
		return c.text(s)
	}
	switch form {
	case DeltaSeconds:
		return bounded(n.times(time.Second))
	case DeltaMillis:
		return bounded(n.times(time.Millisecond))
	case EpochSeconds:
		return bounded(c.until(instant(n.times(time.Second))))
	case EpochMillis:
		return bounded(c.until(instant(n.times(time.Millisecond))))
	default:
		return c.guess(n)
	}
}

// text reads an instant or a duration that is no bare number.
func (c *clock) text(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > maxText {
		return 0, false
	}
	if isDigit(s[0]) && strings.IndexByte("smhd", s[len(s)-1]) >= 0 {
		return parseDuration(s)
	}
	t, ok := parseInstant(s, c.now)
	if !ok {
		return 0, false
	}
	return bounded(c.until(t))
}

// parseDuration reads "6m0s", and "1d2h" as well.
func parseDuration(s string) (time.Duration, bool) {
	var days time.Duration
	if n, rest, ok := strings.Cut(s, "d"); ok {
		count, ok := digits(n)
		if days, s = time.Duration(count)*24*time.Hour, rest; !ok {
			return 0, false
		}
	}
	if s == "" {
		return bounded(days)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d > longest {
		return 0, false
	}
	return bounded(days + d)
}

// guess reads a number whose unit nobody declared; see [Auto].
func (c *clock) guess(n number) (time.Duration, bool) {
	if d := n.times(time.Second); d <= longest {
		return d, true
	}
	for unit := time.Second; unit > 0; unit /= 1000 {
		if d := c.until(instant(n.times(unit))); -longest <= d && d <= longest {
			return max(d, 0), true
		}
	}
	return 0, false
}

// bounded clamps a wait that is over to zero and drops one that is absurd.
func bounded(d time.Duration) (time.Duration, bool) {
	if d > longest {
		return 0, false
	}
	return max(d, 0), true
}

// first returns the first line of a field. The key is in canonical form.
func first(h http.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

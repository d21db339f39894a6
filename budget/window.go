package budget

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Period is how long a window of a budget lasts: [Day], [Week], [Month] or
// [Rolling]. It is a plain value; two equal periods have the same windows. The zero
// Period is not valid.
type Period struct {
	kind    kind
	at      time.Duration // the reset hour, for calendar periods
	from    int           // the first day of a month; 0: the first
	rolling time.Duration
}

type kind uint8

const (
	kindDay kind = iota + 1
	kindWeek
	kindMonth
	kindRolling
)

// The calendar periods. A day lasts from midnight to midnight in the budget's zone
// and may have 23, 24 or 25 hours; a week starts on Monday; a month on its first
// day. [Period.At] and [Period.From] move those starts.
var (
	Day   = Period{kind: kindDay}
	Week  = Period{kind: kindWeek}
	Month = Period{kind: kindMonth}
)

// Rolling returns the period of the last d, at any instant. What was spent is counted
// in buckets of d/24 (in whole seconds, rounded up), and a bucket counts until all of
// it is older than d: no stretch of d sees more than the limit, and money becomes
// free at most one bucket later than exact counting would allow.
//
// d is at least one minute and at most 366 days.
func Rolling(d time.Duration) Period { return Period{kind: kindRolling, rolling: d} }

// At returns the period that starts at this time of the day instead of midnight:
// Day.At(6*time.Hour) is a day from 06:00 to 06:00. Where the clock jumps over that
// time it starts with the first instant after it; where the time comes twice, at the
// first.
func (p Period) At(timeOfDay time.Duration) Period {
	p.at = timeOfDay
	return p
}

// From returns the month that starts on this day: Month.From(15) lasts from the 15th
// to the 14th. In a month without day 29, 30 or 31 it starts on the last day.
func (p Period) From(day int) Period {
	p.from = day
	return p
}

// String returns the period as "day", "week", "month from 15", "day@6h0m0s" or
// "rolling 24h0m0s".
func (p Period) String() string {
	s := "none"
	switch p.kind {
	case kindDay:
		s = "day"
	case kindWeek:
		s = "week"
	case kindMonth:
		s = "month"
	case kindRolling:
		s = "rolling " + p.rolling.String()
	}
	if p.from != 0 {
		s += fmt.Sprintf(" from %d", p.from)
	}
	if p.at != 0 {
		s += "@" + p.at.String()
	}
	return s
}

// ParsePeriod reads what [Period.String] wrote, for ledgers that know a budget from their
// books only. Any other text is the zero Period, or one that is not valid.
func ParsePeriod(s string) Period {
	if d, ok := strings.CutPrefix(s, "rolling "); ok {
		length, _ := time.ParseDuration(d)
		return Rolling(length)
	}
	name, at, _ := strings.Cut(s, "@")
	name, from, _ := strings.Cut(name, " from ")
	p := map[string]Period{"day": Day, "week": Week, "month": Month}[name]
	if day, err := strconv.Atoi(from); err == nil {
		p = p.From(day)
	}
	if timeOfDay, err := time.ParseDuration(at); err == nil {
		p = p.At(timeOfDay)
	}
	return p
}

// check says what is wrong with the period.
func (p Period) check() error {
	switch {
	case p.kind == 0:
		return errors.New("must be Day, Week, Month or Rolling")
	case p.kind != kindMonth && p.from != 0:
		return fmt.Errorf("only a month has a first day (From), not %v", p)
	case p.from < 0 || p.from > 31:
		return fmt.Errorf("the first day of a month must be 1 to 31, not %d", p.from)
	case p.kind == kindRolling && p.at != 0:
		return errors.New("a rolling period has no time of day (At)")
	case p.at < 0 || p.at >= 24*time.Hour || p.at%time.Second != 0:
		return fmt.Errorf("the time of day must be whole seconds from 0 to 23h59m59s, not %v", p.at)
	case p.kind == kindRolling && (p.rolling < time.Minute || p.rolling > 366*24*time.Hour):
		return fmt.Errorf("a rolling period must be 1 minute to 366 days, not %v", p.rolling)
	}
	return nil
}

// Window is one period of a budget: from Start (included) to End (not included)
// everything spent counts against one limit.
type Window struct {
	// ID names the window within its budget: "2026-11-01", "2026-W45", "2026-11",
	// "2026-11-15" for a month from another day than the first. For a rolling period
	// it names the bucket that is charged, by its start: "2026-11-01T23:00:00Z". IDs
	// of one budget sort by time.
	ID         string
	Start, End time.Time
	// Oldest is the ID of the first window that counts against the same limit: of
	// the oldest bucket of a rolling period, else equal to ID. What is used is the
	// sum over all windows of the budget from Oldest to ID.
	Oldest string
}

// Window returns the window of p that contains t in a zone (nil: UTC). It depends on
// nothing else, so all who ask agree. An invalid period has no windows: it returns
// the zero Window.
//
// Start is the first instant whose local date and time is not before the nominal
// start, found in the zone's own rules: days without a midnight, or with two, and
// dates that never existed come out right.
func (p Period) Window(t time.Time, zone *time.Location) Window {
	if p.check() != nil {
		return Window{}
	}
	if p.kind == kindRolling {
		return p.bucket(t)
	}
	if zone == nil {
		zone = time.UTC
	}
	y, m, d := t.In(zone).Add(-p.at).Date()
	n := p.index(y, m, d)
	for n--; !p.start(n+1, zone).After(t); n++ { // n: the last that started by t
	}
	for p.start(n, zone).After(t) {
		n--
	}
	id := p.id(n)
	return Window{ID: id, Oldest: id, Start: p.start(n, zone), End: p.start(n+1, zone)}
}

// Window returns the window of b that contains t.
func (b Budget) Window(t time.Time) Window { return b.Every.Window(t, b.Zone) }

// Advance returns where a ledger whose current window of a budget is w goes when its
// clock asks for the window next. It never goes back by one window, and a rolling
// period never by less than its length: there the clock was set back a little, and
// what is current stays. A larger step back means that an earlier step forward was
// wrong, and it goes back; the totals of that window are still known, so nothing is
// funded twice. The zero Window is no window yet.
func (w Window) Advance(next Window) Window {
	if next.End.Before(w.End) && !next.End.Before(w.Start) {
		return w
	}
	return next
}

// buckets is how many buckets a rolling period has, beside the one being filled.
const buckets = 24

// bucketLen is the length of a bucket: rounded up, so that all of them together are
// never shorter than the period.
func (p Period) bucketLen() time.Duration {
	d := (p.rolling + buckets - 1) / buckets
	return (d + time.Second - 1).Truncate(time.Second)
}

func (p Period) bucket(t time.Time) Window {
	size := int(p.bucketLen() / time.Second)
	n := floorDiv(int(t.Unix()), size)
	at := func(n int) time.Time { return time.Unix(int64(n*size), 0).UTC() }
	return Window{
		ID:     at(n).Format(time.RFC3339),
		Oldest: at(n - buckets).Format(time.RFC3339),
		Start:  at(n - buckets),
		End:    at(n + 1),
	}
}

// index numbers the windows of a calendar period: days and weeks from 1970, months
// from the year 0.
func (p Period) index(y int, m time.Month, d int) int {
	if p.kind == kindMonth {
		return 12*y + int(m) - 1
	}
	days := int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 3600))
	if p.kind == kindWeek {
		return floorDiv(days+3, 7) // 1970-01-01 was a Thursday
	}
	return days
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// date is the nominal first day of window n, as if in UTC.
func (p Period) date(n int) time.Time {
	switch p.kind {
	case kindMonth:
		first := time.Date(n/12, time.Month(n%12+1), 1, 0, 0, 0, 0, time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		return first.AddDate(0, 0, min(cmp.Or(p.from, 1), last)-1)
	case kindWeek:
		return time.Unix(int64(n*7-3)*24*3600, 0).UTC()
	default:
		return time.Unix(int64(n)*24*3600, 0).UTC()
	}
}

func (p Period) id(n int) string {
	date := p.date(n)
	switch {
	case p.kind == kindWeek:
		y, w := date.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", y, w)
	case p.kind == kindMonth && p.from <= 1:
		return date.Format("2006-01")
	default:
		return date.Format(time.DateOnly)
	}
}

func (p Period) start(n int, zone *time.Location) time.Time {
	return firstInstant(p.date(n).Add(p.at), zone)
}

// firstInstant returns the first instant whose local date and time in zone is not
// before wall, which is given as if in UTC. time.Date does not: for a midnight that
// was skipped it returns an instant of the day before, and it steps over dates that
// never existed.
func firstInstant(wall time.Time, zone *time.Location) time.Time {
	t := wall.Add(-48 * time.Hour).In(zone) // before wall in every zone
	for {
		_, offset := t.Zone()
		begin, end := t.ZoneBounds()
		first := wall.Add(-time.Duration(offset) * time.Second)
		if first.Before(begin) {
			first = begin
		}
		if end.IsZero() || first.Before(end) {
			return first.UTC()
		}
		t = end
	}
}

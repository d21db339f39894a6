package dialect

import (
	"math"
	"slices"
	"strings"
	"time"
)

// instant is the time since the beginning of 1970, within [0, math.MaxInt64]. What lies
// outside saturates, which makes it long past or absurdly far.
type instant time.Duration

func instantOf(t time.Time) instant {
	if sec := t.Unix(); sec < 0 || sec >= math.MaxInt64/int64(time.Second) {
		return seconds(sec)
	}
	return instant(t.UnixNano())
}

// seconds returns the instant sec seconds after the beginning of 1970.
func seconds(sec int64) instant {
	return instant(number{whole: max(sec, 0)}.times(time.Second))
}

// maxText bounds what may be an instant or a duration; JavaScript's are the longest.
const maxText = 80

// parseInstant reads an instant written as text: the three HTTP-dates of RFC 9110
// section 5.6.7 and what servers make of them ("UTC" or "+0000" for GMT, a day of one
// digit, JavaScript's Date), RFC 3339, and ISO 8601 without seconds (Jira) or without
// the colon in the zone.
func parseInstant(s string, now time.Time) (instant, bool) {
	if len(s) > maxText {
		return 0, false
	}
	if len(s) == len("Sun, 06 Nov 1994 08:49:37 GMT") {
		if t, ok := parseFixdate(s); ok {
			return t, true
		}
	}
	if len(s) < len("2006-01-02T15:04Z") || s[4] != '-' || s[10]|0x20 != 't' {
		return parseDate(s, now)
	}
	s = strings.ToUpper(s) // RFC 3339 section 5.6 allows "t" and "z"
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return instantOf(t), true
		}
	}
	return 0, false
}

// parseFixdate reads "Sun, 06 Nov 1994 08:49:37 GMT", the form of nearly every Date
// header, in a fraction of the time of [time.Parse].
func parseFixdate(s string) (instant, bool) {
	if s[3:5] != ", " || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[25:] != " GMT" {
		return 0, false
	}
	day, ok1 := digits(s[5:7])
	year, ok2 := digits(s[12:16])
	clock, ok3 := parseClock(s[17:25])
	if !ok1 || !ok2 || !ok3 {
		return 0, false
	}
	return date(year, monthOf(s[8:11]), day, clock)
}

// parseDate reads the other forms word by word. A zone with a name other than GMT or
// UTC is refused: nobody can say which offset "IST" means.
func parseDate(s string, now time.Time) (instant, bool) {
	var month time.Month
	day, year, clock, offset := -1, -1, -1, 0
	for i, word := range dateWords(s) {
		n, number := digits(word)
		c, isClock := parseClock(word)
		zone, isZone := parseZone(word)
		switch {
		case word[0] == '(' && clock >= 0: // the name of the zone, for people
			return date(year, month, day, clock-offset)
		case number && len(word) <= 2 && day < 0:
			day = n
		case number && len(word) == 2 && year < 0:
			year = century(n, now)
		case number && len(word) == 4 && year < 0:
			year = n
		case isClock && clock < 0:
			clock = c
		case month == 0 && monthOf(word) != 0:
			month = monthOf(word)
		case isZone && clock >= 0:
			offset = zone
		case i == 0 && isWeekday(word):
		default:
			return 0, false
		}
	}
	return date(year, month, day, clock-offset)
}

// dateWords parts a date at spaces, commas, and the hyphens of "06-Nov-94".
func dateWords(s string) []string {
	var words []string
	for _, word := range strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == ',' }) {
		if parts := strings.Split(word, "-"); len(parts) == 3 && !slices.Contains(parts, "") {
			words = append(words, parts...)
			continue
		}
		words = append(words, word)
	}
	return words
}

// century puts a year of two digits at most 50 years ahead (RFC 9110 section 5.6.7).
func century(yy int, now time.Time) int {
	year := now.Year() - now.Year()%100 + yy
	switch {
	case year > now.Year()+50:
		return year - 100
	case year <= now.Year()-50:
		return year + 100
	default:
		return year
	}
}

// date puts the parts together, if they are a date. The clock is in seconds.
func date(year int, month time.Month, day, clock int) (instant, bool) {
	if year < 0 || month == 0 || day < 1 || day > daysIn(year, month) || clock < -maxOffset {
		return 0, false
	}
	// Days since 1970 in the Gregorian calendar, with years that begin in March.
	y, m := year, (int(month)+9)%12
	if month <= time.February {
		y--
	}
	days := 365*y + y/4 - y/100 + y/400 + (153*m+2)/5 + day - 1 - 719468
	return seconds(int64(days)*86400 + int64(clock)), true
}

func daysIn(year int, month time.Month) int {
	if month == time.February {
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 + int(month+month>>3)&1
}

// parseClock reads "08:49:37" as seconds. A leap second is the next minute's first.
func parseClock(s string) (int, bool) {
	i := len(s) - len(":49:37")
	if i < 1 || i > 2 || s[i] != ':' || s[i+3] != ':' {
		return -1, false
	}
	h, ok1 := digits(s[:i])
	m, ok2 := digits(s[i+1 : i+3])
	sec, ok3 := digits(s[i+4:])
	return h*3600 + m*60 + sec, ok1 && ok2 && ok3 && h <= 23 && m <= 59 && sec <= 60
}

// maxOffset is how far a zone may be from UTC, in seconds.
const maxOffset = 14 * 3600

// parseZone reads "GMT", "UTC", "+0000" and "GMT+0100" as seconds.
func parseZone(s string) (int, bool) {
	s = strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(s), "GMT"), "UTC")
	if s == "" || s == "Z" {
		return 0, true
	}
	if len(s) != 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	n, ok := digits(s[1:])
	offset := n/100*3600 + n%100*60
	if s[0] == '-' {
		offset = -offset
	}
	return offset, ok && -maxOffset <= offset && offset <= maxOffset
}

// digits reads at most four digits.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return -1, false
	}
	n := 0
	for i := range len(s) {
		if !isDigit(s[i]) {
			return -1, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// monthOf returns the month that s is short for in whatever case, or 0.
func monthOf(s string) time.Month {
	if len(s) != 3 {
		return 0
	}
	i := strings.Index(months, s)
	if i < 0 {
		i = strings.Index(months, strings.ToUpper(s[:1])+strings.ToLower(s[1:]))
	}
	if i < 0 || i%3 != 0 {
		return 0
	}
	return time.Month(i/3 + 1)
}

func isWeekday(s string) bool {
	for d := range time.Weekday(7) {
		if name := d.String(); strings.EqualFold(s, name) || strings.EqualFold(s, name[:3]) {
			return true
		}
	}
	return false
}

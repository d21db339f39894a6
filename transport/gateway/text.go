package gateway

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// The forms in which a file writes rates, amounts, durations and the like. Each has one
// form, and each function's error says what to write instead. A number alone is never
// enough: its unit is what people get wrong.

// oneOf returns a function that reads one of some words.
func oneOf(words ...string) func(what, text string) (string, error) {
	return func(what, text string) (string, error) {
		for _, w := range words {
			if w == text {
				return w, nil
			}
		}
		if hint := suggestion(text, words, nil); hint != "" {
			return "", fmt.Errorf("%s %s is not known: did you mean %q?", what, show(text), hint)
		}
		return "", fmt.Errorf("%s %s is not known: write %s", what, show(text), orList(words))
	}
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func parseText(_, text string) (string, error) { return text, nil }

func parseBool(what, text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s %s is neither true nor false", what, show(text))
}

// wholeFrom returns a function that reads a whole number within bounds.
func wholeFrom(least, most int) func(what, text string) (int, error) {
	return func(what, text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%s %s must be a whole number from %d to %d", what, show(text), least, most)
		}
		return n, nil
	}
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func parseDuration(what, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch number, days := strings.CutSuffix(text, "d"); {
	case text == "0":
		return 0, fmt.Errorf("%s %s has no unit: write 0s", what, show(text))
	case isDigits(strings.Replace(text, ".", "", 1)):
		return 0, fmt.Errorf("%s %s has no unit: write %ss, or %sms", what, show(text), text, text)
	case days && isDigits(number) && len(number) < 4:
		n, _ := strconv.Atoi(number)
		return 0, fmt.Errorf("%s %s: days differ in length; write %dh", what, show(text), 24*n)
	case err != nil:
		return 0, fmt.Errorf("%s %s is no duration: write one such as 20s or 1m30s", what, show(text))
	case d < 0:
		return 0, fmt.Errorf("%s %s must not be negative", what, show(text))
	}
	return d, nil
}

// positive is parseDuration for what zero would make senseless.
func positive(what, text string) (time.Duration, error) {
	d, err := parseDuration(what, text)
	if err == nil && d == 0 {
		err = fmt.Errorf("%s %s must be more than zero: leave the key out for its default", what, show(text))
	}
	return d, err
}

// parseWait reads a max_wait, where 0s means: start now or fail.
func parseWait(what, text string) (time.Duration, error) {
	d, err := parseDuration(what, text)
	if err == nil && d == 0 {
		return -1, nil
	}
	return d, err
}

func parseSize(what, text string) (int64, error) {
	units := []struct {
		suffix string
		shift  uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			if err != nil || n < 1 || n > math.MaxInt64>>u.shift {
				break
			}
			return n << u.shift, nil
		}
	}
	if isDigits(text) {
		return 0, fmt.Errorf("%s %s has no unit: write %sKiB or %sMiB", what, show(text), text, text)
	}
	return 0, fmt.Errorf("%s %s is no size: write one such as 512KiB or 32MiB", what, show(text))
}

func parsePercent(what, text string) (int, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case !ok && isDigits(text):
		return 0, fmt.Errorf("%s %s has no unit: write %s%%", what, show(text), text)
	case !ok || err != nil || n < 1 || n > 1000:
		return 0, fmt.Errorf("%s %s is no percentage: write one such as 80%%", what, show(text))
	}
	return n, nil
}

// periods are the units of a rate.
var periods = map[string]time.Duration{"s": time.Second, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// rateUnits are other spellings.
var rateUnits = map[string]string{
	"sec": "s", "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "m": "min", "h": "hour", "hours": "hour", "d": "day", "days": "day", "month": "",
}

// parseRate reads "10/s", "600/min burst 20", "1000/day strict" and "300/15m".
func parseRate(what, text string) (throttle.Rate, error) {
	bad := func(format string, args ...any) (throttle.Rate, error) {
		return throttle.Rate{}, fmt.Errorf("%s %s "+format, append([]any{what, show(text)}, args...)...)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return bad("is empty: write 10/s, 10/min or 10/day")
	}
	number, unit, ok := strings.Cut(words[0], "/")
	switch {
	case isDigits(text):
		return bad("has no unit: write %s/s, %s/min or %s/day", text, text, text)
	case !ok && isDigits(number) && len(words) > 1 && (words[1] == "rps" || words[1] == "qps"), strings.HasSuffix(number, "rps") && isDigits(strings.TrimSuffix(number, "rps")):
		return bad("is not how a rate is written: write %s/s", strings.TrimSuffix(number, "rps"))
	case !ok || !isDigits(number):
		return bad("is no rate: write a whole number and a period, such as 10/s, 600/min or 1000/day")
	}
	n, err := strconv.Atoi(number)
	if err != nil || n > math.MaxInt32 {
		return bad("is too large")
	}
	if n == 0 {
		return bad("lets nothing through: leave it out for no limit; frozen: true blocks everything")
	}
	r := throttle.Rate{N: n, Per: periods[unit]}
	if d, err := time.ParseDuration(unit); r.Per == 0 && err == nil && d > 0 {
		r.Per = d
	}
	if r.Per == 0 {
		if hint := rateUnits[unit]; hint != "" {
			return bad("has an unknown period: write %d/%s", n, hint)
		}
		return bad("has an unknown period: write /s, /min, /hour, /day, or a duration such as /15m")
	}
	if err := burst(&r, words[1:]); err != nil {
		return bad("%w", err)
	}
	if err := r.Validate(); err != nil {
		return bad("cannot be: %w", err)
	}
	return r, nil
}

// burst reads what may follow a rate.
func burst(r *throttle.Rate, words []string) error {
	for len(words) > 0 {
		switch {
		case words[0] == "strict":
			r.Strict, words = true, words[1:]
		case words[0] == "burst" && len(words) > 1 && isDigits(words[1]):
			n, err := strconv.Atoi(words[1])
			if err != nil || n < 1 || n > math.MaxInt32 {
				return errors.New("has a burst that lets nothing start: write burst 1 or more")
			}
			if r.Burst > 0 {
				return errors.New("has two bursts: write one")
			}
			r.Burst, words = n, words[2:]
		default:
			return fmt.Errorf("goes on with %s: after the rate only \"burst 20\" and \"strict\" may follow", show(words[0]))
		}
	}
	return nil
}

// money is an amount with its unit: a currency, or budget.Calls.
type money struct {
	amount budget.Amount
	unit   string
}

// parseMoney reads "50 USD" and "0.0083 EUR".
func parseMoney(what, text string) (money, error) {
	bad := func(format string, args ...any) (money, error) {
		return money{}, fmt.Errorf("%s %s "+format, append([]any{what, show(text)}, args...)...)
	}
	number, unit, two := strings.Cut(strings.TrimSpace(text), " ")
	unit = strings.TrimSpace(unit)
	plain := strings.Trim(number, "0123456789.") == ""
	switch {
	case !two && plain && number != "":
		return bad("has no currency: write %s USD", number)
	case strings.ContainsAny(number, "$€£"):
		return bad("has a sign for its currency: write %s", strings.TrimSpace(strings.Trim(number, "$€£")+" "+signs(number)))
	case strings.HasPrefix(number, "-"), strings.HasPrefix(number, "+"):
		return bad("has a sign: write an amount such as 50 USD")
	case strings.Contains(number, ","):
		return bad("has a comma: write 1000.50 USD, with a point and no separators")
	case strings.ContainsAny(number, "eE") && strings.Trim(number, "0123456789.eE-+") == "":
		return bad("has an exponent: write it out, such as 0.001 USD")
	case !two && strings.Trim(number, "0123456789.") == strings.TrimLeft(number, "0123456789.") && len(number) > 3 && plainPrefix(number) != "":
		return bad("needs a space: write %s %s", plainPrefix(number), strings.ToUpper(strings.TrimLeft(number, "0123456789.")))
	case !plain || number == "":
		return bad("is no amount: write one such as 50 USD")
	}
	a, err := budget.Parse(number)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": amount ")
		_, why, _ = strings.Cut(why, ": ")
		return bad("cannot be kept: %s", why)
	}
	if unit == budget.Calls || unit == "call" {
		return money{a, budget.Calls}, nil
	}
	if len(unit) != 3 || strings.Trim(unit, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		if up := strings.ToUpper(unit); len(unit) == 3 && strings.Trim(up, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return bad("has its currency in small letters: write %s %s", number, up)
		}
		return bad("has an unknown currency: write three letters, such as 50 USD or 50 EUR")
	}
	return money{a, unit}, nil
}

func plainPrefix(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789."))] }

func signs(s string) string {
	switch {
	case strings.Contains(s, "€"):
		return "EUR"
	case strings.Contains(s, "£"):
		return "GBP"
	}
	return "USD"
}

// parsePrice is parseMoney for what a thing costs.
func parsePrice(what, text string) (money, error) {
	m, err := parseMoney(what, text)
	if err == nil && m.unit == budget.Calls {
		err = fmt.Errorf("%s %s is no price: write an amount of money, such as 0.005 USD", what, show(text))
	}
	return m, err
}

// perMillion reads "0.15 USD per 1M", the price of tokens.
func perMillion(what, text string) (money, error) {
	amount, ok := strings.CutSuffix(text, " per 1M")
	if !ok {
		return money{}, fmt.Errorf("%s %s does not say for how many tokens: write it as 0.15 USD per 1M", what, show(text))
	}
	return parsePrice(what, amount)
}

// parseClock reads a time of day.
func parseClock(what, text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%s %s is no time of day: write one in quotes, such as \"06:00\"", what, show(text))
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// parseZone reads the name of a time zone.
func parseZone(what, text string) (*time.Location, error) {
	if text == "UTC" {
		return time.UTC, nil
	}
	if z, err := time.LoadLocation(text); err == nil && text != "" && text != "Local" && (strings.Contains(text, "/") || zones[text] == "") {
		return z, nil
	}
	_, err := time.LoadLocation(text)
	switch hint := zoneHint(text); {
	case hint != "" && err == nil && text != "":
		return nil, fmt.Errorf("%s %s is an abbreviation, which means several things: did you mean %s?", what, show(text), hint)
	case hint != "":
		return nil, fmt.Errorf("%s %s is not an IANA name: did you mean %s?", what, show(text), hint)
	case strings.HasPrefix(text, "UTC") || strings.HasPrefix(text, "GMT") || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-"):
		return nil, fmt.Errorf("%s %s is an offset, which knows no summer time: write a city such as Europe/Berlin, or UTC", what, show(text))
	}
	return nil, fmt.Errorf("%s %s is not an IANA name: write one such as Europe/Berlin or America/New_York", what, show(text))
}

// parsePath reads the first segment below which a provider is found.
func parsePath(what, text string) (string, error) {
	segment := strings.Trim(text, "/")
	if !strings.HasPrefix(text, "/") || strings.Contains(segment, "/") || segment == "" || strings.Trim(segment, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") != "" || strings.Trim(segment, ".") == "" {
		return "", textError("%s %s must be one segment of letters, digits, _, . and -, such as /twilio", what, show(text))
	}
	return segment, nil
}

// parseRoute reads a pattern of a route.
func parseRoute(what, text string) (string, error) {
	if err := addPattern(http.NewServeMux(), text); err != nil {
		return "", textError("%s %s: %s", what, show(text), err)
	}
	return text, nil
}

// parseHost reads a name under which programs call.
func parseHost(what, text string) (string, error) {
	if !parseHostOnly(text) {
		return "", textError("%s %s is no host name: write it without scheme, port and path, such as gateway.internal", what, show(text))
	}
	return strings.ToLower(text), nil
}

func parseHostOnly(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	return text != "" && len(text) <= 253 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == "" && strings.Trim(text, ".-") == text
}

package dialect

import (
	"math"
	"math/bits"
	"time"
)

// number is a decimal without sign and exponent: the grammar of a header is narrower
// than that of strconv, which takes "NaN", "1e300", "0x10" and "1_000".
type number struct {
	whole int64 // saturates at math.MaxInt64
	nano  int64 // the fraction in billionths, rounded up
}

// parseNumber reads "30", "2.0" and ".5".
func parseNumber(s string) (number, bool) {
	var n number
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if i < 18 { // cannot overflow
			n.whole = n.whole*10 + int64(s[i]-'0')
		} else {
			n.whole = appendDigit(n.whole, s[i])
		}
	}
	if i == len(s) {
		return n, i > 0
	}
	if s[i] != '.' || i+1 == len(s) {
		return number{}, false
	}
	nano, ok := parseFraction(s[i+1:])
	n.nano = nano
	return n, ok
}

// parseFraction reads the digits behind the point as billionths, rounded up.
func parseFraction(s string) (nano int64, ok bool) {
	more := false
	for i := range max(len(s), 9) {
		switch {
		case i < len(s) && !isDigit(s[i]):
			return 0, false
		case i >= len(s):
			nano *= 10
		case i < 9:
			nano = nano*10 + int64(s[i]-'0')
		default:
			more = more || s[i] != '0'
		}
	}
	if more {
		nano++
	}
	return nano, true
}

// times returns n units of at most a second, rounded up, or math.MaxInt64 where that
// overflows.
func (n number) times(unit time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(n.whole), uint64(unit))
	if high > 0 || low > math.MaxInt64-uint64(time.Second) {
		return math.MaxInt64
	}
	if n.nano > 0 {
		low += uint64((n.nano*int64(unit) + int64(time.Second) - 1) / int64(time.Second))
	}
	return time.Duration(low)
}

// parseCount reads how many are allowed or left: the first number of a list such as
// "100, 100;w=60", its fraction cut ("599.0"). Negative values are sentinels for
// "no such limit" (Azure sends -1) and count as absent.
func parseCount(s string) (int64, bool) {
	for i := range len(s) {
		if s[i] == ',' || s[i] == ';' {
			s = s[:i]
			break
		}
	}
	n, ok := parseNumber(trim(s))
	return n.whole, ok
}

// appendDigit returns n*10 plus the digit, saturated.
func appendDigit(n int64, digit byte) int64 {
	d := int64(digit - '0')
	if n > (math.MaxInt64-d)/10 {
		return math.MaxInt64
	}
	return n*10 + d
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// trim cuts optional white space (RFC 9110 section 5.6.3).
func trim(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

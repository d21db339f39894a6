package budget

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Amount is an amount of money (or of calls) in 10^-9 of its unit. It holds every
// amount up to 9,223,372,036.854775807 units exactly: $0.15 per million tokens is
// 150 for one token.
//
// As text, and so in JSON, it is a decimal string such as "0.0083".
type Amount int64

// Unit is one whole unit: 50*budget.Unit is 50 dollars, or 50 calls.
const Unit Amount = 1e9

// digits is how many decimal places an Amount has.
const digits = 9

// errOverflow says that an amount does not fit.
var errOverflow = errors.New("more than 9223372036.854775807")

// Parse reads an amount such as "0.0083" or "50" exactly. It takes decimal digits
// with at most one point between them, and no sign, exponent, space or separator.
// Text that an Amount cannot hold exactly is an error: more than nine decimal places
// (see [ParseUp]), or more than the largest amount.
func Parse(s string) (Amount, error) {
	a, exact, err := parse(s)
	if err == nil && !exact {
		err = fmt.Errorf("more than %d decimal places", digits)
	}
	if err != nil {
		return 0, amountError(s, err)
	}
	return a, nil
}

// ParseUp is [Parse] for prices with more than nine decimal places: what is beyond
// them is rounded up, so that a hold is never below the price.
func ParseUp(s string) (Amount, error) {
	a, exact, err := parse(s)
	if err == nil && !exact {
		a, err = a.Add(1)
	}
	if err != nil {
		return 0, amountError(s, err)
	}
	return a, nil
}

// MustParse is [Parse] for amounts written in the program. It panics on an error.
func MustParse(s string) Amount {
	a, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return a
}

func amountError(s string, err error) error {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return fmt.Errorf("budget: amount %q: %w", s, err)
}

// parse reads s rounded down, and reports whether that was exact.
func parse(s string) (a Amount, exact bool, err error) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || (point && fraction == "") {
		return 0, false, errors.New("not a decimal number such as 0.0083")
	}
	kept, rest := fraction, ""
	if len(fraction) > digits {
		kept, rest = fraction[:digits], fraction[digits:]
	}
	for _, part := range []string{whole, kept} {
		if a, err = a.shift(part); err != nil {
			return 0, false, err
		}
	}
	if a, err = a.shift("000000000"[len(kept):]); err != nil {
		return 0, false, err
	}
	_, err = Amount(0).shift(strings.Trim(rest, "0123456789"))
	return a, strings.Trim(rest, "0") == "", err
}

// shift appends decimal digits to a.
func (a Amount) shift(digits string) (Amount, error) {
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, errors.New("not a decimal number such as 0.0083")
		}
		d := Amount(c - '0')
		if a > (math.MaxInt64-d)/10 {
			return 0, errOverflow
		}
		a = a*10 + d
	}
	return a, nil
}

// String returns the amount as a decimal number without loss, exponent or needless
// zeros, such as "0.0083", "50" or "-1.5".
func (a Amount) String() string {
	var buf [21]byte
	return string(a.appendTo(buf[:0]))
}

func (a Amount) appendTo(b []byte) []byte {
	n := uint64(a)
	if a < 0 {
		b, n = append(b, '-'), -n // right for the lowest amount too
	}
	b = fmt.Appendf(b, "%d.%09d", n/uint64(Unit), n%uint64(Unit))
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	return b
}

// MarshalText writes what [Amount.String] does.
func (a Amount) MarshalText() ([]byte, error) { return a.appendTo(nil), nil }

// UnmarshalText reads what [Parse] does, and a leading minus sign: an overdrawn
// budget has a negative amount left, and what was written comes back.
func (a *Amount) UnmarshalText(text []byte) error {
	s, negative := strings.CutPrefix(string(text), "-")
	if s == "9223372036.854775808" && negative {
		*a = math.MinInt64
		return nil
	}
	v, err := Parse(s)
	if err != nil {
		return err
	}
	if negative {
		v = -v
	}
	*a = v
	return nil
}

// Add returns a + b, or an error if that does not fit.
func (a Amount) Add(b Amount) (Amount, error) {
	sum := a + b
	if (sum > a) != (b > 0) && b != 0 {
		return 0, fmt.Errorf("budget: %v + %v: %w", a, b, errOverflow)
	}
	return sum, nil
}

// Mul returns n times a, or an error if that does not fit.
func (a Amount) Mul(n int64) (Amount, error) {
	product := a * Amount(n)
	if a != 0 && (product/a != Amount(n) || (a == -1 && n == math.MinInt64)) {
		return 0, fmt.Errorf("budget: %d * %v: %w", n, a, errOverflow)
	}
	return product, nil
}

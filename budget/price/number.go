package price

import "github.com/outlay-go/outlay/budget"

// maxDigits is the longest international number (E.164).
const maxDigits = 15

// number is a telephone number as "+" and its digits.
type number struct {
	b [maxDigits + 3]byte
	n int // how much of b is used; 0: no international number
}

// parseNumber reads an international number, written with "+", with "00" or with
// neither, and with the separators that people use. Everything else, such as a
// number without its country or "whatsapp:+49", is none.
func parseNumber(s []byte) number {
	var d number
	plus := false
	d.b[0], d.n = '+', 1
	for _, c := range s {
		switch {
		case c == ' ' || c == '-' || c == '.' || c == '(' || c == ')' || c == '/':
		case c == '+' && d.n == 1 && !plus:
			plus = true
		case '0' <= c && c <= '9' && d.n < len(d.b):
			d.b[d.n] = c
			d.n++
		default:
			return number{}
		}
	}
	if d.n > 3 && d.b[1] == '0' && d.b[2] == '0' {
		copy(d.b[1:], d.b[3:])
		d.n -= 2
	}
	if d.n == 1 || d.n > maxDigits+1 || d.b[1] == '0' {
		return number{}
	}
	return d
}

// price finds the longest prefix of d in a table whose keys begin with "+" or not.
func (d *number) price(table map[string]budget.Amount) (budget.Amount, bool) {
	for l := d.n; l > 1; l-- {
		if a, ok := table[string(d.b[:l])]; ok {
			return a, true
		}
		if a, ok := table[string(d.b[1:l])]; ok {
			return a, true
		}
	}
	return 0, false
}

// callingCode is the country calling code of d with its "+" (ITU-T E.164: codes of one
// digit are 1 and 7, those of two are listed, all others have three).
func (d *number) callingCode() string {
	n := 4
	if d.b[1] == '1' || d.b[1] == '7' {
		n = 2
	} else if twoDigits(d.b[1], d.b[2]) {
		n = 3
	}
	return string(d.b[:min(n, d.n)])
}

func twoDigits(zone, next byte) bool {
	switch zone {
	case '2':
		return next == '0' || next == '7'
	case '3':
		return next != '5' && next != '7' && next != '8'
	case '4':
		return next != '2'
	case '5':
		return next != '0' && next != '9'
	case '6':
		return next <= '6'
	case '8':
		return next == '1' || next == '2' || next == '4' || next == '6'
	case '9':
		return next != '6' && next != '7' && next != '9'
	}
	return false
}

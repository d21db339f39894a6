package statuspage

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/outlay-go/outlay/budget"
)

// Any Accept header gets an answer, and JSON only if it is named.
func FuzzAccept(f *testing.F) {
	for _, s := range []string{"", "*/*", "application/json", "text/html;q=0.1,application/json;q=NaN", "application/json;q=1e400", ";;,,=", "APPLICATION/JSON ; q=1", "text/csv", "text/csv;q=0.5,text/html"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Accept"] = []string{s}
		for form, kind := range map[string]string{"json": "application/json", "csv": "text/csv"} {
			if wants(r) == form && !strings.Contains(strings.ToLower(s), kind) {
				t.Fatalf("%q does not name %s", s, form)
			}
		}
	})
}

// What people write is shortened and has no control characters.
func FuzzClip(f *testing.F) {
	for _, s := range []string{"", "maria", "a\x00b\u202ec\xff", strings.Repeat("é", 500)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := clip(s)
		if utf8.RuneCountInString(c) > 80 || strings.ContainsFunc(c, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q becomes %q", s, c)
		}
	})
}

// No cell begins like a formula, whatever stands before it.
func FuzzCell(f *testing.F) {
	for _, s := range []string{"", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u202e=1", "\u200b=1", "＝1", "\xff=1", "a=b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := cell(s)
		if c == "" {
			return
		}
		first := strings.TrimFunc(c, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
		if strings.ContainsAny(c[:1], "=+-@\t\r\n") || first != "" && strings.ContainsAny(first[:1], "=+-@") {
			t.Fatalf("%q becomes %q", s, c)
		}
		if !utf8.ValidString(c) || strings.ContainsFunc(c, unicode.IsControl) {
			t.Fatalf("%q becomes %q", s, c)
		}
	})
}

// A host is loopback only if it is this machine.
func FuzzLoopback(f *testing.F) {
	for _, s := range []string{"", "localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8080", "::1", "127.1", "0.0.0.0", "localhost.evil.example", "[fe80::1%25lo]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if isLoopback(s) && !strings.Contains(strings.ToLower(s), "localhost") && !strings.Contains(s, "127.") && !strings.Contains(s, ":") {
			t.Fatalf("%q is taken for this machine", s)
		}
	})
}

// Money is shown exactly: what is shown is the amount, with at least two places.
func FuzzMoney(f *testing.F) {
	for _, a := range []int64{0, 1, -1, 1e9, 83e5, -1 << 63, 1<<63 - 1} {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, n int64) {
		var back budget.Amount
		s := money(budget.Amount(n))
		if err := back.UnmarshalText([]byte(s)); err != nil || back != budget.Amount(n) {
			t.Fatalf("%d is shown as %s (%v)", n, s, err)
		}
	})
}

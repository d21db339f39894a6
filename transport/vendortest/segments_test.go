package vendortest

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

func TestSegments(t *testing.T) {
	x := strings.Repeat
	tests := []struct {
		name, text string
		want       int64
	}{
		{"empty", "", 1},
		{"160 septets", x("a", 160), 1},
		{"161 septets", x("a", 161), 2},
		{"306 septets", x("a", 306), 2},
		{"307 septets", x("a", 307), 3},
		{"extension characters take two", x("|", 80), 1},
		{"81 of them", x("|", 81), 2},
		{"none is split: 152 fit in a part", x("€", 153), 3},
		{"in UCS-2 they take one", x("|", 69) + "∞", 1},
		{"69 without it", x("|", 69), 1},
		{"85 and an emoji", x("]", 85) + "😀", 2},
		{"35 emoji", x("😀", 35), 1},
		{"36 emoji", x("😀", 36), 2},
		{"70 emoji", x("😀", 70), 3},
		{"66 emoji, 33 in a part", x("😀", 66), 2},
		{"70 letters", x("ж", 70), 1},
		{"71 letters", x("ж", 71), 2},
		{"135 letters", x("ж", 135), 3},
		{"æøå are in the alphabet", x("æøå", 50), 1},
		{"ç is not, Ç is", x("ç", 71), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, segments(tt.text, false)) })
	}
}

func FuzzSegments(f *testing.F) {
	for _, s := range []string{"", "hello", "€€", "ж", "😀", "\xff", "a\x00"} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		n := segments(a, false)
		require.GreaterOrEqual(t, segments(a+b, false), n, "more text is never cheaper")
		require.LessOrEqual(t, n, int64(1+len(utf16.Encode([]rune(a)))/66))
		require.GreaterOrEqual(t, n*160, int64(len([]rune(a))))
	})
}

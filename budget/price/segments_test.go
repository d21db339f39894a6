package price_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget/price"
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
		{"152 septets of them fit in a part", x("€", 153), 3},
		{"a pair at the end of a part goes to the next", x("a", 152) + "€" + x("a", 152), 3},
		{"all extension characters", x("^{}[]~|\\€\f", 8), 1},
		{"in UCS-2 they take one", x("|", 69) + "∞", 1},
		{"69 without it", x("|", 69), 1},
		{"85 and an emoji", x("]", 85) + "😀", 2},
		{"35 emoji", x("😀", 35), 1},
		{"36 emoji", x("😀", 36), 2},
		{"66 emoji, 33 in a part", x("😀", 66), 2},
		{"67 emoji", x("😀", 67), 3},
		{"70 emoji", x("😀", 70), 3},
		{"a surrogate pair at the end of a part goes to the next", x("ж", 66) + "😀" + x("ж", 66), 3},
		{"70 letters", x("ж", 70), 1},
		{"71 letters", x("ж", 71), 2},
		{"135 letters", x("ж", 135), 3},
		{"150 Norwegian letters are in the alphabet", x("æøå", 50), 1},
		{"the whole alphabet", "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà", 1},
		{"ç is not in it", x("ç", 71), 2},
		{"nor is a grave accent", x("`", 71), 2},
		{"nor a tab", x("\t", 71), 2},
		{"bad UTF-8 counts as such a character", x("\xff", 71), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, price.Segments(tt.text))
			require.Equal(t, tt.want, slowSegments(tt.text))
		})
	}
}

// slowSegments counts by building the parts.
func slowSegments(text string) int64 {
	const basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡" +
		"ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	var gsm, ucs [][]uint16
	plain := true
	for _, r := range text {
		ucs = append(ucs, utf16.Encode([]rune{r}))
		switch {
		case strings.ContainsRune(basic, r):
			gsm = append(gsm, []uint16{uint16(r)})
		case strings.ContainsRune("^{}\\[~]|€\f", r):
			gsm = append(gsm, []uint16{0x1B, uint16(r)})
		default:
			plain = false
		}
	}
	atoms, one, many := ucs, 70, 67
	if plain {
		atoms, one, many = gsm, 160, 153
	}
	build := func(size int) (parts [][]uint16) {
		parts = [][]uint16{{}}
		for _, a := range atoms {
			if last := parts[len(parts)-1]; len(last)+len(a) <= size {
				parts[len(parts)-1] = append(last, a...)
			} else {
				parts = append(parts, a)
			}
		}
		return parts
	}
	if len(build(one)) == 1 {
		return 1
	}
	return int64(len(build(many)))
}

func FuzzSegments(f *testing.F) {
	for _, s := range []string{"", "hello", "€€", "ж", "😀", "\xff", "a\x00", "æøå", strings.Repeat("[", 81), strings.Repeat("😀", 36)} {
		f.Add(s, uint8(1))
		f.Add(s, uint8(80))
	}
	f.Fuzz(func(t *testing.T, s string, times uint8) {
		s = strings.Repeat(s, int(times))
		require.Equal(t, slowSegments(s), price.Segments(s))
	})
}

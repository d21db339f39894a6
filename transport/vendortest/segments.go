package vendortest

import (
	"strings"
	"unicode/utf16"
)

// The alphabet of GSM 03.38: what one septet can say, and what takes two.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmTwice = "\f^{}\\[~]|€"
)

// segments counts the parts of a text message by packing them one character after
// the other, as a vendor's gateway does: slow, and sure. Some vendors can be told to
// use UCS-2 for any text.
func segments(text string, ucs2 bool) int64 {
	one, many := 160, 153 // septets; a part of several loses 7 to its header
	size := func(r rune) int {
		if strings.ContainsRune(gsmTwice, r) {
			return 2
		}
		return 1
	}
	for _, r := range text {
		if ucs2 || !strings.ContainsRune(gsmBasic+gsmTwice, r) {
			one, many, size = 70, 67, func(r rune) int { return len(utf16.Encode([]rune{r})) }
			break
		}
	}
	total, parts, free := 0, int64(0), 0
	for _, r := range text {
		n := size(r)
		total += n
		if n > free { // no character is split between two parts
			parts, free = parts+1, many
		}
		free -= n
	}
	if total <= one {
		return 1
	}
	return parts
}

package price

import "unicode/utf8"

// Segments counts the parts in which a text message is sent and billed.
//
// A text of characters of the GSM-7 alphabet (3GPP TS 23.038) is one part up to 160
// septets, and else one for every 153: the concatenation header takes seven. The
// characters of the extension table (^ { } [ ] ~ | \ € and form feed) take two, which
// are never split. Any other character moves the whole text to UCS-2: one part up to
// 70 UTF-16 units and else one for every 67, and surrogate pairs are never split.
// Bytes that are no UTF-8 count as such a character, and an empty text as one part.
func Segments(text string) int64 {
	var p parts
	for _, r := range text {
		p.add(r)
	}
	return p.count(false)
}

// segmentsOf is Segments for bytes.
func segmentsOf(text []byte, ucs2 bool) int64 {
	var p parts
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		p.add(r)
		text = text[n:]
	}
	return p.count(ucs2)
}

// parts packs a text in both encodings at once, since the last character may decide.
type parts struct {
	gsm, ucs packing
	notGSM   bool
}

// packing fills parts one after the other.
type packing struct{ total, parts, used int64 }

func (p *packing) add(n, capacity int64) {
	p.total += n
	if p.parts == 0 || p.used+n > capacity {
		p.parts++
		p.used = 0
	}
	p.used += n
}

func (p *packing) count(single int64) int64 {
	if p.total <= single {
		return 1
	}
	return p.parts
}

func (p *parts) add(r rune) {
	if n := septets(r); n > 0 {
		p.gsm.add(n, 153)
	} else {
		p.notGSM = true
	}
	n := int64(1)
	if r > 0xFFFF {
		n = 2
	}
	p.ucs.add(n, 67)
}

func (p *parts) count(ucs2 bool) int64 {
	if p.notGSM || ucs2 {
		return p.ucs.count(70)
	}
	return p.gsm.count(160)
}

// asciiSeptets has the septets of each ASCII character, from NUL to DEL.
const asciiSeptets = "00000000001021000000000000000000" +
	"11111111111111111111111111111111" +
	"11111111111111111111111111122221" +
	"01111111111111111111111111122220"

// septets is how many septets a character takes in GSM-7; zero if it has none.
func septets(r rune) int64 {
	if r < 0x80 {
		return int64(asciiSeptets[r] - '0')
	}
	switch r {
	case '£', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', 'Ø', 'ø', 'Å', 'å', 'Æ', 'æ', 'ß', 'É', '¤', '¡', '¿', '§', 'à',
		'Ä', 'Ö', 'Ñ', 'Ü', 'ä', 'ö', 'ñ', 'ü', 'Δ', 'Φ', 'Γ', 'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ', 'Ξ':
		return 1
	case '€':
		return 2
	}
	return 0
}

package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// SMS prices text messages by segment and by destination. It reads the query, and
// bodies that are forms or JSON, also those with several messages or recipients, and
// counts the decoded text (see [Segments]).
//
// A message is unpriced ([budget.ErrUnpriced]) if its text or its recipients are not
// found, if a field of Other is there, or if no price fits a recipient.
//
// The destination of the quote is the country calling code of the recipient whose
// segment is dearest, such as "+95"; it is empty if that is no international number.
type SMS struct {
	// Segment is the price of a segment to destinations that no prefix fits: the
	// ceiling for unknown ones. Zero: such messages are unpriced.
	Segment budget.Amount
	// Prefixes are prices of a segment by the beginning of the number, such as "+1" or
	// "+959". The longest that fits counts. A price of zero is a price.
	Prefixes map[string]budget.Amount
	// Currency of the prices, an ISO 4217 code. Empty: USD.
	Currency string
	// To and Text are the names that the vendor gives to recipients and text. Nil:
	// "To" and "to"; "Body", "body", "Text", "text", "Message" and "message". Several
	// recipients may stand in one value, with comma, semicolon or "<" between them.
	To, Text []string
	// UCS2 names the field and the value that force UCS-2 for any text, such as
	// "type=unicode". Empty: the text alone decides.
	UCS2 string
	// Other names fields that make a request something else than a text message, such
	// as "MediaUrl".
	Other []string
}

// Unit is the currency of the prices.
func (s SMS) Unit() string { return unitOr(s.Currency) }

// Validate returns an error for a price that nobody means; see [Fixed.Validate].
func (s SMS) Validate() error {
	errs := []error{plausible(s.Segment, leastPrice, s.Unit())}
	for _, prefix := range slices.Sorted(maps.Keys(s.Prefixes)) {
		if err := plausible(s.Prefixes[prefix], leastPrice, s.Unit()); err != nil {
			errs = append(errs, fmt.Errorf("prefix %q: %w", prefix, err))
		}
	}
	return errors.Join(errs...)
}

// Quote counts the segments and recipients of a message, or of several.
func (s SMS) Quote(r *http.Request) (budget.Quote, error) {
	body, err := readBody(r)
	if err != nil {
		return budget.Quote{}, err
	}
	b := bill{sms: &s}
	var query []byte
	if r.URL != nil && r.URL.RawQuery != "" {
		query = []byte(r.URL.RawQuery)
	}
	if len(body) > 0 && isJSON(r, body) {
		err = b.readJSON(query, body)
	} else {
		err = b.readForm(query, body)
	}
	if err != nil {
		return budget.Quote{}, err
	}
	a, err := b.sum.over(1)
	return budget.Quote{Amount: a, Unit: s.Unit(), Units: b.units, Destination: b.destination}, err
}

// bill adds up the messages of one request.
type bill struct {
	sms         *SMS
	sum         wide
	units       int64
	dearest     budget.Amount
	destination string
	recipients  int
}

// message is one text with its recipients.
type message struct {
	to    [][]byte
	texts [][]byte
	ucs2  bool
	other bool
}

func (s *SMS) isTo(key string) bool {
	if s.To == nil {
		return key == "To" || key == "to"
	}
	return slices.Contains(s.To, key)
}

func (s *SMS) isText(key string) bool {
	if s.Text == nil {
		switch key {
		case "Body", "body", "Text", "text", "Message", "message":
			return true
		}
		return false
	}
	return slices.Contains(s.Text, key)
}

// isUCS2 reports whether a field forces UCS-2.
func (s *SMS) isUCS2(key, value string) bool {
	k, v, ok := strings.Cut(s.UCS2, "=")
	return ok && k == key && v == value
}

// note takes a field for what it means.
func (m *message) note(s *SMS, key string, value []byte) {
	switch {
	case s.isTo(key):
		m.to = append(m.to, value)
	case s.isText(key):
		m.texts = append(m.texts, value)
	case slices.Contains(s.Other, key):
		m.other = true
	case s.isUCS2(key, string(value)):
		m.ucs2 = true
	}
}

// readForm takes query and body as one message.
func (b *bill) readForm(query, body []byte) error {
	var m message
	note := func(k, v []byte) { m.note(b.sms, string(k), v) }
	if !eachPair(query, note) || !eachPair(body, note) {
		return unpriced("the form is malformed")
	}
	return b.add(&m)
}

// add prices one message to all its recipients.
func (b *bill) add(m *message) error {
	switch {
	case m.other:
		return unpriced("it is more than a text message")
	case len(m.texts) == 0:
		return unpriced("no text was found")
	}
	var n int64 // of several texts the longest: who knows which one the vendor takes
	for _, t := range m.texts {
		n = max(n, segmentsOf(t, m.ucs2))
	}
	before := b.recipients
	for _, list := range m.to {
		for one := range bytes.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' || r == '<' }) {
			if one = bytes.TrimSpace(one); len(one) == 0 {
				continue
			}
			if err := b.recipient(one, n); err != nil {
				return err
			}
		}
	}
	if b.recipients == before {
		return unpriced("no recipient was found")
	}
	return nil
}

// recipient prices n segments to one number.
func (b *bill) recipient(to []byte, n int64) error {
	d := parseNumber(to)
	price, ok := d.price(b.sms.Prefixes)
	if !ok {
		if price = b.sms.Segment; price == 0 {
			return unpriced("no price for the destination")
		}
	}
	if price < 0 {
		return unpriced("the price is negative")
	}
	b.sum.add(price, n)
	b.units += n
	if b.recipients == 0 || price > b.dearest {
		b.dearest, b.destination = price, ""
		if d.n > 0 {
			b.destination = d.callingCode()
		}
	}
	b.recipients++
	return nil
}

// maxNesting is how deep a message may stand in JSON.
const maxNesting = 32

// readJSON takes every object with a text as a message. Its recipients are those in
// the object; if there is none, those of the objects around it, and of the query.
func (b *bill) readJSON(query, body []byte) error {
	root, err := decodeJSON(body)
	if err != nil {
		return err
	}
	var outer message
	if !eachPair(query, func(k, v []byte) { outer.note(b.sms, string(k), v) }) {
		return unpriced("the query is malformed")
	}
	found, err := b.walk(root, outer, maxNesting)
	if err == nil && found == 0 {
		err = unpriced("no text was found")
	}
	return err
}

// walk prices the messages in v and says how many there were.
func (b *bill) walk(v any, outer message, depth int) (found int, err error) {
	if depth == 0 {
		return 0, unpriced("the JSON is nested too deep")
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n, err := b.walk(e, outer, depth-1)
			if err != nil {
				return 0, err
			}
			found += n
		}
	case map[string]any:
		m := b.read(v, outer)
		if len(m.texts) > 0 {
			return 1, b.add(&m)
		}
		for _, e := range v {
			n, err := b.walk(e, m, depth-1)
			if err != nil {
				return 0, err
			}
			found += n
		}
	}
	return found, nil
}

// read takes the fields of one object, and the recipients inside it, over what holds
// around it.
func (b *bill) read(o map[string]any, outer message) message {
	m := message{to: outer.to, ucs2: outer.ucs2, other: outer.other}
	var to [][]byte
	collect(b.sms, o, &to)
	if len(to) > 0 {
		m.to = to
	}
	for k, v := range o {
		if s, ok := v.(string); ok && !b.sms.isTo(k) {
			m.note(b.sms, k, []byte(s))
		} else if v != nil && slices.Contains(b.sms.Other, k) {
			m.other = true
		}
	}
	return m
}

// collect gathers the recipients in v, at any depth.
func collect(s *SMS, v any, to *[][]byte) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collect(s, e, to)
		}
	case map[string]any:
		for k, e := range v {
			if s.isTo(k) {
				values(e, to)
			} else {
				collect(s, e, to)
			}
		}
	}
}

// values gathers the strings and numbers of a recipient field: one, a list, or objects
// such as {"number": "+49"}.
func values(v any, to *[][]byte) {
	switch v := v.(type) {
	case string:
		*to = append(*to, []byte(v))
	case json.Number:
		*to = append(*to, []byte(v))
	case []any:
		for _, e := range v {
			values(e, to)
		}
	case map[string]any:
		for _, e := range v {
			values(e, to)
		}
	}
}

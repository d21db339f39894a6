package price

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
)

// Values counts what a request has under the names: the recipients of an email under
// "to", "cc" and "bcc". In JSON a name is a path of keys joined by dots, lists being
// passed through, as in "personalizations.to.email". Every comma and semicolon inside a
// value begins another one, since many vendors take a list so: a name such as "Doe, Jane"
// counts twice, which is an upper bound. A request without any is unpriced.
//
// JSON is read as it passes, whatever its size.
func Values(names ...string) Units {
	return func(r *http.Request) (int64, error) {
		body, err := reopen(r)
		if err != nil {
			return 0, err
		}
		defer body.Close()
		c := counter{names: names}
		kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // JSON if it is not told
		switch kind {
		case "multipart/form-data":
			err = c.parts(multipart.NewReader(body, params["boundary"]))
		case "application/x-www-form-urlencoded":
			err = c.form(body)
		default:
			s := scanner{end: func() {}}
			s.value = func(path, raw []byte, quoted bool) { c.scalar(path, raw, quoted, s.cut) }
			_, err = io.CopyBuffer(&s, struct{ io.Reader }{body}, make([]byte, 4<<10))
		}
		switch {
		case err != nil:
		case c.cut:
			err = unpriced("a value is too long to be counted")
		case c.n == 0:
			err = unpriced("nothing to count was found")
		}
		return c.n, err
	}
}

// counter counts the values of some names.
type counter struct {
	names []string
	n     int64
	cut   bool // something that counts was too long to be looked through
}

// scalar takes a scalar of JSON, where an object begins with a "{" of its own.
func (c *counter) scalar(path, value []byte, quoted, cut bool) {
	if quoted && slices.Contains(c.names, string(path)) {
		c.n += listed(value)
		c.cut = c.cut || cut
	}
}

// listed is how many values stand in one.
func listed(value []byte) int64 {
	return 1 + int64(bytes.Count(value, []byte{','})+bytes.Count(value, []byte{';'}))
}

// list takes a value of a form.
func (c *counter) list(name string, value []byte) {
	if len(value) > 0 && slices.Contains(c.names, name) {
		c.n += listed(value)
	}
}

func (c *counter) form(body io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case err != nil:
		return err
	case len(b) > maxBody:
		return unpriced("the body is too large")
	case !eachPair(b, func(k, v []byte) { c.list(string(k), v) }):
		return unpriced("the form is malformed")
	}
	return nil
}

// parts reads a form of several parts. Only the named ones are kept, and files pass.
func (c *counter) parts(m *multipart.Reader) error {
	for {
		p, err := m.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unpriced("the form is malformed")
		}
		if !slices.Contains(c.names, p.FormName()) {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(p.Header.Get("Content-Transfer-Encoding"))) {
		case "", "7bit", "8bit", "binary":
		default: // RFC 7578 section 4.7 has it deprecated, but some decode it
			return unpriced("a part of the form is encoded")
		}
		b, err := io.ReadAll(io.LimitReader(p, maxBody+1))
		if err != nil || len(b) > maxBody {
			return unpriced("the form is malformed")
		}
		c.list(p.FormName(), b)
	}
}

package price

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
)

// Values counts what a request has under the names: the recipients of an email under
// "to", "cc" and "bcc". In JSON a name is a path of keys joined by dots, lists being
// passed through, as in "personalizations.to.email". In a form, also one of several
// parts, every comma begins another value. A request without any is unpriced.
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
			s := scanner{value: c.scalar, end: func() {}}
			_, err = io.CopyBuffer(&s, struct{ io.Reader }{body}, make([]byte, 4<<10))
		}
		if err == nil && c.n == 0 {
			err = unpriced("nothing to count was found")
		}
		return c.n, err
	}
}

// counter counts the values of some names.
type counter struct {
	names []string
	n     int64
}

// scalar takes a scalar of JSON, where an object begins with a "{" of its own.
func (c *counter) scalar(path, _ []byte, quoted bool) {
	if quoted && slices.Contains(c.names, string(path)) {
		c.n++
	}
}

// list takes a value of a form.
func (c *counter) list(name string, value []byte) {
	if len(value) > 0 && slices.Contains(c.names, name) {
		c.n += 1 + int64(bytes.Count(value, []byte{','}))
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
		b, err := io.ReadAll(io.LimitReader(p, maxBody+1))
		if err != nil || len(b) > maxBody {
			return unpriced("the form is malformed")
		}
		c.list(p.FormName(), b)
	}
}

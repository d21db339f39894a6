package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxBody bounds the bodies that are read whole to be priced. A text message or a
// matrix of a megabyte is no such thing.
const maxBody = 1 << 20

// reopen returns a fresh copy of the body of r, which stays as it is. A request
// without a body has an empty one.
func reopen(r *http.Request) (io.ReadCloser, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return http.NoBody, nil
	}
	if r.GetBody == nil {
		return nil, unpriced("the body cannot be read twice")
	}
	body, err := r.GetBody()
	if err == nil && body == nil {
		err = unpriced("GetBody gave no body")
	}
	if err != nil {
		return nil, err
	}
	for _, coding := range r.Header["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return nil, errors.Join(unpriced("the body is compressed"), body.Close()) // and may look like a smaller call
		}
	}
	return body, nil
}

// readBody copies the body of r once.
func readBody(r *http.Request) ([]byte, error) {
	body, err := reopen(r)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if n := r.ContentLength; n > 0 && n <= maxBody {
		b := make([]byte, n+1) // one more, to see the end
		m, err := io.ReadFull(body, b)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return b[:m], nil
		}
		if err == nil {
			err = unpriced("the body is longer than it says")
		}
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = unpriced("the body is too large")
	}
	return b, err
}

// isJSON reports whether a body is JSON: by its declared type, or by its first byte.
func isJSON(r *http.Request, body []byte) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && (t == "application/json" || strings.HasSuffix(t, "+json")):
		return true
	case err == nil && t == "application/x-www-form-urlencoded":
		return false
	}
	first := strings.TrimLeft(string(body[:min(len(body), 16)]), " \t\r\n")
	return strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[")
}

// decodeJSON decodes one JSON value, with its numbers as they are written. An object that
// has a name twice is refused: who knows which of them the vendor takes.
func decodeJSON(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.Decode(new(any)) != io.EOF {
		return nil, unpriced("the JSON is malformed")
	}
	if members(v) != colons(body) {
		return nil, unpriced("the JSON has a name twice in one object")
	}
	return v, nil
}

// members counts the members of all objects in v.
func members(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += members(e)
		}
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += members(e)
		}
	}
	return n
}

// colons counts those outside of strings in valid JSON: one a member.
func colons(body []byte) (n int) {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i++ // only strings have escapes
		case c == ':' && !quoted:
			n++
		}
	}
	return n
}

// eachPair calls f for each pair of a form or a query. It decodes in place, so b is
// spoiled, and key and value are parts of b. It reports whether all of b was well
// formed.
func eachPair(b []byte, f func(key, value []byte)) bool {
	whole := true
	for len(b) > 0 {
		var pair []byte
		pair, b, _ = bytes.Cut(b, []byte{'&'})
		key, value := pair, pair[len(pair):]
		if before, after, ok := bytes.Cut(pair, []byte{'='}); ok {
			key, value = before, after
		}
		k, ok1 := unescape(key)
		v, ok2 := unescape(value)
		whole = whole && ok1 && ok2
		f(k, v)
	}
	return whole
}

// unescape decodes %XX and + in place. What is no escape stays as it is.
func unescape(b []byte) (_ []byte, ok bool) {
	n, ok := 0, true
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(b) && hex(b[i+1]) >= 0 && hex(b[i+2]) >= 0:
			c = byte(hex(b[i+1])<<4 | hex(b[i+2]))
			i += 2
		case c == '%':
			ok = false
		}
		b[n] = c
		n++
	}
	return b[:n], ok
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

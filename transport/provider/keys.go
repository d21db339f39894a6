package provider

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxKeyBody is how much of a body is read for the key of a scope. A field that comes
// later is not found, and the call does not use the scope.
const maxKeyBody = 1 << 20

// several is the key of all calls in which a field stands with more than one value: which
// one the vendor takes is unknown, so that their callers must not choose.
const several = "(several)"

// Field returns a function that finds the first of the named fields that a request's form
// or the object of its JSON has, for scopes and tenants: Field("From") is the sender of a
// message at Twilio, Field("model") the model of a chat. It reads the body through
// GetBody, at most a megabyte of it, and gives an empty string if there is no such field.
// Which of several different values of one field the vendor takes is unknown: calls with
// such a field have one key, "(several)", all together.
func Field(names ...string) func(*http.Request) string {
	return func(r *http.Request) string {
		if r.Body == nil || r.Body == http.NoBody || r.GetBody == nil {
			return ""
		}
		body, err := r.GetBody()
		if err != nil || body == nil {
			return "" // the price step reports it
		}
		defer body.Close()
		limited := io.LimitReader(body, maxKeyBody)
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if kind == "application/x-www-form-urlencoded" {
			return formField(limited, names)
		}
		return jsonField(limited, names)
	}
}

// formField finds the first name that has a value.
func formField(body io.Reader, names []string) string {
	b, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	form, _ := url.ParseQuery(string(b)) // what does not parse is absent
	for _, name := range names {
		if v := theOne(form[name]); v != "" {
			return v
		}
	}
	return ""
}

// theOne is the value that all of them are.
func theOne(all []string) string {
	if len(all) == 0 {
		return ""
	}
	if slices.ContainsFunc(all, func(v string) bool { return v != all[0] }) {
		return several
	}
	return all[0]
}

// jsonField finds the first name that is a string at the top of an object. It reads to the
// end, as far as the object is whole, unless no name can come again.
func jsonField(body io.Reader, names []string) string {
	b, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	once := standsOnce(b, names)
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	found := make([][]string, len(names))
	var value json.RawMessage // its memory is used again
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		name, _ := key.(string)
		if err := d.Decode(&value); err != nil {
			break
		}
		if i := slices.Index(names, name); i >= 0 {
			var s string
			_ = json.Unmarshal(value, &s) // what is no string has no value
			found[i] = append(found[i], s)
			if once {
				break
			}
		}
	}
	for _, all := range found {
		if v := theOne(all); v != "" {
			return v
		}
	}
	return ""
}

// standsOnce reports that one of the names stands in a text, once, and that none can be there
// in another spelling.
func standsOnce(b []byte, names []string) bool {
	n := 0
	for _, name := range names {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return false
		}
		n += bytes.Count(b, []byte(`"`+name+`"`))
	}
	return n == 1 && !bytes.Contains(b, []byte(`\u00`))
}

// host is the host of a request, for vendors that have one for each customer.
func host(r *http.Request) string { return strings.ToLower(r.URL.Hostname()) }

// endpoint is the path of a request without the ids in it, so that calls to the same
// endpoint have the same key.
func endpoint(r *http.Request) string { return generic(r.URL.Path, 8) }

// generic keeps the words of a path, at most n of them, and writes "*" for each segment
// that looks like an id.
func generic(p string, n int) string {
	var b strings.Builder
	for s := range strings.SplitSeq(strings.Trim(p, "/"), "/") {
		if n--; n < 0 {
			break
		}
		b.WriteByte('/')
		if isID(s) {
			s = "*"
		}
		b.WriteString(s)
	}
	return b.String()
}

// isID reports whether a segment of a path names one of many things: it has a digit and
// is no version such as v3, or it is longer than the words of an API are.
func isID(s string) bool {
	version, isVersion := strings.CutPrefix(s, "v")
	isVersion = isVersion && strings.Trim(version, "0123456789.") == ""
	return len(s) > 32 || strings.ContainsAny(s, "0123456789@") && !isVersion
}

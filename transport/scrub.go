package transport

import "regexp"

// userinfo is what stands before the host in a URL: the password of a store.
var userinfo = regexp.MustCompile(`://[^\s"'<>]*@`)

// scrubbed is a store's error whose text had a password in a URL.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }

// Unwrap returns the store's own error, whose text is as it was.
func (e *scrubbed) Unwrap() error { return e.err }

// private is what net/http and others quote, an address with its key or what a server
// wrote, and URLs that stand free.
var private = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?|[a-zA-Z][a-zA-Z0-9+.-]*://\S*`)

// unquoted blanks in the text of an error of Base what may be private.
func unquoted(text string) string { return private.ReplaceAllString(text, "***") }

// scrub blanks passwords of URLs in the text of a store's error, which callers log.
func scrub(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if !userinfo.MatchString(text) {
		return err
	}
	return &scrubbed{userinfo.ReplaceAllString(text, "://***@"), err}
}

package dialect

import (
	"net/http"
	"slices"
	"strings"
)

// For returns the dialect of a vendor, by any usual spelling of its name: "Twilio",
// "ip-api.com", "X (Twitter)", "azure-openai". A vendor that is not known speaks
// [Standard]. [Vendors] lists the known ones.
//
// Beside [Whole], these scopes are named: "route" (Discord), "endpoint" (Stripe, Zendesk,
// Jira) and "object" (Stripe, Jira: one payment or issue that is busy).
func For(name string) Dialect {
	for _, alias := range spellings(name) {
		for _, group := range known {
			for i := range group {
				if group[i].isCalled(alias) {
					return &group[i]
				}
			}
		}
	}
	return Standard{}
}

// Vendors returns the names that [For] knows, sorted.
func Vendors() []string {
	var names []string
	for _, group := range known {
		for i := range group {
			names = append(names, group[i].name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}

// spellings returns what a vendor may be called by, the best first: the whole name, what
// stands before and in parentheses and on the sides of a slash, and the words that each
// of these begins with ("Slack Web API", "LINE Messaging API").
func spellings(name string) []string {
	var names []string
	parts := strings.FieldsFunc(name, func(c rune) bool { return c == '(' || c == ')' || c == '/' })
	for _, part := range append([]string{name}, parts...) {
		words := strings.Fields(part)
		for n := len(words); n > 0; n-- {
			names = append(names, plainName(strings.Join(words[:n], "")))
		}
	}
	return names
}

// plainName leaves letters and digits, in lower case.
func plainName(s string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(s))
}

// vendor is a Dialect by what is different from [Standard].
type vendor struct {
	name string
	also []string
	// form is what a bare number in a reset header is.
	form Form
	// windows are the header names of its limits. A vendor without any may still say
	// something in a refusal, under the names that everybody may use.
	windows []family
	// naming is how it makes up further names, if it does.
	naming naming
	// hints are headers that ask to wait, beside the usual ones.
	hints []hint
	// limits are statuses that mean a limit, beside 429.
	limits []int
	// peek says whose bodies are read.
	peek peek
	// when says which good answers may be refusals, for vendors that peek into them. Nil:
	// all that are text.
	when func(http.Header) bool
	// ref is where the body has the vendor's id of what was billed.
	ref string
	// refIn is the header that has the id instead, nameIn the one that has the name of
	// the limit.
	refIn, nameIn string
	// headers reads what only this vendor sends, refusal what it sends from status 400
	// on, body what it says there. They get the Reading so far and return it completed,
	// by value, so that it stays on the stack.
	headers, refusal, body func(Reading, Answer) Reading
	// billed is the vendor's rule by status, where it states one.
	billed func(status int) Billed
	// keeps says that a 403 tells of limits as well as any other answer.
	keeps bool
}

// peek says in which answers a vendor speaks in the body.
type peek uint8

const (
	refusals peek = 1 << iota // status 400 and above
	answers                   // 2xx
)

func (v *vendor) isCalled(alias string) bool {
	return plainName(v.name) == alias || slices.Contains(v.also, alias)
}

// WantsBody reports whether the vendor may speak in the body of such an answer. A stream
// of events is never wanted, and neither is a good answer that is too long to be a
// refusal or not text at all.
func (v *vendor) WantsBody(status int, h http.Header) bool {
	switch {
	case status >= 400:
		return v.peek&refusals != 0 && !isType(h, "text/event-stream")
	case status >= 200 && status < 300 && v.peek&answers != 0 && (v.when == nil || v.when(h)):
		length, _ := parseCount(first(h, "Content-Length"))
		return speaks(strings.ToLower(first(h, "Content-Type"))) && length <= maxBody
	default:
		return false
	}
}

// speaks reports whether a good answer of this type may say something about limits.
func speaks(contentType string) bool {
	return contentType == "" || strings.Contains(contentType, "json") || strings.Contains(contentType, "xml") ||
		strings.HasPrefix(contentType, "text/plain") || strings.HasPrefix(contentType, "text/javascript")
}

// Read reads status, headers and body in this order; the body knows best.
func (v *vendor) Read(a Answer) (r Reading) {
	c := &clock{h: a.Header, now: a.Now}
	r.status(c, a.Status, v.hints, v.limits)
	if v.billed != nil {
		r.Billed = v.billed(a.Status)
	}
	r.vendorWindows(c, v, a.Status >= 400)
	if v.headers != nil {
		r = v.headers(r, a)
	}
	if v.refusal != nil && a.Status >= 400 {
		r = v.refusal(r, a)
	}
	if v.body != nil && len(a.Body) > 0 {
		r = v.body(r, a)
	}
	if a.Status < 300 {
		r.readRef(v, a)
		r.lateHint(c, v.hints)
	}
	r.finish(c, rejected(a.Status) && !v.keeps)
	return r
}

func (r *Reading) vendorWindows(c *clock, v *vendor, refused bool) {
	if len(v.windows) == 0 && refused {
		r.standardWindows(c, v.form, refused)
	}
	for i := range v.windows {
		v.windows[i].read(r, c, v.form, refused)
	}
	if v.nameIn != "" && r.Window.Known != 0 {
		r.Window.Name = word(first(c.h, v.nameIn))
	}
	if v.naming.prefix != "" && (refused || r.Window.Known != 0) {
		r.named(c, v.naming, v.form, v.windows)
	}
}

// lateHint obeys Retry-After beside a good status whose body turned out to refuse.
func (r *Reading) lateHint(c *clock, hints []hint) {
	if !r.Throttled {
		return
	}
	if d, ok := c.retryAfter(hints); ok {
		r.RetryAfter, r.Hinted = max(r.RetryAfter, d), true
	}
}

func (r *Reading) readRef(v *vendor, a Answer) {
	switch {
	case v.refIn != "":
		r.Ref = id(first(a.Header, v.refIn))
	case v.ref != "" && len(a.Body) > 0:
		r.Ref = id(find(a.Body, v.ref))
	}
}

// find returns the text of the first scalar at path.
func find(body []byte, path string) string {
	for p, v := range leaves(body) {
		if string(p) == path {
			return v.text()
		}
	}
	return ""
}

// id returns s if it can be an id, else nothing.
func id(s string) string {
	if len(s) > 128 {
		return ""
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return ""
		}
	}
	return s
}

// known are all vendors that are known.
var known = [...][]vendor{messaging, geo, google, aws, mail, llm, saas, others}

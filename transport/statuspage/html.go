package statuspage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

var (
	//go:embed page.css
	css string
	//go:embed page.html
	html string
	//go:embed bill.html
	billHTML string
)

// pages are the templates with their one style element, which the policy admits by its
// hash.
var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"money": func(a budget.Amount) string { return money(a) },
	"iso":   func(i instant) string { return time.Time(i).UTC().Format(time.RFC3339) },
	"clock": func(i instant) string {
		if i.IsZero() {
			return "–"
		}
		return time.Time(i).UTC().Format("15:04:05")
	},
	"ago":     func(v *view, i instant) string { return at(time.Time(i).UTC(), v.at) },
	"seconds": func(s float64) string { return span(time.Duration(s * float64(time.Second))) },
	"bar":     func(percent int) int { return min(max(percent, 0), 100) },
	"word":    func(l level) string { return string(l) },
	"state":   func(s string) string { return stateWords[s] },
	"percent": func(f float64) int { return int(f*100 + 0.5) },
}).Parse(strings.ReplaceAll(html+billHTML, "/*css*/", css)))

// policy forbids everything but the page itself.
var policy = "default-src 'none'; style-src 'sha256-" + hash(css) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

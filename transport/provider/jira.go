package provider

import (
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// Jira is the API of Jira Cloud, and of Confluence, which has the same hosts, of any
// number of sites. It costs nothing.
//
// Its limits are points that it does not publish in full; a refusal tells in
// RateLimit-Reason which it was (developer.atlassian.com, rate limiting, read 2026-11): a
// burst of one endpoint, writes to one issue, or the quota of the site. These are the
// scopes "endpoint", "object" and "account". There is no idempotency key.
func Jira() transport.Provider {
	return transport.Provider{
		Name:  "jira",
		Match: []string{"*.atlassian.net", "api.atlassian.com/ex/"},
		Scopes: []transport.Scope{
			{Name: "endpoint", Key: func(r *http.Request) string { return jiraSite(r) + " " + r.Method + " " + endpoint(r) }},
			{Name: "object", Key: jiraIssue},
			{Name: "account", Key: jiraSite},
		},
		Dialect: dialect.For("jira"),
		Price:   price.Free,
	}
}

// jiraSite is the host, or the id of the site in a path such as /ex/jira/ID/rest/.
func jiraSite(r *http.Request) string {
	if rest, ok := strings.CutPrefix(r.URL.Path, "/ex/"); ok {
		product, rest, _ := strings.Cut(rest, "/")
		id, _, _ := strings.Cut(rest, "/")
		return product + "/" + id
	}
	return host(r)
}

// jiraIssue is the issue in a path such as /rest/api/3/issue/KEY-1/comment.
func jiraIssue(r *http.Request) string {
	_, rest, ok := strings.Cut(r.URL.Path, "/issue/")
	if !ok {
		return ""
	}
	issue, _, _ := strings.Cut(rest, "/")
	return jiraSite(r) + " " + issue
}

// JiraRefusal makes Jira's error response of a refusal.
func JiraRefusal(r transport.Refused) (status int, h http.Header, body []byte) {
	return jiraShape.refuse(r)
}

var jiraShape = shape{members: func(f said) []member {
	return []member{{"errorMessages", []string{f.text}}, {"errors", fields{}}}
}}

package vendortest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// NewGitHub starts a fake of GitHub's REST API: reading repositories and issues, and
// creating issues.
//
// Nothing is billed. Its limit is the primary one, refused with status 403 and remaining
// 0; planned 429s are the secondary one. Its headers tell the window, with the reset in
// epoch seconds.
func NewGitHub(o Options) *Fake {
	return start(vendor{
		name: "github", hosts: []string{"api.github.com"}, unit: "USD",
		answer: gitHubAnswer, headers: gitHubHeaders, throttle: gitHubThrottle,
		fail: func(status int) reply { return gitHubError(status, http.StatusText(status), "") },
	}, o)
}

func gitHubAnswer(c call) reply {
	path := strings.Split(strings.Trim(c.URL.Path, "/"), "/")
	switch {
	case path[0] == "rate_limit":
		return object(http.StatusOK, map[string]any{"resources": map[string]any{"core": map[string]int{"remaining": c.remaining}}})
	case path[0] != "repos" || len(path) < 3:
		return gitHubError(http.StatusNotFound, "Not Found", "").refuse()
	case len(path) == 3:
		return object(http.StatusOK, map[string]any{"id": 1, "name": path[2], "full_name": path[1] + "/" + path[2]})
	case path[3] != "issues":
		return gitHubError(http.StatusNotFound, "Not Found", "").refuse()
	case c.Method == http.MethodGet:
		return object(http.StatusOK, []any{})
	}
	var issue struct{ Title string }
	if !c.decode(&issue) || issue.Title == "" {
		return gitHubError(http.StatusUnprocessableEntity, "Validation Failed", "").refuse()
	}
	n := c.serial()
	return object(http.StatusCreated, map[string]any{
		"id": n, "number": n, "title": issue.Title, "state": "open",
		"url": fmt.Sprintf("https://api.github.com/repos/%s/%s/issues/%d", path[1], path[2], n),
	})
}

func gitHubThrottle(_ call, why refusal) reply {
	if why.planned || why.busy {
		return gitHubError(http.StatusTooManyRequests, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
			"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits").hint(why.after)
	}
	a := gitHubError(http.StatusForbidden, "API rate limit exceeded for 127.0.0.1.", "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api").
		with("x-ratelimit-remaining", "0")
	a.pause = why.after
	return a
}

func gitHubHeaders(c call) map[string]string {
	if !c.windowed() {
		return nil
	}
	limit := c.fake.opts.Limit.Requests
	return map[string]string{
		"x-ratelimit-limit":     strconv.Itoa(limit),
		"x-ratelimit-remaining": strconv.Itoa(c.remaining),
		"x-ratelimit-used":      strconv.Itoa(limit - c.remaining),
		"x-ratelimit-reset":     strconv.FormatInt(c.now.Add(c.reset+time.Second-1).Unix(), 10),
		"x-ratelimit-resource":  "core",
	}
}

func gitHubError(status int, message, documentation string) reply {
	return object(status, map[string]any{"message": message, "documentation_url": documentation, "status": strconv.Itoa(status)})
}

package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// work sends one message after the other until ctx ends. The logs, the metrics and the
// page tell what becomes of them.
func work(ctx context.Context, client *http.Client) {
	for ctx.Err() == nil {
		form := url.Values{"To": {"+12025550123"}, "From": {"+12025550100"}, "Body": {"Hello"}}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost,
			"https://api.twilio.com/2010-04-01/Accounts/ACmonitoring/Messages.json", strings.NewReader(form.Encode()))
		if err != nil {
			return
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(req)
		if err != nil {
			if !wait(ctx, err) {
				return
			}
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// wait sleeps until a refused call could pass, or a second. It reports false when ctx ends.
func wait(ctx context.Context, refusal error) bool {
	pause := time.Second
	if at, ok := transport.RetryAt(refusal); ok {
		pause = max(pause, time.Until(at))
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

package sdktest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// TestOtherVendors: the presets of vendors whose Go SDK is not here. The vendor throttles
// the first request in its own dialect, and takes it when it comes again.
func TestOtherVendors(t *testing.T) {
	const form, js = "application/x-www-form-urlencoded", "application/json"
	tests := []struct {
		name            string
		fake            func(vendortest.Options) *vendortest.Fake
		preset          transport.Provider
		unit            string
		url, kind, body string
		charged         bool
		answer          string
	}{
		{"Vonage", vendortest.NewVonage, provider.VonageSMS(budget.MustParse("0.05")), "EUR",
			"https://rest.nexmo.com/sms/json", form, "from=me&to=447700900123&text=Hi", true, `"status":"0"`},
		{"Telnyx", vendortest.NewTelnyx, provider.Telnyx(budget.MustParse("0.004")), "USD",
			"https://api.telnyx.com/v2/messages", js, `{"from":"+12025550100","to":"+12025550101","text":"Hi"}`, true, `"parts":1`},
		{"Gemini", vendortest.NewGemini, provider.Gemini(price.Tokens{Models: map[string]price.Model{
			"gemini-2.5-flash": {Input: budget.MustParse("0.30"), Output: budget.MustParse("2.50")},
		}}), "USD",
			"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent", js,
			`{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":40}}`, true, `"usageMetadata"`},
		{"Google's distance matrix", vendortest.NewGeocoder, provider.GoogleDistanceMatrix(budget.MustParse("0.005")), "USD",
			"https://maps.googleapis.com/maps/api/distancematrix/json?key=fake&origins=a|b&destinations=c|d|e", "", "", true, `"rows"`},
		{"Slack", vendortest.NewSlack, provider.Slack(), "USD",
			"https://slack.com/api/chat.postMessage", js, `{"channel":"C1","text":"Hi"}`, false, `"ok":true`},
		{"Discord", vendortest.NewDiscord, provider.Discord(), "USD",
			"https://discord.com/api/v10/channels/1/messages", js, `{"content":"Hi"}`, false, `"channel_id":"1"`},
		{"Shopify", vendortest.NewShopify, provider.Shopify(), "USD",
			"https://shop.myshopify.com/admin/api/2026-10/graphql.json", js, `{"query":"{shop{name}}"}`, false, `"name":"fake"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var answer string
			w := sdk{fake: tt.fake, preset: func() transport.Provider { return tt.preset }, connect: func(c *http.Client, _ bool) func(context.Context, int) error {
				return func(ctx context.Context, _ int) (err error) {
					answer, err = post(ctx, c, tt.url, tt.kind, tt.body)
					return err
				}
			}}.build(t, vendortest.Options{Faults: vendortest.Faults{
				Script: []vendortest.Fault{vendortest.Throttle}, RetryAfter: 200 * time.Millisecond,
			}}, false, func(_ *transport.Config, p *transport.Provider) {
				b := books()
				b.Unit = tt.unit
				p.Budgets = []budget.Budget{b}
			})
			w.budget.Unit = tt.unit
			require.NoError(t, w.call(t.Context(), 1))
			require.Contains(t, answer, tt.answer)
			counts := w.fake.Counts()
			require.Equal(t, 2, counts.Received)
			require.Equal(t, 1, counts.Throttled)
			require.Zero(t, counts.Early, "nothing came during the pause")
			settled, presumed := w.accounts(t)
			require.Equal(t, w.fake.Invoice().Total, settled)
			require.Equal(t, tt.charged, settled > 0)
			require.Zero(t, presumed)
		})
	}
}

// post sends a body, or without one asks.
func post(ctx context.Context, c *http.Client, url, kind, body string) (string, error) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

package provider_test

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

// reasons are all that a preset's call can be refused for, with the status that says it.
var reasons = map[transport.Reason]int{
	transport.ReasonGate: 429, transport.ReasonRate: 429, transport.ReasonSlots: 429, transport.ReasonDeadline: 429,
	transport.ReasonQueueFull: 429, transport.ReasonBusy: 429, transport.ReasonRepeated: 429, transport.ReasonNever: 422,
	transport.ReasonExhausted: 402, transport.ReasonFloor: 402, transport.ReasonUnpriced: 402,
	transport.ReasonFrozen: 503, transport.ReasonLedger: 503, transport.ReasonLimiter: 503,
}

// ownStatus are the vendors whose SDKs take the usual status for something else.
var ownStatus = map[string]map[int]int{
	"VonageSMS": {429: 200, 422: 200, 402: 200, 503: 200},
	"Stripe":    {402: 429},
	"GitHub":    {402: 403},
	"Slack":     {402: 429, 422: 429, 503: 429},
}

func TestRefusalsAreErrors(t *testing.T) {
	for _, p := range presets {
		for reason, want := range reasons {
			status, h, body := p.refusal(transport.Refused{
				Provider: "me", Reason: reason, RetryAt: time.Now().Add(2 * time.Hour),
				Err: &throttle.WaitError{Provider: "me", Reason: "rate"},
			})
			if own, ok := ownStatus[p.function][want]; ok {
				want = own
			}
			require.Equal(t, want, status, "%s, %s", p.function, reason)
			require.Empty(t, h.Get("Retry-After"), "%s: SDKs sleep as long as they are told", p.function)
			require.Equal(t, "false", h.Get("X-Should-Retry"))
			require.Contains(t, string(body), "me: no turn", p.function)
			if h.Get("Content-Type") == "text/xml" {
				var v struct {
					Error struct{ Code, Message string }
				}
				require.NoError(t, xml.Unmarshal(body, &v))
				require.NotEmpty(t, v.Error.Code)
				continue
			}
			var v map[string]any
			require.NoError(t, json.Unmarshal(body, &v), p.function)
			require.Equal(t, string(reason), v["reason"], p.function)
			require.Equal(t, false, v["sent"], p.function)
			require.Equal(t, false, v["charged"], p.function)
		}
	}
}

func TestRefusalsAnnounceShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := transport.Refused{Provider: "me", Reason: transport.ReasonRate, RetryAt: time.Now().Add(1500 * time.Millisecond)}
		tests := []struct {
			name    string
			refusal func(transport.Refused) (int, http.Header, []byte)
			refused transport.Refused
			want    string
		}{
			{"seconds, rounded up", provider.TwilioRefusal, soon, "2"},
			{"a minute at the most", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonGate, RetryAt: time.Now().Add(time.Minute)}, "60"},
			{"calls in flight", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonBusy}, "1"},
			{"never at Slack", provider.SlackRefusal, soon, ""},
			{"not for money", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonExhausted, RetryAt: time.Now().Add(time.Second)}, ""},
			{"an instant that is past", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonGate, RetryAt: time.Now()}, ""},
			{"an instant that nobody knows", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonSlots}, ""},
		}
		for _, tt := range tests {
			_, h, _ := tt.refusal(tt.refused)
			require.Equal(t, tt.want, h.Get("Retry-After"), tt.name)
			require.Equal(t, tt.want == "", h.Get("X-Should-Retry") == "false", tt.name)
		}
	})
}

// TestShapes: each vendor's SDKs look for these.
func TestShapes(t *testing.T) {
	exhausted := transport.Refused{Provider: "p", Reason: transport.ReasonExhausted}
	rate := transport.Refused{Provider: "p", Reason: transport.ReasonRate}
	tests := []struct {
		refusal func(transport.Refused) (int, http.Header, []byte)
		refused transport.Refused
		want    string
	}{
		{provider.TwilioRefusal, rate, `"code":20429`},
		{provider.TwilioRefusal, exhausted, `"status":402`},
		{provider.VonageRefusal, rate, `"messages":[{"error-text":"refused before it was sent","status":"1"}]`},
		{provider.TelnyxRefusal, rate, `"errors":[{"code":"10011"`},
		{provider.StripeRefusal, rate, `"error":{"code":"rate","message":"refused before it was sent","type":"rate_limit_error"}`},
		{provider.OpenAIRefusal, exhausted, `"type":"insufficient_quota"`},
		{provider.AnthropicRefusal, rate, `"type":"error","error":{"message":"refused before it was sent","type":"rate_limit_error"}`},
		{provider.GoogleMapsRefusal, exhausted, `"status":"OVER_DAILY_LIMIT"`},
		{provider.GoogleRefusal, rate, `"status":"RESOURCE_EXHAUSTED"`},
		{provider.SlackRefusal, rate, `"ok":false,"error":"ratelimited"`},
		{provider.GitHubRefusal, rate, `"message":"refused before it was sent"`},
		{provider.AWSRefusal, rate, `<Code>Throttled</Code>`},
		{provider.MessageRefusal, rate, `{"detail":"refused before it was sent","title":"Too Many Requests"`},
	}
	for _, tt := range tests {
		_, _, body := tt.refusal(tt.refused)
		require.Contains(t, string(body), tt.want)
	}
}

// TestRefusalInsteadOfAnError: what a caller gets who set one.
func TestRefusalInsteadOfAnError(t *testing.T) {
	p := provider.TwilioSMS(cent)
	p.Budgets = []budget.Budget{budget.PerDay(cent / 2)}
	p.Refusal = provider.TwilioRefusal
	rt, err := transport.New(transport.Config{Ledger: new(budget.Memory), Providers: []transport.Provider{p}})
	require.NoError(t, err)
	resp, err := rt.Client().Do(request(t, calls[0].call, calls[0].contentType, calls[0].body))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusPaymentRequired, resp.StatusCode)
	var v struct {
		Code   int
		Detail string
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&v))
	require.Equal(t, http.StatusPaymentRequired, v.Code)
	require.Contains(t, v.Detail, "budget twilio-sms-day: 0 of 0.005 USD used, call needs 0.01")
}

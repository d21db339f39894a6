package provider_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
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
			money := want == http.StatusPaymentRequired
			if own, ok := ownStatus[p.function][want]; ok {
				want, money = own, money && own == http.StatusOK
			}
			require.Equal(t, want, status, "%s, %s", p.function, reason)
			if reason == transport.ReasonBusy {
				continue // which calls in flight may end at any moment; see below
			}
			if money {
				require.Equal(t, "7200", h.Get("Retry-After"), p.function)
			} else {
				require.Empty(t, h.Get("Retry-After"), "%s: SDKs sleep as long as they are told", p.function)
			}
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
			{"no repeat for money in a shop's card error", provider.StripeRefusal, transport.Refused{Reason: transport.ReasonExhausted, RetryAt: time.Now().Add(time.Second)}, ""},
			{"an instant that is past", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonGate, RetryAt: time.Now()}, ""},
			{"money that calls in flight hold", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonBusy, RetryAt: time.Now().Add(time.Hour)}, "1"},
			{"a slot that any end frees", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonSlots}, "1"},
			{"a store that is away", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonLedger}, "2"},
			{"a store that answered no", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonLedger, Err: fmt.Errorf("x: %w", budget.ErrConflict)}, ""},
			{"an instant that nobody knows", provider.TwilioRefusal, transport.Refused{Reason: transport.ReasonGate}, ""},
			{"an outcome that nobody knows", provider.TwilioRefusal, transport.Refused{Reason: "outcome_unknown", OutcomeUnknown: true, RetryAt: time.Now().Add(time.Second)}, ""},
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
		{provider.VonageRefusal, rate, `"messages":[{"error-text":"outlay refused this call","status":"1"}]`},
		{provider.TelnyxRefusal, rate, `"errors":[{"code":"10011"`},
		{provider.StripeRefusal, rate, `"error":{"code":"rate","message":"outlay refused this call","type":"rate_limit_error"}`},
		{provider.OpenAIRefusal, exhausted, `"type":"insufficient_quota"`},
		{provider.AnthropicRefusal, rate, `"type":"error","error":{"message":"outlay refused this call","type":"rate_limit_error"}`},
		{provider.GoogleMapsRefusal, exhausted, `"status":"OVER_DAILY_LIMIT"`},
		{provider.GoogleRefusal, rate, `"status":"RESOURCE_EXHAUSTED"`},
		{provider.SlackRefusal, rate, `"ok":false,"error":"ratelimited"`},
		{provider.GitHubRefusal, rate, `"message":"outlay refused this call"`},
		{provider.AWSRefusal, rate, `<Code>Throttled</Code>`},
		{provider.MessageRefusal, rate, `{"detail":"outlay refused this call","title":"Rate limit reached"`},
		{provider.MessageRefusal, transport.Refused{Reason: transport.ReasonLedger, Err: budget.ErrUnavailable}, `"title":"The ledger did not answer"`},
		{provider.MessageRefusal, transport.Refused{Reason: transport.ReasonLedger, Err: budget.ErrConflict}, `"title":"The configuration contradicts the ledger"`},
	}
	for _, tt := range tests {
		_, _, body := tt.refusal(tt.refused)
		require.Contains(t, string(body), tt.want)
	}
}

// TestMoneyRefusalsTellTheWindow: the end of the window is worth knowing, and a repeat
// before it is not.
func TestMoneyRefusalsTellTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, h, body := provider.TwilioRefusal(transport.Refused{
			Provider: "twilio", Reason: transport.ReasonExhausted, RetryAt: time.Now().Add(2 * time.Hour), Call: transport.CallID{Boot: 0x7f9c, Seq: 0x1a22},
			Err: &budget.ExceededError{
				Provider: "twilio", Budget: "twilio-day", Window: "2026-12-01", Unit: "USD", Reason: budget.ReasonExhausted,
				Need: 16_600_000, Used: 49_995_900_000, Held: 8_300_000, Limit: 50 * budget.Unit, RetryAt: time.Now().Add(2 * time.Hour),
			},
		})
		require.Equal(t, http.StatusPaymentRequired, status)
		require.Equal(t, "7200", h.Get("Retry-After"))
		require.Equal(t, "false", h.Get("X-Should-Retry"))
		require.Equal(t, "application/problem+json", h.Get("Content-Type"))
		text := "outlay refused this call: twilio: budget twilio-day: 49.9959 of 50 USD used, call needs 0.0166; the next window begins at 2000-01-01T02:00:00Z"
		require.Equal(t, `{"detail":"`+text+`","title":"Budget exhausted","type":"urn:outlay:problem:exhausted","reason":"exhausted",`+
			`"sent":false,"charged":false,"provider":"twilio","budget":"twilio-day","window":"2026-12-01","unit":"USD","limit":"50",`+
			`"spent":"49.9876","held":"0.0083","need":"0.0166","retry_at":"2000-01-01T02:00:00Z","call":"7f9c-1a22",`+
			`"code":402,"message":"`+text+`","more_info":"https://www.twilio.com/docs/api/errors","status":402}`, string(body))
	})
}

// TestUnknownOutcomes: what may be billed never looks like a refusal.
func TestUnknownOutcomes(t *testing.T) {
	for _, p := range presets {
		_, h, body := p.refusal(transport.Refused{Provider: "me", Reason: "outcome_unknown", Status: http.StatusGatewayTimeout, OutcomeUnknown: true})
		require.Empty(t, h.Get("Retry-After"), p.function)
		require.Equal(t, "false", h.Get("X-Should-Retry"), p.function)
		require.NotContains(t, string(body), "refused this call", p.function)
		if h.Get("Content-Type") != "text/xml" {
			require.Contains(t, string(body), `"sent":"unknown","charged":"presumed"`, p.function)
		}
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

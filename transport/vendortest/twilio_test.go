package vendortest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/vendortest"
)

func TestTwilioAcceptsAndRefuses(t *testing.T) {
	const account = "https://api.twilio.com/2010-04-01/Accounts/AC1"
	tests := []struct {
		name, method, url, body string
		status                  int
		code                    any
	}{
		{"message", http.MethodPost, messages, text("+1", "hi"), 201, nil},
		{"messaging service", http.MethodPost, messages, "To=%2B1&MessagingServiceSid=MG1&Body=hi", 201, nil},
		{"no recipient", http.MethodPost, messages, "From=%2B1&Body=hi", 400, 21604.0},
		{"no sender", http.MethodPost, messages, "To=%2B1&Body=hi", 400, 21603.0},
		{"no text", http.MethodPost, messages, "To=%2B1&From=%2B2", 400, 21602.0},
		{"text too long", http.MethodPost, messages, text("+1", strings.Repeat("x", 1601)), 400, 21617.0},
		{"no message", http.MethodGet, account + "/Messages/SM1.json", "", 404, 20404.0},
		{"no such page", http.MethodPost, account + "/Calls.json", "", 404, 20404.0},
		{"no such method", http.MethodDelete, messages, "", 405, 20004.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sms := vendortest.NewSMS(vendortest.Options{})
			a := do(t, open(t, sms), tt.method, tt.url, tt.body)
			require.Equal(t, tt.status, a.status)
			require.Equal(t, []any{tt.code}, fields(t, a, "code"))
			require.Equal(t, tt.status == 201, len(sms.Invoice().Lines) == 1)
		})
	}
}

func TestTwilioTellsSegmentsAtOnceAndThePriceLater(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{})
	c := open(t, sms)
	a := do(t, c, http.MethodPost, messages, text("+1", strings.Repeat("ж", 71)))
	require.Equal(t, []any{"2", nil, "USD", "queued"}, fields(t, a, "num_segments", "price", "price_unit", "status"))
	sid := fields(t, a, "sid")[0].(string)
	require.Len(t, sid, 34)
	require.Equal(t, sms.Invoice().Lines[0].Ref, sid)
	later := do(t, c, http.MethodGet, strings.Replace(messages, ".json", "/"+sid+".json", 1), "")
	require.Equal(t, []any{"-0.016600000", "delivered"}, fields(t, later, "price", "status"))
	require.Len(t, sms.Invoice().Lines, 1, "looking is free")
}

func TestTwilioThrottleSaysNoPause(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Requests: 1, Window: forever}})
	c := open(t, sms)
	do(t, c, http.MethodPost, messages, text("+1", "hi"))
	a := do(t, c, http.MethodPost, messages, text("+2", "hi"))
	require.Equal(t, 429, a.status)
	require.Equal(t, []any{20429.0, 429.0}, fields(t, a, "code", "status"))
	require.Empty(t, a.header.Get("Retry-After"))
}

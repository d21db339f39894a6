package price_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

func TestTextsAreCountedAsTheyAreMeant(t *testing.T) {
	x := strings.Repeat
	tests := []struct {
		name, contentType, url, body string
		units                        int64
	}{
		{"percent-encoded form", form, "/", "To=1555&Body=" + x("%C3%A6%c3%b8%C3%A5", 50), 1},
		{"plus signs for spaces", form, "/", "To=1555&Body=" + x("a+", 80), 1},
		{"encoded names", form, "/", "%54o=1555&%42ody=hi", 1},
		{"JSON escapes", jsonType, "/", `{"to":"1555","text":"` + x(`\u0436`, 71) + `"}`, 2},
		{"JSON surrogate pairs", jsonType, "/", `{"to":"1555","text":"` + x(`\ud83d\ude00`, 36) + `"}`, 2},
		{"query", "", "/?to=1555&text=" + x("%D0%B6", 71), "", 2},
		{"form in query and body", form, "/?To=1555", "Body=hi", 1},
		{"JSON without its type", "text/plain", "/", ` {"to":"1555","text":"hi"}`, 1},
		{"JSON of another name", "application/vnd.api+json; charset=utf-8", "/", `{"to":"1555","text":"hi"}`, 1},
		{"an empty text is a message", form, "/", "To=1555&Body=", 1},
		{"two texts: the longer", form, "/", "To=1555&Body=hi&text=" + x("a", 161), 2},
		{"several recipients", form, "/", "To=1555,+1556;1557<1558&Body=" + x("a", 161), 8},
		{"empty recipients are none", form, "/", "To=1555,,&To=&Body=hi", 1},
		{"a list in JSON", jsonType, "/", `{"to":["1555","1556"],"text":"hi"}`, 2},
		{"a number in JSON", jsonType, "/", `{"to":15551234567,"text":"hi"}`, 1},
		{"messages of their own", jsonType, "/", `{"messages":[{"to":"1555","body":"hi"},{"to":"1556","body":"` + x("a", 161) + `"}]}`, 3},
		{"destinations inside a message", jsonType, "/", `{"messages":[{"destinations":[{"to":"1555"},{"to":"1556"}],"text":"hi"}]}`, 2},
		{"recipient around the text", jsonType, "/", `{"to":{"number":"1555"},"message":{"content":{"text":"hi"}}}`, 1},
		{"recipient in the query, text in JSON", jsonType, "/?to=1555", `{"text":"hi"}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, tt.contentType, "https://api.example"+tt.url, tt.body)
			if tt.body == "" {
				r = get(t, "https://api.example"+tt.url)
			}
			q, err := price.SMS{Segment: cent}.Quote(r)
			require.NoError(t, err)
			require.Equal(t, tt.units, q.Units)
			require.Equal(t, budget.Amount(tt.units)*cent, q.Amount)
		})
	}
}

func TestForcedUCS2(t *testing.T) {
	s := price.SMS{Segment: cent, UCS2: "type=unicode"}
	for body, want := range map[string]int64{
		"to=1555&type=unicode&text=": 2,
		"to=1555&type=text&text=":    1,
		"to=1555&text=":              1,
	} {
		q, err := s.Quote(post(t, form, "https://api.example/", body+strings.Repeat("a", 71)))
		require.NoError(t, err)
		require.Equal(t, want, q.Units, body)
	}
	q, err := s.Quote(post(t, jsonType, "https://api.example/", `{"type":"unicode","messages":[{"to":"1","text":"`+strings.Repeat("a", 71)+`"}]}`))
	require.NoError(t, err)
	require.EqualValues(t, 2, q.Units)
}

func TestPriceByDestination(t *testing.T) {
	s := price.SMS{Prefixes: map[string]budget.Amount{"+1": cent, "+959": 24 * cent, "+95": 20 * cent, "44": 4 * cent, "+999": 0}}
	tests := []struct {
		to, destination string
		amount          budget.Amount
	}{
		{"+15551234567", "+1", cent},
		{"15551234567", "+1", cent},
		{"+9591234567", "+95", 24 * cent},
		{"+9581234567", "+95", 20 * cent},
		{"+44 (7700) 900-123", "+44", 4 * cent},
		{"00447700900123", "+44", 4 * cent},
		{"+9991234", "+999", 0},
		{"+1555,+9591234,+15556", "+95", 26 * cent},
	}
	for _, tt := range tests {
		q, err := s.Quote(post(t, form, "https://api.example/", url.Values{"To": {tt.to}, "Body": {"hi"}}.Encode()))
		require.NoError(t, err, tt.to)
		require.Equal(t, tt.amount, q.Amount, tt.to)
		require.Equal(t, tt.destination, q.Destination, tt.to)
	}
}

func TestUnknownDestinations(t *testing.T) {
	prefixes := map[string]budget.Amount{"+1": cent}
	for _, to := range []string{
		"+4930123456", "0301234567", "whatsapp:+15551234567", "client:bob", "+", "+1555123456789012", "１５５５", "++1555", "1+555",
		"001234567890123456", "*", "+0", "00",
	} {
		r := post(t, form, "https://api.example/", url.Values{"To": {to}, "Body": {"hi"}}.Encode())
		_, err := price.SMS{Prefixes: prefixes}.Quote(r)
		require.ErrorIs(t, err, budget.ErrUnpriced, to)
		require.NotContains(t, err.Error(), to+" ", "an error tells no number")
		q, err := price.SMS{Prefixes: prefixes, Segment: 50 * cent}.Quote(r)
		require.NoError(t, err, to)
		require.Equal(t, 50*cent, q.Amount, to)
	}
}

// A count of calls would let 24 times the money through.
func TestPremiumDestinationsUseTheBudgetUp(t *testing.T) {
	s := price.SMS{Prefixes: map[string]budget.Amount{"+1": cent, "+959": 24 * cent}}
	left, sent := budget.Unit, 0
	for range 10 {
		q, err := s.Quote(post(t, form, "https://api.example/", "To=%2B9591234567&Body=hi"))
		require.NoError(t, err)
		if q.Amount <= left {
			left -= q.Amount
			sent++
		}
	}
	require.Equal(t, 4, sent)
	require.Equal(t, 4*cent, left)
}

func TestCountryCodes(t *testing.T) {
	for to, want := range map[string]string{
		"+12125550123": "+1", "+79161234567": "+7", "+201001234567": "+20", "+27821234567": "+27", "+2348031234567": "+234",
		"+390612345678": "+39", "+353851234567": "+353", "+380501234567": "+380", "+420601234567": "+420", "+493012345": "+49",
		"+5491123456789": "+54", "+50212345678": "+502", "+5999123456": "+599", "+61412345678": "+61", "+6701234567": "+670",
		"+819012345678": "+81", "+85291234567": "+852", "+8613912345678": "+86", "+8801712345678": "+880", "+919812345678": "+91",
		"+9613123456": "+961", "+989123456789": "+98", "+998901234567": "+998",
	} {
		q, err := price.SMS{Segment: cent}.Quote(post(t, form, "https://api.example/", url.Values{"To": {to}, "Body": {"hi"}}.Encode()))
		require.NoError(t, err)
		require.Equal(t, want, q.Destination, to)
	}
}

func TestWhatIsNoTextMessageIsUnpriced(t *testing.T) {
	s := price.SMS{Segment: cent, Other: []string{"MediaUrl", "media_urls"}}
	tests := []struct{ name, contentType, body string }{
		{"no text", form, "To=1555"},
		{"no recipient", form, "Body=hi"},
		{"only empty recipients", form, "To=,+,&Body=hi"},
		{"a picture", form, "To=1555&Body=hi&MediaUrl=https://x"},
		{"a picture in JSON", jsonType, `{"to":"1555","text":"hi","media_urls":["https://x"]}`},
		{"a picture around the message", jsonType, `{"media_urls":["x"],"messages":[{"to":"1555","text":"hi"}]}`},
		{"malformed form", form, "To=1555&Body=100%"},
		{"malformed JSON", jsonType, `{"to":"1555","text":"hi"`},
		{"more than one JSON value", jsonType, `{"to":"1555","text":"hi"}{"to":"1556","text":"hi"}`},
		{"JSON nested deep", jsonType, strings.Repeat(`{"a":`, 9000) + `{"to":"1555","text":"hi"}` + strings.Repeat("}", 9000)},
		{"JSON nested deeper", jsonType, strings.Repeat(`[`, 200_000)},
		{"no body at all", form, ""},
		{"a text that is no string", jsonType, `{"to":"1555","text":5}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Quote(post(t, tt.contentType, "https://api.example/", tt.body))
			require.ErrorIs(t, err, budget.ErrUnpriced)
		})
	}
	_, err := price.SMS{}.Quote(post(t, form, "https://api.example/", "To=1555&Body=hi"))
	require.ErrorIs(t, err, budget.ErrUnpriced, "the zero value knows no price")
	_, err = price.SMS{Segment: -cent}.Quote(post(t, form, "https://api.example/", "To=1555&Body=hi"))
	require.ErrorIs(t, err, budget.ErrUnpriced)
	_, err = s.Quote(post(t, jsonType, "https://api.example/", `{"to":"1555","text":"hi","media_urls":null}`))
	require.NoError(t, err, "null is no picture")
}

func FuzzSMS(f *testing.F) {
	for _, s := range []string{`{"to":"1","text":"x"}`, `[[[{"text":1}]]]`, "To=1&Body=x", "{", `{"to":{"to":{"to":[]}},"text":"x"}`, "\x00"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, body string, asJSON bool) {
		contentType := form
		if asJSON {
			contentType = jsonType
		}
		q, err := price.SMS{Segment: cent, Currency: "EUR"}.Quote(post(t, contentType, "https://api.example/", body))
		if err != nil {
			require.ErrorIs(t, err, budget.ErrUnpriced)
			return
		}
		require.Positive(t, q.Units, "a message that can be sent is never free")
		require.Equal(t, budget.Amount(q.Units)*cent, q.Amount)
		require.Equal(t, "EUR", q.Unit)
	})
}

func BenchmarkSMSForm10KB(b *testing.B) {
	body := url.Values{"To": {"+15551234567"}, "From": {"+15550001"}, "Body": {strings.Repeat("Hello, Wörld & co. ", 500)}}.Encode()
	r := post(b, form, "https://api.twilio.com/", body)
	s := price.SMS{Segment: cent}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := s.Quote(r); err != nil {
			b.Fatal(err)
		}
	}
}

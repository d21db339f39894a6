package price_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget/price"
)

// Where vendors tell what an answer cost.
var (
	vonage    = price.AnswerCost{Amounts: "messages.message-price", In: "EUR"}
	clickSend = price.AnswerCost{Amounts: "data.total_price", Currency: "data._currency.currency_name_short"}
	africa    = price.AnswerCost{Amounts: "SMSMessageData.Recipients.cost"}
	telnyx    = price.AnswerCost{Amounts: "data.cost.amount", Currency: "data.cost.currency"}
)

func TestPricesThatAnswersTell(t *testing.T) {
	tests := []struct {
		name, unit string
		tells      price.AnswerCost
		body, cost string
	}{
		{"vonage, three parts", "EUR", vonage, `{"message-count":"3","messages":[{"status":"0","message-price":"0.03330000"},{"status":"0","message-price":"0.03330000"},{"status":"0","message-price":"0.03330000"}]}`, "0.0999"},
		{"clicksend", "EUR", clickSend, `{"data":{"total_price":0.0811,"messages":[{"message_price":"0.0811"}],"_currency":{"currency_name_short":"EUR"}}}`, "0.0811"},
		{"africa's talking, with the currency in front", "KES", africa, `{"SMSMessageData":{"Message":"Sent to 2/3","Recipients":[{"cost":"KES 0.8000"},{"cost":"KES 1.6000"},{"cost":"0"}]}}`, "2.4"},
		{"telnyx", "USD", telnyx, `{"data":{"parts":2,"cost":{"amount":"0.0080","currency":"USD"}}}`, "0.008"},
		{"more than nine places are rounded up", "USD", telnyx, `{"data":{"cost":{"amount":"0.00000000001","currency":"USD"}}}`, "0.000000001"},
		{"nothing costs nothing in any currency", "KES", africa, `{"SMSMessageData":{"Recipients":[{"cost":"0"}]}}`, "0"},
		{"a hundred times the estimate", "USD", telnyx, `{"data":{"cost":{"amount":5,"currency":"USD"}}}`, "5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := price.FromAnswer(price.PerCall(5*cent).In(tt.unit), tt.tells)
			q, err := p.Quote(get(t, "https://api.example/"))
			require.NoError(t, err)
			require.Equal(t, 5*cent, q.Amount, "the hold is the estimate")
			require.Equal(t, tt.unit, p.Unit())
			for _, size := range []int{1, 5, 1000} {
				a, known := meter(p, tt.body, size)
				require.True(t, known)
				require.Equal(t, tt.cost, a.String())
			}
		})
	}
}

func TestAnswersThatAreNotBelieved(t *testing.T) {
	tests := []struct {
		name  string
		tells price.AnswerCost
		body  string
	}{
		{"no price", telnyx, `{"data":{"parts":2}}`},
		{"null", telnyx, `{"data":{"cost":{"amount":null,"currency":null}}}`},
		{"no cost at all", telnyx, `{"data":{"cost":null}}`},
		{"negative", telnyx, `{"data":{"cost":{"amount":"-0.01","currency":"USD"}}}`},
		{"no number", telnyx, `{"data":{"cost":{"amount":"NaN","currency":"USD"}}}`},
		{"an exponent", telnyx, `{"data":{"cost":{"amount":1e-2,"currency":"USD"}}}`},
		{"another currency", telnyx, `{"data":{"cost":{"amount":"0.01","currency":"EUR"}}}`},
		{"no currency", telnyx, `{"data":{"cost":{"amount":"0.01"}}}`},
		{"two currencies", africa, `{"SMSMessageData":{"Recipients":[{"cost":"USD 0.01"},{"cost":"KES 0.01"}]}}`},
		{"more than a hundred times the estimate", telnyx, `{"data":{"cost":{"amount":"5.000000001","currency":"USD"}}}`},
		{"too much for an amount", telnyx, `{"data":{"cost":{"amount":"99999999999999999999","currency":"USD"}}}`},
		{"the sum too", africa, `{"SMSMessageData":{"Recipients":[{"cost":"USD 9000000000"},{"cost":"USD 9000000000"}]}}`},
		{"cut", telnyx, `{"data":{"cost":{"amount":"0.01","currency":"USD"}`},
		{"HTML", telnyx, `<html>`},
		{"empty", telnyx, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := price.FromAnswer(price.PerCall(5*cent), tt.tells)
			_, err := p.Quote(get(t, "https://api.example/"))
			require.NoError(t, err)
			_, known := meter(p, tt.body, 1000)
			require.False(t, known)
		})
	}
}

func TestCreditsInAHeader(t *testing.T) {
	p := price.FromAnswer(price.PerCall(cent), price.AnswerCost{Header: "X-Credits-Charged", PerCredit: cent / 10})
	_, err := p.Quote(get(t, "https://api.example/"))
	require.NoError(t, err)
	for value, want := range map[string]string{"4": "0.004", "0": "0", "1.5": "0.0015", "1000": "1"} {
		a, known := meter(p, "", 1, "X-Credits-Charged", value)
		require.True(t, known, value)
		require.Equal(t, want, a.String())
	}
	for _, value := range []string{"", "-1", "NaN", "1001", "9999999999", "9223372036"} {
		_, known := meter(p, "", 1, "X-Credits-Charged", value)
		require.False(t, known, value)
	}
	_, cost := p.Meter(&http.Response{StatusCode: 200, Header: http.Header{"X-Credits-Charged": {"1", "4"}}})
	_, known := cost()
	require.False(t, known, "who knows which one is meant")
}

func TestToldWithoutEstimate(t *testing.T) {
	_, err := price.FromAnswer(nil, vonage).Quote(get(t, "https://api.example/"))
	require.ErrorContains(t, err, "no price for this call")
	p := price.FromAnswer(price.Free, telnyx)
	require.Equal(t, "USD", p.Unit())
	a, known := meter(p, `{"data":{"cost":{"amount":"0.0080","currency":"USD"}}}`, 10)
	require.True(t, known, "with free estimates there is nothing to compare with")
	require.Equal(t, "0.008", a.String())
}

func TestToldIsSafeForConcurrentUse(t *testing.T) {
	p := price.FromAnswer(price.Per(cent, func(r *http.Request) (int64, error) { return int64(len(r.URL.RawQuery)), nil }), telnyx)
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range 100 {
				_, _ = p.Quote(get(t, "https://api.example/?"+strings.Repeat("x", (n*i)%50)))
				meter(p, `{"data":{"cost":{"amount":"0.0080","currency":"USD"}}}`, 10)
			}
		}()
	}
	for range 8 {
		<-done
	}
	a, known := meter(p, `{"data":{"cost":{"amount":"49","currency":"USD"}}}`, 10)
	require.True(t, known, "the dearest quote was 0.49")
	require.Equal(t, "49", a.String())
	_, known = meter(p, `{"data":{"cost":{"amount":"49.01","currency":"USD"}}}`, 10)
	require.False(t, known)
}

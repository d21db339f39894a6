package price_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

func ExampleSMS() {
	sms := price.SMS{
		Prefixes: map[string]budget.Amount{
			"+1":  budget.MustParse("0.0083"),
			"+49": budget.MustParse("0.095"),
		},
		Other: []string{"MediaUrl"}, // a picture has another price
	}
	text := url.Values{"To": {"+4930123456"}, "Body": {strings.Repeat("Grüße 😀 ", 10)}}
	r, _ := http.NewRequest(http.MethodPost, "https://api.twilio.com/", strings.NewReader(text.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	q, err := sms.Quote(r)
	fmt.Println(q.Amount, q.Unit, q.Units, "segments to", q.Destination, err)
	// Output:
	// 0.19 USD 2 segments to +49 <nil>
}

func ExampleTokens() {
	llm := price.Tokens{Models: map[string]price.Model{
		"gpt-4o-mini": { // per million tokens
			Input: budget.MustParse("0.15"), CachedInput: budget.MustParse("0.075"), Output: budget.MustParse("0.60"),
			Context: 128_000,
		},
	}}
	r, _ := http.NewRequest(http.MethodPost, "https://api.openai.com/v1/chat/completions",
		strings.NewReader(`{"model":"gpt-4o-mini","max_completion_tokens":500,"messages":[{"role":"user","content":"Hello"}]}`))
	q, err := llm.Quote(r)
	fmt.Println("at most", q.Amount, q.Unit, err)

	w, cost := llm.Meter(&http.Response{StatusCode: http.StatusOK})
	fmt.Fprint(w, `{"model":"gpt-4o-mini-2024-07-18","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":120}}`)
	fmt.Println(cost())
	// Output:
	// at most 0.0004683 USD <nil>
	// 0.0000732 true
}

func ExamplePer() {
	matrix := price.Per(budget.MustParse("0.005"), price.Cells("origins", "destinations"))
	r, _ := http.NewRequest(http.MethodGet, "https://maps.googleapis.com/maps/api/distancematrix/json?origins=a|b&destinations=c|d|e", nil)
	q, err := matrix.Quote(r)
	fmt.Println(q.Units, "elements,", q.Amount, q.Unit, err)
	// Output:
	// 6 elements, 0.03 USD <nil>
}

func ExampleOr() {
	p := price.Or(price.SMS{}, price.Assume(budget.MustParse("0.05")))
	r, _ := http.NewRequest(http.MethodGet, "https://api.example/", nil)
	q, err := p.Quote(r)
	fmt.Println(q.Amount, q.Unit, "assumed:", q.Assumed, err)
	// Output:
	// 0.05 USD assumed: true <nil>
}

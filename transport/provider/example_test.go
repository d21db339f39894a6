package provider_test

import (
	"fmt"
	"log"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

func Example() {
	sms := provider.TwilioSMS(budget.MustParse("0.0083")) // what you pay per segment
	sms.Rates = []throttle.Rate{throttle.PerSecond(10)}   // what your sender may send
	sms.Budgets = []budget.Budget{budget.PerDay(50 * budget.Unit)}

	geo := provider.GoogleGeocoding(budget.MustParse("0.005")) // what you pay per lookup
	geo.Budgets = []budget.Budget{budget.PerDay(20 * budget.Unit)}
	geo.Retry.Unknown = transport.ReplaySafe

	chat := provider.OpenAI(price.Tokens{Models: map[string]price.Model{ // per million tokens
		"gpt-4o-mini": {Input: budget.MustParse("0.15"), Output: budget.MustParse("0.60"), Context: 128_000},
	}})
	chat.Budgets = []budget.Budget{budget.PerMonth(100 * budget.Unit)}

	rt, err := transport.New(transport.Config{
		Ledger:    new(budget.Memory),
		Providers: []transport.Provider{sms, geo, chat},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.CloseIdleConnections()
	fmt.Println(sms.Name, geo.Name, chat.Name)
	// Output: twilio-sms google-geocoding openai
}

func ExampleTwilioPrice() {
	sms := provider.TwilioSMS(0)
	sms.Price = provider.TwilioPrice(price.SMS{Prefixes: map[string]budget.Amount{
		"+1":  budget.MustParse("0.0083"),
		"+44": budget.MustParse("0.0524"),
	}}) // a message to any other country is refused
	fmt.Println(sms.Name)
	// Output: twilio-sms
}

// A model that allows 500 requests and 200,000 tokens a minute.
func ExampleOpenAI() {
	chat := provider.OpenAI(price.Tokens{Models: map[string]price.Model{
		"gpt-4o-mini": {Input: budget.MustParse("0.15"), Output: budget.MustParse("0.60"), Context: 128_000},
	}})
	chat.Scopes[0].Rates = []throttle.Rate{throttle.PerMinute(500)}
	chat.Scopes = append(chat.Scopes, transport.Scope{
		Name: "tokens", Key: chat.Scopes[0].Key, Units: true,
		Rates: []throttle.Rate{{N: 200_000, Per: time.Minute, Burst: 200_000}},
	})
	fmt.Println(chat.Scopes[0].Name, chat.Scopes[1].Name)
	// Output: model tokens
}

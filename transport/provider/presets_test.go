package provider_test

import (
	"net/http"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

// preset is one function of the package, with an argument that a user might give.
type preset struct {
	function string // as the README shows it
	vendor   string // of the vectors of package dialect; empty: there are none
	make     func() transport.Provider
	refusal  func(transport.Refused) (int, http.Header, []byte)
	// unit and calls say what is billed, for the README.
	unit, billed string
}

var cent = budget.MustParse("0.01")

var models = price.Tokens{Models: map[string]price.Model{
	"gpt-4o-mini":      {Input: budget.MustParse("0.15"), Output: budget.MustParse("0.60"), Context: 128_000},
	"claude-sonnet":    {Input: budget.MustParse("3"), Output: budget.MustParse("15"), Context: 200_000},
	"gemini-2.5-flash": {Input: budget.MustParse("0.30"), Output: budget.MustParse("2.50"), Context: 1_048_576},
}}

func at(f func(budget.Amount) transport.Provider) func() transport.Provider {
	return func() transport.Provider { return f(cent) }
}

func in(f func(budget.Amount, string) transport.Provider, currency string) func() transport.Provider {
	return func() transport.Provider { return f(cent, currency) }
}

func per(f func(price.Tokens) transport.Provider) func() transport.Provider {
	return func() transport.Provider { return f(models) }
}

// presets are all of them, in the order of the README.
var presets = []preset{
	{"TwilioSMS", "Twilio", at(provider.TwilioSMS), provider.TwilioRefusal, "USD", "segment"},
	{"TwilioVerify", "Twilio", at(provider.TwilioVerify), provider.TwilioRefusal, "USD", "verification"},
	{"TwilioLookup", "Twilio", at(provider.TwilioLookup), provider.TwilioRefusal, "USD", "field"},
	{"VonageSMS", "Vonage SMS", at(provider.VonageSMS), provider.VonageRefusal, "EUR", "part, told by the answer"},
	{"Telnyx", "Telnyx", at(provider.Telnyx), provider.TelnyxRefusal, "USD", "part, told by the answer"},
	{"Plivo", "Plivo", at(provider.Plivo), provider.PlivoRefusal, "USD", "unit"},
	{"Sinch", "Sinch", at(provider.Sinch), provider.SinchRefusal, "USD", "part"},
	{"ClickSend", "ClickSend", in(provider.ClickSend, "AUD"), provider.ClickSendRefusal, "AUD", "part, told by the answer"},
	{"AfricasTalking", "Africa's Talking", in(provider.AfricasTalking, "KES"), provider.AfricasTalkingRefusal, "KES", "part, told by the answer"},
	{"AWSSNS", "AWS SNS", at(provider.AWSSNS), provider.AWSRefusal, "USD", "part"},
	{"AWSSES", "AWS SES", at(provider.AWSSES), provider.AWSRefusal, "USD", "recipient"},
	{"GoogleGeocoding", "Google Maps", at(provider.GoogleGeocoding), provider.GoogleMapsRefusal, "USD", "request"},
	{"GooglePlaces", "Google Maps", at(provider.GooglePlaces), provider.GoogleMapsRefusal, "USD", "request"},
	{"GoogleDistanceMatrix", "Google Maps", at(provider.GoogleDistanceMatrix), provider.GoogleMapsRefusal, "USD", "element"},
	{"GoogleRoutes", "Google Maps", func() transport.Provider { return provider.GoogleRoutes(cent, cent/2) }, provider.GoogleRefusal, "USD", "route, element"},
	{"OpenCage", "OpenCage", at(provider.OpenCage), provider.OpenCageRefusal, "USD", "request"},
	{"LocationIQ", "LocationIQ", at(provider.LocationIQ), provider.LocationIQRefusal, "USD", "request"},
	{"Nominatim", "Nominatim", provider.Nominatim, provider.NominatimRefusal, "USD", "free"},
	{"IPAPI", "ip-api.com", provider.IPAPI, provider.IPAPIRefusal, "USD", "free"},
	{"MaxMind", "MaxMind", at(provider.MaxMind), provider.MaxMindRefusal, "USD", "query"},
	{"IPGeolocation", "ipgeolocation.io", at(provider.IPGeolocation), provider.IPGeolocationRefusal, "USD", "credit, told by the answer"},
	{"HERE", "HERE", at(provider.HERE), provider.HERERefusal, "USD", "request"},
	{"Mapbox", "Mapbox", at(provider.Mapbox), provider.MapboxRefusal, "USD", "query"},
	{"SendGrid", "SendGrid", at(provider.SendGrid), provider.SendGridRefusal, "USD", "recipient"},
	{"Mailgun", "Mailgun", at(provider.Mailgun), provider.MailgunRefusal, "USD", "recipient"},
	{"Resend", "Resend", at(provider.Resend), provider.ResendRefusal, "USD", "recipient"},
	{"OpenAI", "OpenAI", per(provider.OpenAI), provider.OpenAIRefusal, "USD", "token, told by the answer"},
	{"AzureOpenAI", "Azure OpenAI", per(provider.AzureOpenAI), provider.OpenAIRefusal, "USD", "token, told by the answer"},
	{"Anthropic", "Anthropic", per(provider.Anthropic), provider.AnthropicRefusal, "USD", "token, told by the answer"},
	{"Gemini", "Gemini", per(provider.Gemini), provider.GoogleRefusal, "USD", "token, told by the answer"},
	{"Stripe", "Stripe", provider.Stripe, provider.StripeRefusal, "USD", "free"},
	{"GitHub", "GitHub", provider.GitHub, provider.GitHubRefusal, "USD", "free"},
	{"Slack", "Slack", provider.Slack, provider.SlackRefusal, "USD", "free"},
	{"Discord", "Discord", provider.Discord, provider.DiscordRefusal, "USD", "free"},
	{"Shopify", "Shopify", provider.Shopify, provider.ShopifyRefusal, "USD", "free"},
	{"Notion", "Notion", provider.Notion, provider.NotionRefusal, "USD", "free"},
	{"HubSpot", "HubSpot", provider.HubSpot, provider.HubSpotRefusal, "USD", "free"},
	{"Okta", "Okta", provider.Okta, provider.OktaRefusal, "USD", "free"},
	{"X", "X", at(provider.X), provider.XRefusal, "USD", "request"},
	{"Zendesk", "Zendesk", provider.Zendesk, provider.ZendeskRefusal, "USD", "free"},
	{"Jira", "Jira Cloud", provider.Jira, provider.JiraRefusal, "USD", "free"},
}

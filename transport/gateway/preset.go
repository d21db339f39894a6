package gateway

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
	"github.com/outlay-go/outlay/transport/provider"
)

// costs are what a preset is priced with; which of them is its matter.
type costs struct {
	amount   budget.Amount
	currency string
	tokens   price.Tokens
}

// preset is what the gateway knows of a vendor beside package provider.
type preset struct {
	build func(costs) transport.Provider
	// upstream is empty if every customer has a host of their own.
	upstream string
	// per is what the vendor bills by: the word for it in price.per. Empty: it bills no
	// calls.
	per string
	// sms prices texts, where per is sms_segment.
	sms func(price.SMS) transport.Pricer
	// currency is the only one, or empty: any.
	currency string
	refusal  func(transport.Refused) (int, http.Header, []byte)
	slots    []Slot
	// query are the parameters that prices and scopes read.
	query []string
	// maxWait stays below sdkWait, which is how long the SDK named waits.
	maxWait, sdkWait time.Duration
	sdk              string
	response         time.Duration
	// ownListener: SDKs drop a path prefix.
	ownListener string
	// whole: the provider has the whole host, whatever its patterns say.
	whole bool
}

// presets are the vendors by name. Everything in them can be overridden.
func presets() map[string]preset {
	all := map[string]preset{}
	for _, some := range []map[string]preset{messaging(), mapsAndPlaces(), models(), others()} {
		maps.Copy(all, some)
	}
	return all
}

func presetNames() []string { return slices.Sorted(maps.Keys(presets())) }

const perSegment, perCall, perElement, perRecipient, perToken = "sms_segment", "call", "element", "recipient", "token"

// free makes a preset of a vendor that bills no calls.
func free(build func() transport.Provider, upstream string, refusal func(transport.Refused) (int, http.Header, []byte)) preset {
	return preset{build: func(costs) transport.Provider { return build() }, upstream: upstream, refusal: refusal}
}

// by makes a preset of a vendor that bills one price in US dollars for each of something.
func by(per string, build func(budget.Amount) transport.Provider, upstream string, refusal func(transport.Refused) (int, http.Header, []byte)) preset {
	return preset{build: func(c costs) transport.Provider { return build(c.amount) }, upstream: upstream, per: per, currency: budget.USD, refusal: refusal}
}

// texts makes a preset of a vendor of text messages.
func texts(build func(budget.Amount) transport.Provider, sms func(price.SMS) transport.Pricer, upstream string, refusal func(transport.Refused) (int, http.Header, []byte)) preset {
	return preset{build: func(c costs) transport.Provider { return build(c.amount) }, upstream: upstream, per: perSegment, sms: sms, refusal: refusal}
}

func messaging() map[string]preset {
	inCurrency := func(build func(budget.Amount, string) transport.Provider) func(budget.Amount) transport.Provider {
		return func(a budget.Amount) transport.Provider { return build(a, budget.USD) } // the price is replaced
	}
	twilio := texts(provider.TwilioSMS, provider.TwilioPrice, "https://api.twilio.com", provider.TwilioRefusal)
	twilio.maxWait, twilio.sdk, twilio.sdkWait = 8*time.Second, "twilio-go", 10*time.Second
	verify := by(perCall, provider.TwilioVerify, "https://verify.twilio.com", provider.TwilioRefusal)
	lookup := by(perElement, provider.TwilioLookup, "https://lookups.twilio.com", provider.TwilioRefusal)
	for _, p := range []*preset{&verify, &lookup} {
		p.maxWait, p.sdk, p.sdkWait = twilio.maxWait, twilio.sdk, twilio.sdkWait
	}
	lookup.query = []string{"Fields", "Type", "AddOns"}
	vonage := texts(provider.VonageSMS, provider.VonagePrice, "https://rest.nexmo.com", provider.VonageRefusal)
	vonage.currency, vonage.maxWait = "EUR", 15*time.Second
	vonage.slots = []Slot{{InQuery, "api_key"}, {InQuery, "api_secret"}}
	vonage.query = []string{"to", "text", "from", "type", "body", "udh"}
	telnyx := texts(provider.Telnyx, provider.TelnyxPrice, "https://api.telnyx.com", provider.TelnyxRefusal)
	telnyx.currency = budget.USD
	africa := texts(inCurrency(provider.AfricasTalking), provider.AfricasTalkingPrice, "https://api.africastalking.com", provider.AfricasTalkingRefusal)
	africa.slots = []Slot{{InHeader, "apiKey"}}
	return map[string]preset{
		"twilio": twilio, "twilio-verify": verify, "twilio-lookup": lookup, "vonage": vonage, "telnyx": telnyx, "africas-talking": africa,
		"clicksend": texts(inCurrency(provider.ClickSend), provider.ClickSendPrice, "https://rest.clicksend.com", provider.ClickSendRefusal),
		"plivo":     texts(provider.Plivo, provider.PlivoPrice, "https://api.plivo.com", provider.PlivoRefusal),
		"sinch":     texts(provider.Sinch, provider.SinchPrice, "https://us.sms.api.sinch.com", provider.SinchRefusal),
		"mailgun":   by(perRecipient, provider.Mailgun, "https://api.mailgun.net", provider.MailgunRefusal),
		"resend":    by(perRecipient, provider.Resend, "https://api.resend.com", provider.ResendRefusal),
		"sendgrid":  by(perRecipient, provider.SendGrid, "https://api.sendgrid.com", provider.SendGridRefusal),
		"slack":     free(provider.Slack, "https://slack.com", provider.SlackRefusal),
		"discord":   free(provider.Discord, "https://discord.com", provider.DiscordRefusal),
	}
}

// googleMaps is all web services of one host, priced by route: which of them a program
// uses, and at what price, nobody else knows.
func googleMaps(costs) transport.Provider {
	p := provider.GoogleGeocoding(0)
	p.Match, p.Rates, p.Price = []string{"maps.googleapis.com"}, nil, nil
	p.Dialect = dialect.For("google-maps")
	return p
}

func mapsAndPlaces() map[string]preset {
	const host = "https://maps.googleapis.com"
	all := map[string]preset{
		"google-maps":            {build: googleMaps, upstream: host, per: perCall, refusal: provider.GoogleMapsRefusal, whole: true},
		"google-geocoding":       by(perCall, provider.GoogleGeocoding, host, provider.GoogleMapsRefusal),
		"google-places":          by(perCall, provider.GooglePlaces, host, provider.GoogleMapsRefusal),
		"google-distance-matrix": by(perElement, provider.GoogleDistanceMatrix, host, provider.GoogleMapsRefusal),
	}
	for name, p := range all {
		p.maxWait, p.sdk, p.sdkWait = 8*time.Second, "Google Maps for Node", 10*time.Second
		p.query = []string{"origins", "destinations"}
		all[name] = p
	}
	both := func(a budget.Amount) transport.Provider { return provider.GoogleRoutes(a, a) }
	here := by(perCall, provider.HERE, "https://geocode.search.hereapi.com", provider.HERERefusal)
	here.slots = []Slot{{InQuery, "apiKey"}}
	mapbox := by(perElement, provider.Mapbox, "https://api.mapbox.com", provider.MapboxRefusal)
	mapbox.slots = []Slot{{InQuery, "access_token"}}
	geolocation := by(perElement, provider.IPGeolocation, "https://api.ipgeolocation.io", provider.IPGeolocationRefusal)
	geolocation.slots, geolocation.query = []Slot{{InQuery, "apiKey"}}, []string{"include"}
	maps.Copy(all, map[string]preset{
		"here": here, "mapbox": mapbox, "ipgeolocation": geolocation,
		"google-routes": by(perCall, both, "https://routes.googleapis.com", provider.GoogleRefusal),
		"locationiq":    by(perCall, provider.LocationIQ, "https://us1.locationiq.com", provider.LocationIQRefusal),
		"opencage":      by(perCall, provider.OpenCage, "https://api.opencagedata.com", provider.OpenCageRefusal),
		"maxmind":       by(perCall, provider.MaxMind, "https://geoip.maxmind.com", provider.MaxMindRefusal),
		"nominatim":     free(provider.Nominatim, "https://nominatim.openstreetmap.org", provider.NominatimRefusal),
		"ip-api":        free(provider.IPAPI, "http://ip-api.com", provider.IPAPIRefusal),
	})
	return all
}

func models() map[string]preset {
	llm := func(build func(price.Tokens) transport.Provider, upstream string, refusal func(transport.Refused) (int, http.Header, []byte)) preset {
		return preset{
			build: func(c costs) transport.Provider { return build(c.tokens) }, upstream: upstream, per: perToken, refusal: refusal,
			maxWait: 30 * time.Second, response: 10 * time.Minute,
		}
	}
	return map[string]preset{
		"openai":       llm(provider.OpenAI, "https://api.openai.com", provider.OpenAIRefusal),
		"azure-openai": llm(provider.AzureOpenAI, "", provider.OpenAIRefusal),
		"anthropic":    llm(provider.Anthropic, "https://api.anthropic.com", provider.AnthropicRefusal),
		"gemini":       llm(provider.Gemini, "https://generativelanguage.googleapis.com", provider.GoogleRefusal),
	}
}

func others() map[string]preset {
	stripe := free(provider.Stripe, "https://api.stripe.com", provider.StripeRefusal)
	stripe.maxWait, stripe.ownListener = 30*time.Second, "Node and Go"
	shopify := free(provider.Shopify, "", provider.ShopifyRefusal)
	shopify.slots = []Slot{{InHeader, "X-Shopify-Access-Token"}}
	return map[string]preset{
		"stripe": stripe, "shopify": shopify,
		"github":  free(provider.GitHub, "https://api.github.com", provider.GitHubRefusal),
		"hubspot": free(provider.HubSpot, "https://api.hubapi.com", provider.HubSpotRefusal),
		"jira":    free(provider.Jira, "", provider.JiraRefusal),
		"notion":  free(provider.Notion, "https://api.notion.com", provider.NotionRefusal),
		"okta":    free(provider.Okta, "", provider.OktaRefusal),
		"zendesk": free(provider.Zendesk, "", provider.ZendeskRefusal),
		"x":       by(perCall, provider.X, "https://api.x.com", provider.XRefusal),
	}
}

// unfit are presets of package provider that cannot be used here, and why.
var unfit = map[string]string{
	"aws-sns": "requests are signed for the vendor's own host, so that no gateway can pass them on: use the library in the program",
	"aws-ses": "requests are signed for the vendor's own host, so that no gateway can pass them on: use the library in the program",
}

// routesOf are the paths of the upstream's host that a preset knows, as patterns; nil: all.
func routesOf(p transport.Provider, upstream string) []string {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil
	}
	var paths []string
	for _, m := range p.Match {
		host, path, _ := strings.Cut(m, "/")
		if suffix, wild := strings.CutPrefix(host, "*"); host != u.Hostname() && !(wild && strings.HasSuffix(u.Hostname(), suffix)) {
			continue
		}
		if path == "" {
			return nil
		}
		paths = append(paths, "/"+path)
	}
	return paths
}

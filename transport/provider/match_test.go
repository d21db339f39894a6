package provider_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

const (
	form = "application/x-www-form-urlencoded"
	js   = "application/json"
)

// request makes a request of "METHOD url" and a body.
func request(t testing.TB, call, contentType, body string) *http.Request {
	t.Helper()
	method, to, ok := strings.Cut(call, " ")
	require.True(t, ok)
	req, err := http.NewRequest(method, "https://"+to, strings.NewReader(body))
	require.NoError(t, err)
	if body == "" {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	} else {
		req.Header.Set("Content-Type", contentType)
	}
	return req
}

func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

const unpriced = -1

// calls are requests as SDKs make them: whose they are, what they cost in cents and
// which scopes they use. A cost of a text is a cent for each segment.
var calls = []struct {
	call, contentType, body string
	provider                string
	cents                   int64
	scopes                  string
}{
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", form, query("To", "+15550100", "From", "+15550101", "Body", "Hi"), "twilio-sms", 1, "sender"},
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Messages", form, query("To", "+15550100", "MessagingServiceSid", "MG1", "Body", strings.Repeat("é", 161)), "twilio-sms", 2, "sender"},
	{"POST api.dublin.ie1.twilio.com/2010-04-01/Accounts/AC1/Messages.json", form, query("To", "+15550100", "From", "+15550101", "Body", "😀"), "twilio-sms", 1, "sender"},
	{"GET api.twilio.com/2010-04-01/Accounts/AC1/Messages/SM1.json", "", "", "twilio-sms", 0, ""},
	{"DELETE api.twilio.com/2010-04-01/Accounts/AC1/Messages/SM1.json", "", "", "twilio-sms", 0, ""},
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Messages/SM1.json", form, query("Body", ""), "twilio-sms", 0, ""},
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", form, query("To", "whatsapp:+15550100", "From", "whatsapp:+15550101", "Body", "Hi"), "twilio-sms", unpriced, ""},
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", form, "To=%2B15550100&To=whatsapp%3A%2B15550100&Body=Hi", "twilio-sms", unpriced, ""},
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", form, query("To", "+15550100", "From", "+15550101", "Body", "Hi", "MediaUrl", "https://x"), "twilio-sms", unpriced, ""},
	{"POST api.twilio.com/2010-04-01/Accounts/AC1/Calls.json", form, query("To", "+15550100", "From", "+15550101"), "twilio-sms", unpriced, ""},
	{"POST api.twilio.com//2010-04-01/Accounts/AC1/./Messages.json", form, query("To", "+15550100", "From", "+15550101", "Body", "Hi"), "twilio-sms", 1, "sender"},
	{"POST verify.twilio.com/v2/Services/VA1/Verifications", form, query("To", "+15550100", "Channel", "sms"), "twilio-verify", 1, ""},
	{"POST verify.twilio.com/v2/Services/VA1/VerificationCheck", form, query("To", "+15550100", "Code", "1"), "twilio-verify", 0, ""},
	{"POST verify.dublin.ie1.twilio.com/v2/Services/VA1/Verifications", form, query("To", "+15550100"), "twilio-verify", 1, ""},
	{"GET lookups.twilio.com/v2/PhoneNumbers/+15550100?Fields=line_type_intelligence,sim_swap", "", "", "twilio-lookup", 2, ""},
	{"GET lookups.twilio.com/v2/PhoneNumbers/+15550100", "", "", "twilio-lookup", 0, ""},
	{"GET lookups.twilio.com/v1/PhoneNumbers/+15550100?Type=carrier&Type=caller-name", "", "", "twilio-lookup", 2, ""},

	{"POST rest.nexmo.com/sms/json", form, query("from", "me", "to", "15550100", "text", "Hi"), "vonage-sms", 1, "sender"},
	{"POST rest.nexmo.com/sms/json", js, `{"from":"me","to":"15550100","text":"Hi","type":"unicode"}`, "vonage-sms", 1, "sender"},
	{"GET rest.nexmo.com/sms/json?from=me&to=15550100&text=Hi", "", "", "vonage-sms", 1, ""},
	{"GET rest.nexmo.com/account/get-balance", "", "", "vonage-sms", 0, ""},
	{"POST rest.nexmo.com/number/buy", form, query("country", "GB"), "vonage-sms", unpriced, ""},
	{"POST api.telnyx.com/v2/messages", js, `{"from":"+15550101","to":"+15550100","text":"Hi"}`, "telnyx", 1, "sender"},
	{"POST api.telnyx.com/v2/messages", js, `{"from":"+15550101","to":"+15550100","text":"Hi","media_urls":["https://x"]}`, "telnyx", unpriced, ""},
	{"GET api.telnyx.com/v2/messages/1", "", "", "telnyx", 0, ""},
	{"GET api.telnyx.com/v2/number_lookup/+15550100", "", "", "telnyx", unpriced, ""},
	{"POST api.plivo.com/v1/Account/MA1/Message/", js, `{"src":"1","dst":"15550100<15550101","text":"Hi"}`, "plivo", 2, "sender"},
	{"GET api.plivo.com/v1/Account/MA1/Message/1/", "", "", "plivo", 0, ""},
	{"POST us.sms.api.sinch.com/xms/v1/plan/batches", js, `{"from":"me","to":["15550100","15550101"],"body":"Hi"}`, "sinch", 2, "sender"},
	{"POST eu.sms.api.sinch.com/xms/v1/plan/batches/dry_run", js, `{"to":["15550100"],"body":"Hi"}`, "sinch", 0, ""},
	{"POST us.sms.api.sinch.com/xms/v1/plan/batches", js, `{"to":["15550100"],"body":"Hi ${n}","parameters":{"n":{"default":"x"}}}`, "sinch", unpriced, ""},
	{"POST rest.clicksend.com/v3/sms/send", js, `{"messages":[{"to":"+61400000000","body":"Hi"},{"to":"+61400000001","body":"Hi"}]}`, "clicksend", 2, ""},
	{"POST rest.clicksend.com/v3/sms/price", js, `{"messages":[{"to":"+61400000000","body":"Hi"}]}`, "clicksend", 0, ""},
	{"POST api.africastalking.com/version1/messaging", form, query("username", "u", "to", "+254711000000,+254711000001", "message", "Hi"), "africas-talking", 2, ""},
	{"POST api.africastalking.com/version1/airtime/send", form, query("username", "u"), "africas-talking", unpriced, ""},
	{"POST sns.eu-central-1.amazonaws.com/", form, query("Action", "Publish", "PhoneNumber", "+15550100", "Message", "Hi"), "aws-sns", 1, ""},
	{"POST sns.us-east-1.amazonaws.com/", form, query("Action", "Publish", "TopicArn", "arn:x", "Message", "Hi"), "aws-sns", unpriced, ""},
	{"POST sns.us-east-1.amazonaws.com/", form, query("Action", "CreateTopic", "Name", "x"), "aws-sns", 0, ""},
	{"POST sns.us-east-1.amazonaws.com/", form, query("Action", "CreateTopic", "Action", "Publish", "PhoneNumber", "+15550100", "Message", "Hi"), "aws-sns", unpriced, ""},
	{"POST sns.us-east-1.amazonaws.com/?Action=Publish", form, query("Action", "CreateTopic"), "aws-sns", unpriced, ""},
	{"POST email.us-east-1.amazonaws.com/", form, query("Action", "SendEmail", "Destination.ToAddresses.member.1", "a", "Destination.CcAddresses.member.1", "b"), "aws-ses", 2, ""},
	{"POST email.us-east-1.amazonaws.com/", form, query("Action", "SendRawEmail", "Destinations.member.1", "a", "RawMessage.Data", "x"), "aws-ses", 1, ""},
	{"POST email.us-east-1.amazonaws.com/", form, query("Action", "SendRawEmail", "RawMessage.Data", "x"), "aws-ses", unpriced, ""},
	{"POST email.us-east-1.amazonaws.com/v2/email/outbound-emails", js, `{"Destination":{"ToAddresses":["a","b"],"BccAddresses":["c"]}}`, "aws-ses", 3, ""},
	{"GET email.us-east-1.amazonaws.com/v2/email/account", "", "", "aws-ses", 0, ""},

	{"GET maps.googleapis.com/maps/api/geocode/json?address=x&key=k", "", "", "google-geocoding", 1, ""},
	{"GET geocode.googleapis.com/v4beta/geocode/address/x", "", "", "google-geocoding", 1, ""},
	{"GET maps.googleapis.com/maps/api/place/details/json?place_id=x", "", "", "google-places", 1, ""},
	{"GET maps.googleapis.com/maps/api/place/photo?photoreference=x", "", "", "google-places", unpriced, ""},
	{"POST places.googleapis.com/v1/places:searchText", js, `{"textQuery":"x"}`, "google-places", 1, ""},
	{"GET maps.googleapis.com/maps/api/distancematrix/json?origins=a|b&destinations=c|d|e", "", "", "google-distance-matrix", 6, ""},
	{"GET maps.googleapis.com/maps/api/distancematrix/json?origins=enc:x:&destinations=c", "", "", "google-distance-matrix", unpriced, ""},
	{"POST routes.googleapis.com/directions/v2:computeRoutes", js, `{"origin":{},"destination":{}}`, "google-routes", 1, ""},
	{"POST routes.googleapis.com/distanceMatrix/v2:computeRouteMatrix", js, `{"origins":[{},{}],"destinations":[{},{}]}`, "google-routes", 2, ""},
	{"GET maps.googleapis.com/maps/api/elevation/json?path=x", "", "", "", unpriced, ""},
	{"GET api.opencagedata.com/geocode/v1/json?q=x", "", "", "opencage", 1, ""},
	{"GET us1.locationiq.com/v1/search?q=x", "", "", "locationiq", 1, ""},
	{"GET eu1.locationiq.com/v1/balance", "", "", "locationiq", 0, ""},
	{"GET nominatim.openstreetmap.org/search?q=x", "", "", "nominatim", 0, ""},
	{"GET ip-api.com/json/192.0.2.1", "", "", "ip-api", 0, "endpoint"},
	{"POST ip-api.com/batch", js, `["192.0.2.1"]`, "ip-api", 0, "endpoint"},
	{"GET pro.ip-api.com/json/192.0.2.1", "", "", "", 0, ""},
	{"GET geoip.maxmind.com/geoip/v2.1/city/192.0.2.1", "", "", "maxmind", 1, ""},
	{"GET api.ipgeolocation.io/v2/ipgeo?ip=192.0.2.1", "", "", "ipgeolocation", 1, ""},
	{"GET api.ipgeolocation.io/v2/ipgeo?ip=192.0.2.1&include=security", "", "", "ipgeolocation", 4, ""},
	{"POST api.ipgeolocation.io/v2/ipgeo-bulk", js, `{"ips":["192.0.2.1","192.0.2.2"]}`, "ipgeolocation", 2, ""},
	{"GET revgeocode.search.hereapi.com/v1/revgeocode?at=1,2", "", "", "here", 1, ""},
	{"GET router.hereapi.com/v8/routes", "", "", "", 0, ""},
	{"GET api.mapbox.com/geocoding/v5/mapbox.places-permanent/a;b.json", "", "", "mapbox", 2, ""},
	{"GET api.mapbox.com/search/geocode/v6/forward?q=x", "", "", "mapbox", 1, ""},
	{"POST api.mapbox.com/search/geocode/v6/batch", js, `[{"q":"a"},{"q":"b"},{"q":"c"}]`, "mapbox", 3, ""},
	{"GET api.mapbox.com/styles/v1/mapbox/streets", "", "", "", unpriced, ""},

	{"POST api.sendgrid.com/v3/mail/send", js, `{"personalizations":[{"to":[{"email":"a"}],"cc":[{"email":"b"}]}]}`, "sendgrid", 2, "endpoint"},
	{"POST api.eu.sendgrid.com/v3/validations/email", js, `{"email":"a"}`, "sendgrid", unpriced, ""},
	{"GET api.sendgrid.com/v3/stats", "", "", "sendgrid", 0, "endpoint"},
	{"POST api.mailgun.net/v3/example.com/messages", form, query("to", "a,b", "cc", "c"), "mailgun", 3, ""},
	{"GET api.eu.mailgun.net/v4/address/validate?address=a", "", "", "mailgun", unpriced, ""},
	{"GET api.eu.mailgun.net/v3/example.com/events", "", "", "mailgun", 0, ""},
	{"POST api.resend.com/emails", js, `{"to":["a","b"],"from":"c"}`, "resend", 2, ""},
	{"POST api.resend.com/emails/batch", js, `[{"to":"a"},{"to":["b"]}]`, "resend", 2, ""},
	{"POST api.resend.com/domains", js, `{"name":"x"}`, "resend", 0, ""},
	{"POST api.resend.com/broadcasts/1/send", js, `{}`, "resend", unpriced, ""},

	{"POST api.openai.com/v1/images/generations", js, `{"model":"gpt-image-1","prompt":"x"}`, "openai", unpriced, ""},
	{"POST eu.api.openai.com/v1/moderations", js, `{"input":"x"}`, "openai", 0, ""},
	{"GET api.openai.com/v1/models", "", "", "openai", 0, ""},
	{"POST api.anthropic.com/v1/messages/count_tokens", js, `{"model":"claude-sonnet"}`, "anthropic", 0, "model"},
	{"POST api.anthropic.com/v1/messages/batches", js, `{"requests":[]}`, "anthropic", unpriced, ""},
	{"POST generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:countTokens", js, `{}`, "gemini", 0, "model"},
	{"GET me.openai.azure.com/openai/deployments?api-version=1", "", "", "azure-openai", 0, "deployment"},
	{"POST me.cognitiveservices.azure.com/openai/deployments/d/images/generations", js, `{}`, "azure-openai", unpriced, ""},

	{"POST api.stripe.com/v1/payment_intents/pi_3PabcdefGH1234/confirm", form, query("a", "b"), "stripe", 0, "endpoint object account"},
	{"POST files.stripe.com/v1/files", form, query("a", "b"), "stripe", 0, "endpoint account"},
	{"GET api.github.com/repos/o/r/issues", "", "", "github", 0, "resource"},
	{"GET api.github.com/rate_limit", "", "", "github", 0, ""},
	{"POST slack.com/api/chat.postMessage", js, `{"channel":"C1","text":"x"}`, "slack", 0, "channel method"},
	{"GET slack.com/api/conversations.list", "", "", "slack", 0, "method"},
	{"POST discord.com/api/v10/channels/1/messages", js, `{"content":"x"}`, "discord", 0, "route"},
	{"POST shop.myshopify.com/admin/api/2026-10/graphql.json", js, `{"query":"{shop{name}}"}`, "shopify", 0, "shop"},
	{"POST shop.myshopify.com/admin/oauth/access_token", js, `{}`, "shopify", 0, "shop"},
	{"GET api.notion.com/v1/users", "", "", "notion", 0, ""},
	{"GET api.hubapi.com/crm/v3/objects/contacts", "", "", "hubspot", 0, ""},
	{"GET org.okta.com/api/v1/users", "", "", "okta", 0, "endpoint"},
	{"GET api.x.com/2/tweets/1", "", "", "x", 1, "endpoint"},
	{"GET org.zendesk.com/api/v2/tickets/1.json", "", "", "zendesk", 0, "endpoint account"},
	{"PUT site.atlassian.net/rest/api/3/issue/A-1", js, `{}`, "jira", 0, "endpoint object account"},
	{"GET api.atlassian.com/ex/jira/1/rest/api/3/myself", "", "", "jira", 0, "endpoint account"},
	{"GET example.com/", "", "", "", 0, ""},
}

// TestWhoseCall: the presets side by side, each call with its price and its scopes.
func TestWhoseCall(t *testing.T) {
	rt := together(t)
	seen := map[string]bool{}
	for _, c := range calls {
		plan, err := rt.Plan(request(t, c.call, c.contentType, c.body))
		require.NoError(t, err, c.call)
		require.Equal(t, c.provider, plan.Provider, c.call)
		seen[plan.Provider] = true
		if c.cents == unpriced {
			require.Error(t, plan.Refusal, c.call)
			require.Contains(t, []transport.Reason{transport.ReasonUnpriced, transport.ReasonUnmatched}, transport.ReasonOf(plan.Refusal), c.call)
			continue
		}
		require.NoError(t, plan.Refusal, c.call)
		require.Equal(t, cent*budget.Amount(c.cents), plan.Quote.Amount, c.call)
		require.Equal(t, c.scopes, strings.Join(plan.Scopes, " "), c.call)
	}
	for _, p := range presets {
		require.True(t, seen[p.make().Name], "no call belongs to %s", p.function)
	}
}

// TestTokensAreBounded: what a chat may cost is bounded by its bytes and its limit.
func TestTokensAreBounded(t *testing.T) {
	rt := together(t)
	for call, body := range map[string]string{
		"POST api.openai.com/v1/chat/completions":                                               `{"model":"gpt-4o-mini","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}`,
		"POST us.api.openai.com/v1/responses":                                                   `{"model":"gpt-4o-mini","max_output_tokens":10,"input":"Hi"}`,
		"POST api.anthropic.com/v1/messages":                                                    `{"model":"claude-sonnet","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}`,
		"POST generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent": `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":10}}`,
		"POST me.openai.azure.com/openai/deployments/gpt-4o-mini/chat/completions":              `{"max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}`,
	} {
		plan, err := rt.Plan(request(t, call, js, body))
		require.NoError(t, err)
		require.NoError(t, plan.Refusal, call)
		require.Positive(t, plan.Quote.Amount, call)
		require.Less(t, plan.Quote.Amount, cent, call)
		require.Len(t, plan.Scopes, 1, call)

		plan, err = rt.Plan(request(t, call, js, `{"model":"another","max_tokens":10,"messages":[]}`))
		require.NoError(t, err)
		if !strings.Contains(call, "gpt-4o-mini") && !strings.Contains(call, "gemini") {
			require.ErrorIs(t, plan.Refusal, budget.ErrUnpriced, call)
		}
	}
}

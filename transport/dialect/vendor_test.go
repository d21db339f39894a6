package dialect

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForKnowsUsualSpellings(t *testing.T) {
	for alias, name := range map[string]string{
		"twilio": "Twilio", "TWILIO": "Twilio", "Twilio SendGrid": "SendGrid", "Microsoft Azure OpenAI": "Azure OpenAI", "Groq": "OpenAI", "YouTube Data API": "Google APIs",
		"ip-api": "ip-api.com", "ipapi": "ip-api.com", "X (Twitter)": "X", "twitter": "X",
		"Bird (MessageBird)": "Bird", "Gmail / Google APIs": "Google APIs", "azure-openai": "Azure OpenAI", "Google Distance Matrix": "Google Maps",
		"google places": "Google Maps", "Slack Web API": "Slack", "LINE Messaging API": "LINE", "AWS SES v2": "AWS SES", "AWS SQS": "AWS",
		"Amazon Bedrock": "AWS", "africas_talking": "Africa's Talking", "Jira": "Jira Cloud", "shopify-graphql": "Shopify", "Shopify REST": "Shopify REST",
		"monday": "monday.com", "AWS SNS / End User Messaging": "AWS SES", "vonage": "Vonage SMS",
	} {
		v, ok := For(alias).(*vendor)
		require.True(t, ok, alias)
		require.Equal(t, name, v.name, alias)
	}
	for _, unknown := range []string{"", "nobody", "(", "/", "☎", "RFC 9110", "generic"} {
		require.Equal(t, Standard{}, For(unknown), unknown)
	}
}

func TestVendorsAreTheOnesThatForKnows(t *testing.T) {
	names := Vendors()
	require.Greater(t, len(names), 80)
	seen := map[string]string{}
	for _, name := range names {
		v := For(name).(*vendor)
		require.Equal(t, name, v.name)
		for _, alias := range append(v.also, plainName(name)) {
			require.Equal(t, plainName(alias), alias)
			require.Empty(t, seen[alias], alias)
			seen[alias] = name
		}
	}
}

func TestHeaderNamesAreCanonical(t *testing.T) {
	for _, name := range Vendors() {
		v := For(name).(*vendor)
		for _, f := range append(v.windows, families[:]...) {
			for _, key := range []string{f.limit, f.remaining, f.reset, f.after, f.policy} {
				require.Equal(t, http.CanonicalHeaderKey(key), key, name)
			}
		}
		for _, key := range []string{v.refIn, v.nameIn, v.naming.prefix} {
			require.Equal(t, http.CanonicalHeaderKey(key), key, name)
		}
		for _, f := range v.hints {
			require.Equal(t, http.CanonicalHeaderKey(f.key), f.key, name)
		}
	}
}

func read(name string, status int, body string, pairs ...string) Reading {
	d, a := For(name), Answer{Status: status, Header: headers(pairs...), Now: noon}
	if d.WantsBody(status, a.Header) {
		a.Body = []byte(body)
	}
	return d.Read(a)
}

func TestScope(t *testing.T) {
	const geoSecondary = `{"message":"You have exceeded a secondary rate limit"}`
	for name, row := range map[string]struct {
		r     Reading
		scope string
	}{
		"Discord, a route":               {read("Discord", 429, "", "Retry-After", "5"), "route"},
		"Discord, the bot, header":       {read("Discord", 429, "", "Retry-After", "5", "X-RateLimit-Global", "true"), Whole},
		"Discord, the bot, body":         {read("Discord", 429, `{"retry_after":5,"global":true}`), Whole},
		"Discord, nothing refused":       {read("Discord", 200, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "1"), ""},
		"Twilio, calls at once":          {read("Twilio", 429, `{"code":20429}`), Whole},
		"Vonage, the account":            {read("Vonage SMS", 200, `{"messages":[{"status":"1"}]}`), Whole},
		"Stripe, everything":             {read("Stripe", 429, "", "Stripe-Rate-Limited-Reason", "global-concurrency"), Whole},
		"Stripe, an endpoint":            {read("Stripe", 429, "", "Stripe-Rate-Limited-Reason", "endpoint-rate"), "endpoint"},
		"Stripe, an object":              {read("Stripe", 429, "", "Stripe-Rate-Limited-Reason", "resource-specific"), "object"},
		"Stripe, an object that is busy": {read("Stripe", 429, `{"error":{"code":"lock_timeout"}}`), "object"},
		"Zendesk, an endpoint":           {read("Zendesk", 429, "", "X-Rate-Limit", "7", "X-Rate-Limit-Remaining", "6", "Zendesk-RateLimit-Users", "total=1; remaining=0; resets=2"), "endpoint"},
		"Jira, an issue":                 {read("Jira", 429, "", "RateLimit-Reason", "jira-per-issue-on-write"), "object"},
		"Jira, a burst":                  {read("Jira", 429, "", "RateLimit-Reason", "jira-burst-based"), "endpoint"},
		"Jira, the quota":                {read("Jira", 429, "", "RateLimit-Reason", "jira-quota-tenant-based"), Whole},
		"GitHub, the secondary limit":    {read("GitHub", 403, geoSecondary), Whole},
		"OpenAI, no money":               {read("OpenAI", 429, `{"error":{"code":"insufficient_quota"}}`), Whole},
		"nobody tells":                   {read("Slack", 429, ""), ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.scope, row.r.Scope) })
	}
}

func TestWall(t *testing.T) {
	const noHeal, heals = false, true
	for name, row := range map[string]struct {
		r     Reading
		heals bool
	}{
		"OpenAI":            {read("OpenAI", 429, `{"error":{"code":"insufficient_quota"}}`, "Retry-After", "5"), noHeal},
		"Anthropic, spent":  {read("Anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"Spend limit reached"}}`), noHeal},
		"Gemini":            {read("Gemini", 402, `{"error":{"code":402,"status":"RESOURCE_EXHAUSTED"}}`), noHeal},
		"Sinch":             {read("Sinch", 402, `{}`), noHeal},
		"Radar":             {read("Radar", 402, ``), noHeal},
		"Mistral, the plan": {read("Mistral", 429, ``, "X-RateLimit-Limit-Req-Minute", "0"), noHeal},
		"Google's cap":      {read("Google Maps", 200, `{"status":"OVER_DAILY_LIMIT"}`), noHeal},
		"AWS, the month":    {read("AWS SNS", 400, `{"__type":"ServiceQuotaExceededException","Reason":"MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT"}`), noHeal},
		"LocationIQ, a day": {read("LocationIQ", 429, `{"error":"Rate Limited Day"}`), heals},
		"Amap, a day":       {read("Amap", 200, `{"infocode":"10003"}`), heals},
		"ipstack, a month":  {read("ipstack", 429, `{"error":{"code":104}}`), heals},
		"DeepL, a period":   {read("DeepL", 456, ``), heals},
		"SES, a day":        {read("AWS SES", 400, `<Error><Code>Throttling</Code><Message>Daily message quota exceeded.</Message></Error>`), heals},
		"HubSpot, a day":    {read("HubSpot", 429, `{"policyName":"DAILY"}`), heals},
		"Gemini, a day":     {read("Gemini", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"RequestsPerDay"}]}]}}`), heals},
		"X, a month":        {read("X", 429, `{"type":"https://api.twitter.com/2/problems/usage-capped"}`), heals},
		"Resend, a month":   {read("Resend", 429, `{"name":"monthly_quota_exceeded"}`), heals},
		"OpenCage, no end":  {read("OpenCage", 402, `{"rate":{"limit":1,"remaining":0,"reset":null}}`), heals},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, row.r.Wall)
			require.Equal(t, row.heals, row.r.Throttled)
		})
	}
}

func TestNoWall(t *testing.T) {
	for name, r := range map[string]Reading{
		"OpenCage, until midnight":  read("OpenCage", 402, `{"rate":{"remaining":0,"reset":1768521600}}`),
		"Gemini, a day and a delay": read("Gemini", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"RequestsPerDay"}]},{"retryDelay":"3s"}]}}`),
		"Toggl":                     read("Toggl", 402, "", "X-Toggl-Quota-Remaining", "0", "X-Toggl-Quota-Resets-In", "5"),
		"Anthropic, a rate":         read("Anthropic", 429, `{"error":{"type":"rate_limit_error","message":"too many tokens"}}`, "Retry-After", "5"),
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, r.Throttled)
			require.False(t, r.Wall)
		})
	}
}

func TestPartial(t *testing.T) {
	for name, row := range map[string]struct {
		r       Reading
		partial bool
	}{
		"Vonage, a part throttled":       {read("Vonage SMS", 200, `{"messages":[{"status":"0"},{"status":"1"}]}`), true},
		"Vonage, all throttled":          {read("Vonage SMS", 200, `{"messages":[{"status":"1"},{"status":"1"}]}`), false},
		"Vonage, all sent":               {read("Vonage SMS", 200, `{"messages":[{"status":"0"},{"status":"0"}]}`), false},
		"Africa's Talking":               {read("Africa's Talking", 201, `{"SMSMessageData":{"Recipients":[{"statusCode":101},{"statusCode":403}]}}`), true},
		"ClickSend, credit for the half": {read("ClickSend", 200, `{"data":{"messages":[{"status":"SUCCESS"},{"status":"INSUFFICIENT_CREDIT"}]}}`), true},
		"Clickatell":                     {read("Clickatell", 207, `{"messages":[{"accepted":true},{"accepted":false}]}`), true},
		"Postmark":                       {read("Postmark", 200, `[{"ErrorCode":0},{"ErrorCode":429}]`), true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.partial, row.r.Partial) })
	}
}

func TestRef(t *testing.T) {
	for name, row := range map[string]struct {
		r   Reading
		ref string
	}{
		"Twilio":           {read("Twilio", 201, `{"body":"hi","sid":"SM7f","status":"queued"}`), "SM7f"},
		"Vonage":           {read("Vonage SMS", 200, `{"messages":[{"message-id":"0A","status":"0"},{"message-id":"0B","status":"0"}]}`), "0A"},
		"Vonage Messages":  {read("Vonage Messages", 202, `{"message_uuid":"aa-bb"}`), "aa-bb"},
		"Telnyx":           {read("Telnyx", 200, `{"data":{"id":"40385f64"}}`), "40385f64"},
		"Plivo":            {read("Plivo", 202, `{"message_uuid":["db-1"]}`), "db-1"},
		"Sinch":            {read("Sinch", 201, `{"id":"01FC"}`), "01FC"},
		"Infobip":          {read("Infobip", 200, `{"messages":[{"messageId":"225-0"}]}`), "225-0"},
		"ClickSend":        {read("ClickSend", 200, `{"data":{"messages":[{"message_id":"C5","status":"SUCCESS"}]}}`), "C5"},
		"Africa's Talking": {read("Africa's Talking", 201, `{"SMSMessageData":{"Recipients":[{"statusCode":101,"messageId":"ATPid"}]}}`), "ATPid"},
		"SNS":              {read("AWS SNS", 200, `<PublishResponse><PublishResult><MessageId>5671</MessageId></PublishResult></PublishResponse>`), "5671"},
		"SES v2":           {read("AWS SES v2", 200, `{"MessageId":"0100"}`), "0100"},
		"SendGrid":         {read("SendGrid", 202, ``, "X-Message-Id", "14c5d75ce93"), "14c5d75ce93"},
		"OpenAI":           {read("OpenAI", 200, `{"id":"chatcmpl-1"}`), "chatcmpl-1"},
		"Anthropic":        {read("Anthropic", 200, `{"id":"msg_1"}`), "msg_1"},
		"no id":            {read("OpenAI", 200, `{"id":"a b"}`), ""},
		"too long":         {read("OpenAI", 200, `{"id":"`+strings.Repeat("x", 129)+`"}`), ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.ref, row.r.Ref) })
	}
}

func TestGitHub(t *testing.T) {
	const forbidden = `{"message":"Must have admin rights","documentation_url":"https://docs.github.com/rest"}`
	for name, row := range map[string]struct {
		r         Reading
		throttled bool
		wait      time.Duration
	}{
		"secondary, no hint":           {read("GitHub", 403, `{"message":"You have exceeded a secondary rate limit and have been temporarily blocked"}`), true, time.Minute},
		"secondary, other words":       {read("GitHub", 429, `{"message":"Slow down","documentation_url":"https://docs.github.com/x#abuse-rate-limits"}`), true, time.Minute},
		"secondary, hint":              {read("GitHub", 403, `{"message":"You have exceeded a secondary rate limit"}`, "Retry-After", "7"), true, 7 * time.Second},
		"a hint without words":         {read("GitHub", 403, forbidden, "Retry-After", "7"), true, 7 * time.Second},
		"forbidden":                    {read("GitHub", 403, forbidden), false, 0},
		"the same words in a good one": {read("GitHub", 200, `{"message":"You have exceeded a secondary rate limit"}`), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.throttled, row.r.Throttled)
			require.Equal(t, row.wait, row.r.RetryAfter)
		})
	}
	require.Zero(t, read("GitHub", 401, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Limit", "60").Window)
}

func TestBodiesAreAskedForOnlyWhereAVendorSpeaks(t *testing.T) {
	for name, row := range map[string]struct {
		vendor string
		status int
		header http.Header
		wants  bool
	}{
		"a good answer of Google Maps":  {"Google Maps", 200, headers("Content-Type", "application/json; charset=UTF-8"), true},
		"of unknown type":               {"Google Maps", 200, headers(), true},
		"an image":                      {"Google Maps", 200, headers("Content-Type", "image/png"), false},
		"a stream":                      {"OpenAI", 200, headers("Content-Type", "text/event-stream"), false},
		"a long answer":                 {"OpenAI", 200, headers("Content-Length", "65537"), false},
		"a short one":                   {"OpenAI", 200, headers("Content-Length", "65536"), true},
		"a redirect":                    {"OpenAI", 302, headers(), false},
		"a good answer of GitHub":       {"GitHub", 200, headers(), false},
		"a refusal of GitHub":           {"GitHub", 403, headers(), true},
		"a refusal in HTML":             {"Nominatim", 403, headers("Content-Type", "text/html"), true},
		"a good answer of nobody":       {"", 200, headers("Content-Type", "application/problem+json"), false},
		"a refusal of nobody":           {"", 429, headers("Content-Type", "application/json"), false},
		"a problem document of nobody":  {"", 429, headers("Content-Type", "application/problem+json; charset=utf-8"), true},
		"a refusal that is only status": {"DeepL", 456, headers(), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.wants, For(row.vendor).WantsBody(row.status, row.header)) })
	}
}

func TestWordsAloneAreNoLimit(t *testing.T) {
	for _, body := range []string{`{"type":"rate_limit"}`, `insufficient quota`, `{"error":"context length"}`, `{"message":"rate limit"}`} {
		for _, name := range append(Vendors(), "") {
			r := For(name).Read(Answer{Status: 400, Header: headers(), Body: []byte(body), Now: noon})
			require.False(t, r.Throttled || r.Wall, "%s %s", name, body)
		}
	}
}

// TestBrokenBodies reads what no vendor means: the status must still be read, in no
// time, and nothing may break.
func TestBrokenBodies(t *testing.T) {
	bodies := map[string]string{
		"deep objects": strings.Repeat(`{"error":`, 10000),
		"deep arrays":  strings.Repeat(`[`, 64<<10),
		"closed only":  strings.Repeat(`]`, 100),
		"HTML":         `<!doctype html><html><body>502</body></html>`,
		"XML":          `<?xml version="1.0"?><a><b>1</b></a>`,
		"gzip":         "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
		"UTF-8":        "{\"error\":\"\xff\xfe\\ud800\"}",
		"a scalar":     `"x"`,
		"half a key":   `{"err`,
		"NaN":          `{"retry_after":NaN}`,
		"numbers":      `{"retry_after":-1,"retry-seconds":1e999,"rate":{"limit":-5,"remaining":99999999999999999999999,"reset":-1}}`,
		"huge waits":   `{"retry_after":99999999999999999999999,"errors":[{"extensions":{"retry_in_seconds":9223372037}}]}`,
		"long":         `{"a":"` + strings.Repeat("x", 200<<10) + `"}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			for _, vendor := range Vendors() {
				for _, status := range []int{200, 403, 429, 503} {
					r := For(vendor).Read(Answer{Status: status, Header: headers(), Body: []byte(body), Now: noon})
					requireSane(t, r)
					require.True(t, r.Throttled || status != 429, vendor)
				}
			}
		})
	}
}

func TestTruncatedBodyIsReadAsFarAsItGoes(t *testing.T) {
	r := read("OpenAI", 429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota","par`)
	require.True(t, r.Wall)
	r = read("Discord", 429, `{"retry_after":64.57,"global":true,"message":"You`)
	require.Equal(t, 64570*time.Millisecond, r.RetryAfter)
	require.Equal(t, Whole, r.Scope)
	r = read("Discord", 429, `{"retry_after":6`) // of how many digits?
	require.False(t, r.Hinted)
}

func TestKeyWithADotIsNoPath(t *testing.T) {
	require.False(t, read("OpenAI", 429, `{"error.code":"insufficient_quota"}`).Wall)
}

func TestPolicyIsAWordOrNothing(t *testing.T) {
	for _, hostile := range []string{"a\nb", "<script>", "é", strings.Repeat("x", 129), `"`, "\x00"} {
		require.Empty(t, read("Stripe", 429, "", "Stripe-Rate-Limited-Reason", hostile).Policy)
		require.Empty(t, read("Bandwidth", 429, fmt.Sprintf(`{"type":%q}`, hostile)).Policy)
	}
}

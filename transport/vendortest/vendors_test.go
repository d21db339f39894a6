package vendortest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// request is one request to a fake.
type request struct{ method, url, body string }

// vendors has for each fake a request that it takes and bills, one that makes no sense,
// and how its throttle looks.
var vendors = []struct {
	name      string
	start     func(vendortest.Options) *vendortest.Fake
	good, bad request
	code      int // of the good answer
	units     int64
	amount    string
	throttled int    // status of the throttle
	path      string // where its body says so
	says      any
	bare      bool // 429s of the vendor tell no pause in Retry-After
}{
	{
		"twilio", vendortest.NewSMS,
		request{"POST", messages, "To=%2B1&From=%2B2&Body=" + strings.Repeat("a", 161)}, request{"POST", messages, "To=%2B1"},
		201, 2, "0.0166", 429, "code", 20429.0, true,
	},
	{
		"google", vendortest.NewGeocoder,
		request{"GET", geocode("x"), ""}, request{"GET", "https://maps.googleapis.com/maps/api/geocode/json?key=k", ""},
		200, 1, "0.005", 200, "status", "OVER_QUERY_LIMIT", true,
	},
	{
		"vonage", vendortest.NewVonage,
		request{"POST", "https://rest.nexmo.com/sms/json", "to=491&from=x&text=hi"}, request{"POST", "https://rest.nexmo.com/sms/json", "to=1"},
		200, 1, "0.0333", 200, "messages.status", "1", true,
	},
	{
		"telnyx", vendortest.NewTelnyx,
		request{"POST", "https://api.telnyx.com/v2/messages", `{"to":"+1","from":"+2","text":"` + strings.Repeat(`\u0436`, 71) + `"}`},
		request{"POST", "https://api.telnyx.com/v2/messages", `{"to":"+1"}`},
		200, 2, "0.008", 429, "errors.code", "10011", true,
	},
	{
		"stripe", vendortest.NewStripe,
		request{"POST", "https://api.stripe.com/v1/payment_intents", "amount=100&currency=usd"}, request{"POST", "https://api.stripe.com/v1/charges", "currency=usd"},
		200, 1, "0", 429, "error.code", "rate_limit", true,
	},
	{
		"openai", vendortest.NewOpenAI,
		request{"POST", "https://api.openai.com/v1/chat/completions", `{"model":"gpt-4o-mini","max_tokens":3,"messages":[{"role":"user","content":"12345678"}]}`},
		request{"POST", "https://api.openai.com/v1/chat/completions", `{"messages":[]}`},
		200, 5, "0.0000021", 429, "error.code", "rate_limit_exceeded", false,
	},
	{
		"anthropic", vendortest.NewAnthropic,
		request{"POST", "https://api.anthropic.com/v1/messages", `{"model":"claude-sonnet-4","max_tokens":3,"messages":[{"role":"user","content":[{"type":"text","text":"12345678"}]}]}`},
		request{"POST", "https://api.anthropic.com/v1/messages", `{"model":"claude-sonnet-4","messages":[{}]}`},
		200, 5, "0.000051", 429, "error.type", "rate_limit_error", false,
	},
	{
		"gemini", vendortest.NewGemini,
		request{
			"POST", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
			`{"contents":[{"parts":[{"text":"12345678"}]}],"generationConfig":{"maxOutputTokens":3}}`,
		},
		request{"POST", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent", `{}`},
		200, 5, "0.0000081", 429, "error.status", "RESOURCE_EXHAUSTED", true,
	},
	{
		"github", vendortest.NewGitHub,
		request{"POST", "https://api.github.com/repos/o/r/issues", `{"title":"x"}`}, request{"POST", "https://api.github.com/repos/o/r/issues", `{}`},
		201, 0, "0", 403, "message", "API rate limit exceeded for 127.0.0.1.", true,
	},
	{
		"slack", vendortest.NewSlack,
		request{"POST", "https://slack.com/api/chat.postMessage", `{"channel":"C1","text":"hi"}`}, request{"POST", "https://slack.com/api/chat.postMessage", "channel=C1"},
		200, 0, "0", 429, "error", "ratelimited", false,
	},
	{
		"discord", vendortest.NewDiscord,
		request{"POST", "https://discord.com/api/v10/channels/1/messages", `{"content":"hi"}`}, request{"POST", "https://discord.com/api/v10/channels/1/messages", `{}`},
		200, 0, "0", 429, "message", "You are being rate limited.", false,
	},
	{
		"shopify", vendortest.NewShopify,
		request{"POST", "https://shop.myshopify.com/admin/api/2024-01/graphql.json", `{"query":"{shop{name}}"}`},
		request{"POST", "https://shop.myshopify.com/admin/api/2024-01/graphql.json", `{}`},
		200, 0, "0", 200, "errors.extensions.code", "THROTTLED", true,
	},
	{
		"sendgrid", vendortest.NewSendGrid,
		request{"POST", "https://api.sendgrid.com/v3/mail/send", `{"personalizations":[{"to":[{"email":"a@x"},{"email":"b@x"}],"bcc":[{"email":"c@x"}]}]}`},
		request{"POST", "https://api.sendgrid.com/v3/mail/send", `{"personalizations":[{}]}`},
		202, 3, "0.003", 429, "errors.message", "too many requests", true,
	},
}

func (q request) do(t *testing.T, c *http.Client) answer {
	t.Helper()
	return do(t, c, q.method, q.url, q.body)
}

func TestVendorsBillWhatTheyAccept(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			f := v.start(vendortest.Options{})
			c := open(t, f)
			require.Equal(t, v.code, v.good.do(t, c).status)
			require.NotEqual(t, 429, v.bad.do(t, c).status)
			n := f.Counts()
			require.Equal(t, []int{2, 1, 1, 0}, []int{n.Received, n.Accepted, n.Invalid, n.Double})
			inv := f.Invoice()
			require.Equal(t, v.amount, inv.Total.String())
			var units int64
			for _, l := range inv.Lines {
				units += l.Units
			}
			require.Equal(t, v.units, units)
			v.good.do(t, c)
			require.Equal(t, 1, f.Counts().Double)
		})
	}
}

func TestVendorsThrottleInTheirOwnDialect(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			f := v.start(vendortest.Options{Limit: vendortest.Limit{Requests: 1, Window: forever}})
			c := open(t, f)
			v.good.do(t, c)
			a := v.good.do(t, c)
			require.Equal(t, v.throttled, a.status)
			require.Equal(t, []any{v.says}, fields(t, a, v.path))
			require.Equal(t, v.bare, a.header.Get("Retry-After") == "")
			require.Equal(t, 1, f.Counts().Throttled)
			require.Equal(t, v.amount, f.Invoice().Total.String(), "a throttle is not billed")
		})
	}
}

func TestVendorsSayPlain429sToo(t *testing.T) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			f := v.start(vendortest.Options{Faults: vendortest.Faults{
				Script: []vendortest.Fault{vendortest.Throttle429Bare, vendortest.Throttle429Hint}, RetryAfter: 2 * time.Second,
			}})
			c := open(t, f)
			bare, hinted := v.good.do(t, c), v.good.do(t, c)
			require.Equal(t, []int{429, 429}, []int{bare.status, hinted.status})
			require.Empty(t, bare.header.Get("Retry-After"))
			require.NotRegexp(t, "retryDelay|retry_after", bare.body)
			told := hinted.header.Get("Retry-After") == "2" || strings.Contains(hinted.body, `"retryDelay":"2.000s"`)
			require.True(t, told, hinted)
			require.Empty(t, f.Invoice().Lines)
		})
	}
}

func TestVendorsBillLostAnswers(t *testing.T) {
	tests := []struct {
		fault vendortest.Fault
		taken int
	}{
		{vendortest.Unavailable503, 0}, {vendortest.Unavailable503Hint, 0}, {vendortest.ResetBeforeRead, 0},
		{vendortest.ResetAfterRead, 1}, {vendortest.Cut, 1}, {vendortest.Slow, 1},
	}
	for _, v := range vendors {
		for _, tt := range tests {
			t.Run(v.name+"/"+string(tt.fault), func(t *testing.T) {
				f := v.start(vendortest.Options{Faults: vendortest.Faults{Script: []vendortest.Fault{tt.fault}, SlowFor: time.Millisecond}})
				v.good.do(t, open(t, f))
				require.Equal(t, tt.taken, f.Counts().Accepted)
				want := budget.MustParse(v.amount) * budget.Amount(tt.taken)
				require.Equal(t, want, f.Invoice().Total)
			})
		}
	}
}

func TestWhatEndsInA500IsBilledByTheVendorsRule(t *testing.T) {
	for _, v := range vendors {
		f := v.start(vendortest.Options{Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.Error500}}})
		require.Equal(t, 500, v.good.do(t, open(t, f)).status, v.name)
		taken := 1
		if v.name == "gemini" {
			taken = 0
		}
		require.Equal(t, taken, f.Counts().Accepted, v.name)
	}
}

func TestWindowsAreToldInHeaders(t *testing.T) {
	headers := map[string][3]string{ // limit, remaining, reset
		"telnyx":    {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		"openai":    {"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		"anthropic": {"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		"github":    {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		"discord":   {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset-After"},
		"sendgrid":  {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	}
	for _, v := range vendors {
		names, tells := headers[v.name]
		f := v.start(vendortest.Options{Limit: vendortest.Limit{Requests: 5, Window: forever}})
		a := v.good.do(t, open(t, f))
		if tells {
			require.Equal(t, []string{"5", "4"}, []string{a.header.Get(names[0]), a.header.Get(names[1])}, v.name)
			require.NotEmpty(t, a.header.Get(names[2]), v.name)
		}
		silent := v.start(vendortest.Options{})
		a = v.good.do(t, open(t, silent))
		require.Empty(t, a.header.Get(names[0]), "%s: without a limit there is nothing to tell", v.name)
	}
}

func TestStreamsTellTheirUsageAtTheEnd(t *testing.T) {
	tests := []struct {
		name  string
		start func(vendortest.Options) *vendortest.Fake
		req   request
		tells string
	}{
		{"openai", vendortest.NewOpenAI, request{"POST", "https://api.openai.com/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"messages":[{"content":"hi"}]}`}, `"completion_tokens":9`},
		{"anthropic", vendortest.NewAnthropic, request{"POST", "https://api.anthropic.com/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[{"content":"hi"}]}`}, `"output_tokens":9`},
		{"gemini", vendortest.NewGemini, request{"POST", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":9}}`}, `"candidatesTokenCount":9`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.start(vendortest.Options{Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.None, vendortest.Cut}}})
			c := open(t, f)
			whole := tt.req.do(t, c)
			require.NoError(t, whole.err)
			require.Equal(t, "text/event-stream", whole.header.Get("Content-Type"))
			require.Contains(t, whole.body, tt.tells)
			require.Equal(t, 3, strings.Count(whole.body, "goes "))
			cut := tt.req.do(t, c)
			require.ErrorIs(t, cut.err, io.ErrUnexpectedEOF)
			require.NotContains(t, cut.body, tt.tells)
			inv := f.Invoice()
			require.Len(t, inv.Lines, 2, "what was cut is billed in full")
			require.Equal(t, inv.Lines[0].Amount, inv.Lines[1].Amount)
		})
	}
}

func TestStreamWithoutIncludeUsageTellsNone(t *testing.T) {
	f := vendortest.NewOpenAI(vendortest.Options{})
	a := do(t, open(t, f), http.MethodPost, "https://api.openai.com/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"content":"hi"}]}`)
	require.Contains(t, a.body, "data: [DONE]")
	require.NotContains(t, a.body, "prompt_tokens")
}

func TestStripeKeepsIdempotencyKeys(t *testing.T) {
	f := vendortest.NewStripe(vendortest.Options{Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.ResetAfterRead}}})
	c := open(t, f)
	pay := func(body, key string) answer {
		return do(t, c, http.MethodPost, "https://api.stripe.com/v1/payment_intents", body, "Idempotency-Key", key)
	}
	require.Error(t, pay("amount=100", "k1").err)
	again := pay("amount=100", "k1")
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	require.Equal(t, []any{f.Invoice().Lines[0].Ref}, fields(t, again, "id"))
	require.Equal(t, []any{"idempotency_error"}, fields(t, pay("amount=200", "k1"), "error.type"))
	require.Equal(t, 200, pay("amount=100", "k2").status)
	n := f.Counts()
	require.Equal(t, []int{2, 1, 1, 1}, []int{n.Accepted, n.Replayed, n.Double, n.Invalid})
	require.Len(t, f.Invoice().Lines, 2)
}

func TestVonageSpeaksFormQueryAndJSON(t *testing.T) {
	const url = "https://rest.nexmo.com/sms/json"
	long := strings.Repeat("a", 71)
	f := vendortest.NewVonage(vendortest.Options{Prices: map[string]budget.Amount{"+49": 100_000_000}})
	c := open(t, f)
	for _, q := range []request{
		{"POST", url, "from=x&to=491&text=" + long},
		{"GET", url + "?from=x&to=491&text=" + long, ""},
		{"POST", url, `{"from":"x","to":"491","text":"` + long + `"}`},
		{"POST", url, "from=x&to=491&type=unicode&text=" + long},
	} {
		require.Equal(t, []any{"0", "0.100000000"}, fields(t, q.do(t, c), "messages.status", "messages.message-price"))
	}
	require.Equal(t, "0.5", f.Invoice().Total.String(), "the last one is two parts")
	a := request{"POST", url, "from=x&to=491&type=unicode&text=" + long}.do(t, c)
	require.Equal(t, []any{"2"}, fields(t, a, "message-count"))
	require.Equal(t, fields(t, a, "messages.message-id")[0], f.Invoice().Lines[4].Ref)
}

func TestBusyVendorsSayWhy(t *testing.T) {
	tests := []struct {
		start func(vendortest.Options) *vendortest.Fake
		req   request
		says  string
	}{
		{vendortest.NewStripe, vendors[4].good, "global-concurrency"},
		{vendortest.NewVonage, vendors[2].good, "Too Many Existing Binds"},
		{vendortest.NewGitHub, vendors[8].good, "secondary rate limit"},
	}
	for _, tt := range tests {
		f := tt.start(vendortest.Options{
			Limit:  vendortest.Limit{Concurrent: 1},
			Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.Slow}, SlowFor: time.Hour},
		})
		c := open(t, f)
		lost := make(chan error, 1)
		go func() { lost <- do(t, c, tt.req.method, tt.req.url, tt.req.body).err }()
		require.Eventually(t, func() bool { return f.Counts().Received == 1 }, 10*time.Second, time.Millisecond)
		a := tt.req.do(t, c)
		require.Contains(t, a.body+a.header.Get("Stripe-Rate-Limited-Reason"), tt.says)
		f.Close()
		require.Error(t, <-lost)
	}
}

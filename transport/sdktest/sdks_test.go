package sdktest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-github/v74/github"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/sendgrid/rest"
	"github.com/sendgrid/sendgrid-go"
	"github.com/sendgrid/sendgrid-go/helpers/mail"
	"github.com/stripe/stripe-go/v82"
	twilioclient "github.com/twilio/twilio-go/client"
	twilio "github.com/twilio/twilio-go/rest/api/v2010"
	"googlemaps.github.io/maps"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// sdk is one vendor's SDK, its fake vendor and its preset.
type sdk struct {
	name   string
	fake   func(vendortest.Options) *vendortest.Fake
	preset func() transport.Provider
	// connect makes a client of the SDK and returns its call number i, which differs from
	// all others. The SDK's own retries are as they come, or off.
	connect func(c *http.Client, retries bool) func(ctx context.Context, i int) error
	// sends is how often the SDK sends what is refused, if it is not told otherwise.
	sends int
	// refusal and own are the vendor's error response, and how its SDK tells it.
	refusal func(transport.Refused) (int, http.Header, []byte)
	own     func(error) bool
	// bare is how many of a thousand requests are throttled without a pause being told.
	bare int
}

const model = "gpt-4o-mini"

// The prices are those of the fakes.
var (
	openAIPrices    = price.Tokens{Models: map[string]price.Model{model: {Input: budget.MustParse("0.15"), Output: budget.MustParse("0.60")}}}
	anthropicPrices = price.Tokens{Models: map[string]price.Model{"claude-sonnet": {Input: 3 * budget.Unit, Output: 15 * budget.Unit}}}
)

var sdks = []sdk{
	{
		name: "twilio-go", fake: vendortest.NewSMS, bare: 30, connect: connectTwilio, sends: 1,
		preset:  func() transport.Provider { return provider.TwilioSMS(budget.MustParse("0.0083")) },
		refusal: provider.TwilioRefusal,
		own: func(err error) bool {
			e, ok := errors.AsType[*twilioclient.TwilioRestError](err)
			return ok && e.Code == 402
		},
	},
	{
		name: "googlemaps", fake: vendortest.NewGeocoder, bare: 30, connect: connectMaps, sends: 1,
		preset:  func() transport.Provider { return provider.GoogleGeocoding(budget.MustParse("0.005")) },
		refusal: provider.GoogleMapsRefusal,
		own:     func(err error) bool { return strings.Contains(err.Error(), "OVER_DAILY_LIMIT") },
	},
	{
		name: "openai-go", fake: vendortest.NewOpenAI, bare: 30, connect: connectOpenAI, sends: 3,
		preset:  func() transport.Provider { return provider.OpenAI(openAIPrices) },
		refusal: provider.OpenAIRefusal,
		own:     func(err error) bool { e, ok := errors.AsType[*openai.Error](err); return ok && e.StatusCode == 402 },
	},
	{
		name: "anthropic-sdk-go", fake: vendortest.NewAnthropic, bare: 30, connect: connectAnthropic, sends: 3,
		preset:  func() transport.Provider { return provider.Anthropic(anthropicPrices) },
		refusal: provider.AnthropicRefusal,
		own:     func(err error) bool { e, ok := errors.AsType[*anthropic.Error](err); return ok && e.StatusCode == 402 },
	},
	{
		name: "stripe-go", fake: vendortest.NewStripe, bare: 30, connect: connectStripe, sends: 3,
		preset: provider.Stripe, refusal: provider.StripeRefusal,
		own: func(err error) bool {
			e, ok := errors.AsType[*stripe.Error](err)
			return ok && e.HTTPStatusCode == 429 && e.Code == "exhausted"
		},
	},
	{
		name: "sendgrid-go", fake: vendortest.NewSendGrid, bare: 30, connect: connectSendGrid, sends: 1,
		preset:  func() transport.Provider { return provider.SendGrid(budget.MustParse("0.001")) },
		refusal: provider.SendGridRefusal,
		own:     func(err error) bool { return strings.Contains(err.Error(), "status 402") },
	},
	{
		name: "go-github", fake: vendortest.NewGitHub, connect: connectGitHub, sends: 1,
		bare:   0, // its secondary limit is a minute at least
		preset: provider.GitHub, refusal: provider.GitHubRefusal,
		own: func(err error) bool {
			e, ok := errors.AsType[*github.ErrorResponse](err)
			return ok && e.Response.StatusCode == 403 && strings.Contains(e.Message, "outlay refused this call")
		},
	},
}

func connectTwilio(c *http.Client, _ bool) func(context.Context, int) error {
	base := &twilioclient.Client{Credentials: twilioclient.NewCredentials("AC1", "token"), HTTPClient: c}
	base.SetAccountSid("AC1")
	api := twilio.NewApiServiceWithClient(base)
	return func(_ context.Context, i int) error { // the SDK takes no context
		p := &twilio.CreateMessageParams{}
		p.SetTo(fmt.Sprintf("+1202555%04d", i)).SetFrom("+12025550100").SetBody("Grüße, naïve façade €")
		m, err := api.CreateMessage(p)
		if err == nil && m.Sid == nil {
			err = errors.New("no sid")
		}
		return err
	}
}

func connectMaps(c *http.Client, _ bool) func(context.Context, int) error {
	client, err := maps.NewClient(maps.WithAPIKey("AIza-fake"), maps.WithHTTPClient(c))
	return func(ctx context.Context, i int) error {
		if err != nil {
			return err
		}
		found, err := client.Geocode(ctx, &maps.GeocodingRequest{Address: fmt.Sprintf("%d Main Street", i)})
		if err == nil && len(found) == 0 {
			err = errors.New("nothing found")
		}
		return err
	}
}

func connectOpenAI(c *http.Client, retries bool) func(context.Context, int) error {
	options := []openaioption.RequestOption{openaioption.WithAPIKey("fake"), openaioption.WithHTTPClient(c)}
	if !retries {
		options = append(options, openaioption.WithMaxRetries(0))
	}
	client := openai.NewClient(options...)
	return func(ctx context.Context, i int) error {
		answer, err := client.Chat.Completions.New(ctx, chat(i))
		if err == nil && answer.Choices[0].Message.Content == "" {
			err = errors.New("no answer")
		}
		return err
	}
}

func chat(i int) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, MaxCompletionTokens: openai.Int(40),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(fmt.Sprintf("Tell me of %d", i))},
	}
}

func connectAnthropic(c *http.Client, retries bool) func(context.Context, int) error {
	options := []anthropicoption.RequestOption{anthropicoption.WithAPIKey("fake"), anthropicoption.WithHTTPClient(c)}
	if !retries {
		options = append(options, anthropicoption.WithMaxRetries(0))
	}
	client := anthropic.NewClient(options...)
	return func(ctx context.Context, i int) error {
		answer, err := client.Messages.New(ctx, message(i))
		if err == nil && len(answer.Content) == 0 {
			err = errors.New("no answer")
		}
		return err
	}
}

func message(i int) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-sonnet", MaxTokens: 40,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(fmt.Sprintf("Tell me of %d", i)))},
	}
}

func connectStripe(c *http.Client, retries bool) func(context.Context, int) error {
	config := &stripe.BackendConfig{HTTPClient: c, LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}}
	if !retries {
		config.MaxNetworkRetries = stripe.Int64(0)
	}
	client := stripe.NewClient("sk_test_fake", stripe.WithBackends(stripe.NewBackendsWithConfig(config)))
	return func(ctx context.Context, i int) error {
		customer, err := client.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Name: stripe.String(fmt.Sprintf("Customer %d", i))})
		if err == nil && customer.ID == "" {
			err = errors.New("no id")
		}
		return err
	}
}

func connectSendGrid(c *http.Client, _ bool) func(context.Context, int) error {
	client := &rest.Client{HTTPClient: c}
	return func(ctx context.Context, i int) error {
		request := sendgrid.GetRequest("fake", "/v3/mail/send", "")
		request.Method = rest.Post
		request.Body = mail.GetRequestBody(mail.NewSingleEmail(mail.NewEmail("Me", "me@example.com"), fmt.Sprintf("Hello %d", i),
			mail.NewEmail("You", "you@example.com"), "Hello", "<p>Hello</p>"))
		answer, err := client.SendWithContext(ctx, request)
		if err == nil && answer.StatusCode != http.StatusAccepted {
			err = fmt.Errorf("status %d", answer.StatusCode) // the SDK does not take it for an error
		}
		return err
	}
}

func connectGitHub(c *http.Client, _ bool) func(context.Context, int) error {
	client := github.NewClient(c).WithAuthToken("fake")
	return func(ctx context.Context, i int) error {
		issue, _, err := client.Issues.Create(ctx, "owner", "repo", &github.IssueRequest{Title: new(fmt.Sprintf("Issue %d", i))})
		if err == nil && issue.GetNumber() == 0 {
			err = errors.New("no number")
		}
		return err
	}
}

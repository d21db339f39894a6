package sdktest

import (
	"context"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// stream reads one stream of an SDK to its end and returns how many events it had.
type stream func(ctx context.Context, c *http.Client) (events int, err error)

func streamOpenAI(ctx context.Context, c *http.Client) (int, error) {
	client := openai.NewClient(openaioption.WithAPIKey("fake"), openaioption.WithHTTPClient(c), openaioption.WithMaxRetries(0))
	p := chat(1)
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := client.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	n := 0
	for s.Next() {
		n++
	}
	return n, s.Err()
}

func streamAnthropic(ctx context.Context, c *http.Client) (int, error) {
	client := anthropic.NewClient(anthropicoption.WithAPIKey("fake"), anthropicoption.WithHTTPClient(c), anthropicoption.WithMaxRetries(0))
	s := client.Messages.NewStreaming(ctx, message(1))
	defer s.Close()
	n := 0
	for s.Next() {
		n++
	}
	return n, s.Err()
}

// TestStreams: the usage at the end of a stream is what the books say. A stream that is
// cut leaves the hold presumed.
func TestStreams(t *testing.T) {
	tests := []struct {
		name   string
		fake   func(vendortest.Options) *vendortest.Fake
		preset func() transport.Provider
		stream stream
	}{
		{"openai-go", vendortest.NewOpenAI, func() transport.Provider { return provider.OpenAI(openAIPrices) }, streamOpenAI},
		{"anthropic-sdk-go", vendortest.NewAnthropic, func() transport.Provider { return provider.Anthropic(anthropicPrices) }, streamAnthropic},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := sdk{fake: tt.fake, preset: tt.preset, connect: func(c *http.Client, _ bool) func(context.Context, int) error {
				return func(ctx context.Context, _ int) error {
					n, err := tt.stream(ctx, c)
					if err == nil {
						require.Greater(t, n, 5)
					}
					return err
				}
			}}.build(t, vendortest.Options{Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.None, vendortest.Cut}}}, false, nil)

			require.NoError(t, w.call(t.Context(), 1))
			settled, presumed := w.accounts(t)
			require.Positive(t, settled)
			require.Equal(t, w.fake.Invoice().Total, settled)
			require.Zero(t, presumed)

			require.Error(t, w.call(t.Context(), 1))
			settled, presumed = w.accounts(t)
			invoice := w.fake.Invoice().Total
			require.Less(t, settled, invoice)
			require.LessOrEqual(t, invoice, settled+presumed)
		})
	}
}

package provider_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
)

// TestTokensWeigh: a scope that counts units sees the tokens through the preset's price.
func TestTokensWeigh(t *testing.T) {
	chat := provider.OpenAI(models)
	chat.Scopes = append(chat.Scopes, transport.Scope{
		Name: "tokens", Key: chat.Scopes[0].Key, Units: true, Rates: []throttle.Rate{{N: 1500, Per: time.Minute, Burst: 1500}},
	})
	rt, err := transport.New(transport.Config{Providers: []transport.Provider{chat}})
	require.NoError(t, err)
	plan := func(limit string) transport.PlanInfo {
		p, err := rt.Plan(request(t, "POST api.openai.com/v1/chat/completions", js,
			`{"model":"gpt-4o-mini","max_tokens":`+limit+`,"messages":[{"role":"user","content":"Hi"}]}`))
		require.NoError(t, err)
		require.Equal(t, []string{"model", "tokens"}, p.Scopes)
		return p
	}
	require.NoError(t, plan("100").Refusal)
	require.Equal(t, transport.ReasonNever, transport.ReasonOf(plan("1000").Refusal), "it is heavier than a minute's tokens")
}

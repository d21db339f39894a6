package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// TestGoldenRefusals: the bytes that SDKs in other languages read, for each vendor. A
// change here is a change for their programs. OUTLAY_GOLDEN=1 writes them anew.
func TestGoldenRefusals(t *testing.T) {
	golden := filepath.Join("testdata", "refusals.golden")
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		soon, tomorrow := time.Now().Add(3*time.Second), time.Now().Add(24*time.Hour)
		for _, p := range presets {
			fmt.Fprintf(&b, "%s\n", p.function)
			for _, r := range []transport.Refused{
				{Reason: transport.ReasonRate, RetryAt: soon, Err: &throttle.WaitError{Provider: "api", Reason: throttle.ReasonRate, RetryAt: soon}},
				{Reason: transport.ReasonExhausted, RetryAt: tomorrow, Err: &budget.ExceededError{
					Provider: "api", Budget: "api-day", Window: "2000-01-01", Unit: "USD", Reason: budget.ReasonExhausted,
					Need: 20_000_000, Used: 49_990_000_000, Limit: 50 * budget.Unit, RetryAt: tomorrow,
				}},
				{Reason: transport.ReasonFrozen, Err: &budget.FrozenError{Provider: "api"}},
			} {
				r.Provider, r.Call = "api", transport.CallID{Boot: 0xab, Seq: 7}
				status, h, body := p.refusal(r)
				fmt.Fprintf(&b, "  %d %s retry-after=%q should-retry=%q\n  %s\n", status, h.Get("Content-Type"), h.Get("Retry-After"), h.Get("X-Should-Retry"), body)
			}
		}
	})
	if os.Getenv("OUTLAY_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

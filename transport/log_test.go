package transport_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// A line stands for those of its own sort alone: what is left out is never news.
func TestWhatIsNewIsLogged(t *testing.T) {
	var out bytes.Buffer
	log := transport.LogTo(slog.New(slog.NewTextHandler(&out, nil)), transport.LogOptions{})
	begin := time.Date(2026, 11, 30, 3, 10, 0, 0, time.UTC)
	tell := func(after time.Duration, e transport.Event) bool {
		out.Reset()
		e.Time = begin.Add(after)
		log(t.Context(), e)
		return strings.Contains(out.String(), "msg=")
	}
	failed := func(provider, store string) transport.Event {
		return transport.Event{Kind: transport.KindStore, Provider: provider, Store: store, ErrorClass: "timeout"}
	}
	up := transport.Event{Kind: transport.KindStore, Provider: "sms", Store: "ledger", Up: true}
	require.True(t, tell(0, failed("maps", "limiter")))
	require.True(t, tell(1, failed("maps", "ledger")), "another store")
	require.False(t, tell(2, failed("maps", "ledger")))
	require.True(t, tell(3, up), "it works again, as another provider sees")
	require.False(t, tell(4, failed("maps", "ledger")))
	require.False(t, tell(5, up), "no line says that it failed since then")
	require.True(t, tell(11*time.Second, failed("maps", "ledger")))
	require.True(t, tell(11*time.Second+1, up), "the last line says how it is")

	presumed := transport.Event{Kind: transport.KindResolved, Provider: "maps", Outcome: "presumed", Cost: budget.Unit}
	above := transport.Event{Kind: transport.KindResolved, Provider: "maps", Outcome: "settled", Overrun: budget.Unit}
	require.True(t, tell(0, presumed))
	require.True(t, tell(1, above), "another thing to know about the money")
	require.False(t, tell(2, presumed))
	require.False(t, tell(3, above))
}

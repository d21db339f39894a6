package transport

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call that was never made does not count, whatever was remembered or forgotten between
// its check and its refusal.
func TestARefusedCallIsForgottenAfterOthersCame(t *testing.T) {
	p := &provider{Provider: Provider{Name: "api", Repeat: Repeat{Max: 2, Per: time.Hour}}}
	r, start := new(repeats), time.Now()
	at := func(after time.Duration) *call {
		return &call{p: p, req: httptest.NewRequest("GET", "https://api.example.com/x", nil), start: start.Add(after)}
	}
	turn := func() { r.old, r.now = r.now, nil }

	first, second := at(0), at(time.Minute)
	require.NoError(t, r.check(first))
	turn()
	r.forget(first)
	require.NoError(t, r.check(second))
	require.NoError(t, r.check(at(2*time.Minute)), "the first one was never made")
	require.Error(t, r.check(at(3*time.Minute)))

	turn()
	r.forget(second) // the third counts on, by its own time
	require.NoError(t, r.check(at(61*time.Minute)))
	require.Error(t, r.check(at(61*time.Minute)))
	require.NoError(t, r.check(at(62*time.Minute)))
}

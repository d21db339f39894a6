package sqliteledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What the file keeps as text comes back as it was, and no text does harm.
func FuzzStoredText(f *testing.F) {
	for _, s := range []string{"", "1 2 3 4 5 6 7 8 9 10", "50 80 100", "-1 x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		trend := parseTrend(s)
		require.Equal(t, trend, parseTrend(formatTrend(trend)))
		alerts := parseAlerts(s)
		require.Equal(t, alerts, parseAlerts(formatAlerts(alerts)))
	})
}

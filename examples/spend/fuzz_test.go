package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func FuzzReadLines(f *testing.F) {
	for _, s := range []string{"", "id,amount\nabc-1,0.5\n", "ref,amount\nSM1,1\n", "amount;ref", "\ufeffAmount, REF\n1,\"a\nb\"\n", "id,amount\n-,\n", "id,amount\nfff-,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lines, err := readLines(strings.NewReader(s))
		require.Equal(t, err == nil, len(lines) > 0)
		for _, line := range lines {
			require.GreaterOrEqual(t, line.Amount, budget.Amount(0))
			if line.Ref == "" {
				id, err := parseID(line.Hold.String())
				require.NoError(t, err)
				require.Equal(t, line.Hold, id)
			}
		}
	})
}

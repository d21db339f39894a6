package budget_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func TestHoldIDsAreReadAsTheyAreWritten(t *testing.T) {
	for _, id := range []budget.HoldID{{}, {Boot: 0x7f9c, Seq: 0x1a22}, {Boot: 1<<64 - 1, Seq: 1<<64 - 1}} {
		again, err := budget.ParseHoldID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	}
	for _, s := range []string{"", "-", "1", "1-", "-1", "1-2-3", "+1-2", "0x1-2", " 1-2", "1-2 ", "10000000000000000-1", "1_0-1", "g-1"} {
		id, err := budget.ParseHoldID(s)
		require.Error(t, err, s)
		require.Zero(t, id, s)
	}
}

// What HoldID.String writes is read back; nothing else is taken for an id.
func FuzzHoldID(f *testing.F) {
	for _, s := range []string{"", "-", "7f9c-1a22", "0-0", "ffffffffffffffff-ffffffffffffffff", "1-2-3", "+1-2", "0x1-2", "10000000000000000-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := budget.ParseHoldID(s)
		if err != nil {
			return
		}
		again, err := budget.ParseHoldID(id.String())
		if err != nil || again != id {
			t.Fatalf("%q is %v, and that is %v", s, id, again)
		}
	})
}

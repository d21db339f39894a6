package ledgertest_test

import (
	"testing"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
)

func memory(_ testing.TB, o ledgertest.Options) budget.Ledger {
	return &budget.Memory{Clock: o.Clock}
}

func TestMemory(t *testing.T) {
	ledgertest.Run(t, ledgertest.Subject{Open: memory})
}

func FuzzMemory(f *testing.F) {
	ledgertest.Fuzz(f, ledgertest.Subject{Open: memory})
}

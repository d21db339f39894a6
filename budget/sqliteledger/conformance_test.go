package sqliteledger

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
)

var subject = ledgertest.Subject{
	Open: func(t testing.TB, o ledgertest.Options) budget.Ledger {
		l, err := Options{clock: o.Clock}.Open(filepath.Join(o.Dir, "spend.db"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	},
	Crash: func(t testing.TB, l budget.Ledger) { l.(*Ledger).crash(t) },
}

func TestConformance(t *testing.T) { ledgertest.Run(t, subject) }

func FuzzHistories(f *testing.F) { ledgertest.Fuzz(f, subject) }

// crash ends a handle as the death of its process would: what waits in memory is lost,
// the kernel drops the lock of the presence file, and nobody signs out.
func (l *Ledger) crash(t testing.TB) {
	l.mu.Lock()
	l.outcomes, l.told = nil, nil
	l.broken, l.closed = errors.New("crashed"), true
	l.nudge()
	l.mu.Unlock()
	<-l.done
	require.NoError(t, l.presence.file.Close())
	l.presence = nil
	_ = l.release() // the disk may be gone
}

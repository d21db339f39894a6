package redisledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestConformanceOnACluster(t *testing.T) {
	ledgertest.Run(t, subject(redistest.StartCluster(t)))
}

func TestConformanceThroughSentinel(t *testing.T) {
	ledgertest.Run(t, subject(redistest.StartSentinel(t).Client))
}

func TestFailover(t *testing.T) {
	s := redistest.StartSentinel(t)
	l := open1(t, s.Client, Options{Timeout: quick, beat: 50 * time.Millisecond})
	spend(t, l, month(), "4")
	flying := take(t, l, month(), "1")
	replica := s.Replica.Client(t)
	require.Eventually(t, func() bool {
		return replica.Exists(t.Context(), l.keys.hold(flying)).Val() == 1
	}, 10*time.Second, 5*time.Millisecond)
	s.Part(t)
	spend(t, l, month(), "2")
	lost := take(t, l, month(), "1.5")
	s.Master.Kill()
	_, err := l.Resolve(t.Context(), flying, budget.Settled(budget.MustParse("0.5")))
	require.NoError(t, err, "it waits in memory")
	eventually(t, l, month(), "settled 6.5 presumed 0 held 1.5")
	report, err := l.Hold(t.Context(), holdOf(month(), "2.01"))
	require.Equal(t, 8*budget.Unit, refused(t, err).Used)
	require.Contains(t, reasons(report), "acknowledged writes are lost")
	_, err = l.Resolve(t.Context(), lost, budget.Settled(budget.Unit))
	require.NoError(t, err)
	eventually(t, l, month(), "settled 7.5 presumed 0 held 0")
}

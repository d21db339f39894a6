package redisledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// A Redis that is new, or lost everything, grants nothing for ten seconds; one that does not
// answer is given up after 250 ms.
func TestDefaults(t *testing.T) {
	l, err := New(redistest.Start(t).Client(t), Options{})
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, ModeLearning, l.Mode())
	_, err = l.Hold(t.Context(), holdOf(month(), "1"))
	require.ErrorContains(t, err, "nothing is granted")
	require.WithinDuration(t, time.Now().Add(10*time.Second), l.learning, 5*time.Second)
	require.Equal(t, Options{Prefix: "outlay", Name: "ledger", Timeout: 250 * time.Millisecond, Learn: 10 * time.Second, beat: 2 * time.Second}, l.options)
}

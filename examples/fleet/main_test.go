package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain makes the test's own program a worker of the fleets that it starts.
func TestMain(m *testing.M) {
	if os.Getenv(workerAddr) != "" {
		os.Exit(worker(os.Stderr))
	}
	os.Exit(m.Run())
}

// play runs one fleet; without redis-server it is skipped, but never in CI.
func play(t *testing.T, o options) result {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("NOT TESTED: redis-server is not installed (apt-get install redis-server)")
	}
	var out bytes.Buffer
	r, err := run(t.Context(), o, &out)
	t.Log("\n" + out.String())
	require.NoError(t, err)
	require.NoError(t, r.wrong())
	return r
}

func TestFleetWithoutFaults(t *testing.T) {
	r := play(t, options{lasts: 7 * time.Second, calm: true})
	require.LessOrEqual(t, r.invoice, r.limit)
}

func TestFleetWithFaults(t *testing.T) {
	runs, lasts := 1, 15*time.Second
	if os.Getenv("OUTLAY_PROVE") != "" {
		runs, lasts = 20, 2*time.Minute
	}
	for range runs {
		play(t, options{lasts: lasts})
	}
}

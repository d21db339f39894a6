package main

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGreedyTenantsGetNoMore(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out, 2*time.Second))
	t.Log("\n" + out.String())
	sent := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+) +(?:gold|free) +\d+ +(\d+)`).FindAllStringSubmatch(out.String(), -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		sent[m[1]] = n
	}
	require.Len(t, sent, 4)
	require.InEpsilon(t, sent["acme"], sent["bolt"], 0.1)
	require.InEpsilon(t, sent["acme"], sent["cask"], 0.1)
	require.LessOrEqual(t, sent["dust"], 41)
	require.LessOrEqual(t, sent["acme"]+sent["bolt"]+sent["cask"]+sent["dust"], 402)
}

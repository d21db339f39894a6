package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBothRefusals(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show(t.Context(), &out))
	want := []string{
		`message 1: sent`,
		`message 2: refused: rate: nothing was sent; a turn comes in \d+ms`,
		`message 2: sent`,
		`message 3: refused: exhausted: nothing was sent; 0\.0166 of 0\.02 USD are used, 0\.0083 are needed; the next window begins \S+T00:00:00Z`,
	}
	require.Regexp(t, regexp.MustCompile("^"+strings.Join(want, "\n")+"\n$"), out.String())
}

package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestFiveOfEightThenThreeOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, show(t.Context(), &out))
		require.Equal(t, strings.Join([]string{
			"call 1: passed, tokens left: 4",
			"call 2: passed, tokens left: 3",
			"call 3: passed, tokens left: 2",
			"call 4: passed, tokens left: 1",
			"call 5: passed, tokens left: 0",
			"call 6: refused (rate), tokens left: 0",
			"call 7: refused (rate), tokens left: 0",
			"call 8: refused (rate), tokens left: 0",
			"1.5 s later, tokens: 3",
			"call 9: passed, tokens left: 2",
			"call 10: passed, tokens left: 1",
			"call 11: passed, tokens left: 0",
			"8 passed, 3 refused",
		}, "\n")+"\n", out.String())
	})
}

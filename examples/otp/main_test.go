package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPasswordsGoFirstAndHaveMoneyLeft(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out))
	t.Log("\n" + out.String())
	require.Contains(t, out.String(), "passwords   20 sent,  0 refused")
	require.Regexp(t, `bulk +(6\d|7\d|80) sent, \d+ refused \(floor\)`, out.String())
	require.Regexp(t, `invoice +(0\.[89]\d?|1) USD of 1`, out.String())
}

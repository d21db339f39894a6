package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
)

// Secrets come and go beside the file, in any order: what is in force is what is there, or
// the log and the page say why not.
func TestSecretsThatComeAndGo(t *testing.T) {
	at := func(credential string) string {
		return head + "providers:\n" + twilio("http://127.0.0.1:1", credential)
	}
	config := where(t, at("    credential: {bearer: \"file:old\"}\n"))
	beside := func(name string) string { return filepath.Join(filepath.Dir(config), name) }
	require.NoError(t, os.WriteFile(beside("old"), []byte("the-old-key"), 0o600))
	file, problems := gateway.Load(config, gateway.LoadOptions{})
	require.NotNil(t, file, problems)
	books := new(budget.Memory)
	gw, err := gateway.New(file.Config, gateway.Parts{Ledger: books})
	require.NoError(t, err)
	var log bytes.Buffer
	r := newReloader(file, gw, &stores{ledger: books}, slog.New(slog.NewTextHandler(&log, nil)))
	looks := func(told, notice string) {
		t.Helper()
		log.Reset()
		if r.look() == lookAgain {
			r.look()
		}
		assert.Equal(t, told, lastLevel(log.String()), log.String())
		notices := strings.Join(r.notices(), "\n")
		assert.Equal(t, notice == "", notices == "", notices)
		assert.Contains(t, notices, notice)
	}
	looks("", "")

	require.NoError(t, os.Remove(beside("old")))
	looks("ERROR", "old cannot be read: no such file")
	write(t, config, at(""))
	looks("INFO", "")

	write(t, config, at("    credential: {bearer: \"file:new\"}\n"))
	looks("ERROR", "new cannot be read: no such file")
	looks("", "new cannot be read: no such file") // it was told
	require.NoError(t, os.WriteFile(beside("new"), nil, 0o600))
	looks("ERROR", "new is empty")
	require.NoError(t, os.WriteFile(beside("new"), []byte("the-new-key"), 0o600))
	looks("INFO", "")
	looks("", "")

	require.NoError(t, os.Rename(config, config+".away"))
	looks("ERROR", "outlay.yaml: cannot be read: no such file")
	require.NoError(t, os.Rename(config+".away", config))
	looks("INFO", "")
	assert.NotContains(t, log.String(), "-key")
}

// lastLevel is that of the last line of a log.
func lastLevel(log string) string {
	_, rest, _ := strings.Cut(log[strings.LastIndex(strings.TrimSpace(log), "\n")+1:], " level=")
	level, _, _ := strings.Cut(rest, " ")
	return level
}

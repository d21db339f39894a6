package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/vendortest"
)

// The binary needs nothing but its configuration and a folder for the books: no libraries,
// zones, certificates, shell, environment or temporary files. It runs as nobody.
func TestAloneInAChroot(t *testing.T) {
	if os.Getuid() != 0 {
		missing(t, "a chroot needs root")
	}
	fake := vendortest.NewSMS(vendortest.Options{Price: cent})
	defer fake.Close()
	root := t.TempDir()
	for dir := root; dir != "/" && strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // nobody must get through
	}
	from, err := os.Open(program1(t))
	require.NoError(t, err)
	to, err := os.OpenFile(filepath.Join(root, "outlay-gateway"), os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, from.Close())
	require.NoError(t, os.Mkdir(filepath.Join(root, "spend"), 0o700))
	require.NoError(t, os.Chown(filepath.Join(root, "spend"), 65532, 65532))
	text := strings.Replace(head, "path: spend.db", "path: /spend/spend.db", 1) + "providers:\n" +
		twilio(fake.URL(), "    budgets: {day: {limit: 1.00 USD, every: day, zone: America/New_York}}\n")
	require.NoError(t, os.WriteFile(filepath.Join(root, "outlay.yaml"), []byte(text), 0o644))

	alone := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/outlay-gateway", append(args, "-config", "/outlay.yaml")...)
		cmd.Dir, cmd.Env = "/", []string{} // as env -i
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	out, err := alone("check").CombinedOutput()
	require.NoError(t, err, "%s", out)

	p := follow(t, alone("run"), "")
	require.Equal(t, 201, p.message(t.Context(), 1).status)
	b := p.status().Budgets[0]
	assert.Equal(t, cent, b.Settled)
	out, err = alone("healthcheck", "-address", strings.TrimPrefix(p.admin, "http://")).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	p.signal(syscall.SIGTERM)
	assert.Zero(t, p.exit(), p.text())

	p = follow(t, alone("run"), "")
	assert.Equal(t, cent, p.status().Budgets[0].Settled, "the books are there after a restart")
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	assert.Len(t, entries, 3, "it wrote somewhere else: %v", entries)
}

// Zones and certificates are in the binary, which is static.
func TestWhatTheBinaryHolds(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", program1(t)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "golang.org/x/crypto/x509roots/fallback")
	assert.Contains(t, string(out), "CGO_ENABLED=0")
	unit, err := os.ReadFile("outlay-gateway.service")
	require.NoError(t, err)
	image, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	for _, command := range []string{"outlay-gateway check -config", "outlay-gateway run -config"} {
		assert.Contains(t, string(unit), command)
	}
	assert.Contains(t, string(image), "./examples/gateway")
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		out, _ := exec.CommandContext(t.Context(), analyze, "verify", "./outlay-gateway.service").CombinedOutput()
		for line := range strings.Lines(string(out)) {
			assert.NotContains(t, line, "Unknown", line) // a key that is misspelt; that the program is missing here is no news
		}
	}
}

package gateway

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// guide is what the page for users says of the file.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/gateway/README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "## The file\n")
	require.True(t, found)
	block := strings.Split(rest, "```")
	require.Greater(t, len(block), 2)
	return block[1]
}

// What a file leaves out has the value that the guide says.
func TestDefaultsAreThoseOfTheGuide(t *testing.T) {
	f, problems := told(t, small)
	require.NotNil(t, f, "%v", problems)
	g, err := New(f.Config, Parts{Ledger: new(budget.Memory)})
	require.NoError(t, err)
	s, says := g.snap.Load(), guide(t)
	api := s.byName["api"]
	for _, d := range []struct {
		says      string
		want, got any
	}{
		{"[{address: 127.0.0.1:8787}]", []Listen{{Address: "127.0.0.1:8787"}}, f.Listen},
		{"admin:             {address: 127.0.0.1:8786, token}", "127.0.0.1:8786", f.Admin.Address},
		{"limiter:           {kind: local|redis, on_unavailable: refuse|local}", "local", f.Limiter.Kind},
		{"path:            # /NAME", "/api", "/" + api.Path},
		{"allow_private:   # false", false, api.AllowPrivate},
		{"max_wait (20s)", 20 * time.Second, s.MaxWait},
		{"fixed_rate (false)", false, api.FixedRate},
		{"connect: 5s", 5 * time.Second, api.Timeouts.Connect},
		{"tls: 5s", 5 * time.Second, api.Timeouts.TLS},
		{"response: 60s", time.Minute, api.Timeouts.Response},
		{"idle: 5m", 5 * time.Minute, api.Timeouts.Idle},
		{"body_read: 30s", 30 * time.Second, api.Timeouts.BodyRead},
		{"client_write: 60s", time.Minute, api.Timeouts.ClientWrite},
		{"buffer: 1MiB", int64(1 << 20), api.Body.Buffer},
		{"max: 32MiB", int64(32 << 20), api.Body.Max},
		{"on_disconnect:   auto|", AutoDisconnect, api.OnDisconnect},
		{"upgrade:         refuse|", false, api.Upgrades},
		{"monitor, frozen  # false", [2]bool{}, [2]bool{api.Monitor, api.Stopped}},
		{"{outlay: true}", false, s.HideOutlay},
		{"buffers:           256MiB", int64(256 << 20), s.Buffers},
		{"{level: info, format: json|text, calls: all|", LogChoice{"info", "json", "all"}, f.Log},
		{"shutdown:          30s", 30 * time.Second, f.Shutdown},
	} {
		assert.True(t, strings.Contains(says, d.says), "the guide does not say %q", d.says)
		assert.Equal(t, d.want, d.got, d.says)
	}
	assert.Equal(t, 30*time.Second, finishFor, "of a call whose caller has left")
}

// The guide names every key that is read, and no other.
func TestKeysAreThoseOfTheGuide(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	texts, keys := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"([a-z_0-9]+)"`).FindAllStringSubmatch(string(text), -1) {
			texts[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`(?:fields?\([\w.]+, |\.(?:get|sub|scalar|values|has|each)\(|address\(\w+, |amount\()"([a-z_0-9]+)"`).FindAllStringSubmatch(string(text), -1) {
			keys[m[1]] = true
		}
	}
	require.Greater(t, len(keys), 80)
	says := regexp.MustCompile(`(?m)#.*$|<<`).ReplaceAllString(guide(t), "")
	for key := range keys {
		assert.True(t, regexp.MustCompile(`\b`+key+`\b`).MatchString(guide(t)), "the guide does not name the key %s", key)
	}
	for _, m := range regexp.MustCompile(`(?m)(?:^ *|[{,] *)([a-z_]+):`).FindAllStringSubmatch(says, -1) {
		assert.True(t, texts[m[1]], "no file has the key %s", m[1])
	}
}

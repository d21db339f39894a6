package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A renewal that goes wrong leaves the certificate before it, which will expire: it is told,
// once.
func TestCertificatesThatCannotBeReadAgain(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir)
	var log bytes.Buffer
	c := &certificate{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), log: slog.New(slog.NewTextHandler(&log, nil))}
	look := func() []byte {
		t.Helper()
		c.looked = time.Time{}
		pair, err := c.get(nil)
		require.NoError(t, err)
		return pair.Certificate[0]
	}
	first := look()
	require.NoError(t, os.Rename(c.key, c.key+".old"))
	certify(t, dir)
	require.NoError(t, os.Rename(c.key, c.key+".new"))
	require.NoError(t, os.Rename(c.key+".old", c.key))
	assert.Equal(t, first, look())
	assert.Equal(t, first, look())
	assert.Equal(t, 1, strings.Count(log.String(), "private key does not match public key"), log.String())
	require.NoError(t, os.Remove(c.key))
	assert.Equal(t, first, look())
	assert.Contains(t, log.String(), "no such file")
	require.NoError(t, os.Rename(c.key+".new", c.key))
	assert.NotEqual(t, first, look())
	assert.Equal(t, 2, strings.Count(log.String(), "level=ERROR"))
}

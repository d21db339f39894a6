package main

import (
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// withTLS serves the certificate in two files, which are read again when they change.
func withTLS(on net.Listener, cert, key string, log *slog.Logger) (net.Listener, error) {
	c := &certificate{cert: cert, key: key, log: log}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	return tls.NewListener(on, &tls.Config{GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}), nil
}

// certificate is a pair of files. A pair that cannot be used leaves the one before in use,
// and is told: it will expire.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex // guards what follows
	looked time.Time
	sum    [sha256.Size]byte
	last   *tls.Certificate
	told   string // what was wrong with the files
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.last != nil && now.Sub(c.looked) < time.Second {
		return c.last, nil
	}
	c.looked = now
	cert, err := os.ReadFile(c.cert)
	if err != nil {
		return c.kept(err)
	}
	key, err := os.ReadFile(c.key)
	if err != nil {
		return c.kept(err)
	}
	sum := sha256.Sum256(append(append([]byte{}, cert...), key...))
	if c.last != nil && sum == c.sum {
		c.told = ""
		return c.last, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return c.kept(err)
	}
	c.last, c.sum, c.told = &pair, sum, ""
	return c.last, nil
}

func (c *certificate) kept(err error) (*tls.Certificate, error) {
	if c.last == nil {
		return nil, err
	}
	if c.told != err.Error() {
		c.told = err.Error()
		c.log.Error("the certificate was not read again: the one before stays", "file", c.cert, "error", c.told)
	}
	return c.last, nil
}

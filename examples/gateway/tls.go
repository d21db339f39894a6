package main

import (
	"crypto/sha256"
	"crypto/tls"
	"net"
	"os"
	"sync"
	"time"
)

// withTLS serves the certificate in two files, which are read again when they change.
func withTLS(on net.Listener, cert, key string) (net.Listener, error) {
	c := &certificate{cert: cert, key: key}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	return tls.NewListener(on, &tls.Config{GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}), nil
}

// certificate is a pair of files. A pair that cannot be used leaves the one before in use.
type certificate struct {
	cert, key string

	mu     sync.Mutex // guards what follows
	looked time.Time
	sum    [sha256.Size]byte
	last   *tls.Certificate
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
		return c.last, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return c.kept(err)
	}
	c.last, c.sum = &pair, sum
	return c.last, nil
}

func (c *certificate) kept(err error) (*tls.Certificate, error) {
	if c.last != nil {
		return c.last, nil
	}
	return nil, err
}

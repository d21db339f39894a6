// Package redistest starts servers for tests of what uses Redis in this module.
package redistest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Server is a redis-server of its own, on loopback.
type Server struct {
	Addr    string
	dir     string
	args    []string
	process *exec.Cmd
	exited  chan struct{}
}

// Start starts a server that keeps an append-only file, and stops it at the end.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // short, for sockets, and not named after the test
	require.NoError(t, err)
	s := &Server{Addr: FreeAddr(t), dir: dir, args: args}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(s.Kill)
	s.Restart(t)
	return s
}

// FreeAddr is an address of loopback where nobody listens.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// program finds a program of Redis. Without it the test is skipped, but never in CI.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", name)
	}
	if err != nil {
		t.Skipf("NOT TESTED: %s is not installed (apt-get install redis-server)", name)
	}
	return path
}

// Restart starts the server anew, with the files that it had.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	args := append([]string{"--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec"}, s.args...)
	s.run(t, program(t, "redis-server"), args...)
}

func (s *Server) run(t testing.TB, path string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	s.process = exec.Command(path, args...)
	s.process.Stdout, s.process.Stderr = log, log
	require.NoError(t, s.process.Start())
	exited := make(chan struct{})
	s.exited = exited
	process := s.process
	go func() { _ = process.Wait(); close(exited) }()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	require.Eventually(t, func() bool {
		err := c.Ping(context.Background()).Err()
		return err == nil || redis.HasErrorPrefix(err, "NOAUTH")
	}, 10*time.Second, 5*time.Millisecond, "the server does not start")
}

// Kill ends the process as a crash would.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	<-s.exited
	s.process = nil
}

// Pause stops the process without closing its connections; the result continues it.
func (s *Server) Pause(t testing.TB) (resume func()) {
	t.Helper()
	require.NoError(t, s.process.Process.Signal(syscall.SIGSTOP))
	return func() { require.NoError(t, s.process.Process.Signal(syscall.SIGCONT)) }
}

// Client is one with 32 connections, closed at the end of the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 32})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

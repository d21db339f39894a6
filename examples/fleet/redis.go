package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of our own, with an append-only file in a new directory.
type server struct {
	addr, dir string
	process   *exec.Cmd
}

func startRedis() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String()}
	if err := l.Close(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "fleet"); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *server) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not installed: %w", err)
	}
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	p := exec.Command(path, "--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "yes")
	if err := p.Start(); err != nil {
		return err
	}
	s.process = p
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer client.Close()
	for range 500 {
		if client.Ping(context.Background()).Err() == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("redis-server does not answer")
}

// kill ends the server as a crash would.
func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait() // it was killed
		s.process = nil
	}
}

func (s *server) flush(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	defer client.Close()
	return client.FlushAll(ctx).Err()
}

func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir) // in the directory for temporary files
}

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/redisledger"
	"github.com/outlay-go/outlay/budget/sqliteledger"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter"
	"github.com/outlay-go/outlay/transport/gateway"
)

// stores is where books and turns are kept, as the configuration chooses.
type stores struct {
	ledger  budget.Ledger
	limiter throttle.Limiter
	closers []func() error
}

// open opens them. Whatever is open when it fails is closed again.
func open(ctx context.Context, f *gateway.File) (s *stores, err error) {
	s = new(stores)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	var client redis.UniversalClient
	if f.Ledger.Kind == "redis" || f.Limiter.Kind == "redis" {
		if client, err = connect(f.Redis); err != nil {
			return s, err
		}
		s.closers = append(s.closers, client.Close)
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := client.Ping(ctx).Err(); err != nil {
			return s, fmt.Errorf("redis does not answer: %w", err)
		}
	}
	switch f.Ledger.Kind {
	case "sqlite":
		ledger, err := sqliteledger.Open(f.Ledger.Path)
		if err != nil {
			return s, err
		}
		s.ledger, s.closers = ledger, append(s.closers, ledger.Close)
	case "redis":
		ledger, err := redisledger.New(client, redisledger.Options{Prefix: f.Redis.Prefix})
		if err != nil {
			return s, err
		}
		s.ledger, s.closers = ledger, append(s.closers, ledger.Close)
	default:
		s.ledger = new(budget.Memory)
	}
	s.limiter = throttle.NewBucket()
	if f.Limiter.Kind == "redis" {
		o := redislimiter.Options{Prefix: f.Redis.Prefix}
		if l, ok := s.ledger.(*redisledger.Ledger); ok {
			o.HashKey = l.Key() // all gateways of this Redis have it
		}
		shared, err := redislimiter.New(client, o)
		if err != nil {
			return s, err
		}
		s.closers = append(s.closers, shared.Close)
		if s.limiter = shared; f.Limiter.Fallback {
			s.limiter = throttle.Fallback(shared, throttle.NewBucket())
		}
	}
	return s, nil
}

// compare says which budgets of a file contradict the books. A ledger that does not answer
// says nothing: calls tell of it.
func (s *stores) compare(ctx context.Context, f *gateway.File) ([]gateway.Problem, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return f.Conflicts(ctx, s.ledger, time.Now())
}

// close closes what was opened, the last first.
func (s *stores) close() error {
	var errs []error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		errs = append(errs, s.closers[last]())
		s.closers = s.closers[:last]
	}
	return errors.Join(errs...)
}

// connect makes the client of Redis. No error holds the address, which may hold a password.
func connect(c gateway.RedisChoice) (redis.UniversalClient, error) {
	u, err := url.Parse(c.URL.Reveal())
	if err != nil {
		return nil, errors.New("redis.url is no address")
	}
	host := u.Host
	if u.Port() == "" {
		host += ":6379"
	}
	o := &redis.UniversalOptions{
		Addrs: []string{host}, MasterName: c.SentinelMaster, Username: c.Username, Password: c.Password.Reveal(),
		IsClusterMode: c.Cluster, ContextTimeoutEnabled: true,
	}
	if u.User != nil {
		o.Username = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil {
			return nil, errors.New("redis.url: the path must be the number of a database")
		}
	}
	if u.Scheme == "rediss" {
		o.TLSConfig = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	return redis.NewUniversalClient(o), nil
}

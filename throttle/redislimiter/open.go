package redislimiter

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// Options say how a limiter uses Redis. The zero value is good.
type Options struct {
	// Prefix begins all keys. Empty: "outlay". It must not contain a brace.
	Prefix string
	// HashKey is the secret with which keys of scopes are hashed: they may be phone numbers,
	// which can be found from a hash that everybody can make. All processes need the same;
	// the Key of a shared ledger is one. Empty: a hash without secret.
	HashKey []byte
	// Timeout bounds every command. Zero: 250 ms. The client should have
	// ContextTimeoutEnabled set. Else a copy of a *redis.Client is used, whose hooks do
	// not see our commands, and with any other client each command that gets no answer
	// leaves a goroutine behind until the client's own time-outs.
	Timeout time.Duration
	// MaxQueue and MaxScopes are those of the [throttle.Bucket] in which calls of this
	// process wait.
	MaxQueue, MaxScopes int
}

// Limiter is a [throttle.Limiter] whose turns, gates, caps and effective rates are shared
// through Redis by all who use the same prefix. It is safe for concurrent use, and one
// goroutine of it listens until Close. It implements [throttle.Informer] and
// [throttle.Tuner]; what it tells is what this process knows.
type Limiter struct {
	local   *throttle.Bucket
	store   store
	scripts scripts
	prefix  string
	channel string
	hashKey []byte
	id      string

	mu      sync.Mutex // guards all below
	sets    map[string]*set
	scopes  map[string]*scope
	names   map[string]string // keys of scopes by their names in Redis
	turns   map[uint64]*taken
	seq     uint64
	changed chan struct{} // closed when those who sleep must ask again
	shutter chan struct{} // closed when a gate has closed

	closing sync.Once
	hearing *redis.PubSub
	done    chan struct{}
}

var (
	_ throttle.Limiter  = (*Limiter)(nil)
	_ throttle.Owner    = (*Limiter)(nil)
	_ throttle.Informer = (*Limiter)(nil)
	_ throttle.Tuner    = (*Limiter)(nil)
)

// startBound bounds each command of New.
const startBound = time.Second

// New opens a limiter. It fails with an error that says what to do if the server is too
// old, refuses scripts, or holds keys of another program under the prefix. The client
// stays the caller's, who closes it after the limiter.
func New(client redis.UniversalClient, o Options) (*Limiter, error) {
	o.Prefix, o.Timeout = cmp.Or(o.Prefix, "outlay"), cmp.Or(o.Timeout, 250*time.Millisecond)
	switch {
	case client == nil:
		return nil, errors.New("redislimiter: no client")
	case strings.ContainsAny(o.Prefix, "{}"):
		return nil, errors.New("redislimiter: Prefix must not contain braces, which are for the hash tag")
	case o.Timeout < 0:
		return nil, fmt.Errorf("redislimiter: Timeout: %v, want more than zero", o.Timeout)
	}
	l := &Limiter{
		local: &throttle.Bucket{MaxQueue: o.MaxQueue, MaxScopes: o.MaxScopes},
		store: newStore(client, max(o.Timeout, startBound)), scripts: newScripts(), prefix: o.Prefix, channel: o.Prefix + ":gates",
		hashKey: slices.Clone(o.HashKey), names: map[string]string{},
		id: rand.Text()[:12], sets: map[string]*set{}, scopes: map[string]*scope{}, turns: map[uint64]*taken{},
		changed: make(chan struct{}), shutter: make(chan struct{}), done: make(chan struct{}),
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(5*startBound, o.Timeout))
	defer cancel()
	if err := l.inspect(ctx); err != nil {
		return nil, fmt.Errorf("redislimiter: %w", err)
	}
	l.store = newStore(client, o.Timeout)
	l.hearing = client.Subscribe(context.Background(), l.channel)
	go l.hear()
	return l, nil
}

// inspect refuses servers that cannot keep the limits.
func (l *Limiter) inspect(ctx context.Context) error {
	if err := l.store.Start(ctx); err != nil {
		return explain(err)
	}
	key := l.scopeKey("start", "start")
	_, err := l.store.run(ctx, l.scripts.turn, []string{key}, 1, 0, magic+" 1 1 0")
	return explain(err)
}

func explain(err error) error {
	return redisstore.Explain(err, "@scripting, @string, @list, @pubsub, @keyspace, info and time on the keys and channels of the prefix", "Prefix")
}

// hear takes over the gates that other processes close, until Close.
func (l *Limiter) hear() {
	defer close(l.done)
	for m := range l.hearing.Channel() {
		l.heard(context.Background(), m.Payload)
	}
}

// Close gives turns back that were taken in batches and not used. Those who wait still
// get theirs, or an error.
func (l *Limiter) Close() error {
	var err error
	l.closing.Do(func() {
		err = l.hearing.Close()
		<-l.done
		l.mu.Lock()
		var left []*batch
		for _, s := range l.sets {
			if s.batch != nil {
				left = append(left, s.batch)
				s.batch = nil
			}
		}
		l.mu.Unlock()
		for _, b := range left {
			l.giveBack(&b.taken, b.left)
		}
	})
	return err
}

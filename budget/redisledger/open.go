package redisledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
)

// Options say how a ledger uses Redis. The zero value is good.
type Options struct {
	// Prefix begins all keys. Empty: "outlay". Name tells ledgers under one prefix apart;
	// all keys of one are in one slot of a cluster. Empty: "ledger". Neither may contain
	// a brace.
	Prefix, Name string
	// Timeout bounds every command. Zero: 250 ms. The client should have
	// ContextTimeoutEnabled set. Else a copy of a *redis.Client is used, whose hooks do
	// not see our commands, and with any other client each command that gets no answer
	// leaves a goroutine behind until the client's own time-outs.
	Timeout time.Duration
	// Learn is for how long nothing is granted after Redis has lost its books, while the
	// instances that are alive report what they spent. An empty Redis cannot be told
	// from one that lost everything, so that the first start ever waits as well. Zero:
	// 10 s. Negative: not at all, for tests and for a Redis that is known to be new.
	Learn time.Duration
	// Outage holds an amount in advance for each budget named here, in its unit. While
	// Redis is away this process may spend that much and no more; it is booked when
	// Redis is back. Of a budget without an amount nothing is spent meanwhile.
	Outage map[string]budget.Amount
	// Durable makes New fail if Redis may evict keys or keeps nothing on disk, or if it
	// does not say. Else that is a notice of the first operation.
	Durable bool

	beat time.Duration // between two signs of life; for tests
}

// Ledger is a [budget.Ledger] in Redis, shared by all who open it under the same prefix
// and name. It is safe for concurrent use, and two goroutines of it run until Close. It
// implements [budget.Operator], [budget.Historian], [budget.Auditor] and [budget.Keyed].
type Ledger struct {
	store   *store
	keys    keys
	scripts scripts
	options Options
	id      string // of this instance
	boot    uint64
	secret  []byte
	ops     atomic.Uint64 // operations that were sent

	recovering sync.Mutex   // held while the books are reported anew
	flushing   sync.RWMutex // held while outcomes are sent that wait, shared by holds that take some along

	mu        sync.Mutex // guards all below
	gen       generation
	reporting bool // to a new generation, while gen is the one before
	accounts  map[string]*account
	open      map[budget.HoldID]*open
	own       map[string]*share
	waiting   []*late   // outcomes that the store does not know yet
	sending   int       // those of them that are on their way
	waited    uint64    // outcomes that ever did
	alive     time.Time // when the store knew last that this instance is
	doubts    map[budget.HoldID]*late
	recent    []*late // outcomes that the store may lose yet
	away      []*open // granted while the store was away
	allowed   map[string]*allowance
	frozen    map[string]int64 // as the store said last
	limits    map[string]string
	seq       uint64
	learning  time.Time // until when nothing is granted, by the server's clock
	notices   []budget.Notice
	closed    bool

	kick   chan struct{} // wakes the keeper
	queued chan struct{} // wakes the sender
	stop   context.CancelFunc
	done   chan struct{} // the keeper has ended
	sent   chan struct{} // the sender has
}

var (
	_ budget.Ledger   = (*Ledger)(nil)
	_ budget.Operator = (*Ledger)(nil)
	_ budget.Keyed    = (*Ledger)(nil)
)

// generation is one life of the books in the store.
type generation struct {
	id     string
	writes int64 // of this instance, as far as it knows
}

const (
	ownerAlive = 15 * time.Second // without a sign of life an instance is dead after this
	beatEvery  = 2 * time.Second
	startBound = 5 * time.Second // of all that New does, unless one command may take longer
)

// New opens the ledger that the options name. It fails with an error that says what to
// do if the server is too old, refuses scripts, or holds keys of another program there.
// The client stays the caller's, who closes it after the ledger.
func New(client redis.UniversalClient, o Options) (*Ledger, error) {
	o.Prefix, o.Name = cmp.Or(o.Prefix, "outlay"), cmp.Or(o.Name, "ledger")
	o.Timeout, o.Learn, o.beat = cmp.Or(o.Timeout, 250*time.Millisecond), cmp.Or(o.Learn, 10*time.Second), cmp.Or(o.beat, beatEvery)
	switch {
	case client == nil:
		return nil, errors.New("redisledger: no client")
	case strings.ContainsAny(o.Prefix+o.Name, "{}"):
		return nil, errors.New("redisledger: Prefix and Name must not contain braces, which are for the hash tag")
	case o.Timeout < 0:
		return nil, fmt.Errorf("redisledger: Timeout: %v, want more than zero", o.Timeout)
	}
	var boot [8]byte
	_, _ = rand.Read(boot[:])
	l := &Ledger{
		store: newStore(client, max(o.Timeout, startBound/5)), keys: newKeys(o.Prefix, o.Name), scripts: newScripts(""), options: o,
		boot: binary.BigEndian.Uint64(boot[:]), kick: make(chan struct{}, 1), queued: make(chan struct{}, 1), done: make(chan struct{}), sent: make(chan struct{}),
		accounts: map[string]*account{}, open: map[budget.HoldID]*open{}, own: map[string]*share{},
		doubts: map[budget.HoldID]*late{}, allowed: map[string]*allowance{},
	}
	l.id = strconv.FormatUint(l.boot, 16)
	ctx, cancel := context.WithTimeout(context.Background(), max(startBound, o.Timeout))
	defer cancel()
	if err := l.start(ctx); err != nil {
		return nil, fmt.Errorf("redisledger: %w", err)
	}
	l.store = newStore(client, o.Timeout)
	l.store.Back, l.store.Gone = l.isBack, l.isGone
	var keep context.Context
	keep, l.stop = context.WithCancel(context.Background())
	go l.keeper(keep)
	go l.sender(keep)
	return l, nil
}

// start looks at the server, and finds or begins the books.
func (l *Ledger) start(ctx context.Context) error {
	if err := l.inspect(ctx); err != nil {
		return err
	}
	gen, err := l.begin(ctx, "", "the books are new", "")
	if err != nil {
		return err
	}
	l.gen = gen
	return explain(l.beat(ctx))
}

// begin finds the generation, or begins one if there is none or it is the lost one.
func (l *Ledger) begin(ctx context.Context, lost, why, gone string) (generation, error) {
	secret := string(l.Key())
	reply, _, err := l.store.run(ctx, l.scripts.begin, []string{l.keys.generation},
		rand.Text(), lost, max(0, l.options.Learn.Milliseconds()), cmp.Or(secret, rand.Text()), why, gone, bit(secret != ""))
	if err != nil {
		return generation{}, explain(err)
	}
	if text(at(reply, 0)) == "foreign" {
		return generation{}, fmt.Errorf("%w: key %s belongs to %s: choose another Prefix or Name", budget.ErrUnavailable, l.keys.generation, text(at(reply, 1)))
	}
	l.store.told(number(at(reply, 3)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learning = time.UnixMilli(number(at(reply, 4)))
	l.secret = []byte(text(at(reply, 2)))
	if text(at(reply, 0)) == "new" && l.options.Learn > 0 {
		l.note(fmt.Sprintf("%s: nothing is granted for %v", why, l.options.Learn))
	}
	return generation{id: text(at(reply, 1))}, nil
}

// note keeps a notice about the store. The caller holds the lock.
func (l *Ledger) note(why string) { l.notify(budget.Notice{Kind: budget.NoticeStore, Why: why}) }

// maxNotices bounds those that nobody came for.
const maxNotices = 1000

func (l *Ledger) notify(n ...budget.Notice) {
	if len(l.notices) < maxNotices {
		l.notices = append(l.notices, n...)
	}
}

// tell hands over the notices that nobody was told yet.
func (l *Ledger) tell(r budget.Report) budget.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Notices, l.notices = l.notices, nil
	return r
}

// Key implements [budget.Keyed]: the key is drawn once and kept in Redis.
func (l *Ledger) Key() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.secret
}

// Mode says how a ledger works at the moment. It is a plain word, for package transport
// to show.
type Mode = string

// The modes.
const (
	ModeExact    Mode = "exact"    // every hold is decided by Redis
	ModeLearning Mode = "learning" // the books are new or were lost: nothing is granted
	ModeAway     Mode = "away"     // Redis does not answer: only allowances are spent
)

// Skew is by how much the clock of this machine is ahead of the server's, by which calls are
// booked, as of the server's last answer (and by as much as that took on its way). It asks
// nobody.
func (l *Ledger) Skew() time.Duration { return l.store.skew() }

// Mode tells the mode as this instance knows it. It asks nobody.
func (l *Ledger) Mode() Mode {
	if l.store.Down() {
		return ModeAway
	}
	now := l.store.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.learning) {
		return ModeLearning
	}
	return ModeExact
}

func (l *Ledger) generation() generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gen
}

func (l *Ledger) isBack() {
	l.mu.Lock()
	l.note("Redis answers again")
	l.mu.Unlock()
	l.wake()
}

func (l *Ledger) isGone(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note("Redis does not answer: " + err.Error())
}

// wake makes the keeper look at once.
func (l *Ledger) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// Close sends what waits, gives back what was held for outages, and signs off. Holds in
// flight stay: who opens the ledger next finds them presumed once this instance counts
// as dead. It returns what could not be sent, if anything.
func (l *Ledger) Close() error {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.mu.Unlock()
	if already {
		return nil
	}
	l.stop()
	<-l.done
	<-l.sent
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	l.giveUpAllowances(ctx)
	l.flush(ctx)
	l.mu.Lock()
	unsent, flying := len(l.waiting)+len(l.away), len(l.open)
	l.mu.Unlock()
	if unsent > 0 {
		return unavailable(fmt.Errorf("%d outcomes are not in the books: their holds become presumed", unsent))
	}
	if flying > 0 {
		return nil
	}
	_, _, err := l.store.run(ctx, l.scripts.bury, []string{l.keys.owners, l.keys.holds(l.id), l.keys.writes(l.id)}, l.id, 1)
	return err
}

package redislimiter

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// scope is what this process knows of a key.
type scope struct {
	first string          // the leg whose slot it is in
	rates []throttle.Rate // as last asked for or set
	gate  time.Time       // when it opens
	waits int             // how many wait for what Redis said
	sets  []*set          // that it belongs to
	early []throttle.Cap  // that came before anybody asked, so that its slot was unknown
}

// set is the scopes that are asked for together.
type set struct {
	hold   string    // a scope of the local bucket that is closed while turns are due later
	heldTo time.Time // until when it is
	asking chan struct{}
	batch  *batch
	asked  time.Time // when Redis was asked last
	last   int       // for how many turns
	form   *form     // as last asked for; nil if a rate has changed
}

// form is what stays the same of all questions of a set.
type form struct {
	legs  []throttle.Leg // with the rates that hold now
	local []throttle.Leg // the same for the queue of this process, with the set's own scope
	turn  []any          // the command for a turn; only who asks may change it
}

// holdPrefix begins the keys of scopes that exist in the local bucket only.
const holdPrefix = "\x00"

// maxKnown bounds what is remembered of keys; beyond, all is learnt again.
const maxKnown = 200_000

// prepare notes the legs of an ask. Caps that came before are due now.
func (l *Limiter) prepare(legs []throttle.Leg) (s *set, f *form, early []throttle.Cap) {
	var buf [128]byte
	id := appendSet(buf[:0], legs)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s = l.sets[string(id)]; s != nil && s.form != nil && slices.EqualFunc(s.form.legs, legs, sameLeg) {
		return s, s.form, nil // and so all its scopes are known
	}
	if len(l.scopes) > maxKnown || len(l.sets) > maxKnown {
		clear(l.scopes)
		clear(l.names)
		clear(l.sets)
	}
	s = l.sets[string(id)]
	fresh := s == nil
	if fresh {
		s = &set{hold: holdPrefix + string(id), asking: make(chan struct{}, 1)}
		l.sets[string(id)] = s
	}
	for i := range legs {
		leg := &legs[i]
		sc := l.scopes[leg.Key]
		if sc == nil {
			sc = &scope{rates: slices.Clone(leg.Rates)}
			l.know(strings.Clone(leg.Key), sc)
		}
		if fresh {
			sc.sets = append(sc.sets, s)
		}
		if sc.first == "" {
			if sc.first = legs[0].Key; i > 0 { // a first leg was told under its own name
				early = append(early, sc.early...)
			}
			sc.early = nil
			sc.rates = slices.Clone(leg.Rates)
		}
		if !slices.Equal(sc.rates, leg.Rates) {
			sc.rates = slices.Clone(leg.Rates)
			l.change(sc)
		}
	}
	s.form = l.formOf(s, legs)
	return s, s.form, early
}

func sameLeg(a, b throttle.Leg) bool {
	return a.Key == b.Key && a.Weight == b.Weight && a.Slots == b.Slots && slices.Equal(a.Rates, b.Rates)
}

// formOf makes the form of a set, with the rates that hold now. The caller holds the lock.
func (l *Limiter) formOf(s *set, legs []throttle.Leg) *form {
	f := &form{legs: slices.Clone(legs)}
	for i := range f.legs {
		leg := &f.legs[i]
		leg.Key = strings.Clone(leg.Key)
		if sc := l.scopes[leg.Key]; sc != nil {
			leg.Rates = sc.rates
		}
	}
	f.local = append(slices.Clone(f.legs), throttle.Leg{Key: s.hold})
	keys, what := l.describe(f.legs[0].Key, f.legs, nil)
	f.turn = l.scripts.turn.command(keys, []any{1, 0, what})
	return f
}

// ask makes the command for a number of turns that may lie ahead.
func (f *form) ask(turns int, ahead time.Duration) []any {
	at := 3 + f.turn[2].(int) // behind the keys
	f.turn[at], f.turn[at+1] = turns, ahead.Microseconds()
	return f.turn
}

// change lets those ask again who wait for a scope. The caller holds the lock.
func (l *Limiter) change(sc *scope) {
	close(l.changed)
	l.changed = make(chan struct{})
	for _, s := range sc.sets {
		s.form = nil
		if !s.heldTo.IsZero() {
			_ = l.local.Cap(context.Background(), throttle.Cap{Key: s.hold, Reopen: true})
			s.heldTo = time.Time{}
		}
	}
}

func (l *Limiter) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// present is the form of a set as it holds now. The caller holds the lock.
func (l *Limiter) present(w *wait) *form {
	if w.set.form == nil {
		w.set.form = l.formOf(w.set, w.ask.Legs)
	}
	return w.set.form
}

// waits counts who waits for what Redis said of the legs.
func (l *Limiter) waits(legs []throttle.Leg, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range legs {
		if sc := l.scopes[legs[i].Key]; sc != nil {
			sc.waits = max(0, sc.waits+n) // all may have been forgotten meanwhile
		}
	}
}

// know begins to keep a scope. The caller holds the lock.
func (l *Limiter) know(key string, sc *scope) {
	l.scopes[key] = sc
	l.names[l.safe(key)] = key
}

// gate is when the last gate of the legs opens, and what is closed when another closes.
func (l *Limiter) gate(legs []throttle.Leg) (until time.Time, shutter <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range legs {
		if sc := l.scopes[legs[i].Key]; sc != nil && sc.gate.After(until) {
			until = sc.gate
		}
	}
	return until, l.shutter
}

// shut reports whether a gate of the legs is closed.
func (l *Limiter) shut(legs []throttle.Leg) bool {
	until, _ := l.gate(legs)
	return until.After(time.Now())
}

// closeLocal closes a gate in this process. Batches of it are void.
func (l *Limiter) closeLocal(ctx context.Context, key string, until time.Time, cause throttle.Cause) {
	_ = l.local.Cap(ctx, throttle.Cap{Key: key, Until: until, Cause: cause}) // it fails on bad values only
	l.mu.Lock()
	defer l.mu.Unlock()
	sc := l.scopes[key]
	if sc == nil {
		sc = &scope{}
		l.know(key, sc)
	}
	if until.After(sc.gate) {
		sc.gate = until
		close(l.shutter)
		l.shutter = make(chan struct{})
	}
	for _, s := range sc.sets {
		s.batch = nil
	}
}

// openLocal opens a gate in this process.
func (l *Limiter) openLocal(ctx context.Context, key string) {
	_ = l.local.Cap(ctx, throttle.Cap{Key: key, Reopen: true})
	l.mu.Lock()
	defer l.mu.Unlock()
	if sc := l.scopes[key]; sc != nil {
		sc.gate = time.Time{}
		l.change(sc)
	}
}

// Cap implements [throttle.Limiter]: it holds in this process at once, in Redis when it
// returns, and in the other processes as soon as they hear of it or ask Redis next.
func (l *Limiter) Cap(ctx context.Context, c throttle.Cap) error {
	mine := c
	t := l.find(c.Turn)
	if t != nil {
		mine.Turn = t.local
	}
	if err := l.local.Cap(ctx, mine); err != nil {
		return err
	}
	if c.N == 0 && !c.Until.IsZero() && !c.Reopen {
		l.closeLocal(ctx, c.Key, c.Until, c.Cause)
	}
	if c.Reopen {
		l.openLocal(ctx, c.Key)
	}
	l.early(c)
	return l.sendCap(ctx, c, grantOf(t, c.Key))
}

// early keeps a cap of a scope that nobody asked for: it is sent as if the scope were a
// first leg, and once more when its slot is known.
func (l *Limiter) early(c throttle.Cap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sc := l.scopes[c.Key]
	switch {
	case sc == nil:
		l.know(c.Key, &scope{early: []throttle.Cap{c}})
	case sc.first != "":
	case c.Reopen:
		sc.early = nil
	case len(sc.early) < 8:
		sc.early = append(sc.early, c)
	}
}

// grantOf is the count of turns of a scope with the turn, if it used it.
func grantOf(t *taken, key string) string {
	if t == nil {
		return ""
	}
	for i := range t.legs {
		if t.legs[i].Key == key {
			return strconv.FormatInt(t.grant[i], 10)
		}
	}
	return ""
}

// longest is how long a gate or a cap may last.
const longest = 31 * 24 * time.Hour

// sendCap tells Redis.
func (l *Limiter) sendCap(ctx context.Context, c throttle.Cap, grant string) error {
	send := func(what string, lasts time.Duration) error {
		l.mu.Lock()
		first := c.Key
		if sc := l.scopes[c.Key]; sc != nil && sc.first != "" {
			first = sc.first
		}
		l.mu.Unlock()
		_, err := l.store.run(ctx, l.scripts.cap, []string{l.scopeKey(first, c.Key)}, what, c.N, lasts.Microseconds(), grant,
			string(c.Cause), l.channel, l.id, l.safe(c.Key))
		return err
	}
	if c.Reopen {
		return send("reopen", 0)
	}
	var err error
	if c.Slow {
		err = send("slow", 0)
	}
	if lasts := min(time.Until(c.Until), longest); err == nil && lasts > 0 && !c.Until.IsZero() {
		err = send("cap", lasts)
	}
	return err
}

// heard takes over what another process told: scope, what, for how long, sender, cause.
func (l *Limiter) heard(ctx context.Context, message string) {
	f := strings.SplitN(message, " ", 5)
	if len(f) != 5 || f[4] == l.id {
		return
	}
	l.mu.Lock()
	key := l.names[f[0]]
	l.mu.Unlock()
	micros, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || key == "" || micros < 0 {
		return // a scope that nobody here has asked for is asked for before its first turn
	}
	lasts := time.Duration(min(micros, longest.Microseconds())) * time.Microsecond
	switch f[1] {
	case "gate":
		l.closeLocal(ctx, key, time.Now().Add(lasts), throttle.Cause(f[3]))
	case "slow":
		_ = l.local.Cap(ctx, throttle.Cap{Key: key, Slow: true})
	case "reopen":
		l.openLocal(ctx, key)
	}
}

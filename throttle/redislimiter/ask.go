package redislimiter

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// taken is a turn that Redis has given.
type taken struct {
	local throttle.Turn
	legs  []throttle.Leg
	begin time.Time // when it starts, by our clock
	start int64     // the same by the server's, in microseconds
	grant []int64   // the count of turns of each leg with this one
	few   [4]int64  // grant, if there are few legs
}

// granted sets the counts.
func (t *taken) granted(g []int64) { t.grant = append(t.few[:0], g...) }

// batch is what is left of turns that were taken together.
type batch struct {
	taken
	left  int
	until time.Time
}

// The bounds of batches.
const (
	batchLasts = time.Second
	batchRate  = 50 // turns per second above which they are taken in batches
	batchShare = 20 // of what one second gives
	batchMost  = 1000
	batchFree  = 50 // where no rate is
	batchPause = 100 * time.Millisecond
)

// size is how many turns to ask for: one, and more while calls come faster than that.
func (s *set) size(legs []throttle.Leg, now time.Time) int {
	recent := now.Sub(s.asked) < batchPause
	s.asked = now
	if !recent {
		s.last = 1
		return 1
	}
	s.last = min(2*max(1, s.last), largest(legs))
	return max(1, s.last)
}

// largest is the largest batch that the rates allow.
func largest(legs []throttle.Leg) int {
	most := math.Inf(1)
	for i := range legs {
		for _, r := range legs[i].Rates {
			perSecond := float64(r.N) / r.Per.Seconds() / float64(max(1, legs[i].Weight))
			if r.Strict || perSecond <= batchRate {
				return 1
			}
			most = min(most, perSecond/batchShare)
		}
	}
	if math.IsInf(most, 1) {
		return batchFree
	}
	return int(min(most, batchMost))
}

// ask takes a turn from the batch, or asks Redis, and lets the next in line go on. Without
// a turn it says when to come again and why.
func (l *Limiter) ask(ctx context.Context, w *wait) (t *taken, until time.Time, why throttle.Reason, err error) {
	defer func() { <-w.set.asking }() // also if a hook of the client does not come back
	now := time.Now()
	w.asked = now
	l.mu.Lock()
	t, over := w.set.take(now)
	f, size := l.present(w), 1
	if t == nil {
		size = w.set.size(f.legs, now)
	}
	l.mu.Unlock()
	if t != nil {
		return t, until, "", nil
	}
	if over != nil {
		l.giveBack(&over.taken, over.left)
	}
	reply, err := l.store.send(ctx, l.scripts.turn, f.ask(size, min(ahead, max(0, w.latest.Sub(now)))))
	if err != nil {
		return nil, until, "", err
	}
	got, ok := readTurn(reply, len(f.legs), size)
	if !ok {
		return nil, until, "", l.store.Unavailable(errors.New("a reply that makes no sense"))
	}
	begin := now // it starts at once
	if got.start > got.now {
		begin = time.Now().Add(time.Duration(got.start-got.now) * time.Microsecond)
	}
	switch got.state {
	case turnLater:
		return nil, begin, throttle.ReasonRate, nil
	case turnGate:
		l.closeLocal(ctx, f.legs[got.binding].Key, begin, throttle.CauseThrottled)
		return nil, begin, throttle.ReasonGate, nil
	}
	t = &taken{legs: f.legs, begin: begin, start: got.start}
	t.granted(got.grants)
	if got.more > 0 {
		b := &batch{taken: *t, left: int(got.more), until: begin.Add(batchLasts)}
		b.granted(t.grant)
		l.mu.Lock()
		w.set.batch = b
		l.mu.Unlock()
	}
	return t, until, "", nil
}

// answer is what the script for a turn said.
type answer struct {
	state      int64
	start, now int64   // by the server's clock, in microseconds
	binding    int64   // the leg that binds
	grants     []int64 // the count of turns of each leg with the first one
	more       int64   // turns that were given beside that
}

// The states of an answer.
const (
	turnGiven = iota
	turnLater // start is when to ask again
	turnGate  // the same; a gate is closed
)

// readTurn reads a reply of the script to who asked for a number of turns; ok is false if
// it cannot be one.
func readTurn(reply []int64, legs, asked int) (a answer, ok bool) {
	if len(reply) == 2 && legs == 1 { // of plain.lua
		first := reply[1] - int64(asked) + 1
		reply[1] = first
		return answer{start: reply[0], now: reply[0], grants: reply[1:], more: int64(asked) - 1}, true
	}
	if len(reply) < 4 || reply[3] < 0 || reply[3] >= int64(legs) {
		return a, false
	}
	a = answer{state: reply[0], start: reply[1], now: reply[2], binding: reply[3]}
	if a.state == turnGiven && len(reply) == 5+legs {
		a.grants = reply[4 : 4+legs]
		a.more = reply[4+legs] - a.grants[legs-1]
	}
	return a, a.state == turnLater || a.state == turnGate || a.grants != nil
}

// take takes a turn of the batch; over is one that is over and has turns left.
func (s *set) take(now time.Time) (t *taken, over *batch) {
	b := s.batch
	switch {
	case b == nil:
		return nil, nil
	case now.After(b.until):
		s.batch = nil
		return nil, b
	}
	b.left--
	for i := range b.grant {
		b.grant[i]++
	}
	if b.left == 0 {
		s.batch = nil
	}
	one := &taken{legs: b.legs, begin: b.begin, start: b.start}
	one.granted(b.grant)
	return one, nil
}

// giveBack gives n turns of one start back that nobody used.
func (l *Limiter) giveBack(t *taken, n int) {
	legs := slices.Clone(t.legs)
	for i := range legs {
		legs[i].Weight = n * max(1, legs[i].Weight)
	}
	l.back(t, legs, n)
}

// back sends weights back: of turns that end, or of one that weighs less than it took.
func (l *Limiter) back(t *taken, legs []throttle.Leg, ends int) {
	first := t.legs[0].Key
	grant := func(i int) int64 {
		for j := range t.legs {
			if t.legs[j].Key == legs[i].Key {
				return t.grant[j]
			}
		}
		return 0
	}
	note := l.prefix + ":{" + l.safe(first) + "}:back:" + l.id + ":" + strconv.FormatUint(l.number(), 36)
	keys, what := l.describe(first, legs, grant)
	// Should it fail, the turns count as used.
	_, _ = l.store.run(context.Background(), l.scripts.back, append([]string{note}, keys...), t.start, ends, what)
}

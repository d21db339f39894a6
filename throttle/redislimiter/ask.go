package redislimiter

import (
	"context"
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
	start string    // the same by the server's, in microseconds
	grant []uint64  // the count of turns of each leg with this one
}

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

// ask takes a turn from the batch, or asks Redis. Without a turn it says when to come
// again and why.
func (l *Limiter) ask(ctx context.Context, w *wait) (t *taken, until time.Time, why throttle.Reason, err error) {
	now := time.Now()
	legs := l.present(w.ask.Legs)
	l.mu.Lock()
	t, over := w.set.take(now)
	size := 1
	if t == nil {
		size = w.set.size(legs, now)
	}
	l.mu.Unlock()
	if t != nil {
		return t, until, "", nil
	}
	if over != nil {
		l.giveBack(&over.taken, over.left)
	}
	first := legs[0].Key
	keys, args := l.legArgs(first, legs, []any{size, min(ahead, max(0, time.Until(w.latest))).Microseconds(), len(legs)}, nil)
	reply, _, err := l.store.run(ctx, l.scripts.turn, keys, args...)
	if err != nil {
		return nil, until, "", err
	}
	answered := time.Now()
	begin := answered.Add(time.Duration(number(at(reply, 1))-number(at(reply, 2))) * time.Microsecond)
	if text(at(reply, 0)) == "wait" {
		why = throttle.Reason(text(at(reply, 4)))
		if why == throttle.ReasonGate {
			l.closeLocal(ctx, legs[number(at(reply, 3))].Key, begin, throttle.CauseThrottled)
		}
		return nil, begin, why, nil
	}
	t = &taken{legs: legs, begin: begin, start: text(at(reply, 1))}
	n := int(number(at(reply, 3)))
	for _, g := range list(at(reply, 4)) {
		t.grant = append(t.grant, uint64(number(g))-uint64(n)+1)
	}
	if n > 1 {
		l.mu.Lock()
		w.set.batch = &batch{taken: *t, left: n - 1, until: begin.Add(batchLasts)}
		l.mu.Unlock()
	}
	return t, until, "", nil
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
	one := b.taken
	one.grant = slices.Clone(b.grant)
	return &one, nil
}

// legArgs describes legs to a script: for each the weight, what more says, and the rates.
func (l *Limiter) legArgs(first string, legs []throttle.Leg, args []any, more func(i int) any) ([]string, []any) {
	var keys []string
	for i := range legs {
		leg := &legs[i]
		keys = append(keys, l.scopeKey(first, leg.Key))
		if more == nil {
			args = append(args, max(1, leg.Weight))
		} else {
			args = append(args, leg.Weight, more(i))
		}
		args, keys = l.rateArgs(first, leg.Key, leg.Rates, args, keys)
	}
	return keys, args
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
	grant := func(i int) any {
		for j := range t.legs {
			if t.legs[j].Key == legs[i].Key {
				return t.grant[j]
			}
		}
		return 0
	}
	note := l.prefix + ":{" + safe(first) + "}:back:" + l.id + ":" + strconv.FormatUint(l.number(), 36)
	keys, args := l.legArgs(first, legs, []any{t.start, ends, len(legs)}, grant)
	// Should it fail, the turns count as used.
	_, _, _ = l.store.run(context.Background(), l.scripts.back, append([]string{note}, keys...), args...)
}

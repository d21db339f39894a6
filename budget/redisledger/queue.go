package redisledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// How many outcomes go in one round trip.
const (
	mostWithHold = 32
	mostAtOnce   = 256
)

// sender brings outcomes to the store that nobody waits for.
func (l *Ledger) sender(ctx context.Context) {
	defer close(l.sent)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.queued:
			l.flush(ctx)
		}
	}
}

func (l *Ledger) wakeSender() {
	select {
	case l.queued <- struct{}{}:
	default:
	}
}

// flush returns when the store knows all that waited, or takes no more now.
func (l *Ledger) flush(ctx context.Context) {
	l.flushing.Lock() // and what others send is known then
	defer l.flushing.Unlock()
	if !l.land(ctx) {
		return
	}
	for left := l.waits(); left > 0; { // what comes later is for a later flush
		batch := l.next(min(left, mostAtOnce))
		if len(batch) == 0 {
			return
		}
		left -= len(batch)
		gen := l.generation()
		if !l.finish(ctx, gen, batch, l.store.pipe(ctx, l.commands(gen, batch))) {
			return
		}
	}
}

// waits is the number of outcomes that wait.
func (l *Ledger) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// ride sends the command of a hold, behind outcomes that wait.
func (l *Ledger) ride(ctx context.Context, gen generation, hold command) (reply []any, sent bool, err error) {
	var batch []*late
	if l.flushing.TryRLock() { // else they are being sent already
		defer l.flushing.RUnlock()
		batch = l.next(mostWithHold)
	}
	if len(batch) == 0 {
		return l.store.run(ctx, hold.script, hold.keys, hold.args...)
	}
	results := l.store.pipe(ctx, append(l.commands(gen, batch), hold))
	if !l.finish(ctx, gen, batch, results) && ctx.Err() != nil {
		l.wakeSender() // this caller has left, and nobody else knows
	}
	last := results[len(batch)]
	return last.reply, !errors.Is(last.err, redisstore.ErrDown), last.err
}

// mustFlush reports whether a hold may not overtake outcomes: what was granted while the
// store was away comes first, and what a Monitor would refuse is told without a second
// look.
func (l *Ledger) mustFlush(h *budget.Hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.away) > 0 || l.sending+len(l.waiting) > 0 && slices.ContainsFunc(h.Legs, func(lg budget.Leg) bool { return lg.Budget.Monitor })
}

// unsent reports whether the store does not know all outcomes, and how many have ever
// waited.
func (l *Ledger) unsent() (bool, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sending+len(l.waiting) > 0, l.waited
}

// next takes the first outcomes that wait and may be sent.
func (l *Ledger) next(most int) (batch []*late) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.waiting {
		if len(batch) == most || e.open.away {
			break
		}
		n++
		if !e.dropped {
			e.sending = true
			batch = append(batch, e)
		}
	}
	clear(l.waiting[:n])
	l.waiting = l.waiting[n:]
	l.sending += len(batch)
	return batch
}

func (l *Ledger) commands(gen generation, batch []*late) []command {
	all := make([]command, len(batch), len(batch)+1)
	for i, e := range batch {
		all[i] = l.resolveCommand(gen, e)
	}
	return all
}

// finish reads what came of a batch. What the store did not take waits again; false if
// there is such.
func (l *Ledger) finish(ctx context.Context, gen generation, batch []*late, results []result) bool {
	var left []*late
	for i, e := range batch {
		err := results[i].err
		if err == nil {
			var again bool
			if _, again, err = l.readResolve(ctx, gen, e, results[i].reply); again && err == nil {
				_, err = l.send(ctx, e)
			}
		}
		if errors.Is(err, budget.ErrUnavailable) {
			left = append(left, e)
			continue
		}
		l.over(e, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending -= len(batch)
	for _, e := range left {
		e.sending = false
	}
	l.waiting = append(left, l.waiting...)
	return len(left) == 0
}

// over notes that nothing more is sent of an outcome. What the store refused for good is
// told: its hold stays as it is in the books.
func (l *Ledger) over(e *late, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.sending = false
	if e.mode == "abandon" {
		delete(l.doubts, e.open.id)
	} else if err != nil {
		l.note(fmt.Sprintf("an outcome was refused: %v", err))
	}
	delete(l.open, e.open.id)
}

// doubt is for a hold whose answer was lost: nothing was sent for it, so it is void.
func (l *Ledger) doubt(o *open) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting || l.doubts[o.id] != nil {
		return
	}
	e := &late{open: o, outcome: budget.Voided("not_sent"), mode: "abandon"}
	l.doubts[o.id] = e
	l.waiting = append(l.waiting, e)
}

// undoubt is for a hold that is asked for again; false while it is being taken back.
func (l *Ledger) undoubt(id budget.HoldID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.doubts[id]
	if e == nil {
		return true
	}
	if e.sending {
		return false
	}
	e.dropped = true
	delete(l.doubts, id)
	return true
}

package redisledger

import (
	"context"
	"errors"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// keeper says that this instance is alive, presumes the holds of those that are not, and
// sends what waits.
func (l *Ledger) keeper(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.options.beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.kick:
		}
		if l.beat(ctx) != nil {
			continue // it tells itself
		}
		l.flush(ctx)
		l.renewAllowances(ctx)
		l.prune(l.store.now())
		l.forgetSome(ctx)
	}
}

// beat is one sign of life. It finds out whether the books were lost, even if no call
// comes, and presumes what the dead held.
func (l *Ledger) beat(ctx context.Context) error {
	k := &l.keys
	for range tries {
		gen := l.generation()
		reply, _, err := l.store.run(ctx, l.scripts.beat,
			[]string{k.generation, k.writes(l.id), k.owners, k.holds(l.id), k.presumed, k.frozen}, gen.id, gen.writes, l.id, ownerAlive.Milliseconds())
		if err != nil {
			return err
		}
		switch text(at(reply, 0)) {
		case "ok":
			l.store.told(number(at(reply, 1)))
			l.lives()
			l.seeFrozen(list(at(reply, 3)))
			l.presume(ctx, list(at(reply, 2)))
			return nil
		case "lost":
			err = l.relearn(ctx, gen, "acknowledged writes are lost", "")
		default:
			err = l.relearn(ctx, gen, "the books are gone", "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lives notes that the store knows that this instance is alive.
func (l *Ledger) lives() {
	now := time.Now().Round(0) // by the wall: a machine that slept is late
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alive = now
}

// sweepBatch bounds the holds that are looked at in one step.
const sweepBatch = 32

// presume ends the holds of dead owners: all that they held counts as spent.
func (l *Ledger) presume(ctx context.Context, dead []any) {
	found := 0
	for _, v := range dead {
		n, err := l.presumeOf(ctx, text(v))
		found += n
		if err != nil {
			break // the next sign of life goes on
		}
	}
	if found == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify(budget.Notice{Kind: budget.NoticeRecovery, Holds: found})
}

func (l *Ledger) presumeOf(ctx context.Context, owner string) (found int, err error) {
	if owner == l.id {
		return 0, nil
	}
	for {
		ids, err := l.members(ctx, l.keys.holds(owner), sweepBatch)
		if err != nil {
			return found, err
		}
		done := 0
		for _, id := range ids {
			ok, gone, err := l.presumeHold(ctx, owner, id)
			if err != nil {
				return found, err
			}
			if ok {
				found++
			}
			if ok || gone {
				done++
			}
		}
		if len(ids) < sweepBatch || done == 0 {
			break
		}
	}
	_, _, err = l.store.run(ctx, l.scripts.bury, []string{l.keys.owners, l.keys.holds(owner), l.keys.writes(owner)}, owner, 0)
	return found, err
}

// members are the first of a sorted set.
func (l *Ledger) members(ctx context.Context, key string, n int64) ([]string, error) {
	ids, _, err := do(ctx, l.store, func(ctx context.Context) ([]string, error) { return l.store.Client.ZRange(ctx, key, 0, n-1).Result() })
	return ids, err
}

// presumeHold ends one hold of a dead owner; gone says that the hold is forgotten.
func (l *Ledger) presumeHold(ctx context.Context, owner, member string) (ok, gone bool, err error) {
	id, valid := parseID(member)
	var h *open
	if valid {
		h, err = l.fetch(ctx, id)
	}
	if !valid || errors.Is(err, budget.ErrUnknownHold) {
		_, _, err = do(ctx, l.store, func(ctx context.Context) (int64, error) {
			return l.store.Client.ZRem(ctx, l.keys.holds(owner), member).Result()
		})
		return false, true, err
	}
	if err != nil {
		return false, false, err
	}
	_, err = l.send(ctx, &late{open: h, mode: "sweep"})
	if errors.Is(err, budget.ErrUnknownHold) { // it ended, or its owner lives again
		return false, false, nil
	}
	return err == nil, false, err
}

// forgetSome takes holds off the list of the presumed whose time is over, a few of them
// at random.
func (l *Ledger) forgetSome(ctx context.Context) {
	_, _, _ = do(ctx, l.store, func(ctx context.Context) (struct{}, error) { // the next sign of life tries again
		some, err := l.store.Client.ZRandMember(ctx, l.keys.presumed, 8).Result()
		for _, member := range some {
			id, ok := parseID(member)
			known := int64(0)
			if ok && err == nil {
				known, err = l.store.Client.Exists(ctx, l.keys.hold(id)).Result()
			}
			if err == nil && known == 0 {
				err = l.store.Client.ZRem(ctx, l.keys.presumed, member).Err()
			}
		}
		return struct{}{}, err
	})
}

// prune forgets our share of windows that ended a while ago.
func (l *Ledger) prune(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, s := range l.own {
		if now.Sub(s.ends) > time.Hour {
			delete(l.own, key)
		}
	}
}

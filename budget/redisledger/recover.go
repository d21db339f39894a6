package redisledger

import (
	"context"
	"maps"
	"slices"

	"github.com/outlay-go/outlay/budget"
)

// relearn is for books that are gone, or went back: it begins or finds the generation
// after gen and reports all that this instance knows. Until that is done no other
// operation of it goes on, since all name the generation that they know.
func (l *Ledger) relearn(ctx context.Context, gen generation, why, gone string) error {
	l.recovering.Lock()
	defer l.recovering.Unlock()
	if l.generation().id != gen.id {
		return nil // somebody did it meanwhile
	}
	fresh, err := l.begin(ctx, gen.id, why, gone)
	if err != nil {
		return err
	}
	err = l.reportAll(ctx, fresh)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reporting = false
	if err != nil {
		return err
	}
	l.gen = fresh
	for _, s := range l.own {
		s.writes = 0
	}
	l.note(why + ": this instance reported what it spent")
	return nil
}

// reportAll brings to the store what it may have lost: budgets, what people did, holds in flight, the
// last outcomes, and what this instance used of each window beyond that.
func (l *Ledger) reportAll(ctx context.Context, gen generation) error {
	l.mu.Lock()
	l.reporting = true // what is answered from here on, from the life before, is not among it
	accounts, inFlight := maps.Clone(l.accounts), slices.Collect(maps.Values(l.open))
	recent, own := slices.Clone(l.recent), slices.Collect(maps.Values(l.own))
	used := map[string]bool{}
	for _, s := range own {
		used[s.name] = true
	}
	l.mu.Unlock()
	for name, a := range accounts {
		l.unconfigure(name)
		if used[name] {
			if _, err := l.configure(ctx, a.given); err != nil {
				return err
			}
		}
	}
	if err := l.operateAgain(ctx); err != nil {
		return err
	}
	flying := map[*open]*budget.Outcome{}
	for _, o := range inFlight {
		if o.away {
			continue
		}
		reply, err := l.restore(ctx, gen, o)
		if err != nil {
			return err
		}
		flying[o] = outcomeOf(reply)
	}
	for _, e := range recent {
		c := l.resolveCommand(gen, e)
		if _, _, err := l.store.run(ctx, c.script, c.keys, c.args...); err != nil {
			return err
		}
	}
	for _, s := range own {
		if err := l.report(ctx, gen, s, flying); err != nil {
			return err
		}
	}
	return nil
}

// outcomeOf is the outcome of a hold that the store knows although its answer is still on
// its way to us; nil if the hold is in flight.
func outcomeOf(restored []any) *budget.Outcome {
	state := slices.Index(letters[:], text(at(restored, 2)))
	if text(at(restored, 0)) != "known" || state < 0 {
		return nil
	}
	return &budget.Outcome{State: budget.State(state), Amount: amount(at(restored, 3))}
}

// report adds what the store has less of our share of a window.
func (l *Ledger) report(ctx context.Context, gen generation, s *share, flying map[*open]*budget.Outcome) error {
	l.mu.Lock()
	total := s.total
	l.mu.Unlock()
	held, holds := budget.Amount(0), 0
	for o, out := range flying {
		for i := range o.legs {
			lg := &o.legs[i]
			switch {
			case lg.name != s.name || lg.id != s.id:
			case out == nil:
				held, holds = plus(held, lg.amount), holds+1
			default:
				total = plus(total, lg.cost(*out)-lg.amount)
			}
		}
	}
	k := &l.keys
	_, _, err := l.store.run(ctx, l.scripts.report, []string{k.generation, k.writes(l.id), k.account(s.name), k.window(s.name, s.id), k.index},
		gen.id, gen.writes, l.id, int64(total), int64(held), holds, s.id, millis(s.from), millis(s.till), millis(s.expires()), s.name)
	return err
}

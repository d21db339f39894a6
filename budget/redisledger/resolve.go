package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// open is a hold of this instance that is in flight.
type open struct {
	id       budget.HoldID
	provider string
	contents string
	owner    string
	legs     []leg
	near     bool  // its cost may reach a threshold
	away     bool  // granted while the store was away, and not in the books yet
	outcome  *late // waits for the store
}

func newOpen(h *budget.Hold, charges []charge) *open {
	o := &open{id: h.ID, provider: h.Provider, contents: contents(h), legs: make([]leg, len(charges))}
	for i := range charges {
		o.legs[i] = charges[i].leg
	}
	return o
}

// expires is when the hold may be forgotten.
func (o *open) expires() time.Time {
	last := time.Time{}
	for i := range o.legs {
		if o.legs[i].ends.After(last) {
			last = o.legs[i].ends
		}
	}
	return last.Add(keepPresumed)
}

// share is what this instance has used of one window, as the store last said.
type share struct {
	leg    // its amount means nothing
	total  budget.Amount
	writes int64 // of this instance when the store said so
}

// late is an outcome that the store does not know yet, or may have lost again.
type late struct {
	open    *open
	outcome budget.Outcome
	mode    string // of the script: "", sweep or abandon
	op      string // tells a command that is sent again from another one
	people  bool   // a correction by people is told in the log
	by      budget.By
	sending bool
	dropped bool
	done    time.Time // when the store took it
}

// took notes a hold that the store has granted; false if the books were lost since.
func (l *Ledger) took(gen generation, o *open, reply []any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gen.id != gen.id || l.reporting {
		return false
	}
	o.near = number(at(reply, 5)) == 1
	l.open[o.id] = o
	l.wrote(o, number(at(reply, 1)), list(at(reply, 3)))
	for i := range o.legs {
		lg := &o.legs[i]
		if a := l.accounts[lg.name]; a != nil && a.current.ID < lg.id {
			l.accounts[lg.name] = &account{given: a.given, current: windowOf(a.given, lg.id, lg.from.UnixMilli(), lg.till.UnixMilli())}
		}
	}
	return true
}

// wrote notes how many writes of ours the store knows, and our share of the windows.
func (l *Ledger) wrote(o *open, writes int64, own []any) {
	l.gen.writes = max(l.gen.writes, writes)
	for i := range o.legs {
		lg := &o.legs[i]
		if i >= len(own) {
			return
		}
		key := lg.name + ":" + lg.id
		s := l.own[key]
		if s == nil {
			s = &share{leg: *lg}
			l.own[key] = s
		}
		by, lost := strings.CutPrefix(text(own[i]), "by ")
		switch {
		case lost: // the window is gone: what we know of it must not be
			s.total += amount(by)
		case writes >= s.writes:
			s.total, s.writes = amount(own[i]), writes
		}
	}
}

// Resolve implements [budget.Ledger]. An outcome that costs no more than its hold does not
// keep the caller waiting: until it is in Redis the books count more than was spent, never
// less. It is sent at once by a goroutine of the ledger, or with the next hold when that
// comes first, and this process sees it in all that it asks. What costs more than its hold,
// may reach a threshold, or belongs to another instance is in Redis when Resolve returns.
// If Redis does not take an outcome now it waits in memory, at most 100,000 of them; at
// exit their holds become presumed.
func (l *Ledger) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	report, err := l.resolve(context.WithoutCancel(ctx), id, late{outcome: o})
	return l.tell(report), err
}

func (l *Ledger) resolve(ctx context.Context, id budget.HoldID, e late) (budget.Report, error) {
	o := e.outcome
	switch {
	case o.Amount < 0:
		return budget.Report{}, fmt.Errorf("%w: hold %v: a negative cost", budget.ErrConflict, id)
	case o.State > budget.StateCorrected:
		return budget.Report{}, fmt.Errorf("%w: hold %v: %v ends no hold", budget.ErrConflict, id, o.State)
	}
	h, known, err := l.mine(id, o)
	if errors.Is(err, errWaits) { // with another outcome: what is in the books decides
		l.flush(ctx)
		h, known, err = l.mine(id, o)
	}
	if known != nil || err != nil {
		return reportOf(known), err
	}
	if h == nil {
		if h, err = l.fetch(ctx, id); err != nil {
			return budget.Report{}, err
		}
	}
	if unsent, _ := l.unsent(); unsent {
		l.flush(ctx) // so that the one that reaches a threshold is the last that did not
	}
	e.open = h
	report, err := l.send(ctx, &e)
	if errors.Is(err, budget.ErrUnavailable) && l.later(h, o, e.op) {
		return h.report(o, l.store.now()), nil
	}
	return report, err
}

func reportOf(r *budget.Report) budget.Report {
	if r == nil {
		return budget.Report{}
	}
	return *r
}

// errWaits: another outcome of the hold is on its way to the store.
var errWaits = errors.New("another outcome waits for the store")

// mine finds a hold of this instance. What may wait for the store is known at once, and
// so is the same outcome once more.
func (l *Ledger) mine(id budget.HoldID, o budget.Outcome) (h *open, known *budget.Report, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h = l.open[id]
	switch {
	case h == nil:
		return nil, nil, nil
	case h.outcome != nil:
		if !same(h.outcome.outcome, o) {
			return h, nil, unavailable(fmt.Errorf("hold %v: %w", id, errWaits))
		}
		r := h.report(o, l.store.now())
		r.Delta = 0
		return h, &r, nil
	case h.away && o.State == budget.StateCorrected:
		return h, nil, fmt.Errorf("%w: hold %v is in flight, there is nothing to correct", budget.ErrConflict, id)
	case h.away || l.behind(h, o):
		if !l.wait(h, o) {
			return h, nil, unavailable(errors.New("too many outcomes wait"))
		}
		r := h.report(o, l.store.now())
		return h, &r, nil
	}
	return h, nil, nil
}

func same(a, b budget.Outcome) bool {
	return a.State == b.State && (a.Amount == b.Amount || a.State == budget.StateVoided)
}

// behind reports whether an outcome may be sent after its caller has gone on: it only
// frees money, nobody is to be told of it at once, and nobody else has ended the hold. The
// caller holds the lock.
func (l *Ledger) behind(h *open, o budget.Outcome) bool {
	if l.closed || h.near || o.State == budget.StateCorrected || len(l.waiting) >= maxWaiting || time.Since(l.alive) > ownerAlive/2 {
		return false
	}
	for i := range h.legs {
		if h.legs[i].cost(o) > h.legs[i].amount {
			return false
		}
	}
	return true
}

// later keeps an outcome until the store answers, as the operation that it was; false if
// it cannot.
func (l *Ledger) later(h *open, o budget.Outcome, op string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[h.id] != h || o.State == budget.StateCorrected {
		return false
	}
	ok := l.wait(h, o)
	if ok {
		h.outcome.op = op
	}
	return ok
}

// maxWaiting bounds the outcomes that wait in memory.
const maxWaiting = 100_000

func (l *Ledger) wait(h *open, o budget.Outcome) bool {
	if len(l.waiting) >= maxWaiting {
		return false
	}
	h.outcome = &late{open: h, outcome: o}
	l.waiting = append(l.waiting, h.outcome)
	l.waited++
	l.wakeSender()
	return true
}

// fetch reads a hold that is not in flight here.
func (l *Ledger) fetch(ctx context.Context, id budget.HoldID) (*open, error) {
	v, err := l.fields(ctx, l.keys.hold(id), "legs", "windows", "owner")
	if err != nil {
		return nil, err
	}
	provider, legs, ok := parseHold(text(at(v, 0)), text(at(v, 1)))
	if !ok {
		return nil, fmt.Errorf("%w: %v", budget.ErrUnknownHold, id)
	}
	return &open{id: id, provider: provider, contents: text(at(v, 0)), owner: text(at(v, 2)), legs: legs}, nil
}

// fields reads some of a hash.
func (l *Ledger) fields(ctx context.Context, key string, names ...string) ([]any, error) {
	v, _, err := do(ctx, l.store, func(ctx context.Context) ([]any, error) { return l.store.Client.HMGet(ctx, key, names...).Result() })
	return v, err
}

// send brings an outcome to the store.
func (l *Ledger) send(ctx context.Context, e *late) (budget.Report, error) {
	for range tries {
		gen := l.generation()
		c := l.resolveCommand(gen, e)
		reply, _, err := l.store.run(ctx, c.script, c.keys, c.args...)
		if err != nil {
			return budget.Report{}, err
		}
		report, again, err := l.readResolve(ctx, gen, e, reply)
		if !again || err != nil {
			return report, err
		}
	}
	return budget.Report{}, unavailable(fmt.Errorf("the books changed %d times while a hold was resolved", tries))
}

func (l *Ledger) resolveCommand(gen generation, e *late) command {
	k, h := &l.keys, e.open
	owner := h.owner
	if owner == "" {
		owner = l.id
	}
	if e.op == "" {
		e.op = l.id + "-" + strconv.FormatUint(l.ops.Add(1), 36)
	}
	names := append(make([]string, 0, 8+3*len(h.legs)), k.generation, k.writes(l.id), k.holds(owner), k.presumed, k.hold(h.id), k.owners, k.unattributed, k.log)
	args := append(make([]any, 0, 17+6*len(h.legs)), gen.id, gen.writes, l.id, h.contents, windowsOf(h.legs), letters[e.outcome.State],
		int64(e.outcome.Amount), e.outcome.Ref, e.mode, owner, h.id.String(), e.op, len(h.legs), h.provider, bit(e.people), e.by.Who, e.by.Why)
	for i := range h.legs {
		lg := &h.legs[i]
		windows := lg.windows()
		names = k.counted(names, lg, windows)
		args = append(args, lg.name, int64(lg.amount), lg.unit(), lg.id, millis(lg.ends), len(windows))
	}
	return command{l.scripts.resolve, names, args}
}

// letters stand for the outcomes.
var letters = [...]string{budget.StatePresumed: "p", budget.StateSettled: "s", budget.StateVoided: "v", budget.StateCorrected: "c"}

func (l *Ledger) readResolve(ctx context.Context, gen generation, e *late, reply []any) (r budget.Report, again bool, err error) {
	id := e.open.id
	switch text(at(reply, 0)) {
	case "ok":
		l.store.told(number(at(reply, 2)))
		if !l.ended(gen, e, reply) {
			return r, true, nil // the books were lost meanwhile
		}
		return budget.Report{Overrun: amount(at(reply, 4)), Delta: amount(at(reply, 5)), Late: number(at(reply, 6)) == 1}, false, nil
	case "unknown":
		l.forget(id)
		return r, false, fmt.Errorf("%w: %v", budget.ErrUnknownHold, id)
	case "other":
		l.forget(id)
		other, err := l.fetch(ctx, id)
		if err == nil {
			e.open = other
		}
		return r, true, err
	case "conflict":
		l.forget(id)
		return r, false, fmt.Errorf("%w: hold %v was %s at %v, not %v at %v", budget.ErrConflict, id,
			spelled(text(at(reply, 1))), amount(at(reply, 2)), e.outcome.State, e.outcome.Amount)
	case "inflight":
		return r, false, fmt.Errorf("%w: hold %v is in flight, there is nothing to correct", budget.ErrConflict, id)
	case "overflow":
		return r, false, fmt.Errorf("%w: hold %v: the totals would be out of range", budget.ErrConflict, id)
	case "lost":
		return r, true, l.relearn(ctx, gen, "acknowledged writes are lost", "")
	case "generation":
		return r, true, l.relearn(ctx, gen, "the books are gone", "")
	}
	return r, false, unavailable(errors.New("a reply that makes no sense"))
}

func spelled(letter string) string {
	for s, l := range letters {
		if l == letter {
			return budget.State(s).String()
		}
	}
	return "in flight"
}

func (l *Ledger) forget(id budget.HoldID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, id)
}

// The outcomes of the last while are sent again if the store loses writes.
const (
	recentFor = time.Minute
	maxRecent = 10_000
)

// ended notes that the store knows the outcome; false if the books were lost since, and
// the hold was reported as one in flight.
func (l *Ledger) ended(gen generation, e *late, reply []any) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (l.gen.id != gen.id || l.reporting) && l.open[e.open.id] == e.open {
		return false
	}
	delete(l.open, e.open.id)
	if l.gen.id == gen.id {
		l.wrote(e.open, number(at(reply, 1)), list(at(reply, 3)))
	}
	now := time.Now()
	e.done = now
	l.recent = append(l.recent, e)
	if old := l.recent[0]; len(l.recent) > maxRecent || now.Sub(old.done) > recentFor {
		l.recent[0] = nil
		l.recent = l.recent[1:]
	}
	for _, v := range list(at(reply, 7)) {
		a := list(v)
		lg := &e.open.legs[number(at(a, 0))]
		n := budget.Notice{Kind: budget.NoticeThreshold, Budget: lg.name, Window: lg.id, Percent: int(number(at(a, 1))),
			Used: amount(at(a, 2)), Limit: amount(at(a, 3))}
		if known := l.accounts[lg.name]; known != nil {
			n.Budget, n.Unit = known.given.Label, known.given.Unit
		}
		l.notify(n)
	}
	return true
}

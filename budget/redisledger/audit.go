package redisledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
)

var _ budget.Auditor = (*Ledger)(nil)

// maxLog is how many entries of the log are kept, or some more. The scripts know it.
const maxLog = 10_000

// Audit implements [budget.Auditor]. The last 10,000 entries are kept.
func (l *Ledger) Audit(ctx context.Context, after string, limit int) ([]budget.Audited, error) {
	if _, ok := madeAt(after); after != "" && !ok {
		return nil, fmt.Errorf("redisledger: no entry has the id %q", after)
	}
	n := int64(min(max(limit, 1), 1000))
	l.flush(ctx)
	entries, _, err := do(ctx, l.store, func(ctx context.Context) ([]redis.XMessage, error) {
		if after == "" {
			return l.store.Client.XRevRangeN(ctx, l.keys.log, "+", "-", n).Result()
		}
		return l.store.Client.XRangeN(ctx, l.keys.log, "("+after, "+", n).Result()
	})
	all := make([]budget.Audited, len(entries))
	for i, e := range entries {
		if after == "" {
			i = len(entries) - 1 - i
		}
		all[i] = audited(e)
	}
	if err != nil {
		return nil, err
	}
	return all, l.label(ctx, all)
}

// label has budgets called what they are shown as now: an entry may be older than that.
func (l *Ledger) label(ctx context.Context, all []budget.Audited) (err error) {
	labels := map[string]string{"": ""}
	for i := range all {
		b := &all[i].Target.Budget
		label, known := labels[*b]
		if !known {
			if label, _, err = l.named(ctx, *b); err != nil {
				return err
			}
			labels[*b] = label
		}
		*b = label
	}
	return nil
}

// madeAt reads the id of an entry: the server's milliseconds, and a number among equals.
func madeAt(id string) (at time.Time, ok bool) {
	ms, number, found := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if _, wrong := strconv.ParseUint(number, 10, 64); found && wrong != nil {
		err = wrong
	}
	return time.UnixMilli(n), err == nil && n >= 0
}

func audited(e redis.XMessage) budget.Audited {
	f := func(name string) string { return text(e.Values[name]) }
	a := budget.Audited{
		ID: e.ID, By: budget.By{Who: f("who"), Why: f("why")}, Action: f("what"), Denied: f("denied") == "1",
		Target: budget.Target{Provider: f("provider"), Budget: f("budget")}, From: f("from"), To: f("to"),
	}
	a.At, _ = madeAt(e.ID)
	a.Hold, _ = parseID(f("hold"))
	if f("noted") == "" { // by a script: amounts are whole numbers there
		for _, s := range []*string{&a.From, &a.To} {
			if n, err := strconv.ParseInt(*s, 10, 64); err == nil {
				*s = budget.Amount(n).String()
			}
		}
	}
	return a
}

// Note implements [budget.Auditor].
func (l *Ledger) Note(ctx context.Context, a budget.Audited) error {
	hold := ""
	if a.Hold != (budget.HoldID{}) {
		hold = a.Hold.String()
	}
	_, _, err := do(ctx, l.store, func(ctx context.Context) (string, error) {
		return l.store.Client.XAdd(ctx, &redis.XAddArgs{Stream: l.keys.log, MaxLen: maxLog, Approx: true, Values: []any{
			"what", a.Action, "provider", a.Target.Provider, "budget", a.Target.Budget, "hold", hold, "from", a.From, "to", a.To,
			"who", a.By.Who, "why", a.By.Why, "denied", bit(a.Denied), "noted", 1,
		}}).Result()
	})
	return err
}

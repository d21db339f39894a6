package ledgertest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/stretchr/testify/require"
)

// broken holds ledgers with the faults that such software is known for, and the
// cases that must find each.
var broken = map[string]struct {
	open  func(o ledgertest.Options) budget.Ledger
	finds []string
}{
	"looks, then takes": {
		func(o ledgertest.Options) budget.Ledger { return &looksThenTakes{base(o)} },
		[]string{"a race for a budget admits exactly what fits", "a race for the last money has one winner"},
	},
	"takes leg by leg": {
		func(o ledgertest.Options) budget.Ledger { return &legByLeg{base(o)} },
		[]string{"a refusal names the binding leg and takes nothing", byModel},
	},
	"frees what is unknown": {
		func(o ledgertest.Options) budget.Ledger { return &freesUnknown{base(o)} },
		[]string{"an unknown outcome counts as spent", byModel},
	},
	"frees what is old": {
		func(o ledgertest.Options) budget.Ledger { return &freesOld{wrapper: base(o)} },
		[]string{"time alone gives nothing back", byModel},
	},
	"caps the cost at the hold": {
		func(o ledgertest.Options) budget.Ledger { return &capsCost{wrapper: base(o)} },
		[]string{"a cost above the hold is booked whole", byModel},
	},
	"books at the end of the call": {
		func(o ledgertest.Options) budget.Ledger { return &booksLate{wrapper: base(o)} },
		[]string{"a call belongs to the day of its hold", byModel},
	},
	"settles twice": {
		func(o ledgertest.Options) budget.Ledger { return &settlesTwice{wrapper: base(o)} },
		[]string{"the same settle twice is one", byModel},
	},
	"resets when the date differs": {
		func(o ledgertest.Options) budget.Ledger { return &resets{o: o} },
		[]string{"hosts whose clocks differ at midnight fund two days, not more", byModel},
	},
}

const byModel = "random histories agree with the model"

const brokenEnv = "OUTLAY_BROKEN_LEDGER"

// TestBroken is the suite on a ledger that must fail it; only the test below runs it.
func TestBroken(t *testing.T) {
	b, ok := broken[os.Getenv(brokenEnv)]
	if !ok {
		t.Skip("runs in a process of its own")
	}
	ledgertest.Run(t, ledgertest.Subject{Open: func(_ testing.TB, o ledgertest.Options) budget.Ledger { return b.open(o) }})
}

func TestTheSuiteFindsBrokenLedgers(t *testing.T) {
	t.Parallel()
	for name, b := range broken {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), brokenEnv+"="+name)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s passes the suite", name)
		for _, c := range b.finds {
			found := strings.Contains(string(out), "--- FAIL: TestBroken/"+strings.ReplaceAll(c, " ", "_"))
			require.True(t, found, "the case %q passes a ledger that %s", c, name)
		}
	}
}

// wrapper is a good ledger to spoil.
type wrapper struct {
	*budget.Memory
	clock *budget.Clock
}

func base(o ledgertest.Options) wrapper {
	return wrapper{Memory: &budget.Memory{Clock: o.Clock}, clock: o.Clock}
}

type looksThenTakes struct{ wrapper }

func (l *looksThenTakes) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	legs := slices.Clone(h.Legs)
	for i := range legs {
		totals, err := l.Totals(ctx, l.clock.Read().Now, legs[i].Budget)
		if err != nil || totals[0].Refusal(legs[i].Amount, h.Critical) != nil {
			return l.Memory.Hold(ctx, h)
		}
		legs[i].Budget.Monitor = true
	}
	runtime.Gosched()
	h.Legs = legs
	return l.Memory.Hold(ctx, h)
}

type legByLeg struct{ wrapper }

func (l *legByLeg) part(id budget.HoldID, i int) budget.HoldID {
	return budget.HoldID{Boot: id.Boot, Seq: id.Seq<<4 + uint64(i)}
}

func (l *legByLeg) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	for i := range h.Legs {
		one := h
		one.ID, one.Legs = l.part(h.ID, i), h.Legs[i:i+1]
		if r, err := l.Memory.Hold(ctx, one); err != nil {
			return r, err
		}
	}
	return budget.Report{}, nil
}

func (l *legByLeg) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (r budget.Report, err error) {
	for i := range 16 {
		part, errPart := l.Memory.Resolve(ctx, l.part(id, i), o)
		if i == 0 {
			r, err = part, errPart
		}
	}
	return r, err
}

type freesUnknown struct{ wrapper }

func (l *freesUnknown) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	if o.State == budget.StatePresumed {
		o = budget.Voided("expired")
	}
	return l.Memory.Resolve(ctx, id, o)
}

type freesOld struct {
	wrapper
	mu   sync.Mutex
	held map[budget.HoldID]time.Time
}

func (l *freesOld) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := l.Memory.Hold(ctx, h)
	if l.held == nil {
		l.held = map[budget.HoldID]time.Time{}
	}
	if err == nil {
		l.held[h.ID] = l.clock.Read().Now
	}
	return r, err
}

func (l *freesOld) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, since := range l.held {
		if l.clock.Read().Now.Sub(since) > 5*time.Minute {
			delete(l.held, id)
			_, _ = l.Memory.Resolve(ctx, id, budget.Voided("expired"))
		}
	}
	return l.Memory.Totals(ctx, at, b...)
}

// remembers keeps what holds were for.
type remembers struct {
	mu    sync.Mutex
	holds map[budget.HoldID]budget.Hold
}

func (m *remembers) put(h budget.Hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holds == nil {
		m.holds = map[budget.HoldID]budget.Hold{}
	}
	m.holds[h.ID] = h
}

func (m *remembers) get(id budget.HoldID) budget.Hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds[id]
}

type capsCost struct {
	wrapper
	remembers
}

func (l *capsCost) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	l.put(h)
	return l.Memory.Hold(ctx, h)
}

func (l *capsCost) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	for _, leg := range l.get(id).Legs {
		o.Amount = min(o.Amount, leg.Amount)
	}
	return l.Memory.Resolve(ctx, id, o)
}

type booksLate struct {
	wrapper
	remembers
}

func (l *booksLate) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	l.put(h)
	return l.Memory.Hold(ctx, h)
}

func (l *booksLate) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	h := l.get(id)
	if o.State != budget.StateSettled || h.Provider == "" {
		return l.Memory.Resolve(ctx, id, o)
	}
	if r, err := l.Memory.Resolve(ctx, id, budget.Voided("moved")); err != nil {
		return r, err
	}
	h.ID.Boot = ^h.ID.Boot
	if r, err := l.Memory.Hold(ctx, h); err != nil {
		return r, err
	}
	return l.Memory.Resolve(ctx, h.ID, o)
}

type settlesTwice struct {
	wrapper
	remembers
}

func (l *settlesTwice) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	l.put(h)
	return l.Memory.Hold(ctx, h)
}

func (l *settlesTwice) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	r, err := l.Memory.Resolve(ctx, id, o)
	h := l.get(id)
	if !errors.Is(err, budget.ErrConflict) && (err != nil || r.Delta != 0 || o.State != budget.StateSettled) {
		return r, err
	}
	h.ID.Boot = ^h.ID.Boot
	if _, err := l.Memory.Hold(ctx, h); err != nil {
		return r, err
	}
	return l.Memory.Resolve(ctx, h.ID, o)
}

// resets starts anew whenever the date is not that of the call before.
type resets struct {
	o    ledgertest.Options
	mu   sync.Mutex
	date string
	l    *budget.Memory
}

func (l *resets) now() *budget.Memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if date := l.o.Clock.Read().Now.Format(time.DateOnly); l.l == nil || l.date != date {
		l.l, l.date = &budget.Memory{Clock: l.o.Clock}, date
	}
	return l.l
}

func (l *resets) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	return l.now().Hold(ctx, h)
}

func (l *resets) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	return l.now().Resolve(ctx, id, o)
}

func (l *resets) Totals(ctx context.Context, at time.Time, b ...budget.Budget) ([]budget.Totals, error) {
	return l.now().Totals(ctx, at, b...)
}

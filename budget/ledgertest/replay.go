package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// Fuzz lets the fuzzer write histories: holds, outcomes, time, operators and, if the
// subject survives one, crashes. After every step the ledger agrees with the model.
// Run it with -fuzzminimizetime=10x: to make long histories shorter takes a minute each
// otherwise, and finds nothing.
func Fuzz(f *testing.F, s Subject) {
	for seed := range uint64(4) {
		f.Add(history(seed))
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		replay(t, s, ops[:min(len(ops), 240)], "fuzz")
	})
}

// history returns a random one: three bytes per step.
func history(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	ops := make([]byte, 3*(20+random.IntN(61)))
	for i := range ops {
		ops[i] = byte(random.Uint32())
	}
	return ops
}

// player plays a history on a ledger and on the model.
type player struct {
	*rig
	model model
	label string
	step  int
}

var sums = []string{"0", "0.000000001", "0.1", "0.75", "1", "2.5", "4", "9.99", "10", "26"}

func replay(t *testing.T, s Subject, ops []byte, label string) {
	p := &player{rig: newRig(t, s), label: label}
	day, month, calls := p.day(), p.budget("month", budget.Month, "25"), p.budget("calls", budget.Week, "8")
	month.Keep, calls.Unit = budget.MustParse("3"), budget.Calls
	rolling, local := p.budget("rolling", budget.Rolling(7*time.Hour), "12"), p.zoned("Asia/Kathmandu")
	local.Name, local.Every = "local", budget.Week.At(5*time.Hour)
	p.model = model{budgets: []budget.Budget{day, month, calls, rolling, local}}
	for _, b := range p.model.budgets {
		p.model.limits = append(p.model.limits, b.Limit)
	}
	for ; len(ops) >= 3; ops = ops[3:] {
		p.step++
		p.play(ops[0], ops[1], ops[2])
		p.compare()
	}
}

func (p *player) play(op, a, b byte) {
	amount := budget.MustParse(sums[int(b)%len(sums)])
	switch op % 10 {
	case 0, 1, 2, 3:
		p.hold(budget.MustParse(sums[int(a>>3)%len(sums)]), int(a)%31+1, b%3 == 0)
	case 4, 5:
		p.resolve(a, budget.Settled(amount))
	case 6:
		p.resolve(a, budget.Voided("not_sent"))
	case 7:
		p.resolve(a, budget.Presumed(amount))
	case 8:
		p.resolve(a, budget.Corrected(amount, "invoice"))
	default:
		p.around(a, b)
	}
}

// hold asks for an amount on the budgets whose bits are set.
func (p *player) hold(amount budget.Amount, which int, critical bool) {
	h := &modelHold{id: p.id(), amount: amount, state: budget.StateHeld}
	ask := budget.Hold{ID: h.id, Provider: "sms", Critical: critical}
	for i, b := range p.model.budgets {
		if which>>i&1 == 1 {
			h.budgets = append(h.budgets, i)
			h.windows = append(h.windows, b.Window(p.now()))
			ask.Legs = append(ask.Legs, budget.Leg{Budget: b, Amount: p.model.inBudget(i, amount)})
		}
	}
	_, err := p.ledger.Hold(p.Context(), ask)
	binding := p.model.hold(h, critical)
	if binding == nil {
		require.NoError(p, err, p.where())
		_, err = p.ledger.Hold(p.Context(), ask)
		require.NoError(p, err, "again, %s", p.where())
		return
	}
	over := refusal(p, err)
	require.Equal(p, []any{binding.Budget, binding.Reason, binding.Reason == budget.ReasonBusy}, []any{over.Budget, over.Reason, over.Busy}, p.where())
	require.True(p, binding.RetryAt.Equal(over.RetryAt), "%v, not %v, %s", over.RetryAt, binding.RetryAt, p.where())
}

// resolve ends one of the last holds.
func (p *player) resolve(which byte, o budget.Outcome) {
	recent := p.model.holds[max(0, len(p.model.holds)-8):]
	if len(recent) == 0 {
		return
	}
	h := recent[int(which)%len(recent)]
	if !h.ended.IsZero() && p.now().Sub(h.ended) > 14*time.Minute {
		return // the ledger need not know it
	}
	_, err := p.ledger.Resolve(p.Context(), h.id, o)
	if h.resolve(o, p.now()) {
		require.NoError(p, err, p.where())
		return
	}
	require.ErrorIs(p, err, budget.ErrConflict, p.where())
}

// around is everything else.
func (p *player) around(a, b byte) {
	switch a % 5 {
	case 0:
		p.pass(time.Duration(b) * time.Minute)
	case 1:
		p.pass(time.Duration(b%30) * time.Hour)
	case 2:
		p.setLimit(int(b)%len(p.model.budgets), budget.Amount(b%16+1)*budget.Unit)
	default:
		if p.subject.Crash != nil {
			p.hold(0, 1, false) // settles before it are durable now
			p.restart()
			p.model.restart()
		}
	}
}

func (p *player) pass(d time.Duration) {
	if !p.subject.ServerTime {
		p.hand.Pass(d)
	}
}

// setLimit lets an operator change a limit, of a budget that has been used.
func (p *player) setLimit(i int, limit budget.Amount) {
	used := false
	for _, h := range p.model.holds {
		for _, b := range h.budgets {
			used = used || b == i
		}
	}
	if !used {
		return
	}
	require.NoError(p, p.operator().SetLimit(p.Context(), p.model.budgets[i].Name, limit, by), p.where())
	p.model.limits[i] = limit
}

// compare looks at every window that was ever used, and at the present ones.
func (p *player) compare() {
	for i, b := range p.model.budgets {
		now := b.Window(p.now())
		seen := map[string]budget.Window{now.ID: now}
		for _, h := range p.model.holds {
			for j, of := range h.budgets {
				if of == i {
					seen[h.windows[j].ID] = h.windows[j]
				}
			}
		}
		for id, w := range seen {
			got, want := p.totalsAt(b, w.End.Add(-1)), p.model.totals(i, w)
			require.Equal(p, id, got.Window.ID, p.where())
			if figures(got) != figures(want) {
				require.Equal(p, figures(want), figures(got), "budget %s, window %s, %s", b.Name, id, p.where())
			}
		}
	}
}

// figures are the numbers of a window.
func figures(t budget.Totals) [8]budget.Amount {
	return [...]budget.Amount{
		t.Limit, t.Settled, t.Presumed, t.Held, t.Overrun, t.Floor, budget.Amount(t.OpenHolds), budget.Amount(t.PresumedHolds),
	}
}

func (p *player) where() string { return fmt.Sprintf("step %d of %s", p.step, p.label) }

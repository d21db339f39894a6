package ledgertest

import (
	"time"

	"github.com/outlay-go/outlay/budget"
)

// model is the reference: it keeps every hold for ever and sums them up anew for
// every question.
type model struct {
	budgets []budget.Budget
	limits  []budget.Amount
	holds   []*modelHold
}

type modelHold struct {
	id        budget.HoldID
	budgets   []int // that it takes from
	windows   []budget.Window
	amount    budget.Amount // in money
	state     budget.State
	cost      budget.Amount // in money, once it has ended
	said      budget.Outcome
	corrected bool
	ended     time.Time
}

// inBudget is what an amount of money is in budget b: a call is a call.
func (m *model) inBudget(b int, money budget.Amount) budget.Amount {
	if m.budgets[b].Unit == budget.Calls {
		return budget.Unit
	}
	return money
}

// totals folds all holds that count in one window.
func (m *model) totals(b int, w budget.Window) budget.Totals {
	t := budget.Totals{Limit: m.limits[b]}
	for _, h := range m.holds {
		for i, of := range h.budgets {
			if id := h.windows[i].ID; of != b || id < w.Oldest || w.ID < id {
				continue
			}
			held, cost := m.inBudget(b, h.amount), m.inBudget(b, h.cost)
			switch h.state {
			case budget.StateHeld:
				t.Held += held
				t.OpenHolds++
				continue
			case budget.StatePresumed:
				t.Presumed += cost
				t.PresumedHolds++
				if m.budgets[b].Unit != budget.Calls {
					t.Floor += h.said.Amount
				}
			case budget.StateSettled:
				t.Settled += cost
			case budget.StateVoided:
				continue
			}
			t.Overrun += max(0, cost-held)
		}
	}
	return t
}

// hold returns why the hold is refused, or nothing and keeps it.
func (m *model) hold(h *modelHold, critical bool) (worst *budget.ExceededError) {
	for i, b := range h.budgets {
		t, need := m.totals(b, h.windows[i]), m.inBudget(b, h.amount)
		top := t.Limit
		if !critical {
			top -= m.budgets[b].Keep
		}
		if need == 0 || t.Used()+need <= top {
			continue
		}
		e := &budget.ExceededError{Budget: m.budgets[b].Name, Reason: budget.ReasonExhausted}
		for w := h.windows[i]; need <= top && e.RetryAt.IsZero(); w = m.budgets[b].Window(w.End) {
			if next := m.budgets[b].Window(w.End); m.stays(b, h.windows[i], next)+need <= top {
				e.RetryAt = w.End
			}
		}
		if spent := t.Settled + t.Presumed; spent+need <= top {
			e.Reason = budget.ReasonBusy
		} else if spent+need <= t.Limit {
			e.Reason = budget.ReasonFloor
		}
		if worst == nil || rank(e) > rank(worst) || rank(e) == rank(worst) && e.RetryAt.After(worst.RetryAt) {
			worst = e
		}
	}
	if worst == nil {
		m.holds = append(m.holds, h)
	}
	return worst
}

// stays is what counts in a window and still does in a later one.
func (m *model) stays(b int, w, later budget.Window) budget.Amount {
	w.Oldest = max(w.Oldest, later.Oldest)
	return m.totals(b, w).Used()
}

func rank(e *budget.ExceededError) int {
	switch {
	case e.RetryAt.IsZero() && e.Reason != budget.ReasonBusy:
		return 2
	case e.Reason != budget.ReasonBusy:
		return 1
	default:
		return 0
	}
}

// resolve reports whether the outcome is possible, and takes it.
func (h *modelHold) resolve(o budget.Outcome, now time.Time) bool {
	same := o.State == h.said.State && (o.Amount == h.said.Amount || o.State == budget.StateVoided)
	switch {
	case o.State == budget.StateCorrected:
		if h.state == budget.StateHeld {
			return false
		}
		h.state, h.cost, h.corrected = budget.StateSettled, o.Amount, true
	case h.state == budget.StateHeld, h.state == budget.StatePresumed && (o.State != budget.StatePresumed || o.Amount > h.said.Amount):
		h.state, h.cost, h.said = o.State, o.Amount, o
		if o.State == budget.StatePresumed {
			h.cost = max(o.Amount, h.amount)
		}
	default:
		return same
	}
	if h.ended.IsZero() && h.state != budget.StatePresumed {
		h.ended = now
	}
	return true
}

// restart is the death of the process.
func (m *model) restart() {
	for _, h := range m.holds {
		if h.state == budget.StateHeld {
			h.resolve(budget.Presumed(0), time.Time{})
		}
	}
}

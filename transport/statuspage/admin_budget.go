package statuspage

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/outlay-go/outlay/budget"
)

func (a *admin) freezeBudget(r *http.Request, o order) (any, error) {
	return a.onBudget(r, ActionFreeze, o, func(b budget.Budget) error { return a.t.FreezeBudget(r.Context(), b.Name, o.by) })
}

func (a *admin) releaseBudget(r *http.Request, o order) (any, error) {
	return a.onBudget(r, ActionRelease, o, func(b budget.Budget) error { return a.t.ReleaseBudget(r.Context(), b.Name, o.by) })
}

func (a *admin) limit(r *http.Request, o order) (any, error) {
	limit, err := budget.Parse(o.amount)
	if err != nil || limit <= 0 {
		return nil, fail(http.StatusUnprocessableEntity, "amount must be a decimal number such as 50.00, more than zero; to stop all calls freeze the provider or the budget")
	}
	return a.onBudget(r, ActionLimit, o, func(b budget.Budget) error {
		if limit/2 > b.Limit && !o.force {
			return fail(http.StatusUnprocessableEntity, fmt.Sprintf("%v is more than twice the configured limit of %v: if that is meant, send force=true", limit, b.Limit))
		}
		return a.t.SetLimit(r.Context(), b.Name, limit, o.by)
	})
}

// onBudget does something to a budget that is named by its label or by its name.
func (a *admin) onBudget(r *http.Request, action Action, o order, do func(budget.Budget) error) (any, error) {
	s, err := a.t.Status(r.Context())
	if err != nil {
		return nil, failed(err)
	}
	if s.LedgerErr != nil {
		return nil, failed(s.LedgerErr)
	}
	for i := range s.Budgets {
		b := s.Budgets[i].Budget
		if name := r.PathValue("name"); b.Label == name || b.Name == name {
			concerns := func(t *budget.Totals) bool { return t.Budget.Name == b.Name }
			return a.perform(r, action, b.Label, o, concerns, func() error { return do(b) })
		}
	}
	return nil, fail(http.StatusNotFound, "no budget of that name is configured")
}

// auditView is a part of what people did, the oldest first. Next is what after must be
// to read on.
type auditView struct {
	Entries []changeView `json:"entries"`
	Next    string       `json:"next"`
}

// maxAudit bounds one answer.
const maxAudit = 1000

func (a *admin) audit(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "100"))
	if err != nil || limit < 1 || limit > maxAudit {
		return nil, fail(http.StatusUnprocessableEntity, fmt.Sprintf("limit must be 1 to %d", maxAudit))
	}
	all, err := a.t.Audit(r.Context(), q.Get("after"), limit)
	if err != nil {
		if cause := failed(err); cause.(*problem).Status != http.StatusConflict {
			return nil, cause
		}
		return nil, fail(http.StatusUnprocessableEntity, "after must be the id of an entry, or 0")
	}
	v := auditView{Entries: []changeView{}, Next: q.Get("after")}
	for i := range all {
		v.Entries = append(v.Entries, newChange(&all[i]))
		v.Next = all[i].ID
	}
	return v, nil
}

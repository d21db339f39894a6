package statuspage

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// holdView is a hold of unknown outcome.
type holdView struct {
	ID       string    `json:"id"`
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	At       time.Time `json:"at"`
	Legs     []legView `json:"legs"`
}

type legView struct {
	Budget string        `json:"budget"`
	Window string        `json:"window"`
	Amount budget.Amount `json:"amount"`
	Unit   string        `json:"unit"`
}

// maxHolds bounds one answer.
const maxHolds = 1000

func (a *admin) holds(r *http.Request, _ string) (any, error) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), strconv.Itoa(maxHolds)))
	if err != nil || limit < 1 || limit > maxHolds {
		return nil, fail(http.StatusUnprocessableEntity, fmt.Sprintf("limit must be 1 to %d", maxHolds))
	}
	all, err := a.t.Unresolved(r.Context(), q.Get("provider"), limit)
	if err != nil {
		return nil, failed(err)
	}
	out := []holdView{}
	for _, u := range all {
		h := holdView{ID: u.ID.String(), Provider: u.Provider, State: u.State.String(), At: u.At.UTC(), Legs: []legView{}}
		for _, l := range u.Legs {
			h.Legs = append(h.Legs, legView{l.Budget, l.Window, l.Amount, l.Unit})
		}
		out = append(out, h)
	}
	return out, nil
}

func (a *admin) correct(r *http.Request, o order) (any, error) {
	id, wrongID := budget.ParseHoldID(r.PathValue("id"))
	amount, err := budget.Parse(o.amount)
	switch {
	case wrongID != nil:
		return nil, fail(http.StatusNotFound, "an id is like 7f9c-1a22, as the list of holds gives it")
	case err != nil:
		return nil, fail(http.StatusUnprocessableEntity, "amount must be a decimal number such as 0.0083")
	}
	all := func(*budget.Totals) bool { return true }
	result, err := a.perform(r, ActionCorrect, id.String(), o, all, func() error {
		_, err := a.t.Correct(r.Context(), id, amount, o.by)
		return err
	})
	d, ok := result.(done)
	if !ok {
		return result, err
	}
	for name, e := range d.Left {
		if e.Before == e.After {
			delete(d.Left, name)
		}
	}
	return d, nil
}

package statuspage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// past is what the ledger remembers, if it does.
type past struct {
	histories map[string]*budget.History // by the Name of the budget
	entries   []budget.Audited           // the oldest first
	audited   bool                       // entries are what there is, even if they are none
}

// maxEntries is how many entries of people are read for one page: more than are shown, to
// find who has frozen what is frozen.
const maxEntries = 100

// recall reads what the ledger remembers. A page without it still tells the present.
func (p *Page) recall(ctx context.Context, t *transport.Transport, s *transport.Status) (told past) {
	if s.LedgerErr != nil {
		return told
	}
	if all, err := t.History(ctx); err == nil {
		told.histories = make(map[string]*budget.History, len(all))
		for i := range all {
			told.histories[all[i].Budget] = &all[i]
		}
	}
	if all, err := t.Audit(ctx, "", maxEntries); err == nil {
		told.entries, told.audited = all, true
	}
	return told
}

// changes are the newest of what people did: the ledger's entries, or else the events of
// this process, which know no reason.
func (told past) changes(m *memory) []changeView {
	out := []changeView{}
	if told.audited {
		for _, e := range slices.Backward(told.entries) {
			if len(out) == maxChanges {
				break
			}
			out = append(out, newChange(&e))
		}
		return out
	}
	for _, e := range m.changes.newest() {
		out = append(out, changeView{
			At: instant(e.Time), Actor: e.Actor, Action: e.Action, Target: cmp.Or(e.Provider, e.Budget), From: e.From, To: e.To, Result: "done",
		})
	}
	return out
}

// newChange shows what people wrote, shortened and without control characters.
func newChange(e *budget.Audited) changeView {
	c := changeView{
		ID: clip(e.ID), At: instant(e.At), Actor: clip(e.By.Who), Action: clip(e.Action), Target: clip(cmp.Or(e.Target.Provider, e.Target.Budget)),
		From: clip(e.From), To: clip(e.To), Reason: clipTo(e.By.Why, 500), Result: "done",
	}
	if e.Hold != (budget.HoldID{}) {
		c.Target = e.Hold.String()
		if e.Target.Provider != "" {
			c.Target += " of " + clip(e.Target.Provider)
		}
	}
	if e.Denied {
		c.Result = "denied"
	}
	return c
}

// whoFroze finds who froze one of the targets last.
func (told past) whoFroze(targets ...budget.Target) budget.By {
	for _, e := range slices.Backward(told.entries) {
		if e.Action == "freeze" && !e.Denied && slices.Contains(targets, e.Target) {
			return e.By
		}
	}
	return budget.By{}
}

// words are who did something and why, in a sentence.
func words(by budget.By, otherwise string) (who, why string) {
	if by.Why != "" {
		why = fmt.Sprintf(" (\"%s\")", clipTo(by.Why, 200))
	}
	return cmp.Or(clip(by.Who), otherwise, "An operator"), why
}

// recall shows the ledger's history, which all processes made and which outlives them.
// The finer one of this process is better while it watched only a small part of the
// window and nothing was used before.
func (v *budgetView) recall(h *budget.History, now time.Time) {
	if h == nil || len(h.Points) == 0 {
		return
	}
	if own := v.History.Points; len(own) > 0 {
		first := time.Time(own[0].At)
		before := budget.Amount(0)
		for _, p := range h.Points {
			if !p.At.After(first) {
				before = p.Settled + p.Presumed
			}
		}
		if first.Before(h.Since) || before == 0 && now.Sub(first) < h.Window.End.Sub(h.Window.Start)/24 {
			return
		}
	}
	v.History = historyView{From: "ledger", StepS: (h.Window.End.Sub(h.Window.Start) / budget.HistoryParts).Seconds(), Points: []pointView{}}
	begin := h.Since // a point tells what was used by the end of its part
	for _, p := range h.Points {
		v.History.Points = append(v.History.Points, pointView{instant(begin), p.Settled, p.Presumed})
		begin = p.At
	}
}

// pace is that of the last hour, or since the history begins.
func (v *budgetView) pace() {
	points := v.History.Points
	if len(points) < 2 {
		return
	}
	last := points[len(points)-1]
	first := points[0]
	for _, p := range points {
		if time.Time(p.At).After(time.Time(last.At).Add(-time.Hour)) {
			break
		}
		first = p
	}
	seconds := int64(time.Time(last.At).Sub(time.Time(first.At)) / time.Second)
	if seconds < 60 {
		return
	}
	perHour := (last.Settled + last.Presumed - first.Settled - first.Presumed) / budget.Amount(seconds) * 3600
	v.Pace.PerHour = &perHour
}

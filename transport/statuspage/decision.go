package statuspage

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// newDecision puts an event into words.
func newDecision(e *transport.Event) decisionView {
	d := decisionView{
		At: instant(e.Time), Provider: e.Provider, Kind: e.Kind.String(), Reason: string(e.Reason), Budget: e.Budget, Attempt: e.Attempt,
		Unit: e.Unit, Level: levelWarn,
	}
	if e.Call != (transport.CallID{}) {
		d.Call = e.Call.String()
	}
	switch e.Kind {
	case transport.KindRefused, transport.KindWouldRefuse:
		d.refused(e)
	case transport.KindThrottled:
		d.Reason, d.Say = e.Source, fmt.Sprintf("slow down: %d", e.Status)
		d.Why = "told by the " + e.Source + until(e.RetryAt, e.Time, "; not before ")
	case transport.KindRetrying:
		d.Reason, d.Say, d.Level = e.Cause, "repeated: "+e.Cause, levelBusy
		d.Why = "when its turn comes"
		if e.Delay > 0 {
			d.Why = "after " + span(e.Delay)
		}
	case transport.KindUnclosed:
		d.Say, d.Why = "body not closed", "its slot was freed when the response was collected"
	case transport.KindWaiting:
		d.Reason, d.Say, d.Level = e.Cause, "waits for "+e.Cause, levelBusy
		d.Why = fmt.Sprintf("%s expected, %d before it", span(e.Expected), e.Queue)
	case transport.KindFinished:
		d.Say, d.Why, d.Level = "refused: unmatched", "its host is named, but no pattern matches it", levelBad
	case transport.KindResolved:
		d.resolved(e)
	}
	return d
}

func (d *decisionView) refused(e *transport.Event) {
	d.Amount, d.Level = e.Need, levelBad
	d.Say = "refused: " + string(e.Reason)
	if e.Kind == transport.KindWouldRefuse {
		d.Say, d.Level = "would refuse: "+string(e.Reason), levelWarn
	}
	d.Why = "nothing was sent, nothing was charged"
	switch {
	case e.Kind == transport.KindWouldRefuse:
		d.Why = "only monitored: it went all the same"
	case e.Attempt > 0:
		d.Why = "the repeat was not sent; what was sent before may be charged"
	}
	if e.Limit > 0 {
		d.Why = fmt.Sprintf("%s of %s %s used; %s", money(e.Used), money(e.Limit), e.Unit, d.Why)
	}
	d.Why += until(e.RetryAt, e.Time, "; may work at ")
}

func (d *decisionView) resolved(e *transport.Event) {
	d.Reason = e.Evidence
	switch {
	case e.Outcome == "corrected":
		d.Amount, d.Level, d.Say = e.Cost, levelBusy, "corrected"
		d.Why = "by " + money(e.Delta) + " " + e.Unit
	case e.Overrun > 0:
		d.Amount, d.Say, d.Why = e.Cost, "cost above hold", "by "+money(e.Overrun)+" "+e.Unit
	default:
		d.Amount, d.Say, d.Why = e.Cost, "presumed spent", "nobody knows whether it was billed: "+strings.ReplaceAll(e.Evidence, "_", " ")
	}
}

func until(t, now time.Time, words string) string {
	if t.IsZero() {
		return ""
	}
	return words + at(t, now)
}

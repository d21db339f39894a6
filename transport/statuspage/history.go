package statuspage

import (
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// maxPoints bounds a history; beyond it every second point goes.
const maxPoints = 192

// history is what was used of one window, over time.
type history struct {
	budget     budget.Budget // zero: nothing was read yet
	window     budget.Window
	step       time.Duration
	points     []point
	thresholds []crossing
	stopped    []stopped // by window, the oldest first
}

// point is what was used at the end of the step that begins at at.
type point struct {
	at                int64 // unix, ns
	settled, presumed budget.Amount
}

// crossing is a threshold that was reached.
type crossing struct {
	Percent int     `json:"percent"`
	At      instant `json:"at"`
}

// set puts the history at what the ledger says.
func (h *history) set(at time.Time, t *budget.Totals) {
	h.enter(t.Budget, t.Window)
	h.put(point{at.UnixNano(), t.Settled, t.Presumed})
}

// enter begins anew if w is another window. The windows of a rolling period are one.
func (h *history) enter(b budget.Budget, w budget.Window) {
	if h.budget.Name != b.Name { // another budget under the label, or the first
		*h = history{step: time.Second}
	}
	if h.window.ID != w.ID && w.Oldest == w.ID {
		*h = history{step: time.Second, stopped: h.stopped}
	}
	h.budget, h.window = b, w
}

// add counts a cost on top of what was used.
func (h *history) add(at time.Time, settled, presumed budget.Amount) {
	if h.budget.Name == "" {
		return
	}
	if !at.Before(h.window.End) { // nobody has looked since then
		h.enter(h.budget, h.budget.Window(at))
	}
	var last point
	if n := len(h.points); n > 0 {
		last = h.points[n-1]
	}
	last.at = at.UnixNano()
	last.settled, last.presumed = plus(last.settled, settled), plus(last.presumed, presumed)
	h.put(last)
}

func plus(a, b budget.Amount) budget.Amount {
	sum, err := a.Add(b)
	if err != nil {
		return a
	}
	return sum
}

// put sets the value of the step that contains the point. If the clock was set back,
// what came after that is forgotten.
func (h *history) put(p point) {
	p.at -= p.at % int64(h.step)
	n := len(h.points)
	for n > 0 && h.points[n-1].at >= p.at {
		n--
	}
	old := 0
	for length := int64(h.window.End.Sub(h.window.Start)); old < n && h.points[old].at < p.at-length; {
		old++ // it has left a rolling period
	}
	h.points = append(h.points[:n], p)[old:]
	if len(h.points) > maxPoints {
		h.thin()
	}
}

// thin doubles the step.
func (h *history) thin() {
	h.step *= 2
	kept := make([]point, 0, maxPoints+1)
	for _, p := range h.points {
		p.at -= p.at % int64(h.step)
		if n := len(kept); n > 0 && kept[n-1].at == p.at {
			kept[n-1] = p
			continue
		}
		kept = append(kept, p)
	}
	h.points = kept
}

// maxStopped is how many windows are kept: as many as a rolling period has.
const maxStopped = 25

// refused counts what the budget did not pay for. A frozen one has no limit to blame.
func (h *history) refused(e transport.Event) {
	if e.Need <= 0 {
		return
	}
	n := len(h.stopped)
	if n == 0 || h.stopped[n-1].window != e.Window {
		h.stopped = append(h.stopped[max(0, n-maxStopped+1):], stopped{window: e.Window})
	}
	last := &h.stopped[len(h.stopped)-1]
	last.Calls++
	last.Amount = plus(last.Amount, e.Need)
}

// stoppedIn sums what the budget did not pay for in a window, or in the windows that
// count with it.
func (h *history) stoppedIn(w budget.Window) (sum stopped) {
	for _, s := range h.stopped {
		if w.Oldest <= s.window && s.window <= w.ID {
			sum.Calls += s.Calls
			sum.Amount = plus(sum.Amount, s.Amount)
		}
	}
	return sum
}

func (h *history) crossed(e transport.Event) {
	if len(h.thresholds) < 16 {
		h.thresholds = append(h.thresholds, crossing{e.Percent, instant(e.Time)})
	}
}

// minutes is how far back an hour goes.
const minutes = 60

// hour is the last hour of one provider, by minutes.
type hour struct {
	minutes [minutes]minute
	lacks   []lack
}

// minute is what happened in one. Its number tells whether it is one of the last hour.
type minute struct {
	number                     int64 // since 1970
	calls, attempts, throttled uint32
	refused                    [len(reasonNames)]uint32
	waits                      [len(waitBounds)]uint32
	queue                      int
	wait                       time.Duration
}

var reasonNames = [...]transport.Reason{
	transport.ReasonGate, transport.ReasonRate, transport.ReasonSlots, transport.ReasonDeadline, transport.ReasonQueueFull,
	transport.ReasonNever, transport.ReasonExhausted, transport.ReasonBusy, transport.ReasonFloor, transport.ReasonRepeated,
	transport.ReasonUnpriced, transport.ReasonFrozen, transport.ReasonLedger, transport.ReasonLimiter,
}

// waitBounds are the upper bounds of the waits that are counted together.
var waitBounds = [...]time.Duration{
	time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 1 << 62,
}

func (h *hour) at(t time.Time) *minute {
	number := t.Unix() / 60
	m := &h.minutes[uint64(number)%minutes]
	if m.number != number {
		*m = minute{number: number}
	}
	return m
}

func (h *hour) observe(e transport.Event) {
	switch e.Kind {
	case transport.KindWaiting:
		m := h.at(e.Time)
		m.queue = max(m.queue, e.Queue+1)
	case transport.KindStarted:
		h.at(e.Time).waited(e.Wait)
	case transport.KindAnswered:
		h.at(e.Time).attempts++
	case transport.KindThrottled:
		h.at(e.Time).throttled++
	case transport.KindRefused:
		h.ranShort(e)
	case transport.KindFinished:
		m := h.at(e.Time)
		m.calls++
		if e.Left > 0 {
			m.waited(e.Left)
		}
		if e.Outcome == "refused" {
			m.refuse(e.Reason)
		}
	}
}

func (m *minute) waited(d time.Duration) {
	m.wait = max(m.wait, d)
	for i, bound := range waitBounds {
		if d <= bound {
			m.waits[i]++
			return
		}
	}
}

func (m *minute) refuse(r transport.Reason) {
	for i, name := range reasonNames {
		if name == r {
			m.refused[i]++
		}
	}
}

// last returns the minutes of the last hour, the oldest first; those in which nothing
// happened are nil.
func (h *hour) last(now time.Time) [minutes]*minute {
	var out [minutes]*minute
	number := now.Unix() / 60
	for i := range out {
		n := number - minutes + 1 + int64(i)
		if m := &h.minutes[uint64(n)%minutes]; m.number == n {
			out[i] = m
		}
	}
	return out
}

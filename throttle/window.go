package throttle

import "sort"

// exactTurns bounds the entries of a window: up to so many turns per period it is
// exact; above, turns of the same 1/1024 of the period share an entry that leaves
// with the latest of them, so that the window admits less, never more.
const exactTurns = 1024

// window admits at most n turns in any span of one period: the log of the turns of
// the last period. Instants are ticks.
type window struct {
	n    int
	per  int64
	log  []stamp // oldest first, from head on
	head int
	sum  int // weight in the log
	// For one period after a gate opened, turns are spaced: next is the earliest.
	next, pacedTo int64
}

type stamp struct {
	at     int64
	weight int
}

func (w *window) set(r Rate) { w.n, w.per = r.N, int64(r.Per) }

// expire forgets what is older than one period.
func (w *window) expire(now int64) {
	for w.head < len(w.log) && w.log[w.head].at+w.per <= now {
		w.sum -= w.log[w.head].weight
		w.head++
	}
	if w.head == len(w.log) {
		w.log, w.head = w.log[:0], 0
		return
	}
	if w.head > len(w.log)/2 {
		w.log = w.log[:copy(w.log, w.log[w.head:])]
		w.head = 0
	}
}

// allowed is n under the slow factor, at least the one turn that asks.
func (w *window) allowed(weight int, factor float64) int {
	return max(1, int(float64(w.n)*factor), weight)
}

// earliest returns when a turn of weight could start after a number of turns, of weight
// ahead, have started as early as they can. Unit i of the future starts when unit i-n has
// left, so beyond the log the answer repeats with the period. opens is when a gate opens
// after which turns are spaced, or zero.
func (w *window) earliest(turns, ahead int64, weight int, factor float64, now, opens int64) int64 {
	w.expire(now)
	n := int64(w.allowed(weight, factor))
	unit := ahead + int64(weight)
	rounds := (unit - 1) / n
	unit -= rounds * n
	start, next, pacedTo := now, w.next, w.pacedTo
	if leave := unit - (n - int64(w.sum)); leave > 0 {
		start = w.leaves(leave)
	}
	if opens > now {
		next, pacedTo = opens, later(opens, w.per)
	}
	if now < pacedTo {
		before := max(0, unit-int64(weight))
		if rounds > 0 && turns != ahead {
			before = 0 // the unit may belong to a heavy turn, all of which starts at once
		}
		start = max(start, min(later(next, satMul(w.gap(), before)), pacedTo))
	}
	return later(start, satMul(w.per, rounds))
}

// leaves returns when the unit-th unit of the log leaves the window.
func (w *window) leaves(unit int64) int64 {
	for _, s := range w.log[w.head:] {
		unit -= int64(s.weight)
		if unit <= 0 {
			return s.at + w.per
		}
	}
	return 0
}

// gap is the spacing of turns in the first period after an opening.
func (w *window) gap() int64 { return w.per / int64(w.n) }

// take records a turn that starts now.
func (w *window) take(weight int, now int64) {
	w.sum += weight
	if now < w.pacedTo {
		w.next = later(now, satMul(w.gap(), int64(weight)))
	}
	if last := len(w.log) - 1; last >= w.head && w.sameCell(w.log[last].at, now) {
		w.log[last].at = now
		w.log[last].weight += weight
		return
	}
	w.log = append(w.log, stamp{now, weight})
}

func (w *window) sameCell(a, b int64) bool {
	if w.n <= exactTurns {
		return a == b
	}
	cell := max(1, w.per/exactTurns)
	return a/cell == b/cell
}

// giveBack removes a turn that was taken at the instant at.
func (w *window) giveBack(weight int, at int64) {
	log := w.log[w.head:]
	i := sort.Search(len(log), func(i int) bool { return log[i].at >= at })
	if i == len(log) {
		return
	}
	weight = min(weight, log[i].weight)
	log[i].weight -= weight
	w.sum -= weight
	if w.next == later(at, satMul(w.gap(), int64(weight))) {
		w.next = at
	}
}

// pace spaces the turns of the period after the opening at the instant at.
func (w *window) pace(at int64) { w.next, w.pacedTo = at, at+w.per }

// size is the entries kept.
func (w *window) size() int { return len(w.log) - w.head }

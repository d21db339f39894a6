package budget

import (
	"math"
	"math/bits"
	"time"
)

// spans are the stretches by which the pace is taken.
var spans = [len(Trend{}.Spans)]time.Duration{15 * time.Minute, time.Hour, 24 * time.Hour}

// Trend is what a budget used lately: enough for a forecast, and small enough to be
// kept with every budget. It is a plain value that ledgers may store; only its methods
// know what the fields mean.
type Trend struct {
	// Settled is how many holds were settled so far.
	Settled int64
	// Spans count the last 15 minutes, hour and day.
	Spans [3]Span
}

// Span is a part of [Trend]: what was used in a stretch of time with the number Slot,
// and in the one before.
type Span struct {
	Slot        int64
	Now, Before Amount
}

// Add counts what a hold turned out to cost, when it first ended: settled, or
// presumed.
func (t *Trend) Add(at time.Time, a Amount, settled bool) {
	if settled {
		t.Settled++
	}
	for i := range t.Spans {
		slot := at.UnixNano() / int64(spans[i])
		s := t.Spans[i].at(slot)
		if sum, err := s.Now.Add(a); err == nil {
			s.Now = sum
		}
		t.Spans[i] = s
	}
}

// at moves the span on to a later slot. A slot before the present one, after the
// clock was set back, is counted in the present one.
func (s Span) at(slot int64) Span {
	switch {
	case slot <= s.Slot:
		return s
	case slot == s.Slot+1:
		return Span{Slot: slot, Before: s.Now}
	default:
		return Span{Slot: slot}
	}
}

// recent is what was used in the last stretch of length spans[i]: the present slot,
// and of the one before the share that the stretch still covers.
func (t Trend) recent(i int, now time.Time) Amount {
	length := int64(spans[i])
	slot, passed := now.UnixNano()/length, now.UnixNano()%length
	s := t.Spans[i].at(slot)
	part := mulDiv(uint64(max(s.Before, 0)), uint64(length-passed), uint64(length))
	sum, err := s.Now.Add(part)
	if err != nil {
		return math.MaxInt64
	}
	return max(sum, 0)
}

// Forecast says when the limit will be reached at the present pace, if that comes
// before the window ends; "at the present pace the budget ends at 15:40". A budget
// that is used up already is reached at now.
//
// The pace is the slower one of the last 15 minutes and the last hour, or for windows
// longer than 26 hours that of the last day. In the first 1/24 of a window and before
// ten holds were settled there is no forecast.
func (t Totals) Forecast(now time.Time) (exhausted time.Time, ok bool) {
	left := t.Available()
	length := t.Window.End.Sub(t.Window.Start)
	passed := now.Sub(t.Window.Start)
	switch {
	case now.Before(t.Window.Start) || !now.Before(t.Window.End):
		return time.Time{}, false
	case left <= 0:
		return now, true
	case t.Trend.Settled < 10 || passed < length/24:
		return time.Time{}, false
	}
	runway := max(t.runway(0, left, now), t.runway(1, left, now))
	if length > 26*time.Hour {
		runway = t.runway(2, left, now)
	}
	if runway >= t.Window.End.Sub(now) {
		return time.Time{}, false
	}
	return now.Add(runway), true
}

// runway is how long left lasts at the pace of the last spans[i].
func (t Totals) runway(i int, left Amount, now time.Time) time.Duration {
	used := t.Trend.recent(i, now)
	if used == 0 {
		return math.MaxInt64
	}
	return time.Duration(mulDiv(uint64(left), uint64(spans[i]), uint64(used)))
}

// mulDiv returns a * b / c, rounded down and at most the largest Amount.
func mulDiv(a, b, c uint64) Amount {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, c)
	return Amount(min(q, math.MaxInt64))
}

package throttle

import (
	"math"
	"time"
)

// Inside the bucket an instant is a tick: nanoseconds of the monotonic clock since
// shortly before the bucket was first used. Zero is no instant, forever is never.
const forever = math.MaxInt64

// catchUp bounds how far back a waiter's turn may be dated. The scheduler wakes
// sleepers a millisecond late, on a busy machine more, and a bucket of one token would
// lose what it earns in that time; so a waiter takes its tokens at the instant they
// were there. Longer stalls are not made up for, as that would be a burst.
const catchUp = int64(20 * time.Millisecond)

// later is t + d that saturates.
func later(t, d int64) int64 {
	if d > forever-t {
		return forever
	}
	return t + d
}

// satMul is a*b for non-negative numbers that saturates.
func satMul(a, b int64) int64 {
	if a != 0 && b > forever/a {
		return forever
	}
	return a * b
}

// span is the time that tokens take at perSecond, rounded up, except for the noise of
// floating point. x/time takes what is missing for less than a nanosecond as there.
func span(tokens, perSecond float64) int64 {
	d := math.Ceil(tokens/perSecond*1e9 - 1e-3)
	if d >= math.MaxInt64 {
		return forever
	}
	return int64(d)
}

// tickOf returns the tick of now, which never goes back, and notes how late the timer
// is.
func (b *Bucket) tickOf(now time.Time) int64 {
	if b.base.IsZero() {
		b.base = now.Add(-time.Second)
	}
	return b.seen(int64(now.Sub(b.base)))
}

// tick reads the clock: the monotonic one alone, which costs half of both, once the
// bucket was used.
func (b *Bucket) tick() int64 {
	if b.base.IsZero() {
		return b.tickOf(time.Now())
	}
	return b.seen(int64(time.Since(b.base)))
}

func (b *Bucket) seen(tick int64) int64 {
	b.now = max(b.now, tick)
	b.late = 0
	if len(b.alarms) > 0 {
		b.late = min(max(0, b.now-b.alarms[0].when), catchUp)
	}
	return b.now
}

// dated is the instant at which tokens are taken for a turn that starts now, if its
// legs became ready at the given one: not before that, unless the timer is late.
func (b *Bucket) dated(at, now int64) int64 {
	if at == 0 {
		return now
	}
	return max(at, now-b.late)
}

// timeOf is the instant of a tick, or the zero time for one that nobody knows.
func (b *Bucket) timeOf(tick int64) time.Time {
	if tick == forever {
		return time.Time{}
	}
	return b.base.Add(time.Duration(tick))
}

// wall is the wall clock, which, unlike the monotonic one, runs on while the machine
// sleeps.
func (b *Bucket) wall() int64 { return time.Now().UnixNano() + int64(b.skew) }

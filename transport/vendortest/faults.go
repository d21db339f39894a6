package vendortest

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Faults is a plan of failures. Each share is in thousandths of the requests; what is
// above 1000 together never comes. The zero value plans none.
//
// Which request fails follows from the seed, the content of the request, and how
// often that content arrived before: the same requests meet the same faults whatever
// the order in which goroutines send them, and a retry draws anew.
type Faults struct {
	Seed uint64

	// Throttle refuses in the vendor's own dialect, as its limit does. Throttle429Hint
	// answers 429 with a pause announced, Throttle429Bare without.
	Throttle, Throttle429Hint, Throttle429Bare int
	// Unavailable503 answers 503, or what the vendor has in its place, and
	// Unavailable503Hint the same with Retry-After. Neither takes the request.
	Unavailable503, Unavailable503Hint int
	// Error500 takes and bills the request and answers 500. Vendors that do not bill
	// what ends in a 500 do not take it; their constructors say so.
	Error500 int
	// ResetBeforeRead breaks the connection and takes nothing. ResetAfterRead takes
	// and bills the request and then breaks the connection.
	ResetBeforeRead, ResetAfterRead int
	// Cut takes and bills the request, and breaks the connection in the middle of the
	// answer.
	Cut int
	// Slow takes and bills the request and answers late, by SlowFor.
	Slow int

	// SlowFor is what Slow adds to an answer. Zero: one second.
	SlowFor time.Duration
	// RetryAfter is the pause that planned hints announce. Zero: one second.
	RetryAfter time.Duration
	// Script, if any, is what happens to the first requests, in the order in which
	// they arrive. The shares are for those that follow.
	Script []Fault
}

// Fault is what may happen to one request.
type Fault string

// The faults, named after the shares of [Faults]. None is the request that goes well,
// or is refused by a limit or for what it says.
const (
	None               Fault = ""
	Throttle           Fault = "throttle"
	Throttle429Hint    Fault = "throttle_429_hint"
	Throttle429Bare    Fault = "throttle_429_bare"
	Unavailable503     Fault = "unavailable_503"
	Unavailable503Hint Fault = "unavailable_503_hint"
	Error500           Fault = "error_500"
	ResetBeforeRead    Fault = "reset_before_read"
	ResetAfterRead     Fault = "reset_after_read"
	Cut                Fault = "cut"
	Slow               Fault = "slow"
)

// refuses reports whether a request hit by the fault is not taken.
func (f Fault) refuses() bool {
	switch f {
	case Throttle, Throttle429Hint, Throttle429Bare, Unavailable503, Unavailable503Hint, ResetBeforeRead:
		return true
	default:
		return false
	}
}

// draw decides about a request: the nth of its content, and in all of its arrival.
func (p Faults) draw(id fingerprint, nth, arrival int) Fault {
	if arrival <= len(p.Script) {
		return p.Script[arrival-1]
	}
	b := binary.BigEndian.AppendUint64(id[:], p.Seed)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(nth)))
	n := int(binary.BigEndian.Uint64(sum[:8]) % 1000)
	for _, s := range []struct {
		share int
		fault Fault
	}{
		{p.Throttle, Throttle},
		{p.Throttle429Hint, Throttle429Hint},
		{p.Throttle429Bare, Throttle429Bare},
		{p.Unavailable503, Unavailable503},
		{p.Unavailable503Hint, Unavailable503Hint},
		{p.Error500, Error500},
		{p.ResetBeforeRead, ResetBeforeRead},
		{p.ResetAfterRead, ResetAfterRead},
		{p.Cut, Cut},
		{p.Slow, Slow},
	} {
		if n -= s.share; n < 0 {
			return s.fault
		}
	}
	return None
}

func (p Faults) slowFor() time.Duration    { return orSecond(p.SlowFor) }
func (p Faults) retryAfter() time.Duration { return orSecond(p.RetryAfter) }

func orSecond(d time.Duration) time.Duration {
	if d == 0 {
		return time.Second
	}
	return d
}

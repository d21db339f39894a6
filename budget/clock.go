package budget

import (
	"sync"
	"time"
)

// The bounds of [Clock].
const (
	clockStep   = 5 * time.Minute  // a smaller step is followed without a word
	clockSteady = 10 * time.Minute // after that a step forward is believed in any case
	clockLook   = time.Second      // a drift that makes the clock ask for suspends
	clockFine   = time.Millisecond // so long the wall is taken to run with the steady clock
)

// Clock tells a ledger the time by which calls are booked. It is the wall clock,
// except that a step forward of more than five minutes is not believed at once: a
// wrong one would open a window that is not due. It is believed as soon as
// something confirms it: a suspend of the machine that explains it, the Date of a
// provider's answer ([Clock.Seen]), a person ([Clock.Confirm]), or ten minutes of
// steady running. Steps back are followed; [Window.Advance] says what they do.
//
// The zero Clock is ready and reads the system. It is safe for concurrent use and
// must not be copied after its first use.
type Clock struct {
	// Source returns the wall clock's time and the time on a steady clock that no
	// one sets. Nil: the system's. Only tests and ledgers whose store has a clock
	// of its own need it.
	Source func() (wall time.Time, steady time.Duration)
	// Suspended returns for how long the machine has slept, in all, while the
	// steady clock stood still; false if that is not known. Nil: the system's.
	Suspended func() (time.Duration, bool)

	mu      sync.Mutex
	started time.Time     // zero point of the system's steady clock
	wall    time.Time     // of the last reading
	steady  time.Duration // of the last reading
	slept   time.Duration // as last asked for
	ahead   time.Duration // how far the wall is ahead of what is believed
	since   time.Duration // steady time of the step, or of what last spoke against it
	denied  bool          // a witness spoke against the wall
}

// Reading is what a [Clock] says at one instant.
type Reading struct {
	// Now is the time to book by.
	Now time.Time
	// Unproven is what the wall says while it is ahead of Now and nothing has spoken
	// for or against it; else it is the zero time. A ledger that would refuse at Now
	// because a window is exhausted tries at Unproven too: if no call ever left, no
	// answer could ever confirm it.
	Unproven time.Time
	// Step is the size of a step of more than five minutes that this reading found,
	// negative for one back; else it is zero.
	Step time.Duration
}

// Read reads the clock.
func (c *Clock) Read() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look()
}

// look is Read for those who hold c.mu, or have the clock to themselves.
func (c *Clock) look() Reading {
	if c.Source == nil && !c.wall.IsZero() {
		// The steady clock alone costs half of both, and books are read twice a call.
		if gone := time.Since(c.started) - c.steady; 0 <= gone && gone < clockFine {
			return c.reading(gone)
		}
	}
	wall, steady := c.read()
	if c.wall.IsZero() {
		c.slept = c.sleptNow()
	}
	step := time.Duration(0)
	if drift := c.drift(wall, steady); drift != 0 {
		step = c.follow(drift, steady)
	}
	c.wall, c.steady = wall, steady
	if c.ahead > 0 && steady-c.since >= clockSteady {
		c.believe()
	}
	r := c.reading(0)
	r.Step = step
	return r
}

// reading is what the clock says so long after the last reading of the wall.
func (c *Clock) reading(gone time.Duration) Reading {
	r := Reading{Now: c.wall.Add(gone - c.ahead)}
	if c.ahead > 0 && !c.denied {
		r.Unproven = c.wall.Add(gone)
	}
	return r
}

// drift is by how much the wall moved more than the steady clock since the last
// reading, suspends left out; what is too little to matter is zero.
func (c *Clock) drift(wall time.Time, steady time.Duration) time.Duration {
	if c.wall.IsZero() {
		return 0
	}
	drift := time.Duration(wall.UnixNano()-c.wall.UnixNano()) - (steady - c.steady)
	if -clockLook < drift && drift < clockLook {
		return 0
	}
	slept := c.sleptNow()
	drift -= slept - c.slept
	c.slept = slept
	return drift
}

// follow takes a step of the wall into account and returns it if it is large.
func (c *Clock) follow(drift, steady time.Duration) time.Duration {
	switch {
	case drift > clockStep:
		c.ahead += drift
		c.since, c.denied = steady, false
	case drift < 0 && c.ahead > 0:
		c.ahead += drift
		if c.ahead <= clockStep { // the step forward was taken back
			c.believe()
		}
	}
	if drift > clockStep || drift < -clockStep {
		return drift
	}
	return 0
}

// Seen tells the clock the Date of an answer that a provider gave just now. A zero
// or odd date says nothing.
func (c *Clock) Seen(date time.Time) {
	if date.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead == 0 {
		return
	}
	wall, steady := c.read()
	switch {
	case near(date, wall):
		c.believe()
	case near(date, wall.Add(-c.ahead)):
		c.since, c.denied = steady, true
	}
}

// Confirm says that the wall clock is right, because a person looked. It is for programs
// that gave their ledger its clock ([Memory.Clock]), to be called by a page or a signal
// of theirs. A step is a matter of one process: a command that opens the same ledger has
// a clock of its own, which never stepped.
func (c *Clock) Confirm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.believe()
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= clockStep }

func (c *Clock) believe() { c.ahead, c.denied = 0, false }

func (c *Clock) read() (wall time.Time, steady time.Duration) {
	if c.Source != nil {
		return c.Source()
	}
	now := time.Now()
	if c.started.IsZero() {
		c.started = now
	}
	return now.Round(0), now.Sub(c.started)
}

func (c *Clock) sleptNow() time.Duration {
	suspended := c.Suspended
	if suspended == nil {
		suspended = systemSuspended
	}
	if slept, ok := suspended(); ok {
		return slept
	}
	return c.slept
}

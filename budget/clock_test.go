package budget_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)

// script moves a clock and says what it then reads, from noon.
type script struct {
	move     func(h *ledgertest.Hand, c *budget.Clock)
	now      time.Duration // from noon
	unproven time.Duration // from noon; zero: nothing is unproven
	step     time.Duration
}

func play(t *testing.T, steps ...script) {
	t.Helper()
	hand := ledgertest.NewHand(noon)
	c := hand.Clock()
	require.Equal(t, budget.Reading{Now: noon}, c.Read())
	for i, s := range steps {
		s.move(hand, c)
		want := budget.Reading{Now: noon.Add(s.now), Step: s.step}
		if s.unproven != 0 {
			want.Unproven = noon.Add(s.unproven)
		}
		require.Equal(t, want, c.Read(), "step %d", i)
		want.Step = 0
		require.Equal(t, want, c.Read(), "step %d, read again", i)
	}
}

func pass(d time.Duration) func(*ledgertest.Hand, *budget.Clock) {
	return func(h *ledgertest.Hand, _ *budget.Clock) { h.Pass(d) }
}

func step(d time.Duration) func(*ledgertest.Hand, *budget.Clock) {
	return func(h *ledgertest.Hand, _ *budget.Clock) { h.Step(d) }
}

func seen(after time.Duration) func(*ledgertest.Hand, *budget.Clock) {
	return func(_ *ledgertest.Hand, c *budget.Clock) { c.Seen(noon.Add(after)) }
}

const hour, minute = time.Hour, time.Minute

func TestTheClockFollowsTime(t *testing.T) {
	t.Parallel()
	play(t,
		script{move: pass(minute), now: minute},
		script{move: pass(100 * hour), now: 100*hour + minute},
		script{move: step(5 * minute), now: 100*hour + 6*minute},
		script{move: step(-5 * minute), now: 100*hour + minute},
	)
}

func TestAStepForwardIsHeldBackForTenMinutes(t *testing.T) {
	t.Parallel()
	play(t,
		script{move: step(hour), now: 0, unproven: hour, step: hour},
		script{move: pass(9 * minute), now: 9 * minute, unproven: hour + 9*minute},
		script{move: pass(minute), now: hour + 10*minute},
		script{move: step(5*minute + 1), now: hour + 10*minute, unproven: hour + 15*minute + 1, step: 5*minute + 1},
	)
}

func TestStepsForwardAddUp(t *testing.T) {
	t.Parallel()
	play(t,
		script{move: step(hour), now: 0, unproven: hour, step: hour},
		script{move: pass(8 * minute), now: 8 * minute, unproven: hour + 8*minute},
		script{move: step(2 * hour), now: 8 * minute, unproven: 3*hour + 8*minute, step: 2 * hour},
		script{move: pass(8 * minute), now: 16 * minute, unproven: 3*hour + 16*minute},
		script{move: step(-hour), now: 16 * minute, unproven: 2*hour + 16*minute, step: -hour},
		script{move: step(-2 * hour), now: 16 * minute, step: -2 * hour},
		script{move: step(-hour), now: 16*minute - hour, step: -hour},
	)
}

func TestADateConfirmsOrDeniesAStep(t *testing.T) {
	t.Parallel()
	play(t,
		script{move: seen(50 * hour), now: 0},
		script{move: step(24 * hour), now: 0, unproven: 24 * hour, step: 24 * hour},
		script{move: seen(12 * hour), now: 0, unproven: 24 * hour},
		script{move: func(_ *ledgertest.Hand, c *budget.Clock) { c.Seen(time.Time{}) }, now: 0, unproven: 24 * hour},
		script{move: pass(9 * minute), now: 9 * minute, unproven: 24*hour + 9*minute},
		script{move: seen(9*minute + 5*minute), now: 9 * minute},
		script{move: pass(9 * minute), now: 18 * minute}, // ten minutes anew
		script{move: pass(minute), now: 24*hour + 19*minute},
		script{move: step(24 * hour), now: 24*hour + 19*minute, unproven: 48*hour + 19*minute, step: 24 * hour},
		script{move: seen(48*hour + 15*minute), now: 48*hour + 19*minute},
	)
}

func TestAPersonConfirmsAStep(t *testing.T) {
	t.Parallel()
	play(t,
		script{move: step(24 * hour), now: 0, unproven: 24 * hour, step: 24 * hour},
		script{move: func(_ *ledgertest.Hand, c *budget.Clock) { c.Confirm() }, now: 24 * hour},
	)
}

func TestASuspendIsNoStep(t *testing.T) {
	t.Parallel()
	play(t,
		script{move: func(h *ledgertest.Hand, _ *budget.Clock) { h.Sleep(10 * hour) }, now: 10 * hour},
		script{move: func(h *ledgertest.Hand, _ *budget.Clock) { h.Sleep(hour); h.Step(24 * hour) }, now: 11 * hour, unproven: 35 * hour, step: 24 * hour},
		script{move: pass(10 * minute), now: 35*hour + 10*minute},
	)
}

func TestWithoutWordOfSuspendsAStepWaits(t *testing.T) {
	t.Parallel()
	hand := ledgertest.NewHand(noon)
	c := hand.Clock()
	c.Suspended = func() (time.Duration, bool) { return 0, false }
	c.Read()
	hand.Sleep(hour)
	require.Equal(t, budget.Reading{Now: noon, Unproven: noon.Add(hour), Step: hour}, c.Read())
}

func TestTheZeroClockReadsTheSystem(t *testing.T) {
	t.Parallel()
	var c budget.Clock
	before := time.Now().Round(0)
	r := c.Read()
	require.False(t, r.Now.Before(before))
	require.False(t, r.Now.After(time.Now().Round(0)))
	require.Zero(t, r.Step)
	require.Zero(t, r.Unproven)

	synctest.Test(t, func(t *testing.T) {
		var c budget.Clock
		first := c.Read()
		time.Sleep(24 * time.Hour)
		require.Equal(t, budget.Reading{Now: first.Now.Add(24 * time.Hour)}, c.Read())
	})
}

// Between two looks at the wall a clock runs with the steady one, and no reading is off.
func TestClockRunsOnBetweenLooksAtTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(budget.Clock)
		for i := range 3000 {
			require.Equal(t, budget.Reading{Now: time.Now().Round(0)}, c.Read())
			time.Sleep(time.Duration(i*i%2_000_003) * time.Nanosecond) // up to 2 ms
		}
		var m budget.Memory
		id := budget.HoldID{Boot: 1, Seq: 1}
		day := budget.PerDay(budget.Unit)
		day.Name = "day"
		_, err := m.Hold(t.Context(), budget.Hold{ID: id, Provider: "p", Legs: []budget.Leg{{Budget: day, Amount: 1}}})
		require.NoError(t, err)
		time.Sleep(15*time.Minute - time.Microsecond)
		_, err = m.Resolve(t.Context(), id, budget.Settled(1))
		require.NoError(t, err)
		time.Sleep(15*time.Minute - time.Microsecond)
		_, err = m.Resolve(t.Context(), id, budget.Settled(1))
		require.NoError(t, err, "an ended hold is known for 15 minutes")
		time.Sleep(time.Microsecond)
		_, err = m.Resolve(t.Context(), id, budget.Settled(1))
		require.ErrorIs(t, err, budget.ErrUnknownHold)
	})
}

package throttle

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTurnsComeAtTheRateInOrder(t *testing.T) {
	bubble(t, func(l *lab) {
		calls := l.calls(4, ask(leg("p", PerSecond(1))))
		require.Equal(t, every(0, time.Second, 4), l.starts(calls))
	})
}

func TestHopelessCallFailsAtOnce(t *testing.T) {
	bubble(t, func(l *lab) {
		slow := Rate{N: 1, Per: 10 * time.Second}
		l.starts(l.calls(1, ask(leg("p", slow))))
		ctx, cancel := context.WithTimeout(l.t.Context(), time.Second)
		defer cancel()
		r := <-l.call(ctx, ask(leg("p", slow)))
		require.Zero(t, r.at)
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		w := l.refused(r.err)
		require.Equal(t, ReasonDeadline, w.Reason)
		require.Equal(t, "p", w.Provider)
		require.Equal(t, 10*time.Second, w.RetryAt.Sub(l.begin))

		// The refusal took nothing: the next turn still comes at 10 s.
		require.Equal(t, []time.Duration{10 * time.Second}, l.starts(l.calls(1, ask(leg("p", slow)))))
	})
}

func TestTurnAtTheDeadlineIsTooLate(t *testing.T) {
	bubble(t, func(l *lab) {
		l.starts(l.calls(1, ask(leg("p", PerSecond(1)))))
		ctx, cancel := context.WithTimeout(l.t.Context(), time.Second)
		defer cancel()
		r := <-l.call(ctx, ask(leg("p", PerSecond(1))))
		require.Equal(t, ReasonDeadline, l.refused(r.err).Reason)
		require.Zero(t, r.at)

		inTime := ask(leg("p", PerSecond(1)))
		inTime.MaxWait = time.Second
		require.Equal(t, []time.Duration{time.Second}, l.starts(l.calls(1, inTime)))
	})
}

func TestCancelledWaitersCostNothing(t *testing.T) {
	for name, order := range map[string][]int{
		"in order of arrival": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"in reverse":          {9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *lab) {
				l.starts(l.calls(1, ask(leg("p", PerSecond(1)))))
				var cancels []context.CancelFunc
				var calls []<-chan result
				for range 10 {
					ctx, cancel := context.WithCancel(l.t.Context())
					cancels = append(cancels, cancel)
					calls = append(calls, l.call(ctx, ask(leg("p", PerSecond(1)))))
				}
				time.Sleep(100 * time.Millisecond)
				for _, i := range order {
					cancels[i]()
					r := <-calls[i]
					require.ErrorIs(t, r.err, context.Canceled)
					require.Equal(t, 100*time.Millisecond, r.at)
				}
				time.Sleep(100 * time.Millisecond)
				require.Equal(t, []time.Duration{time.Second}, l.starts(l.calls(1, ask(leg("p", PerSecond(1))))))
			})
		})
	}
}

func TestThoseBehindMoveUp(t *testing.T) {
	bubble(t, func(l *lab) {
		l.starts(l.calls(1, ask(leg("p", PerSecond(1)))))
		ctx, cancel := context.WithCancel(l.t.Context())
		a := l.call(ctx, ask(leg("p", PerSecond(1))))
		rest := l.calls(2, ask(leg("p", PerSecond(1))))
		cancel()
		require.ErrorIs(t, (<-a).err, context.Canceled)
		rest = append(rest, l.call(l.t.Context(), ask(leg("p", PerSecond(1)))))
		require.Equal(t, every(time.Second, time.Second, 3), l.starts(rest))
	})
}

func TestHigherRateTimesSleepersAnew(t *testing.T) {
	bubble(t, func(l *lab) {
		minute := ask(leg("p", PerMinute(1)))
		l.starts(l.calls(1, minute))
		old := l.call(l.t.Context(), minute)
		time.Sleep(time.Second)
		newcomer := l.call(l.t.Context(), ask(leg("p", PerSecond(100))))
		require.Equal(t, 1010*time.Millisecond, (<-old).at.Round(10*time.Millisecond))
		require.Equal(t, 1020*time.Millisecond, (<-newcomer).at.Round(10*time.Millisecond))
	})
}

func TestLowerRateLetsNobodyRunSooner(t *testing.T) {
	bubble(t, func(l *lab) {
		calls := l.calls(5, ask(leg("p", PerSecond(1))))
		time.Sleep(500 * time.Millisecond)
		calls = append(calls, l.call(l.t.Context(), ask(leg("p", PerMinute(6)))))
		require.Equal(t, append([]time.Duration{0}, every(10500*time.Millisecond, 10*time.Second, 5)...), l.starts(calls))
	})
}

// A caller may hand its own reading of the clock over. An old one neither sets the bucket
// back, which would earn tokens twice, nor makes the wait longer.
func TestOldReadingOfTheCallerChangesNothing(t *testing.T) {
	for _, strict := range []bool{false, true} {
		bubble(t, func(l *lab) {
			a := ask(leg("p", Rate{N: 1, Per: time.Second, Strict: strict}))
			l.starts(l.calls(1, a))
			time.Sleep(400 * time.Millisecond)
			a.Now = time.Now().Add(-time.Hour)
			require.Equal(t, every(time.Second, time.Second, 3), l.starts(l.calls(3, a)))
			time.Sleep(5 * time.Second)
			a.Now = time.Now().Add(-time.Minute) // nobody waits: the token is there, whatever the caller thinks
			require.Equal(t, every(8*time.Second, time.Second, 1), l.starts(l.calls(1, a)))
		})
	}
}

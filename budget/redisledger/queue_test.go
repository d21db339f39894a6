package redisledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// calls is how often the server ran scripts.
func calls(t testing.TB, client *redis.Client) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(client.Info(t.Context(), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			_, _ = fmt.Sscanf(rest, "%d", &n)
		}
	}
	return n
}

// waited counts the round trips that callers wait for: the calls of the hook in their
// goroutines.
type waited struct{ trips *int }

type callerKey struct{}

func (w waited) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w waited) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { w.count(ctx, cmd); return next(ctx, cmd) }
}

func (w waited) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { w.count(ctx, cmds...); return next(ctx, cmds) }
}

func (w waited) count(ctx context.Context, cmds ...redis.Cmder) {
	script := func(c redis.Cmder) bool { return c.Name() == "evalsha" } // a new connection has commands of its own
	if ctx.Value(callerKey{}) != nil && slices.ContainsFunc(cmds, script) {
		*w.trips++
	}
}

func TestOutcomeCostsTheCallerNoRoundTrip(t *testing.T) {
	s, trips := redistest.Start(t), 0
	client := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(waited{&trips})
	l := open1(t, client, Options{beat: time.Hour})
	spend(t, l, month(), "0") // the budget and the scripts are known then
	l.flush(t.Context())
	ctx := context.WithValue(t.Context(), callerKey{}, true)
	before := calls(t, client)
	trips = 0
	for range 20 {
		h := holdOf(month(), "0.1")
		_, err := l.Hold(ctx, h)
		require.NoError(t, err)
		report, err := l.Resolve(ctx, h.ID, budget.Settled(budget.MustParse("0.04")))
		require.NoError(t, err)
		require.Equal(t, -budget.MustParse("0.06"), report.Delta)
	}
	require.Equal(t, 20, trips)
	require.Equal(t, "settled 0.8 presumed 0 held 0", books(t, l, month()))
	require.LessOrEqual(t, calls(t, client)-before, 41, "one for each hold and outcome, and the totals")
}

func TestOutcomeThatSomebodyWaitsForIsInTheBooks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	other := open1(t, client, Options{})
	id := take(t, l, month(), "1")
	report, err := l.Resolve(t.Context(), id, budget.Settled(2*budget.Unit))
	require.NoError(t, err)
	require.Equal(t, budget.Unit, report.Overrun)
	require.Equal(t, "settled 2 presumed 0 held 0", books(t, other, month()), "more than its hold")
	alert := month()
	alert.Alerts = []int{50}
	id = take(t, l, alert, "3")
	report, err = l.Resolve(t.Context(), id, budget.Settled(3*budget.Unit))
	require.NoError(t, err)
	require.Len(t, report.Notices, 1, "a threshold")
	require.Equal(t, "settled 5 presumed 0 held 0", books(t, other, month()))
	take(t, l, alert, "1")
	_, err = l.Resolve(t.Context(), newID(), budget.Settled(1))
	require.ErrorIs(t, err, budget.ErrUnknownHold)
}

func TestMoneyOnItsWayBackRefusesNobody(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	all := month()
	all.Alerts = []int{}
	for range rounds(300, 3000) {
		_, err := l.Resolve(t.Context(), take(t, l, all, "10"), budget.Voided("not_sent"))
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	for range 4 { // each needs what the others give back, but never at the same time
		wg.Go(func() {
			for range rounds(50, 500) {
				h := holdOf(all, "2.5")
				if _, err := l.Hold(context.Background(), h); err != nil {
					t.Error(err)
					return
				}
				_, _ = l.Resolve(context.Background(), h.ID, budget.Voided("not_sent"))
			}
		})
	}
	wg.Wait()
	require.Equal(t, "settled 0 presumed 0 held 0", books(t, l, all))
}

func TestOutcomesThatWaitArePresumedAfterACrashAndSentByClose(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t)
	crashes, ends := open1(t, s.Client(t), Options{beat: time.Hour}), open1(t, s.Client(t), Options{beat: time.Hour})
	a, b := take(t, crashes, month(), "1"), take(t, ends, month(), "2")
	resume := s.Pause(t)
	_, err := crashes.Resolve(t.Context(), a, budget.Settled(budget.MustParse("0.4")))
	require.NoError(t, err)
	_, err = ends.Resolve(t.Context(), b, budget.Settled(budget.MustParse("0.5")))
	require.NoError(t, err)
	crashes.mu.Lock()
	crashes.waiting = nil // it dies before the server reads anything
	crashes.mu.Unlock()
	resume()
	require.NoError(t, ends.Close())
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, 10*time.Second, 5*time.Millisecond)
	l := open1(t, client, Options{})
	s0, err := totalsOf(l, month())
	require.NoError(t, err)
	require.GreaterOrEqual(t, s0.Used(), budget.MustParse("0.9"), "never less than was billed")
	require.Contains(t, []budget.Amount{budget.MustParse("0.5"), budget.MustParse("0.9")}, s0.Settled)
}

func TestRefusedOutcomeIsTold(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	id := take(t, l, month(), "1")
	require.NoError(t, client.HSet(t.Context(), l.keys.hold(id), "state", "s", "said", "s", "amount", "7").Err())
	_, err := l.Resolve(t.Context(), id, budget.Settled(budget.Unit))
	require.NoError(t, err)
	l.flush(t.Context())
	report, err := l.Hold(t.Context(), holdOf(month(), "1"))
	require.NoError(t, err)
	require.Contains(t, reasons(report), "an outcome was refused")
}

func TestAnswersOfLostBooksAreAskedForAgain(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	id := take(t, l, month(), "1")
	l.mu.Lock()
	h := l.open[id]
	l.reporting = true // what was in flight has been listed by now
	l.mu.Unlock()
	gen, reply := l.generation(), []any{"ok", int64(9), int64(0), []any{"0"}}
	require.False(t, l.ended(gen, &late{open: h, outcome: budget.Settled(1)}, reply), "the list says that it is in flight")
	require.False(t, l.took(gen, &open{id: newID(), legs: h.legs}, reply), "the list does not have it")
	l.mu.Lock()
	require.Len(t, l.open, 1)
	require.Same(t, h, l.open[id])
	l.reporting = false
	l.mu.Unlock()
	require.True(t, l.ended(gen, &late{open: h, outcome: budget.Settled(1)}, reply))
}

// TestCallerSeesItsOutcomeWhoeverSendsIt looks at outcomes that holds of others carry.
func TestCallerSeesItsOutcomeWhoeverSendsIt(t *testing.T) {
	l := open1(t, redistest.Start(t).Client(t), Options{beat: time.Hour})
	var wg sync.WaitGroup
	for i := range 8 {
		mine := month()
		mine.Name = fmt.Sprint("mine-", i)
		wg.Go(func() {
			for n := range rounds(100, 1000) {
				h := holdOf(mine, "0.001")
				if _, err := l.Hold(context.Background(), h); err != nil {
					t.Error(err)
					return
				}
				_, err := l.Resolve(context.Background(), h.ID, budget.Settled(budget.MustParse("0.001")))
				s, errTotals := totalsOf(l, mine)
				if err != nil || errTotals != nil || s.Held != 0 || s.Settled != budget.Amount(n+1)*budget.MustParse("0.001") {
					t.Errorf("%v %v: settled %v held %v after %d", err, errTotals, s.Settled, s.Held, n+1)
					return
				}
				if _, err := l.Resolve(context.Background(), h.ID, budget.Voided("no")); !errors.Is(err, budget.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Package ledgertest is the suite that every [budget.Ledger] passes.
//
// [Run] checks the promises of the ledger with numbers: nothing is admitted beyond a
// limit, under any interleaving; money comes back by evidence and never by time;
// windows are funded once, whatever the clock does; the same command twice is one.
// [Fuzz] compares long random histories with a small reference model.
package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// Subject is the ledger under test.
type Subject struct {
	// Open opens the ledger of o. What must be closed it registers with t.Cleanup. It
	// fails the test if it cannot.
	Open func(t testing.TB, o Options) budget.Ledger
	// Crash ends a ledger as the death of its process would: nothing is closed, what
	// was not durable is lost, and no goroutine of it touches the store any more. Nil:
	// the ledger forgets with its process, and the cases about restarts are left out.
	Crash func(t testing.TB, l budget.Ledger)
	// ServerTime: a server tells the time and Options.Clock means nothing. The cases
	// that move the clock are left out.
	ServerTime bool
}

// Options say what to open.
type Options struct {
	// Clock is where the ledger takes its time from.
	Clock *budget.Clock
	// Dir names the store: a directory for its files, empty at first. To open the
	// same Dir again is a restart, or a second process.
	Dir string
}

// Run runs the suite. With the environment variable OUTLAY_PROVE set it repeats races and
// random histories many times more. A random history that fails names its seed.
func Run(t *testing.T, s Subject) {
	groups := [][]namedCase{admission, evidence, operators, histories, audits}
	if !s.ServerTime {
		groups = append(groups, windows, clocks)
	}
	if s.Crash != nil {
		groups = append(groups, restarts, restartHistories)
	}
	if s.Crash != nil && !s.ServerTime {
		groups = append(groups, restartClocks)
	}
	for _, group := range groups {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newRig(t, s))
			})
		}
	}
	randomHistories(t, s)
}

// RunWindows runs the cases about windows and random histories, for a ledger whose server's
// clock a test can set: to what Options.Clock says.
func RunWindows(t *testing.T, s Subject) {
	for _, c := range windows {
		t.Run(c.name, func(t *testing.T) { c.run(newRig(t, s)) })
	}
	randomHistories(t, s)
}

func randomHistories(t *testing.T, s Subject) {
	t.Run("random histories agree with the model", func(t *testing.T) {
		t.Parallel()
		for range rounds(25, 2000) {
			seed := rand.Uint64()
			replay(t, s, history(seed), fmt.Sprintf("seed %d", seed))
		}
	})
}

type namedCase struct {
	name string
	run  func(r *rig)
}

// rounds is how often to repeat something: more if OUTLAY_PROVE is set.
func rounds(usual, prove int) int {
	if os.Getenv("OUTLAY_PROVE") != "" {
		return prove
	}
	return usual
}

// Hand is a clock that a test moves by hand. It is safe for concurrent use.
type Hand struct {
	mu     sync.Mutex
	wall   time.Time
	steady time.Duration
	slept  time.Duration
}

// NewHand returns a clock that stands at this instant.
func NewHand(at time.Time) *Hand { return &Hand{wall: at} }

// Clock returns a ledger's clock that reads h, as a process has one.
func (h *Hand) Clock() *budget.Clock {
	return &budget.Clock{
		Source: func() (time.Time, time.Duration) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.wall, h.steady
		},
		Suspended: func() (time.Duration, bool) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.slept, true
		},
	}
}

// Now returns what the wall clock says.
func (h *Hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wall
}

// Pass lets time go by.
func (h *Hand) Pass(d time.Duration) { h.move(d, d, 0) }

// Step sets the wall clock, forward or back, while no time goes by.
func (h *Hand) Step(d time.Duration) { h.move(d, 0, 0) }

// Sleep suspends the machine: the wall clock goes on, the steady one does not.
func (h *Hand) Sleep(d time.Duration) { h.move(d, 0, d) }

func (h *Hand) move(wall, steady, slept time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall, h.steady, h.slept = h.wall.Add(wall), h.steady+steady, h.slept+slept
}

// rig is one ledger with what a case needs to work on it.
type rig struct {
	*testing.T
	subject Subject
	dir     string
	hand    *Hand
	ledger  budget.Ledger
	boot    uint64
	seq     atomic.Uint64
}

func newRig(t *testing.T, s Subject) *rig {
	r := &rig{T: t, subject: s, dir: t.TempDir(), boot: rand.Uint64(), hand: NewHand(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))}
	r.ledger = r.open()
	return r
}

func (r *rig) open() budget.Ledger {
	return r.subject.Open(r, Options{Clock: r.hand.Clock(), Dir: r.dir})
}

// restart kills the ledger's process and starts another.
func (r *rig) restart() {
	r.subject.Crash(r, r.ledger)
	r.boot++
	r.ledger = r.open()
}

// at moves the clock to an instant, while time goes by.
func (r *rig) at(instant string) {
	r.Helper()
	to, err := time.Parse(time.RFC3339Nano, instant)
	require.NoError(r, err)
	r.hand.Pass(to.Sub(r.hand.Now()))
}

func (r *rig) now() time.Time {
	if r.subject.ServerTime {
		return time.Now()
	}
	return r.hand.Now()
}

// day is a budget of 10 dollars per day.
func (r *rig) day() budget.Budget { return r.budget("day", budget.Day, "10") }

func (r *rig) budget(name string, every budget.Period, limit string) budget.Budget {
	switch {
	case !r.subject.ServerTime:
	case every == budget.Day:
		every = budget.Month // no test meets the end of a day
	case every == budget.Rolling(7*time.Hour):
		every = budget.Rolling(70 * 24 * time.Hour)
	}
	return budget.Budget{Name: name, Limit: budget.MustParse(limit), Every: every}
}

func (r *rig) id() budget.HoldID { return budget.HoldID{Boot: r.boot, Seq: r.seq.Add(1)} }

func leg(b budget.Budget, amount string) budget.Leg {
	return budget.Leg{Budget: b, Amount: budget.MustParse(amount)}
}

func (r *rig) hold(legs ...budget.Leg) (budget.HoldID, budget.Report, error) {
	h := budget.Hold{ID: r.id(), Provider: "sms", Legs: legs}
	report, err := r.ledger.Hold(r.Context(), h)
	return h.ID, report, err
}

// take holds an amount, which must fit.
func (r *rig) take(b budget.Budget, amount string) budget.HoldID {
	r.Helper()
	id, _, err := r.hold(leg(b, amount))
	require.NoError(r, err)
	return id
}

// durable makes all earlier outcomes outlive a crash, and leaves a hold behind. What the
// books have shown is in the store, where outcomes go behind the caller's back; what is
// before a hold is on the disk, where outcomes wait for the next one.
func (r *rig) durable(b budget.Budget, amount string) {
	r.Helper()
	r.books(b)
	r.take(b, amount)
}

// refused asks for an amount that must not fit, and returns why.
func (r *rig) refused(b budget.Budget, amount string) *budget.ExceededError {
	r.Helper()
	return r.refusedAll(leg(b, amount))
}

func (r *rig) refusedAll(legs ...budget.Leg) *budget.ExceededError {
	r.Helper()
	_, _, err := r.hold(legs...)
	return refusal(r, err)
}

func refusal(t require.TestingT, err error) *budget.ExceededError {
	var over *budget.ExceededError
	require.ErrorAs(t, err, &over)
	return over
}

func (r *rig) resolve(id budget.HoldID, o budget.Outcome) budget.Report {
	r.Helper()
	report, err := r.ledger.Resolve(r.Context(), id, o)
	require.NoError(r, err)
	return report
}

func (r *rig) settle(id budget.HoldID, amount string) budget.Report {
	r.Helper()
	return r.resolve(id, budget.Settled(budget.MustParse(amount)))
}

// conflicts resolves a hold in a way that contradicts what is known.
func (r *rig) conflicts(id budget.HoldID, o budget.Outcome) {
	r.Helper()
	_, err := r.ledger.Resolve(r.Context(), id, o)
	require.ErrorIs(r, err, budget.ErrConflict)
}

// spend holds an amount and settles it.
func (r *rig) spend(b budget.Budget, amount string) {
	r.Helper()
	r.settle(r.take(b, amount), amount)
}

func (r *rig) totals(b budget.Budget) budget.Totals {
	r.Helper()
	return r.totalsAt(b, r.now())
}

func (r *rig) totalsAt(b budget.Budget, at time.Time) budget.Totals {
	r.Helper()
	all, err := r.ledger.Totals(r.Context(), at, b)
	require.NoError(r, err)
	require.Len(r, all, 1)
	return all[0]
}

// books says what the window of b at the present holds.
func (r *rig) books(b budget.Budget) string {
	r.Helper()
	return books(r.totals(b))
}

func books(t budget.Totals) string {
	return fmt.Sprintf("settled %v presumed %v held %v left %v", t.Settled, t.Presumed, t.Held, t.Available())
}

// notices picks those of one kind.
func notices(kind budget.NoticeKind, reports ...budget.Report) (found []budget.Notice) {
	for _, r := range reports {
		for _, n := range r.Notices {
			if n.Kind == kind {
				found = append(found, n)
			}
		}
	}
	return found
}

// together runs f n times at once: all wait at a barrier first.
func together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

package sqliteledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// proving is set for the long forms of the tests.
var proving = os.Getenv("OUTLAY_PROVE") != ""

// script is a user of a ledger who knows what was really spent.
type script struct {
	ledger *Ledger
	rng    *rand.Rand
	boot   uint64
	seq    uint64
	open   map[budget.HoldID]budget.Amount // cost of the calls in flight
	spent  budget.Amount                   // what providers billed
}

func scriptBudgets() (day, month budget.Budget) {
	day, month = budget.PerDay(10*budget.Unit), budget.PerMonth(12*budget.Unit)
	day.Name, month.Name = "day", "month"
	return day, month
}

// run does n random operations, or fewer if the ledger fails.
func (s *script) run(n int) error {
	for range n {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) step() error {
	ctx := context.Background()
	for id, cost := range s.open {
		if s.rng.IntN(3) > 0 {
			break
		}
		delete(s.open, id)
		_, err := s.ledger.Resolve(ctx, id, s.outcome(cost))
		return err
	}
	day, month := scriptBudgets()
	s.seq++
	amount := budget.Amount(1+s.rng.IntN(100)) * budget.Unit / 200
	id := budget.HoldID{Boot: s.boot, Seq: s.seq}
	_, err := s.ledger.Hold(ctx, budget.Hold{ID: id, Provider: "sms",
		Legs: []budget.Leg{{Budget: day, Amount: amount}, {Budget: month, Amount: amount}}})
	if _, refused := err.(*budget.ExceededError); refused {
		return nil
	}
	if err == nil { // only now the call is sent, and billed
		cost := budget.Amount(s.rng.Int64N(int64(amount) + 1))
		s.open[id], s.spent = cost, s.spent+cost
	}
	return err
}

// outcome is what is learned about a call: never less than its cost.
func (s *script) outcome(cost budget.Amount) budget.Outcome {
	switch {
	case cost == 0:
		return budget.Voided("not_sent")
	case s.rng.IntN(4) == 0:
		return budget.Presumed(cost / 2)
	default:
		return budget.Settled(cost)
	}
}

// check holds the books against what was really spent, and says what is wrong.
func (s *script) check(t testing.TB, l *Ledger) (wrong []string) {
	day, month := scriptBudgets()
	all, err := l.Totals(context.Background(), time.Now(), day, month)
	require.NoError(t, err)
	wrong, err = l.Verify(context.Background())
	require.NoError(t, err)
	for _, total := range all {
		if total.Used() < s.spent || total.Used() > total.Limit || total.Settled > s.spent || total.OpenHolds > 0 {
			wrong = append(wrong, fmt.Sprintf("%v was spent, but: %+v", s.spent, total))
		}
	}
	return wrong
}

// TestCrashAtEveryWrite ends the process, or the power, at each access to the disk in
// turn, and opens the ledger again.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, power := range []bool{false, true} {
		t.Run(fmt.Sprintf("power loss %v", power), func(t *testing.T) {
			t.Parallel()
			step, last := 1, false
			if !proving {
				step = 67
			}
			crashes := 0
			for at := 1 + rand.IntN(step); !last; at += step {
				var wrong []string
				wrong, last = crashAt(t, at, power, false)
				require.Empty(t, wrong, "crash at access %d", at)
				crashes++
			}
			t.Logf("%d crashes", crashes)
		})
	}
}

// TestPowerLossIsReal shows that the test above finds a ledger that does not wait for
// the disk.
func TestPowerLossIsReal(t *testing.T) {
	for at := 100; ; at += 7 {
		wrong, last := crashAt(t, at, true, true)
		if len(wrong) > 0 {
			return
		}
		require.False(t, last, "nothing was ever lost")
	}
}

// crashAt runs the script until the given access to the disk, opens the ledger again,
// and returns what is wrong; last if there were not that many accesses. A weak ledger
// does not wait for the disk.
func crashAt(t *testing.T, at int, power, weak bool) (wrong []string, last bool) {
	d, path := newDisk(t), filepath.Join(t.TempDir(), "spend.db")
	s := &script{rng: rand.New(rand.NewPCG(uint64(at), 1)), boot: 1, open: map[budget.HoldID]budget.Amount{}}
	d.failAt = at
	var err error
	if s.ledger, err = (Options{vfs: d.name}).Open(path); err == nil {
		if weak {
			require.NoError(t, s.ledger.books.Exec("PRAGMA synchronous=NORMAL"))
		}
		err = s.run(200)
		d.off()
		s.ledger.crash(t)
	}
	if power {
		d.lose(t, s.rng)
	} else {
		d.on()
	}
	again, openErr := Options{vfs: d.name}.Open(path)
	require.NoError(t, openErr, "crash at access %d", at)
	wrong = s.check(t, again)
	require.NoError(t, again.Close())
	return wrong, err == nil
}

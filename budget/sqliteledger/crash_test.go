package sqliteledger

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// rounds is how often a test is repeated: the second number in the long form.
func rounds(usual, prove int) int {
	if proving {
		return prove
	}
	return usual
}

// vendor bills on receipt, whether or not its answer arrives.
type vendor struct {
	*httptest.Server
	billed atomic.Int64
	calls  atomic.Int64
	asked  chan struct{} // capacity 1
}

func newVendor(t testing.TB) *vendor {
	v := &vendor{asked: make(chan struct{}, 1)}
	v.Server = httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	most, err := budget.Parse(string(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	cost := budget.Amount(rand.Int64N(int64(most) + 1))
	v.billed.Add(int64(cost))
	v.calls.Add(1)
	select {
	case v.asked <- struct{}{}:
	default:
	}
	fmt.Fprint(w, cost)
}

// TestKilledAtAnyInstant kills a process that spends, again and again, and compares the
// books with the bill.
func TestKilledAtAnyInstant(t *testing.T) {
	kills, restarts := rounds(50, 500), 0
	var calls, billed, presumed int64
	for kills > 0 {
		v, path := newVendor(t), filepath.Join(t.TempDir(), "spend.db")
		for left := 1; left > 0 && kills > 0; restarts++ {
			if killSoon(t, v, path) {
				kills--
			}
			total := audit(t, path, budget.Amount(v.billed.Load()))
			left = int(total.Available() / (budget.Unit / 100))
			if left <= 0 || kills == 0 {
				presumed += int64(total.Presumed)
			}
		}
		calls, billed = calls+v.calls.Load(), billed+v.billed.Load()
	}
	t.Logf("killed %d times in %d runs: %d calls billed %v USD, booked at least that, never above the limit; %v USD stay presumed",
		rounds(50, 500), restarts, calls, budget.Amount(billed), budget.Amount(presumed))
}

// killSoon runs a sender for a random while. It reports false if the sender was faster.
func killSoon(t *testing.T, v *vendor, path string) bool {
	select {
	case <-v.asked:
	default:
	}
	c := startChild(t, "sender", path, "OUTLAY_URL="+v.URL)
	while := time.After(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
	if rand.IntN(5) > 0 { // else it may be killed while it opens the file
		select {
		case <-v.asked:
		case <-time.After(10 * time.Second):
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.cmd.Wait() }()
	select {
	case err := <-ended:
		require.NoError(t, err, "the sender failed")
		return false
	case <-while:
	}
	_ = c.cmd.Process.Signal(syscall.SIGKILL) // it may have ended just now
	<-ended
	killed := c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
	require.True(t, killed || c.cmd.ProcessState.Success(), "the sender failed")
	return killed
}

// audit opens the books after a crash and holds them against the bill.
func audit(t *testing.T, path string, billed budget.Amount) budget.Totals {
	l, err := Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	all, err := l.Totals(context.Background(), time.Now(), dollar("month"))
	require.NoError(t, err)
	total := all[0]
	require.GreaterOrEqual(t, total.Used(), billed, "booked and billed")
	require.LessOrEqual(t, total.Used(), total.Limit)
	require.LessOrEqual(t, total.Settled, billed)
	require.Zero(t, total.OpenHolds)
	wrong, err := l.Verify(context.Background())
	require.NoError(t, err)
	require.Empty(t, wrong)
	return total
}

// TestProcessesFightForTheLastDollar has 8 processes with 8 goroutines each take three
// cents where there is one dollar.
func TestProcessesFightForTheLastDollar(t *testing.T) {
	passed := fightFor(t, "fighter", rounds(10, 200))
	for _, n := range passed {
		require.Equal(t, 33, n, "each of three cents")
	}
	t.Logf("%d rounds, 64 goroutines in 8 processes: always 33", len(passed))
}

// TestTheFightIsRealOne shows that the fight finds those who check first and take then.
func TestTheFightIsRealOne(t *testing.T) {
	caught := 0
	for _, n := range fightFor(t, "cheat", 10) {
		if n > 33 {
			caught++
		}
	}
	require.NotZero(t, caught, "nobody overspent without a lock: the test is no test")
}

func fightFor(t *testing.T, role string, rounds int) (passed []int) {
	path := filepath.Join(t.TempDir(), "spend.db")
	var fighters []*child
	for range 8 {
		c := startChild(t, role, path)
		require.Equal(t, "ready", c.hear())
		fighters = append(fighters, c)
	}
	for round := range rounds {
		for _, c := range fighters {
			c.say("round-" + strconv.Itoa(round))
		}
		sum := 0
		for _, c := range fighters {
			n, err := strconv.Atoi(c.hear())
			require.NoError(t, err)
			sum += n
		}
		passed = append(passed, sum)
	}
	return passed
}

// A process that is stopped, however long, keeps what it holds.
func TestStoppedProcessKeepsItsHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	c := startChild(t, "holder", path)
	c.say("hold")
	require.Equal(t, "<nil>", c.hear())
	c.signal(syscall.SIGSTOP)

	l := open(t, path)
	require.ErrorContains(t, take(l, budget.HoldID{Boot: 1, Seq: 1}, dollar("month"), "0.7"), "calls in flight hold the rest")
	l = reopen(t, l)
	total := totalsOf(t, l, dollar("month"))
	require.Equal(t, []int{1, 0}, []int{total.OpenHolds, total.PresumedHolds})

	c.signal(syscall.SIGCONT)
	c.say("settle")
	require.Equal(t, "-0.3 false <nil> <nil>", c.hear())
	require.Equal(t, budget.Unit/10, totalsOf(t, l, dollar("month")).Used())
}

// The holds of a process that dies become presumed while others go on, and late
// evidence still counts.
func TestDeadProcessHoldsBecomePresumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	c, l := startChild(t, "holder", path), open(t, path)
	c.say("hold")
	require.Equal(t, "<nil>", c.hear())
	c.kill()

	report, err := l.Hold(context.Background(), holdOf(budget.HoldID{Boot: 1, Seq: 1}, dollar("month"), "0.7"))
	require.ErrorContains(t, err, "0.4 of 1 USD used, call needs 0.7")
	require.NotContains(t, err.Error(), "in flight")
	require.Equal(t, []budget.Notice{{Kind: budget.NoticeRecovery, Holds: 1}}, report.Notices)
	total := totalsOf(t, l, dollar("month"))
	require.Equal(t, []int{0, 1}, []int{total.OpenHolds, total.PresumedHolds})

	report, err = l.Resolve(context.Background(), budget.HoldID{Boot: 77, Seq: 1}, budget.Settled(budget.Unit/5))
	require.NoError(t, err)
	require.Equal(t, budget.Report{Delta: -budget.Unit / 5, Late: true}, report)
	require.Equal(t, budget.Unit/5, totalsOf(t, l, dollar("month")).Used())
}

// Each threshold is told once, by one of all processes.
func TestThresholdsOnceAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	var tellers []*child
	for range 4 {
		tellers = append(tellers, startChild(t, "teller", path))
	}
	var all sync.WaitGroup
	told := make([]string, len(tellers))
	for i, c := range tellers {
		all.Go(func() {
			c.say("go")
			told[i] = c.hear()
		})
	}
	all.Wait()
	for _, c := range tellers {
		require.NoError(t, c.in.(io.Closer).Close())
		require.NoError(t, c.cmd.Wait())
	}
	// One that was crossed by an outcome that waited in memory may be left to tell.
	report, err := open(t, path).Hold(context.Background(), holdOf(budget.HoldID{Boot: 1}, dollar("month"), "0"))
	require.NoError(t, err)
	for _, n := range report.Notices {
		told = append(told, fmt.Sprint(n.Kind, n.Percent))
	}
	require.ElementsMatch(t, []string{"threshold50", "threshold80", "threshold100"}, fields(told))
}

// A threshold whose process dies before it tells anyone is told by another.
func TestThresholdOfADeadProcessIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spend.db")
	l := open(t, path)
	id := budget.HoldID{Boot: 1, Seq: 1}
	require.NoError(t, take(l, id, dollar("month"), "0.6"))
	require.NoError(t, l.do(context.Background(), func(b *books) error {
		_, err := b.resolve(id, budget.Settled(budget.Unit*6/10), "")
		return err
	}))
	l.crash(t)

	l = open(t, path)
	id.Seq++
	report, err := l.Hold(context.Background(), holdOf(id, dollar("month"), "0.1"))
	require.NoError(t, err)
	require.Equal(t, []budget.Notice{{Kind: budget.NoticeThreshold, Budget: "month", Window: report.Notices[0].Window, Percent: 50,
		Used: budget.Unit * 6 / 10, Limit: budget.Unit, Unit: "USD"}}, report.Notices)
	require.Equal(t, 1, untold(t, l), "the file does not know yet that it was told")
	require.NoError(t, l.Close())
	require.Zero(t, untold(t, open(t, path)))
}

func untold(t *testing.T, l *Ledger) (n int) {
	require.NoError(t, l.view(context.Background(), func(b *books) { n = int(b.number("SELECT count(*) FROM alert")) }))
	return n
}

package sqliteledger

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/budget"
)

// Some tests need other processes: this test binary, told by its environment what to
// do. A child reads commands from its input and answers each with a line.
const childEnv = "OUTLAY_LEDGER_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		children[role](os.Args[1])
		return
	}
	flag.Parse()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && flag.Lookup("test.bench").Value.String() == "" {
		// A disk in memory: power loss is tested below SQLite, all else needs no real sync.
		must(0, os.Setenv("TMPDIR", "/dev/shm"))
	}
	goleak.VerifyTestMain(m)
}

// diskDir is a directory on a real disk.
var diskDir = os.TempDir()

var children = map[string]func(path string){
	"sender": sender, "fighter": fighter, "cheat": cheat, "holder": holder, "teller": teller, "filler": filler,
}

// child is a running child process.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startChild(t testing.TB, role, path string, env ...string) *child {
	c := &child{t: t, cmd: exec.Command(os.Args[0], path)}
	c.cmd.Env = append(os.Environ(), append(env, childEnv+"="+role)...)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.in, c.out = in, bufio.NewScanner(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	return c
}

func (c *child) say(line string) {
	_, err := fmt.Fprintln(c.in, line)
	require.NoError(c.t, err)
}

// hear returns the next line.
func (c *child) hear() string {
	require.True(c.t, c.out.Scan(), "the child says nothing more: %v", c.out.Err())
	return c.out.Text()
}

func (c *child) signal(s syscall.Signal) { require.NoError(c.t, c.cmd.Process.Signal(s)) }

// kill ends the child as kill -9 does.
func (c *child) kill() {
	c.signal(syscall.SIGKILL)
	_ = c.cmd.Wait()
}

// The other side.

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return v
}

func mustOpen(path string) *Ledger { return must(Open(path)) }

// commands calls f for every line of the input.
func commands(f func(line string)) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		f(in.Text())
	}
}

func dollar(name string) budget.Budget {
	b := budget.PerMonth(budget.Unit)
	b.Name = name
	return b
}

// sender spends from a budget over HTTP until there is nothing left. The answer to a
// call says what it cost.
func sender(path string) {
	l := mustOpen(path)
	var work sync.WaitGroup
	var seq atomic.Uint64
	boot := rand.Uint64()
	for range 4 {
		work.Go(func() {
			for send(l, budget.HoldID{Boot: boot, Seq: seq.Add(1)}) {
			}
		})
	}
	work.Wait()
	must(0, l.Close())
}

func send(l *Ledger, id budget.HoldID) (more bool) {
	ctx := context.Background()
	amount := budget.Unit/1000 + budget.Amount(rand.Int64N(int64(budget.Unit/250)))
	_, err := l.Hold(ctx, budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{{Budget: dollar("month"), Amount: amount}}})
	if over, ok := errors.AsType[*budget.ExceededError](err); ok {
		return over.Busy
	}
	must(0, err)
	answer := must(http.Post(os.Getenv("OUTLAY_URL"), "text/plain", strings.NewReader(amount.String())))
	defer answer.Body.Close()
	cost := must(budget.Parse(string(must(io.ReadAll(answer.Body)))))
	must(l.Resolve(ctx, id, budget.Settled(cost)))
	return true
}

// fighter holds three cents as often as it can with eight goroutines, for each budget
// that it is told.
func fighter(path string) {
	fight(path, func(l *Ledger, id budget.HoldID, b budget.Budget) error {
		return take(l, id, b, "0.03")
	})
}

// cheat looks first and takes then, as one would without a ledger's one atomic step.
func cheat(path string) {
	fight(path, func(l *Ledger, id budget.HoldID, b budget.Budget) error {
		totals := must(l.Totals(context.Background(), time.Now(), b))
		if totals[0].Available() < budget.MustParse("0.03") {
			return errors.New("nothing left")
		}
		b.Monitor = true
		return take(l, id, b, "0.03")
	})
}

func fight(path string, try func(*Ledger, budget.HoldID, budget.Budget) error) {
	l := mustOpen(path)
	boot, seq := rand.Uint64(), atomic.Uint64{}
	fmt.Println("ready")
	commands(func(name string) {
		var passed atomic.Int64
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				for range 8 {
					if try(l, budget.HoldID{Boot: boot, Seq: seq.Add(1)}, dollar(name)) == nil {
						passed.Add(1)
					}
				}
			})
		}
		work.Wait()
		fmt.Println(passed.Load())
	})
	must(0, l.Close())
}

func take(l *Ledger, id budget.HoldID, b budget.Budget, amount string) error {
	_, err := l.Hold(context.Background(), holdOf(id, b, amount))
	return err
}

// holder holds 0.4 dollars at the first command and settles them at the second.
func holder(path string) {
	l := mustOpen(path)
	id := budget.HoldID{Boot: 77, Seq: 1}
	commands(func(line string) {
		switch line {
		case "hold":
			fmt.Println(take(l, id, dollar("month"), "0.4"))
		case "settle":
			report, err := l.Resolve(context.Background(), id, budget.Settled(budget.Unit/10))
			fmt.Println(report.Delta, report.Late, err, l.Close())
		}
	})
}

// teller spends a dollar with others, and says which thresholds it was told of.
func teller(path string) {
	l := mustOpen(path)
	boot := rand.Uint64()
	commands(func(string) {
		var told []string
		note := func(r budget.Report) {
			for _, n := range r.Notices {
				told = append(told, fmt.Sprint(n.Kind, n.Percent))
			}
		}
		var refused error
		for seq := uint64(0); refused == nil; seq++ {
			var report budget.Report
			id := budget.HoldID{Boot: boot, Seq: seq}
			report, refused = l.Hold(context.Background(), holdOf(id, dollar("month"), "0.01"))
			note(report)
			if refused == nil {
				note(must(l.Resolve(context.Background(), id, budget.Settled(budget.Unit/100))))
			}
		}
		fmt.Println(strings.Join(told, " "))
	})
	must(0, l.Close())
}

// filler holds until the file may not grow any more, says why it cannot go on, and goes
// on when there is space again.
func filler(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	l := mustOpen(path)
	var old syscall.Rlimit
	must(0, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	must(0, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 300_000, Max: old.Max}))
	b := dollar("month")
	var seq uint64
	next := func() error {
		seq++
		return take(l, budget.HoldID{Boot: 1, Seq: seq}, b, "0.0001")
	}
	var err error
	for err == nil && seq < 5000 {
		err = next()
	}
	fmt.Println(errors.Is(err, budget.ErrUnavailable), faultOf(err), next() != nil)
	held := seq - 2
	must(l.Resolve(context.Background(), budget.HoldID{Boot: 1, Seq: 1}, budget.Voided("not_sent")))
	must(0, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	fmt.Println(next())
	totals := must(l.Totals(context.Background(), time.Now(), b))
	fmt.Println(totals[0].OpenHolds == int(held))
	must(0, l.Close())
}

func faultOf(err error) Fault {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	return ""
}

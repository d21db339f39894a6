package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// fleet is the workers and what they share.
type fleet struct {
	fake    *vendortest.Fake
	store   *server
	limit   budget.Amount
	out     io.Writer
	workers [processes]*exec.Cmd
	lives   int
	// unreported is what workers spent that died before the books were lost: nobody is
	// left to report it, so that it may be spent once more.
	unreported budget.Amount
	dead       []string // the numbers of those who died
}

// start starts a worker, who has a number of its own in each life.
func (f *fleet) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f.lives++
	p := exec.Command(self)
	p.Env = append(os.Environ(), workerAddr+"="+strings.TrimPrefix(f.fake.URL(), "http://"), workerRedis+"="+f.store.addr,
		workerTo+"="+fmt.Sprintf("+1202555%04d", f.lives), workerLimit+"="+f.limit.String())
	p.Stderr = os.Stderr
	f.workers[i] = p
	return p.Start()
}

// kill ends a worker as a crash would.
func (f *fleet) kill(i int) {
	p := f.workers[i]
	for _, v := range p.Env {
		if to, ok := strings.CutPrefix(v, workerTo+"="); ok {
			f.dead = append(f.dead, to)
		}
	}
	_ = p.Process.Kill()
	_ = p.Wait() // it was killed
	f.workers[i] = nil
}

// stop ends all workers; gently, they sign off.
func (f *fleet) stop(gently bool) {
	for i, p := range f.workers {
		if p == nil {
			continue
		}
		if gently {
			_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
		} else {
			_ = p.Process.Kill()
		}
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = p.Wait() // how it ended shows in the books
		f.workers[i] = nil
	}
}

// spentBy is what the vendor billed for these numbers.
func (f *fleet) spentBy(numbers []string) (sum budget.Amount) {
	for _, line := range f.fake.Invoice().Lines {
		for _, to := range numbers {
			if line.To == to {
				sum += line.Amount
			}
		}
	}
	return sum
}

// fault is something that goes wrong after a part of the time.
type fault struct {
	percent int
	what    string
	do      func() error
}

func (f *fleet) faults(ctx context.Context) []fault {
	signal := func(i int, s syscall.Signal) func() error {
		return func() error { return f.workers[i].Process.Signal(s) }
	}
	return []fault{
		{30, "worker 1 is killed", func() error { f.kill(0); return nil }},
		{40, "worker 1 starts again", func() error { return f.start(0) }},
		{45, "worker 2 is stopped", signal(1, syscall.SIGSTOP)},
		{55, "worker 2 goes on", signal(1, syscall.SIGCONT)},
		{60, "Redis is killed", func() error { f.store.kill(); return nil }},
		{65, "Redis starts again", f.store.start},
		{75, "Redis is flushed", func() error {
			err := f.store.flush(ctx)
			f.unreported = f.spentBy(f.dead)
			return err
		}},
	}
}

// play lets the time pass, and things go wrong.
func (f *fleet) play(ctx context.Context, o options) error {
	begin := time.Now()
	todo := f.faults(ctx)
	if o.calm {
		todo = nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before vendortest.Counts
	for second := 1; ; second++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		var news []string
		passed := time.Since(begin)
		for len(todo) > 0 && passed >= o.lasts*time.Duration(todo[0].percent)/100 {
			news = append(news, todo[0].what)
			if err := todo[0].do(); err != nil {
				return fmt.Errorf("%s: %w", todo[0].what, err)
			}
			todo = todo[1:]
		}
		c := f.fake.Counts()
		fmt.Fprintf(f.out, "%3d s  sent %3d  rejected %2d  spent %8v of %v  %s\n", second,
			c.Accepted-before.Accepted, c.Throttled-before.Throttled, f.fake.Invoice().Total, f.limit, strings.Join(news, ", "))
		before = c
		if passed >= o.lasts {
			return nil
		}
	}
}

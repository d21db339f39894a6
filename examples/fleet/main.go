// Fleet is six processes that share one vendor of text messages and one budget
// through Redis, while things go wrong: a process is killed and started again, another
// is stopped and continued, Redis is killed and started again, and then it is flushed.
//
//	go run ./examples/fleet            # thirty seconds; needs redis-server
//	go run ./examples/fleet -calm      # the same without faults
//
// Each second shows what was sent, what the vendor rejected and what it has billed; the
// last line compares its invoice with the books.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/redisledger"
	"github.com/outlay-go/outlay/transport/vendortest"
)

func main() {
	if os.Getenv(workerAddr) != "" {
		os.Exit(worker(os.Stderr))
	}
	o := options{}
	flag.DurationVar(&o.lasts, "for", 30*time.Second, "how long")
	flag.BoolVar(&o.calm, "calm", false, "without faults")
	flag.Parse()
	r, err := run(context.Background(), o, os.Stdout)
	if err == nil {
		err = r.wrong()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	lasts time.Duration
	calm  bool
}

const (
	processes = 6
	perSecond = 50 // that the fleet sends; the vendor allows ten more
)

// learn is for how long nothing is granted when the books are new or were lost.
const learn = 2500 * time.Millisecond

// result is what the last line says.
type result struct {
	calm                   bool
	rejected               int
	invoice, limit         budget.Amount
	settled, used          budget.Amount
	sent                   int
	overshoot, atMost, bad budget.Amount
}

// run plays one fleet and prints what happens.
func run(ctx context.Context, o options, out io.Writer) (result, error) {
	fake := vendortest.NewSMS(vendortest.Options{Price: each, Limit: vendortest.Limit{Requests: perSecond + 10, Window: time.Second}})
	defer fake.Close()
	store, err := startRedis()
	if err != nil {
		return result{}, err
	}
	defer store.remove()
	f := &fleet{fake: fake, store: store, limit: limitFor(o.lasts), out: out}
	defer f.stop(false)
	for i := range processes {
		if err := f.start(i); err != nil {
			return result{}, err
		}
	}
	if err := f.play(ctx, o); err != nil {
		return result{}, err
	}
	f.stop(true)
	return f.compare(ctx, o.calm)
}

// limitFor is money that ends a little after the books were lost.
func limitFor(d time.Duration) budget.Amount {
	return budget.Amount((d*3/4-learn).Seconds()*perSecond) * each
}

// compare is the last line.
func (f *fleet) compare(ctx context.Context, calm bool) (result, error) {
	client := redis.NewClient(&redis.Options{Addr: f.store.addr})
	defer client.Close()
	ledger, err := redisledger.New(client, redisledger.Options{Timeout: time.Second})
	if err != nil {
		return result{}, err
	}
	defer ledger.Close()
	all, err := ledger.Totals(ctx, time.Now(), shared(f.limit))
	if err != nil {
		return result{}, err
	}
	r := result{
		calm: calm, rejected: f.fake.Counts().Throttled, invoice: f.fake.Invoice().Total, limit: f.limit, sent: f.fake.Counts().Accepted,
		settled: all[0].Settled, used: all[0].Used(), atMost: f.unreported,
	}
	r.overshoot = max(0, r.invoice-f.limit)
	r.bad = max(0, r.invoice-r.used-f.unreported)
	_, err = fmt.Fprintf(f.out, "provider rejections %d; invoice %v, books %v to %v; overshoot %v of at most %v beyond the limit of %v\n",
		r.rejected, r.invoice, r.settled, r.used, r.overshoot, r.atMost, r.limit)
	return r, err
}

// wrong says what must never be.
func (r result) wrong() error {
	switch {
	case r.sent == 0:
		return fmt.Errorf("nothing was sent")
	case r.overshoot > r.atMost:
		return fmt.Errorf("overshoot of %v, where at most %v may be", r.overshoot, r.atMost)
	case r.bad > 0:
		return fmt.Errorf("%v of the invoice is not in the books", r.bad)
	case r.calm && r.rejected > 0:
		return fmt.Errorf("%d messages were rejected without a fault", r.rejected)
	case r.calm && r.invoice != r.used:
		return fmt.Errorf("invoice %v, books %v", r.invoice, r.used)
	}
	return nil
}

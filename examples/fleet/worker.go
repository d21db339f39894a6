package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
	"github.com/outlay-go/outlay/budget/redisledger"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/dialect"
)

// What a worker is told in its environment.
const (
	workerAddr  = "FLEET_VENDOR"
	workerRedis = "FLEET_REDIS"
	workerTo    = "FLEET_TO" // the number that it sends to, by which the invoice tells workers apart
	workerLimit = "FLEET_LIMIT"
)

// each is the price of a message.
const each = budget.Unit / 100

// shared is the budget of the fleet. No run meets the end of a month.
func shared(limit budget.Amount) budget.Budget {
	return budget.Budget{Name: "sms-month", Limit: limit, Every: budget.Month}
}

// worker is one process of the fleet: it sends until it is told to end.
func worker(errs io.Writer) int {
	redis.SetLogger(silent{}) // faults are the point
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := work(ctx); err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

// silent is a logger of the Redis client that says nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func work(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: os.Getenv(workerRedis)})
	defer client.Close()
	ledger, err := redisledger.New(client, redisledger.Options{Learn: learn})
	if err != nil {
		return err
	}
	defer ledger.Close()
	limiter, err := redislimiter.New(client, redislimiter.Options{HashKey: ledger.Key()})
	if err != nil {
		return err
	}
	defer limiter.Close()
	limit, err := budget.Parse(os.Getenv(workerLimit))
	if err != nil {
		return err
	}
	rt, err := transport.New(transport.Config{
		Base: toVendor(os.Getenv(workerAddr)), Ledger: ledger, Limiter: limiter,
		Providers: []transport.Provider{{
			Name: "twilio-sms", Match: []string{"api.twilio.com"}, Dialect: dialect.For("twilio"),
			Rates:   []throttle.Rate{{N: perSecond, Per: time.Second, Strict: true}},
			Price:   price.SMS{Segment: each},
			Budgets: []budget.Budget{shared(limit)}, MaxWait: 2 * time.Second,
		}},
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { send(ctx, rt.Client(), i) })
	}
	wg.Wait()
	return nil
}

// send sends one message after the other. What is refused is tried again a little later.
func send(ctx context.Context, client *http.Client, line int) {
	for i := 0; ctx.Err() == nil; i++ {
		form := url.Values{"To": {os.Getenv(workerTo)}, "From": {"+12025550100"}, "Body": {fmt.Sprintf("%d-%d-%d", os.Getpid(), line, i)}}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", strings.NewReader(form.Encode()))
		if err != nil {
			return
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // it is short
			_ = resp.Body.Close()
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// toVendor brings all calls to the fake vendor, in the clear.
func toVendor(addr string) http.RoundTripper {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return &http.Transport{DialContext: dial, DialTLSContext: dial, MaxIdleConnsPerHost: 16}
}

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

var cent = budget.Unit / 100

// slowly is a plan by which the first n requests are taken and billed, and answered late.
func slowly(n int, late time.Duration) vendortest.Faults {
	f := vendortest.Faults{SlowFor: late}
	for range n {
		f.Script = append(f.Script, vendortest.Slow)
	}
	return f
}

// Fifty calls are at the vendor when the gateway is killed: they are billed, and nobody
// hears of it. The next process counts them as spent.
func TestKilledWithCallsAtTheVendor(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent, Faults: slowly(50, time.Minute)})
	defer fake.Close()
	config := where(t, head+"providers:\n"+twilio(fake.URL(), "    budgets: {day: {limit: 1.00 USD, every: rolling 24h}}\n"))
	p := launch(t, config)
	answers := p.messages(t.Context(), 0, 50)
	until(t, "all are at the vendor", func() bool { return fake.Counts().Accepted == 50 })
	p.kill()
	assert.Equal(t, map[int]int{0: 50}, statuses(answers), "nobody is told that it went well")

	p = launch(t, config)
	b := p.status().Budgets[0]
	assert.Equal(t, 50*cent, b.Presumed)
	assert.GreaterOrEqual(t, b.Presumed+b.Settled+b.Held, fake.Invoice().Total, "booked is at least what was billed")

	assert.Equal(t, map[int]int{201: 50}, statuses(p.messages(t.Context(), 50, 100)), "the rest of the dollar")
	assert.Equal(t, map[int]int{402: 10}, statuses(p.messages(t.Context(), 100, 110)), "and not one more")
	assert.Equal(t, budget.Unit, fake.Invoice().Total)
	assert.Zero(t, fake.Counts().Double)
}

// Two hundred calls wait when the gateway is killed. Nothing of them was sent, so nothing
// is presumed.
func TestKilledWithCallsInTheQueue(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent})
	defer fake.Close()
	config := where(t, head+"providers:\n"+twilio(fake.URL(), "    rates: [1/min]\n    max_wait: 24h\n    budgets: {day: {limit: 100 USD, every: rolling 24h}}\n"))
	p := launch(t, config)
	require.Equal(t, 201, p.message(t.Context(), 0).status)
	answers := p.messages(t.Context(), 1, 201)
	until(t, "all wait", func() bool { return p.queued("twilio") == 200 })
	p.kill()
	assert.Equal(t, map[int]int{0: 200}, statuses(answers))

	p = launch(t, config)
	b := p.status().Budgets[0]
	assert.Equal(t, cent, b.Settled)
	assert.Zero(t, b.Presumed)
	assert.Zero(t, b.Held)
	assert.Equal(t, 1, fake.Counts().Received)
}

func TestSigtermFinishesWhatWasSent(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent, Faults: slowly(20, time.Second)})
	defer fake.Close()
	config := where(t, head+"providers:\n"+twilio(fake.URL(), "    max_in_flight: 20\n    max_wait: 1m\n    budgets: {day: {limit: 100 USD, every: rolling 24h}}\n"))
	p := launch(t, config)
	sent := p.messages(t.Context(), 0, 20)
	until(t, "twenty are at the vendor", func() bool { return fake.Counts().Accepted == 20 })
	begin := time.Now()
	waiting := p.messages(t.Context(), 20, 120)
	until(t, "a hundred wait", func() bool { return p.queued("twilio") == 100 })
	if time.Since(begin) > 700*time.Millisecond {
		t.Log("this machine is slow: the calls may be answered before the signal")
	}
	begin = time.Now()
	p.signal(syscall.SIGTERM)
	refused := 0
	for a := range waiting {
		if a.status == 503 {
			refused++
			assert.Equal(t, "shutting_down", a.problem("reason"))
			assert.Equal(t, "false", a.problem("sent"))
		}
	}
	assert.Less(t, time.Since(begin), time.Second, "those who wait are told at once")
	assert.Equal(t, 100, refused)
	assert.Equal(t, map[int]int{201: 20}, statuses(sent))
	assert.Zero(t, p.exit(), p.text())
	assert.Less(t, time.Since(begin), 4*time.Second)

	p = launch(t, config)
	b := p.status().Budgets[0]
	assert.Equal(t, 20*cent, b.Settled, "all was settled before it ended")
	assert.Zero(t, b.Presumed)
}

// A second signal does not wait for the grace period.
func TestSecondSignalEndsItNow(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent, Faults: slowly(1, time.Minute)})
	defer fake.Close()
	config := where(t, head+"shutdown: 5m\nproviders:\n"+twilio(fake.URL(), "    budgets: {day: {limit: 100 USD, every: rolling 24h}}\n"))
	p := launch(t, config)
	sent := p.messages(t.Context(), 0, 1)
	until(t, "it is at the vendor", func() bool { return fake.Counts().Accepted == 1 })
	p.signal(syscall.SIGTERM)
	until(t, "it is not ready any more", func() bool {
		return send(t.Context(), "GET", p.admin+"/readyz", "").status == 503
	})
	begin := time.Now() // after the gateway's own
	assert.Equal(t, 200, send(t.Context(), "GET", p.admin+"/healthz", "").status)
	until(t, "a second has gone by", func() bool { return time.Since(begin) > sameSignal })
	p.signal(syscall.SIGTERM)
	assert.Equal(t, failed, p.exit())
	for a := range sent { // some hear it before the end
		assert.Contains(t, []int{0, 504}, a.status)
	}
	p = launch(t, config)
	assert.Equal(t, cent, p.status().Budgets[0].Presumed)
}

// A terminal and some supervisors tell the process and its group: that is one signal.
func TestOneSignalThatComesTwice(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent, Faults: slowly(1, 2*time.Second)})
	defer fake.Close()
	p := launch(t, where(t, head+"providers:\n"+twilio(fake.URL(), "    budgets: {day: {limit: 100 USD, every: rolling 24h}}\n")))
	sent := p.messages(t.Context(), 0, 1)
	until(t, "it is at the vendor", func() bool { return fake.Counts().Accepted == 1 })
	begin := time.Now()
	p.signal(syscall.SIGTERM)
	until(t, "it is not ready any more", func() bool {
		return send(t.Context(), "GET", p.admin+"/readyz", "").status == 503
	})
	p.signal(syscall.SIGINT)
	p.signal(syscall.SIGTERM)
	if time.Since(begin) > sameSignal/2 {
		t.Log("the machine is slow: the second may have come too late")
	}
	assert.Equal(t, map[int]int{201: 1}, statuses(sent))
	assert.Equal(t, done, p.exit())
}

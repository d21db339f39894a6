package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/vendortest"
)

// A budget whose name the books have with another period would have every call refused: no
// command takes such a file, and a gateway that runs stays with the one it has.
func TestABudgetThatContradictsTheBooks(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	file := func(budgets string) string {
		return head + "providers:\n" + twilio(fake.URL(), "    budgets: {"+budgets+"}\n")
	}
	good := file("all: {limit: 9 USD, every: day}, each: {limit: 9 USD, every: day, zone: Europe/Berlin, per: caller}")
	config := where(t, good)
	p := launch(t, config)
	require.Equal(t, 201, p.message(t.Context(), 1).status)
	require.Zero(t, p.stop())

	const forEver = "one name is one period, zone and currency for ever; give the budget a new name\n"
	for _, c := range []struct{ old, new, want string }{
		{"every: day}", "every: week}", "outlay.yaml:12:42: budget all: every changed from day: " + forEver},
		{"every: day}", "every: day, zone: Asia/Tokyo}", "outlay.yaml:12:53: budget all: zone changed from UTC: " + forEver},
		{"all: {limit: 9 USD", "all: {limit: 9 calls", "outlay.yaml:12:28: budget all: currency changed from USD: " + forEver},
		{"every: day, zone", "every: month, zone", "outlay.yaml:12:76: budget each: every changed from day: " + forEver},
	} {
		write(t, config, strings.Replace(good, c.old, c.new, 1))
		want := strings.TrimSuffix(config, "outlay.yaml") + c.want
		for _, args := range [][]string{{"check"}, {"run"}, {"explain", "GET /twilio/2010-04-01/Accounts/AC1/Messages.json"}} {
			out, code := run1(t, append(args, "-config", config)...)
			assert.Equal(t, failed, code, args)
			assert.True(t, strings.HasSuffix(out, want) && strings.Count(out, "for ever") == 1, "%v: %s", args, out)
		}
	}

	// A name that is new to the running configuration, and not to the books.
	write(t, config, file("each: {limit: 9 USD, every: day, zone: Europe/Berlin, per: caller}"))
	p = launch(t, config)
	write(t, config, file("all: {limit: 9 USD, every: week}"))
	a := p.reloads()
	assert.Equal(t, 422, a.status)
	assert.Contains(t, a.body, "budget all: every changed from day")
	assert.Equal(t, 201, p.message(t.Context(), 2).status, "the one before is in force")
	write(t, config, file("anew: {limit: 9 USD, every: week}"))
	assert.Equal(t, 200, p.reloads().status)
	out, code := run1(t, "check", "-config", config)
	assert.Zero(t, code, out)
	p.signal(syscall.SIGTERM)
	assert.Zero(t, p.exit())
}

// Each refusal has one line, at WARN.
func TestARefusalIsLoggedOnce(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	text := head + "providers:\n" + twilio(fake.URL(), "    budgets: {all: {limit: 0.01 USD, every: day}}\n")
	for _, calls := range []string{"all", "refusals", "none"} {
		p := launch(t, where(t, strings.Replace(text, "calls: none", "calls: "+calls, 1)))
		require.Equal(t, 201, p.message(t.Context(), 1).status)
		require.Equal(t, 402, p.message(t.Context(), 2).status)
		require.Zero(t, p.stop())
		var lines []string
		for line := range strings.Lines(p.text()) {
			if strings.Contains(line, `"reason":"exhausted"`) {
				lines = append(lines, line)
			}
		}
		require.Len(t, lines, 1, calls)
		for _, member := range []string{`"level":"WARN"`, `"budget":"all"`, `"used":"0.01"`, `"need":"0.01"`, `"limit":"0.01"`, `"retry_at":"`} {
			assert.Contains(t, lines[0], member, calls)
		}
	}
}

// Two gateways share books that are empty when they start, and do not mean the same: the one
// that comes later is told what it is, and that a repeat is of no use.
func TestBooksThatContradictLater(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	text := strings.Replace(head, "calls: none", "calls: all", 1) + "providers:\n" + twilio(fake.URL(), "    budgets: {all: {limit: 9 USD, every: PERIOD}}\n")
	config := where(t, strings.Replace(text, "PERIOD", "day", 1))
	first := launch(t, config)
	other := strings.TrimSuffix(config, ".yaml") + "-2.yaml"
	write(t, other, strings.Replace(text, "PERIOD", "week", 1))
	second := launch(t, other)
	require.Equal(t, 201, first.message(t.Context(), 1).status)
	a := second.message(t.Context(), 2)
	assert.Equal(t, 503, a.status)
	assert.Equal(t, "The configuration contradicts the ledger", a.problem("title"))
	assert.Contains(t, a.problem("detail"), "budget all is in USD per day in UTC, not in USD per week in UTC")
	assert.Empty(t, a.header.Get("Retry-After"))
	assert.Equal(t, "false", a.header.Get("X-Should-Retry"))
	second.says(`"detail":"budget: conflict with what the ledger holds: budget all is in USD per day in UTC, not in USD per week in UTC"`)
	ready := send(t.Context(), "GET", second.admin+"/readyz", "")
	assert.Equal(t, 503, ready.status)
	assert.Contains(t, ready.body, "a budget contradicts the ledger")
	assert.Contains(t, ready.body, "budget all is in USD per day in UTC")
	assert.Equal(t, 200, send(t.Context(), "GET", first.admin+"/readyz", "").status)
	assert.Equal(t, 1, fake.Counts().Received)
}

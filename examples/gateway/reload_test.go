package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport/vendortest"
)

// traffic is callers that send one message after the other until they are stopped.
type traffic struct {
	n, bad atomic.Int64
	stop   context.CancelFunc
	all    sync.WaitGroup
}

func (p *process) traffic(callers int) *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	x := &traffic{stop: cancel}
	for range callers {
		x.all.Go(func() {
			for ctx.Err() == nil {
				a := p.message(context.Background(), int(x.n.Add(1)))
				if a.status != 201 {
					x.bad.Add(1)
					p.t.Logf("status %d: %s %v", a.status, a.body, a.err)
				}
			}
		})
	}
	return x
}

// rate is how many requests arrive at the vendor in a second, over some time.
func rate(fake *vendortest.Fake, over time.Duration) float64 {
	before, begin := fake.Counts().Received, time.Now()
	<-time.After(over)
	return float64(fake.Counts().Received-before) / time.Since(begin).Seconds()
}

// The file changes while forty callers send without a pause: no call is lost, those who wait
// are re-timed, and a bad file changes nothing.
func TestReloadUnderLoad(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	at := func(rates string) string {
		return head + "providers:\n" + twilio(fake.URL(), "    rates: ["+rates+"]\n    max_wait: 20s\n    budgets: {day: {limit: 100 USD, every: rolling 24h}}\n")
	}
	config := where(t, at("100/s"))
	p := launch(t, config)
	callers := p.traffic(40)
	within := func(what string, least, most float64) {
		t.Helper()
		r := rate(fake, 1500*time.Millisecond)
		t.Logf("%s: %.0f/s", what, r)
		assert.True(t, least <= r && r <= most, "%s: %.0f/s, want %.0f to %.0f", what, r, least, most)
	}
	within("100/s", 50, 115)

	written := time.Now()
	write(t, config, at("30/s")) // nobody is told: it looks
	p.says("the configuration was reloaded")
	assert.Less(t, time.Since(written), lookEvery+lookAgain+8*time.Second, "on a busy machine")
	assert.LessOrEqual(t, lookEvery+lookAgain, 2200*time.Millisecond, "about two seconds")
	within("30/s", 20, 40)

	write(t, config, strings.Replace(at("30/s"), "[30/s]", "[30]", 1))
	answer := p.reloads()
	assert.Equal(t, 422, answer.status)
	var said struct{ Problems []string }
	require.NoError(t, json.Unmarshal([]byte(answer.body), &said))
	require.Len(t, said.Problems, 1)
	assert.True(t, strings.HasSuffix(said.Problems[0], `outlay.yaml:12:13: rate "30" has no unit: write 30/s, 30/min or 30/day`), said.Problems[0])
	assert.Equal(t, "0", p.metric("outlay_config_reload_success"))
	assert.Equal(t, 200, send(t.Context(), "GET", p.admin+"/readyz", "").status, "a bad file is no reason to stop")
	p.says("outlay.yaml:12:13")
	within("a bad file", 20, 40)

	write(t, config, at("60/s"))
	p.signal(syscall.SIGHUP)
	until(t, "the signal", func() bool { return p.metric("outlay_config_reload_success") == "1" })
	within("60/s", 42, 72)

	callers.stop()
	callers.all.Wait()
	assert.Zero(t, callers.bad.Load(), "calls failed")
	assert.Equal(t, int(callers.n.Load()), fake.Counts().Accepted)
	assert.Zero(t, fake.Counts().Double)
}

func TestReloadThatRemovesAProvider(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Faults: slowly(5, 2*time.Second)})
	defer fake.Close()
	other := vendortest.NewGitHub(vendortest.Options{})
	defer other.Close()
	stays := "  github: {preset: github, upstream: \"" + other.URL() + "\", allow_private: true}\n"
	config := where(t, head+"providers:\n"+stays+twilio(fake.URL(), "    max_in_flight: 5\n    max_wait: 1m\n    budgets: {day: {limit: 100 USD, every: rolling 24h}}\n"))
	p := launch(t, config)
	sent := p.messages(t.Context(), 0, 5)
	until(t, "five are at the vendor", func() bool { return fake.Counts().Accepted == 5 })
	waiting := p.messages(t.Context(), 5, 55)
	until(t, "fifty wait", func() bool { return p.queued("twilio") == 50 })

	write(t, config, head+"providers:\n"+stays)
	require.Equal(t, 200, p.reloads().status)
	n := 0
	for a := range waiting {
		if a.status == 503 && a.problem("reason") == "provider_removed" && a.problem("sent") == "false" {
			n++
		}
	}
	assert.Equal(t, 50, n)
	assert.Equal(t, map[int]int{201: 5}, statuses(sent))
	assert.Equal(t, 5, fake.Counts().Accepted)
	assert.Equal(t, 404, p.message(t.Context(), 99).status)
	assert.Equal(t, 200, send(t.Context(), "GET", p.calls+"/github/repos/a/b", "").status, "the other provider sees nothing of it")
}

// What cannot change while it runs refuses the whole file, also what else is new in it.
func TestReloadThatNeedsARestart(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	good := head + "providers:\n" + twilio(fake.URL(), "    max_in_flight: 5\n    budgets: {day: {limit: 100 USD, every: day, zone: America/New_York}}\n")
	config := where(t, good)
	p := launch(t, config)
	for _, c := range []struct{ old, new, want string }{
		{"path: spend.db", "path: other.db", "ledger.path changed from"},
		{"zone: America/New_York", "zone: Europe/Berlin", "budget day: zone changed from America/New_York"},
		{`listen: [{address: "127.0.0.1:0"}]`, `listen: [{address: "127.0.0.1:0"}, {address: "127.0.0.1:0"}]`, "listen changed"},
	} {
		write(t, config, strings.Replace(strings.Replace(good, c.old, c.new, 1), "max_in_flight: 5", "frozen: true", 1))
		a := p.reloads()
		assert.Equal(t, 422, a.status)
		assert.Contains(t, a.body, c.want)
		assert.Contains(t, a.body, "nothing of the new file was applied")
		assert.Equal(t, 201, p.message(t.Context(), 1).status)
	}
	write(t, config, strings.Replace(good, "max_in_flight: 5", "frozen: true", 1))
	require.Equal(t, 200, p.reloads().status)
	a := p.message(t.Context(), 2)
	assert.Equal(t, 503, a.status)
	assert.Equal(t, "frozen", a.problem("reason"))
}

// A plan changes by a reload: what was spent stays spent.
func TestPlansOfTenants(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{Price: cent})
	defer fake.Close()
	at := func(member string) string {
		return head + `callers: {local: {may_set: [tenant]}}
tenants:
  from: header Outlay-Tenant
  default: free
  members: {acme: ` + member + `}
  plans:
    free: {twilio: {budget: {limit: 0.02 USD, every: rolling 24h}}}
    premium: {twilio: {rates: [100/s burst 10], budget: {limit: 0.05 USD, every: rolling 24h}}}
providers:
` + twilio(fake.URL(), "")
	}
	config := where(t, at("free"))
	p := launch(t, config)
	accepted := func(tenant string) (n int) {
		for range 10 {
			a := send(t.Context(), "POST", p.calls+"/twilio/2010-04-01/Accounts/AC1/Messages.json", "To=%2B12025550123&From=%2B12025550100&Body=Hi", "Outlay-Tenant", tenant)
			switch a.status {
			case 201:
				n++
			case 402:
				assert.Equal(t, "exhausted", a.problem("reason"))
			default:
				assert.Fail(t, "another status", "%d %s %v", a.status, a.body, a.err)
			}
		}
		return n
	}
	assert.Equal(t, 2, accepted("acme"))
	assert.Equal(t, 2, accepted("somebody"))
	assert.Equal(t, 2, accepted("somebody else"), "each has a budget of their own")
	write(t, config, at("premium"))
	require.Equal(t, 200, p.reloads().status)
	assert.Equal(t, 3, accepted("acme"), "five in all")
	assert.Zero(t, accepted("somebody"))
	assert.Equal(t, 9, fake.Counts().Accepted)
}

// Changes ask for the token, and a page of the web cannot ask for any.
func TestWhoMayReload(t *testing.T) {
	config := where(t, head+"providers: {github: {preset: github}}\n")
	p := launch(t, config)
	for _, c := range []struct {
		want int
		h    []string
	}{
		{401, []string{"Content-Type", "application/json"}},
		{401, []string{"Content-Type", "application/json", "Authorization", "Bearer wrong"}},
		{415, []string{"Content-Type", "text/plain", "Authorization", "Bearer " + adminToken}},
		{200, []string{"Content-Type", "application/json", "Authorization", "Bearer " + adminToken}},
	} {
		assert.Equal(t, c.want, send(t.Context(), "POST", p.admin+"/-/reload", "{}", c.h...).status)
	}
	assert.Equal(t, 401, send(t.Context(), "POST", p.admin+"/status/admin/providers/github/freeze", "reason=because+of+a+test").status)
	a := send(t.Context(), "POST", p.admin+"/status/admin/providers/github/freeze", "reason=because+of+a+test", "Authorization", "Bearer "+adminToken)
	assert.Equal(t, 200, a.status, a.body)
	a = send(t.Context(), "GET", p.calls+"/github/repos/a/b", "")
	assert.Equal(t, 503, a.status)
	assert.Equal(t, "frozen", a.problem("reason"))
	assert.NotContains(t, p.text(), adminToken)
}

// Who looks for what stands in a file that was refused learns that it was.
func TestARefusedFileIsTold(t *testing.T) {
	good := head + "providers:\n" + twilio("http://127.0.0.1:1", "")
	config := where(t, good)
	p := launch(t, config)
	unknown := func() string { return send(t.Context(), "GET", p.calls+"/github/x", "").body }
	ready := func() string { return send(t.Context(), "GET", p.admin+"/readyz", "").body }
	page := func() string { return send(t.Context(), "GET", p.admin+"/status/", "").body }
	assert.NotContains(t, unknown(), "newer")
	assert.Equal(t, "ok\n", ready())

	write(t, config, good+"  github: {preset: github, rates: [30]}\n")
	require.Equal(t, 422, p.reloads().status)
	assert.Contains(t, unknown(), "the configuration file is newer than what is in force")
	for _, text := range []string{ready(), page(), send(t.Context(), "GET", p.admin+"/status/?format=json", "").body} {
		assert.Contains(t, text, "The configuration file was refused at 20")
		assert.Contains(t, text, "outlay.yaml:12:")
	}
	assert.Contains(t, send(t.Context(), "GET", p.admin+"/readyz", "", "X-Forwarded-For", "192.0.2.1").body, "ok\n")
	assert.NotContains(t, send(t.Context(), "GET", p.admin+"/readyz", "", "X-Forwarded-For", "192.0.2.1").body, "refused", "it is for those who may see the page")

	write(t, config, good+"  github: {preset: github, rates: [30/s]}\n")
	require.Equal(t, 200, p.reloads().status)
	assert.NotContains(t, send(t.Context(), "GET", p.calls+"/gitlab/x", "").body, "newer")
	assert.Equal(t, "ok\n", ready())
	assert.NotContains(t, page(), "file was refused")
}

// Two gateways on one file of books have one limit: both learn that their files differ.
func TestTwoConfigurationsOfOneLedger(t *testing.T) {
	fake := vendortest.NewSMS(vendortest.Options{})
	defer fake.Close()
	at := func(limit string) string {
		return head + "providers:\n" + twilio(fake.URL(), "    budgets: {day: {limit: "+limit+" USD, every: day}}\n")
	}
	first := where(t, at("100"))
	a := launch(t, first)
	require.Equal(t, 201, a.message(t.Context(), 1).status)
	second := filepath.Join(filepath.Dir(first), "second.yaml")
	write(t, second, at("50"))
	b := launch(t, second)
	b.says("this configuration says 50 USD, and another program that shares the ledger has configured 100")
	assert.Contains(t, send(t.Context(), "GET", b.admin+"/readyz", "").body, "ok\nBudget day: ")
	require.Equal(t, 201, b.message(t.Context(), 2).status)
	a.says("this configuration says 100 USD, and another program that shares the ledger has configured 50")
	assert.Equal(t, 0, b.stop())
	a.kill()
	a = launch(t, first) // alone: another limit is a new limit
	assert.NotContains(t, a.text(), "differ")
}

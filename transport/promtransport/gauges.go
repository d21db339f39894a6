package promtransport

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// The families that are read at a scrape.
var (
	budgetLimit   = desc("outlay_budget_limit_amount", "Limit of the current window.", "ledger", "budget", "unit")
	budgetUsed    = desc("outlay_budget_used_amount", "Use of the current window, by state; the sum over the states counts against the limit.", "ledger", "budget", "unit", "state")
	budgetHolds   = desc("outlay_budget_open_holds", "Holds not settled yet: in flight (held) or without evidence (presumed).", "ledger", "budget", "state")
	windowStart   = desc("outlay_budget_window_start_timestamp_seconds", "Start of the current window.", "ledger", "budget")
	windowEnd     = desc("outlay_budget_window_end_timestamp_seconds", "End of the current window.", "ledger", "budget")
	queueLength   = desc("outlay_queue_length", "Attempts waiting for their turn.", "provider", "priority")
	inFlight      = desc("outlay_in_flight_attempts", "Attempts that hold a concurrency slot.", "provider")
	inFlightLimit = desc("outlay_in_flight_attempts_limit", "Concurrency slots of the provider; absent without a limit.", "provider")
	rateTurns     = desc("outlay_rate_turns_per_second", "Configured turns per second of each rate of the default scope.", "provider", "rate")
	scopes        = desc("outlay_scopes", "Scopes with live state.", "provider")
	closedGates   = desc("outlay_closed_gates", "Scopes whose gate is closed now.", "provider")
	gateReopen    = desc("outlay_gate_reopen_timestamp_seconds", "When the last closed gate opens; 0 when all are open.", "provider")
	frozen        = desc("outlay_frozen", "1 while an operator has frozen the provider.", "provider")
	degraded      = desc("outlay_limiter_degraded", "1 while the local share replaces the shared limiter.", "provider")
	storeUp       = desc("outlay_store_up", "1 if the last operation on the store succeeded.", "store")
	storeSkew     = desc("outlay_store_clock_skew_seconds", "Local clock minus clock of the store, at the last operation.", "store")
	upstreamSkew  = desc("outlay_upstream_clock_skew_seconds", "Local clock minus Date of the last answer.", "provider")
	ledgerInfo    = desc("outlay_ledger_info", "1, with kind and mode of the ledger.", "ledger", "kind", "mode")
	buildInfo     = desc("outlay_build_info", "1, with the version of outlay and of Go.", "version", "goversion")
	collectTime   = desc("outlay_collect_duration_seconds", "Time the last collection of the gauges took.")
)

var gauges = []*prometheus.Desc{
	budgetLimit, budgetUsed, budgetHolds, windowStart, windowEnd, queueLength, inFlight, inFlightLimit, rateTurns, scopes,
	closedGates, gateReopen, frozen, degraded, storeUp, storeSkew, upstreamSkew, ledgerInfo, buildInfo, collectTime,
}

// shared is for how long scrapes that come together share one reading.
const shared = time.Second

// snapshot is what one reading found.
type snapshot struct {
	at     time.Time
	status transport.Status
	took   time.Duration
	ok     bool
}

// read returns the state now, or what another scrape read less than a second ago.
func (m *Metrics) read() snapshot {
	t := m.source.Load()
	if t == nil {
		return snapshot{}
	}
	m.reading.Lock()
	defer m.reading.Unlock()
	begin := time.Now()
	if age := begin.Sub(m.last.at); m.last.ok && age >= 0 && age < shared {
		return m.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	s, err := t.Status(ctx)
	end := time.Now()
	m.last = snapshot{end, s, end.Sub(begin), err == nil}
	if s.LedgerErr != nil {
		m.vecs.collectErrors.Inc()
	} else if s.Ledger.ID != "" {
		m.vecs.storeTime.WithLabelValues("ledger", "totals").Observe(s.Ledger.Took.Seconds())
	}
	m.learn(s)
	return m.last
}

// gauge sends constant metrics to a scrape.
type gauge chan<- prometheus.Metric

func (ch gauge) set(d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (m *Metrics) collectGauges(out chan<- prometheus.Metric) {
	ch := gauge(out)
	ch.set(buildInfo, 1, version(), runtime.Version())
	snap := m.read()
	if !snap.ok {
		return
	}
	s := snap.status
	ch.set(collectTime, snap.took.Seconds())
	ch.set(storeUp, number(s.LimiterUp), "limiter")
	if s.Ledger.ID != "" {
		ch.set(storeUp, number(s.LedgerUp && s.LedgerErr == nil), "ledger")
		ch.set(ledgerInfo, 1, s.Ledger.ID, s.Ledger.Kind, s.Ledger.Mode)
	}
	if s.LedgerErr == nil && s.Ledger.ID != "" {
		ch.set(storeSkew, s.Ledger.Skew.Seconds(), "ledger")
	}
	ledgerAway := s.LedgerErr != nil
	for i := range s.Providers {
		m.collectProvider(ch, &s.Providers[i], s.Degraded, ledgerAway)
	}
	for i := range s.Budgets {
		ch.budget(s.Ledger.ID, &s.Budgets[i])
	}
}

func (m *Metrics) collectProvider(ch gauge, p *transport.ProviderStatus, localShare, ledgerAway bool) {
	ch.set(queueLength, float64(p.Queue.Critical), p.Name, "critical")
	ch.set(queueLength, float64(p.Queue.Normal), p.Name, "normal")
	ch.set(queueLength, float64(p.Queue.Bulk), p.Name, "bulk")
	closed, reopen := 0, time.Time{}
	for i := range p.Scopes {
		if until := p.Scopes[i].GateUntil; !until.IsZero() {
			closed++
			if until.After(reopen) {
				reopen = until
			}
		}
	}
	ch.set(scopes, float64(max(0, len(p.Scopes)-1)), p.Name)
	ch.set(closedGates, float64(closed), p.Name)
	ch.set(gateReopen, seconds(reopen), p.Name)
	ch.set(degraded, number(localShare), p.Name)
	if !ledgerAway {
		ch.set(frozen, number(!p.Frozen.IsZero()), p.Name)
	}
	pm := m.provider(p.Name)
	if skew := pm.skew.Load(); skew != 0 {
		ch.set(upstreamSkew, time.Duration(skew).Seconds(), p.Name)
	}
	if len(p.Scopes) == 0 {
		return
	}
	whole := p.Scopes[0]
	ch.set(inFlight, float64(whole.InUse), p.Name)
	if whole.Slots > 0 {
		ch.set(inFlightLimit, float64(whole.Slots), p.Name)
	}
	seen := map[string]bool{}
	for _, r := range whole.Rates {
		name := fmt.Sprintf("%d/%s", r.N, short(r.Per))
		if !seen[name] { // two rates may differ in their burst alone
			seen[name] = true
			ch.set(rateTurns, float64(r.N)/r.Per.Seconds(), p.Name, name)
		}
	}
}

func (ch gauge) budget(ledger string, t *budget.Totals) {
	label, unit := t.Budget.Label, t.Budget.Unit
	ch.set(budgetLimit, units(t.Limit), ledger, label, unit)
	ch.set(budgetUsed, units(t.Settled), ledger, label, unit, "settled")
	ch.set(budgetUsed, units(t.Presumed), ledger, label, unit, "presumed")
	ch.set(budgetUsed, units(t.Held), ledger, label, unit, "held")
	ch.set(budgetHolds, float64(t.OpenHolds), ledger, label, "held")
	ch.set(budgetHolds, float64(t.PresumedHolds), ledger, label, "presumed")
	ch.set(windowStart, seconds(t.Window.Start), ledger, label)
	ch.set(windowEnd, seconds(t.Window.End), ledger, label)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// seconds is an instant as Prometheus has it; the zero time is 0.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// short writes "1m" for what Duration writes as "1m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// version is that of the module in the program.
func version() string {
	const module = "github.com/outlay-go/outlay"
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if b.Main.Path == module {
		return b.Main.Version
	}
	for _, d := range b.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "unknown"
}

// Package promtransport shows a [transport.Transport] to Prometheus.
//
//	m := promtransport.New(promtransport.Options{})
//	rt, err := transport.New(transport.Config{OnEvent: m.Observe, ...})
//	m.Watch(rt)
//	prometheus.MustRegister(m)
//
// What happens is counted when it happens; what is (limits, use, queues, gates) is read
// when Prometheus asks, through [transport.Transport.Status]. A ledger that does not
// answer means missing gauges and a counter, never an old number.
//
// # Labels
//
// Label values are names from the configuration or words of closed lists: the number of
// series is bounded by the configuration, not by traffic. There are at most 200 per
// provider, 15 per budget and 200 besides. Budgets that requests name (BudgetsFor) count
// in the metrics of their provider only.
//
// # Money
//
// Amounts are in whole units of the label unit. Never sum over unit, nor over budget: one
// call pays several. Every process that shares a ledger reports the same window, so
// aggregate over processes with max by (ledger, budget). A correction does not lower the
// spend counter: net is outlay_spend_amount_total plus the corrections up less those down.
//
// # Composition
//
// promhttp's InstrumentRoundTripper and otelhttp's transport belong below outlay, as
// Config.Base: there they see each transmission, and neither our queue nor our refusals.
//
// Alert rules and a dashboard are beside this package: outlay.rules.yaml, dashboard.json.
package promtransport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// Options sets how metrics are collected. The zero value is usable.
type Options struct {
	// Timeout bounds the reading of a ledger for one scrape. Zero: 2 s.
	Timeout time.Duration
}

// Metrics is a [prometheus.Collector]; [New] makes one. It is safe for concurrent use,
// and nothing is registered by itself.
type Metrics struct {
	timeout time.Duration
	vecs    *vectors
	source  atomic.Pointer[transport.Transport]

	mu        sync.RWMutex // guards providers and budgets
	providers map[string]*providerMetrics
	budgets   map[string]labelled // refusals, by label of the budget

	reading sync.Mutex // guards last; held while one scrape reads for all
	last    snapshot
}

var _ prometheus.Collector = (*Metrics)(nil)

// New returns metrics that know no transport yet.
func New(o Options) *Metrics {
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Second
	}
	return &Metrics{
		timeout: o.Timeout, vecs: newVectors(),
		providers: map[string]*providerMetrics{}, budgets: map[string]labelled{},
	}
}

// Watch has the gauges read from t, and creates every series of its providers and
// budgets at zero; after an Update it does that for those that are new. A second call
// replaces the transport.
func (m *Metrics) Watch(t *transport.Transport) {
	m.source.Store(t)
	m.know(t)
}

// know learns what is configured.
func (m *Metrics) know(t *transport.Transport) {
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	if s, err := t.Status(ctx); err == nil {
		m.learn(s)
	}
}

// Observe is a hook for [transport.Config.OnEvent]. After an Update it reads the ledger,
// for at most Options.Timeout.
func (m *Metrics) Observe(_ context.Context, e transport.Event) {
	switch e.Kind {
	case transport.KindStore:
		m.vecs.store(e)
		return
	case transport.KindClock:
		m.vecs.clockJumps.Inc()
		return
	case transport.KindChanged:
		if t := m.source.Load(); t != nil && e.Action == "update" {
			m.know(t)
		}
		return
	case transport.KindThreshold, transport.KindGate, transport.KindLearned:
		return
	case transport.KindRefused:
		m.budgetRefused(e)
		return
	}
	m.provider(e.Provider).observe(e)
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.vecs.all {
		c.Describe(ch)
	}
	for _, d := range gauges {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.collectGauges(ch)
	for _, c := range m.vecs.all {
		c.Collect(ch)
	}
}

// provider returns the series of a provider. Its name comes from the configuration, and
// is empty for requests that match none.
func (m *Metrics) provider(name string) *providerMetrics {
	m.mu.RLock()
	p := m.providers[name]
	m.mu.RUnlock()
	if p != nil {
		return p
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.providers[name] == nil {
		m.providers[name] = m.vecs.forProvider(name)
	}
	return m.providers[name]
}

// budgetRefused counts for configured budgets: others may be made per request.
func (m *Metrics) budgetRefused(e transport.Event) {
	if e.Budget == "" {
		return
	}
	m.mu.RLock()
	b, known := m.budgets[e.Budget]
	m.mu.RUnlock()
	if known {
		b.of(string(e.Reason)).Inc()
	}
}

// learn creates the series of what is configured.
func (m *Metrics) learn(s transport.Status) {
	unitOf := make(map[string]string, len(s.Budgets))
	for i := range s.Budgets {
		unitOf[s.Budgets[i].Budget.Label] = s.Budgets[i].Budget.Unit
	}
	for i := range s.Providers {
		pm := m.provider(s.Providers[i].Name)
		for _, label := range s.Providers[i].Budgets {
			if unit := unitOf[label]; unit != "" && unit != budget.Calls {
				pm.unit(unit)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for label := range unitOf {
		if _, known := m.budgets[label]; !known {
			m.budgets[label] = m.vecs.forBudget(label)
		}
	}
}

package promtransport

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// The closed lists of label values.
var (
	outcomes     = []string{"answered", "throttled", "refused", "failed", "cancelled", "passed"}
	codeClasses  = []string{"1xx", "2xx", "3xx", "4xx", "5xx", "error"}
	sources      = []string{"status", "headers", "body"}
	retryCauses  = []string{"throttled", "unavailable", "not_sent", "opted_in"}
	holdOutcomes = []string{"settled", "voided", "presumed"}
	reasons      = []string{
		"gate", "rate", "slots", "deadline", "queue_full", "never", "exhausted", "busy", "floor", "repeated", "unpriced",
		"frozen", "ledger", "limiter", "unmatched",
	}
	budgetReasons = []string{"exhausted", "busy", "floor", "frozen"}
)

// other is the label value of a word that this package does not know.
const other = "other"

var (
	attemptBuckets = []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	waitBuckets    = []float64{.001, .01, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	storeBuckets   = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2}
)

// vectors are the families that count events.
type vectors struct {
	calls, attempts, refusals, monitored, throttles, retries      *prometheus.CounterVec
	retryDelay, resends, spend, holds, budgetRefusals             *prometheus.CounterVec
	overruns, overrunAmount, late, corrections, assumed, unclosed *prometheus.CounterVec
	storeErrors                                                   *prometheus.CounterVec
	clockJumps, collectErrors                                     prometheus.Counter
	attemptTime, wait, storeTime                                  *prometheus.HistogramVec
	all                                                           []prometheus.Collector
}

func newVectors() *vectors {
	v := new(vectors)
	v.calls = v.counter("outlay_calls_total", "Calls that ended, by outcome.", "provider", "outcome")
	v.attempts = v.counter("outlay_attempts_total", `Attempts sent to the provider, by class of the answer; "error" means no answer came.`, "provider", "code_class")
	v.attemptTime = v.histogram("outlay_attempt_duration_seconds", "Time from sending an attempt to the headers of its answer or its error.", attemptBuckets, "provider")
	v.wait = v.histogram("outlay_wait_duration_seconds", "Time an attempt queued until its turn, or until it left without one.", waitBuckets, "provider", "priority", "result")
	v.refusals = v.counter("outlay_refusals_total", "Calls refused locally; nothing was sent and nothing was charged.", "provider", "reason")
	v.monitored = v.counter("outlay_monitored_refusals_total", "Calls that monitor mode let pass and enforcement would have refused.", "provider", "reason")
	v.throttles = v.counter("outlay_throttles_total", "Answers by which the provider asked to slow down, by where it said so.", "provider", "source")
	v.retries = v.counter("outlay_retries_total", "Attempts that repeat an earlier one of the same call, by cause.", "provider", "cause")
	v.retryDelay = v.counter("outlay_retry_delay_seconds_total", "Time calls spent waiting between attempts, queueing not included.", "provider")
	v.resends = v.counter("outlay_resends_total", "Requests that net/http sent again below outlay on its own.", "provider")
	v.spend = v.counter("outlay_spend_amount_total", "Cost of resolved attempts; settled is known, presumed is the held amount of unknown outcomes.", "provider", "unit", "state")
	v.holds = v.counter("outlay_holds_total", "Holds that ended, by how they ended.", "provider", "outcome")
	v.budgetRefusals = v.counter("outlay_budget_refusals_total", "Calls refused by this budget, the binding one.", "budget", "reason")
	v.overruns = v.counter("outlay_overruns_total", "Attempts whose real cost was above their hold.", "provider")
	v.overrunAmount = v.counter("outlay_overrun_amount_total", "Cost above the holds, summed.", "provider", "unit")
	v.late = v.counter("outlay_late_settles_total", "Costs that became known after the hold was presumed or its window had ended.", "provider")
	v.corrections = v.counter("outlay_corrections_amount_total", "Amounts by which evidence changed booked costs, up or down.", "provider", "unit", "direction")
	v.assumed = v.counter("outlay_assumed_prices_total", "Attempts held at an assumed price because no rule fitted.", "provider")
	v.unclosed = v.counter("outlay_unclosed_bodies_total", "Responses whose body was not closed in time; they were settled and their slot was freed.", "provider")
	v.clockJumps = v.counter("outlay_clock_jumps_total", "Jumps of the wall clock that the ledger noticed.").WithLabelValues()
	v.storeTime = v.histogram("outlay_store_operation_duration_seconds", "Time of an operation on the ledger or the shared limiter.", storeBuckets, "store", "op")
	v.storeErrors = v.counter("outlay_store_errors_total", "Failed operations on the ledger or the shared limiter, by class.", "store", "error")
	v.collectErrors = v.counter("outlay_collect_errors_total", "Ledger totals that could not be read for a scrape.").WithLabelValues()
	for _, store := range []string{"ledger", "limiter"} {
		for _, class := range []string{"timeout", "unavailable", "conflict"} {
			v.storeErrors.WithLabelValues(store, class)
		}
	}
	for _, op := range []string{"hold", "resolve", "totals"} {
		v.storeTime.WithLabelValues("ledger", op)
	}
	return v
}

func (v *vectors) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	v.all = append(v.all, c)
	return c
}

// histogram has classic buckets and, for servers that ask for them, native ones.
func (v *vectors) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	v.all = append(v.all, h)
	return h
}

// store counts a failure of the ledger or the limiter.
func (v *vectors) store(e transport.Event) {
	if !e.Up {
		v.storeErrors.WithLabelValues(e.Store, e.ErrorClass).Inc()
	}
}

// labelled are the counters of one more label. It is only read after it was made.
type labelled struct {
	vec   *prometheus.CounterVec
	known map[string]prometheus.Counter
}

func (v *vectors) labelled(vec *prometheus.CounterVec, name, value string, words []string) labelled {
	l := labelled{vec.MustCurryWith(prometheus.Labels{name: value}), map[string]prometheus.Counter{}}
	for _, w := range words {
		l.known[w] = l.vec.WithLabelValues(w)
	}
	return l
}

func (l labelled) of(word string) prometheus.Counter {
	if c, ok := l.known[word]; ok {
		return c
	}
	return l.vec.WithLabelValues(other)
}

func (v *vectors) forBudget(label string) labelled {
	return v.labelled(v.budgetRefusals, "budget", label, budgetReasons)
}

// providerMetrics are the series of one provider, looked up once.
type providerMetrics struct {
	v                                                        *vectors
	name                                                     string
	calls, attempts, refusals, monitored, throttles, retries labelled
	holds                                                    labelled
	retryDelay, resends, overruns, late, assumed, unclosed   prometheus.Counter
	attemptTime                                              prometheus.Observer
	hold, resolve                                            prometheus.Observer

	mu    sync.RWMutex // guards both
	waits map[waitKey]prometheus.Observer
	units map[string]*unitMetrics

	skew atomic.Int64 // local clock less the Date of the last answer, in ns; 0: not known
}

type waitKey struct{ priority, result string }

// unitMetrics are the amounts of one provider in one unit.
type unitMetrics struct{ settled, presumed, overrun, up, down prometheus.Counter }

func (v *vectors) forProvider(name string) *providerMetrics {
	p := func(vec *prometheus.CounterVec, words []string) labelled {
		return v.labelled(vec, "provider", name, words)
	}
	m := &providerMetrics{
		v: v, name: name, calls: p(v.calls, outcomes), attempts: p(v.attempts, codeClasses), refusals: p(v.refusals, reasons),
		monitored: p(v.monitored, reasons), throttles: p(v.throttles, sources), retries: p(v.retries, retryCauses),
		holds: p(v.holds, holdOutcomes), retryDelay: v.retryDelay.WithLabelValues(name), resends: v.resends.WithLabelValues(name),
		overruns: v.overruns.WithLabelValues(name), late: v.late.WithLabelValues(name), assumed: v.assumed.WithLabelValues(name),
		unclosed: v.unclosed.WithLabelValues(name), attemptTime: v.attemptTime.WithLabelValues(name),
		hold: v.storeTime.WithLabelValues("ledger", "hold"), resolve: v.storeTime.WithLabelValues("ledger", "resolve"),
		waits: map[waitKey]prometheus.Observer{}, units: map[string]*unitMetrics{},
	}
	m.waited("normal", "turn")
	return m
}

// observe counts one event.
func (p *providerMetrics) observe(e transport.Event) {
	switch e.Kind {
	case transport.KindStarted:
		p.waited(e.Priority.String(), "turn").Observe(e.Wait.Seconds())
		if e.Took > 0 {
			p.hold.Observe(e.Took.Seconds())
		}
	case transport.KindAnswered:
		p.attempts.of(codeClass(e.Status)).Inc()
		p.attemptTime.Observe(e.Took.Seconds())
		p.resends.Add(float64(e.Resends))
	case transport.KindThrottled:
		p.throttles.of(e.Source).Inc()
	case transport.KindRetrying:
		p.retries.of(e.Cause).Inc()
	case transport.KindResolved:
		p.resolved(e)
	case transport.KindWouldRefuse:
		p.monitored.of(string(e.Reason)).Inc()
	case transport.KindUnclosed:
		p.unclosed.Inc()
	case transport.KindFinished:
		p.finished(e)
	}
}

func (p *providerMetrics) finished(e transport.Event) {
	p.calls.of(e.Outcome).Inc()
	p.retryDelay.Add(e.Delay.Seconds())
	if e.Outcome == "refused" {
		p.refusals.of(string(e.Reason)).Inc()
	}
	if e.Left > 0 {
		p.waited(e.Priority.String(), "left").Observe(e.Left.Seconds())
	}
}

// resolved counts the end of a hold, or a correction. The holds that a recovery found
// open belong to a process that is gone and are seen in the gauges of the budget.
func (p *providerMetrics) resolved(e transport.Event) {
	if e.Evidence == "recovery" {
		return
	}
	if e.Late {
		p.late.Inc()
	}
	if e.Outcome == budget.StateCorrected.String() {
		p.corrected(e)
		return
	}
	p.holds.of(e.Outcome).Inc()
	if e.Took > 0 {
		p.resolve.Observe(e.Took.Seconds())
	}
	if e.Assumed {
		p.assumed.Inc()
	}
	if e.Skew != 0 {
		p.skew.Store(int64(e.Skew))
	}
	u := p.unit(e.Unit)
	switch e.Outcome {
	case budget.StateSettled.String():
		u.settled.Add(units(e.Cost))
	case budget.StatePresumed.String():
		u.presumed.Add(units(e.Cost))
	}
	if e.Overrun > 0 {
		p.overruns.Inc()
		u.overrun.Add(units(e.Overrun))
	}
}

func (p *providerMetrics) corrected(e transport.Event) {
	u := p.unit(e.Unit)
	if e.Delta > 0 {
		u.up.Add(units(e.Delta))
	} else {
		u.down.Add(-units(e.Delta))
	}
}

// units turns an amount into what Prometheus shows. No decision reads it.
func units(a budget.Amount) float64 { return float64(a) / float64(budget.Unit) }

func codeClass(status int) string {
	if status < 100 || status > 599 {
		return "error"
	}
	return codeClasses[status/100-1]
}

// waited returns the histogram of a priority, which exists once it is used.
func (p *providerMetrics) waited(priority, result string) prometheus.Observer {
	key := waitKey{priority, result}
	p.mu.RLock()
	o := p.waits[key]
	p.mu.RUnlock()
	if o != nil {
		return o
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[key] == nil {
		p.waits[key] = p.v.wait.WithLabelValues(p.name, priority, result)
	}
	return p.waits[key]
}

// maxUnits bounds the currencies of one provider: a pricer may return anything.
const maxUnits = 8

func (p *providerMetrics) unit(unit string) *unitMetrics {
	p.mu.RLock()
	u := p.units[unit]
	p.mu.RUnlock()
	if u != nil {
		return u
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.units) >= maxUnits {
		unit = other
	}
	if u := p.units[unit]; u != nil {
		return u
	}
	v := p.v
	u = &unitMetrics{
		settled: v.spend.WithLabelValues(p.name, unit, "settled"), presumed: v.spend.WithLabelValues(p.name, unit, "presumed"),
		overrun: v.overrunAmount.WithLabelValues(p.name, unit),
		up:      v.corrections.WithLabelValues(p.name, unit, "up"), down: v.corrections.WithLabelValues(p.name, unit, "down"),
	}
	p.units[unit] = u
	return u
}

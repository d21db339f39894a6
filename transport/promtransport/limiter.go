package promtransport

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/throttle"
)

// Limiter wraps a shared limiter so that the time of its operations is seen, as wait and
// cap of outlay_store_operation_duration_seconds. A wait that queued is left out: its time
// is that of the queue, and it is in outlay_wait_duration_seconds. A limiter that keeps
// its state in this process needs no wrapping.
func (m *Metrics) Limiter(l throttle.Limiter) throttle.Limiter {
	t := timed{l, m.vecs.storeTime.WithLabelValues("limiter", "wait"), m.vecs.storeTime.WithLabelValues("limiter", "cap")}
	informer, informs := l.(throttle.Informer)
	tuner, tunes := l.(throttle.Tuner)
	switch {
	case informs && tunes:
		return struct {
			timed
			throttle.Informer
			throttle.Tuner
		}{t, informer, tuner}
	case informs:
		return struct {
			timed
			throttle.Informer
		}{t, informer}
	case tunes:
		return struct {
			timed
			throttle.Tuner
		}{t, tuner}
	}
	return t
}

// timed is a limiter under the clock.
type timed struct {
	throttle.Limiter
	wait, cap prometheus.Observer
}

func (t timed) Wait(ctx context.Context, a throttle.Ask) (throttle.Turn, error) {
	queued, tell := false, a.OnQueue
	a.OnQueue = func(f throttle.Forecast) {
		queued = true
		if tell != nil {
			tell(f)
		}
	}
	begin := time.Now()
	turn, err := t.Limiter.Wait(ctx, a)
	if !queued {
		t.wait.Observe(time.Since(begin).Seconds())
	}
	return turn, err
}

func (t timed) Cap(ctx context.Context, c throttle.Cap) error {
	begin := time.Now()
	err := t.Limiter.Cap(ctx, c)
	t.cap.Observe(time.Since(begin).Seconds())
	return err
}

// Degraded reports whether a local limiter stands in for the shared one.
func (t timed) Degraded() bool {
	d, ok := t.Limiter.(interface{ Degraded() bool })
	return ok && d.Degraded()
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/transport/gateway"
)

// The file is looked at by its contents: that survives editors that rename, and the links
// that Kubernetes swaps. A change counts when two looks agree, since files are written in
// pieces.
const (
	lookEvery = 2 * time.Second
	lookAgain = 200 * time.Millisecond
)

// reloader keeps the running configuration and replaces it, whole or not at all.
type reloader struct {
	gw     *gateway.Gateway
	stores *stores
	log    *slog.Logger

	mu      sync.Mutex // guards what follows, and lets one reload happen at a time
	running *gateway.File
	tried   string // the last contents that were tried, good or bad
	refused refused
	seen    string // what the last look saw

	draining atomic.Bool
	success  prometheus.Gauge
	since    prometheus.Gauge
}

func newReloader(f *gateway.File, gw *gateway.Gateway, s *stores, log *slog.Logger) *reloader {
	r := &reloader{gw: gw, stores: s, log: log, running: f, tried: f.Hash}
	r.success = prometheus.NewGauge(prometheus.GaugeOpts{Name: "outlay_config_reload_success", Help: "1 if the configuration file is the running configuration, 0 if it was refused."})
	r.since = prometheus.NewGauge(prometheus.GaugeOpts{Name: "outlay_config_last_reload_success_timestamp_seconds", Help: "When the running configuration was loaded."})
	r.success.Set(1)
	r.since.SetToCurrentTime()
	return r
}

func (r *reloader) register(reg *prometheus.Registry) error {
	if err := reg.Register(r.success); err != nil {
		return err
	}
	return reg.Register(r.since)
}

// inForce is the running configuration.
func (r *reloader) inForce() *gateway.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// drain says that the program ends: it is not ready any more, and reloads nothing.
func (r *reloader) drain() { r.draining.Store(true) }

// again is the reason of a reload of a file that was refused: what was wrong may lie
// elsewhere, such as a secret that was not there yet.
const again = "it was refused before"

// look reloads if the file changed since it was tried last, or was refused then, and says
// when to look again.
func (r *reloader) look() time.Duration {
	r.mu.Lock()
	is := gateway.Fingerprint(r.running)
	tried, before := r.tried, r.seen
	r.seen = is
	r.mu.Unlock()
	switch {
	case is == tried:
		if len(r.notices()) > 0 {
			r.now(again)
		}
	case is != before:
		return lookAgain
	default:
		r.now("the file changed")
	}
	return lookEvery
}

// now reloads, and returns what is wrong if the running configuration stays.
func (r *reloader) now(why string) (problems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining.Load() {
		return []string{"the gateway is shutting down"}
	}
	r.tried = gateway.Fingerprint(r.running)
	next, found := gateway.Load(r.running.Path, gateway.LoadOptions{})
	var warnings []gateway.Problem
	if next != nil {
		warnings = found
		if found = next.Restart(r.running); len(found) == 0 {
			found, _ = r.stores.compare(context.Background(), next)
		}
	}
	for _, p := range found {
		problems = append(problems, p.String())
	}
	if len(problems) == 0 {
		if err := r.gw.Reload(next.Config); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", next.Path, err))
		}
	}
	tell := r.refuse(problems) || why != again
	for _, p := range warnings {
		if tell {
			r.log.Warn("configuration", "problem", p.String())
		}
	}
	if len(problems) > 0 {
		r.success.Set(0)
		if tell {
			r.log.Error("the configuration was not reloaded: the running one stays", "why", why, "problems", problems)
		}
		return problems
	}
	r.running, r.tried = next, next.Hash
	r.success.Set(1)
	r.since.SetToCurrentTime()
	r.log.Info("the configuration was reloaded", "why", why, "hash", next.Hash)
	return nil
}

// refused is a file that was not taken.
type refused struct {
	mu       sync.Mutex // guards what follows
	since    time.Time
	problems []string
}

// refuse notes what is wrong with the file, or that nothing is, and has callers of unknown
// paths told: what they look for may stand in the file already. It reports whether that is
// anything else than before.
func (r *reloader) refuse(problems []string) (isNews bool) {
	r.refused.mu.Lock()
	defer r.refused.mu.Unlock()
	isNews = !slices.Equal(r.refused.problems, problems)
	switch {
	case len(problems) == 0:
		r.refused.since = time.Time{}
		r.gw.Outdated("")
	case r.refused.since.IsZero():
		r.refused.since = time.Now()
		fallthrough
	default:
		r.gw.Outdated("the configuration file is newer than what is in force: it was refused at " + r.refused.since.UTC().Format(time.RFC3339) + " (see the log, or outlay-gateway check)")
	}
	r.refused.problems = problems
	return isNews
}

// notices are what the page says of it.
func (r *reloader) notices() []string {
	r.refused.mu.Lock()
	defer r.refused.mu.Unlock()
	if len(r.refused.problems) == 0 {
		return nil
	}
	all := []string{"The configuration file was refused at " + r.refused.since.UTC().Format(time.RFC3339) + "; the one before it is in force."}
	return append(all, r.refused.problems...)
}

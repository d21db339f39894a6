package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/gateway"
	"github.com/outlay-go/outlay/transport/promtransport"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// runCommand serves until SIGTERM or SIGINT. A second one ends it at once.
func runCommand(ctx context.Context, c *invocation) (int, error) {
	rest, err := c.parse()
	if err != nil {
		return misused, errors.Join(errUsage, err)
	}
	if len(rest) > 0 {
		return misused, fmt.Errorf("run takes no arguments, and got %q", rest)
	}
	file, problems := gateway.Load(c.config, gateway.LoadOptions{})
	for _, p := range problems {
		fmt.Fprintln(c.errs, p)
	}
	if file == nil {
		return failed, nil
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	p, err := assemble(ctx, file, c)
	if err != nil {
		return failed, err
	}
	conflicts, err := p.stores.compare(ctx, file)
	if err != nil {
		p.log.Warn("the budgets were not compared with the ledger", "error", err.Error())
	}
	if len(conflicts) > 0 {
		return c.refused(conflicts, p.stores)
	}
	return p.serve(signals)
}

// refused tells what is wrong with a file, and closes what was opened for it.
func (c *invocation) refused(problems []gateway.Problem, s *stores) (int, error) {
	for _, p := range problems {
		fmt.Fprintln(c.errs, p)
	}
	return failed, s.close()
}

// program is the gateway with everything around it.
type program struct {
	file   *gateway.File
	log    *slog.Logger
	stores *stores
	gw     *gateway.Gateway
	reload *reloader
	limits limits
	admin  http.Handler

	servers []*http.Server
	served  sync.WaitGroup
	broken  chan error // a server that ended by itself
}

// assemble makes everything and listens on nothing.
func assemble(ctx context.Context, file *gateway.File, c *invocation) (*program, error) {
	p := &program{file: file, log: logger(file.Log, c.errs), broken: make(chan error, len(file.Listen)+1)}
	var err error
	if p.stores, err = open(ctx, file); err != nil {
		return nil, err
	}
	metrics := promtransport.New(promtransport.Options{})
	page := statuspage.New(statuspage.Options{Allow: mayLook(file.Admin), Title: "outlay gateway", Notices: p.notices})
	p.gw, err = gateway.New(file.Config, gateway.Parts{
		Ledger: p.stores.ledger, Limiter: p.stores.limiter, Log: callLogger(p.log, file.Log),
		OnEvent: transport.Tee(eventLogger(p.log, file.Log), metrics.Observe, page.Observe),
	})
	if err != nil {
		return nil, errors.Join(err, p.stores.close())
	}
	metrics.Watch(p.gw.Transport())
	page.Watch(p.gw.Transport())
	registry := prometheus.NewRegistry()
	p.reload = newReloader(file, p.gw, p.stores, p.log)
	if err := errors.Join(registry.Register(metrics), p.reload.register(registry)); err != nil {
		return nil, errors.Join(err, p.stores.close())
	}
	p.limits.log = p.log
	p.limits.ledger, _ = p.stores.ledger.(sharedLedger)
	p.limits.look(file, time.Now())
	p.admin, err = adminHandler(p, page, registry)
	if err != nil {
		return nil, errors.Join(err, p.stores.close())
	}
	return p, nil
}

// serve listens, and works until a signal ends it.
func (p *program) serve(signals <-chan os.Signal) (int, error) {
	if err := p.listen(); err != nil {
		for _, s := range p.servers {
			_ = s.Close() // it has no calls yet
		}
		p.served.Wait()
		return failed, errors.Join(err, p.stores.close())
	}
	look := time.NewTimer(lookEvery)
	defer look.Stop()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGHUP {
				p.reload.now("SIGHUP")
				continue
			}
			return p.shutdown(signals)
		case <-look.C:
			look.Reset(p.reload.look())
			p.limits.look(p.reload.inForce(), time.Now())
		case err := <-p.broken:
			p.log.Error("a listener failed", "error", err.Error())
			code, _ := p.shutdown(signals)
			return max(code, failed), err
		}
	}
}

// adminRead is how long a request of an operator may take to come, and to be answered: net/http
// takes a caller for gone then.
var adminRead = time.Minute

// listen opens all listeners before any is served.
func (p *program) listen() error {
	type pair struct {
		server *http.Server
		on     net.Listener
	}
	var all []pair
	closeAll := func(err error) error {
		for _, x := range all {
			_ = x.on.Close() // nobody was served
		}
		return err
	}
	add := func(s *http.Server, address, cert, key, what string) error {
		on, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		if cert != "" {
			if on, err = withTLS(on, cert, key, p.log); err != nil {
				return err
			}
		}
		all = append(all, pair{s, on})
		p.log.Info("listening", "for", what, "address", on.Addr().String(), "tls", cert != "")
		return nil
	}
	for _, x := range p.file.Listen {
		what := "calls"
		if x.Provider != "" {
			what = "calls to " + x.Provider
		}
		if err := add(p.gw.Server(x.Listener), x.Address, x.Cert, x.Key, what); err != nil {
			return closeAll(err)
		}
	}
	if a := p.file.Admin.Address; a != "" {
		server := &http.Server{
			Handler: p.admin, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: adminRead, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		}
		if err := add(server, a, "", "", "operators"); err != nil {
			return closeAll(err)
		}
	}
	for _, x := range all {
		p.servers = append(p.servers, x.server)
		p.served.Go(func() {
			if err := x.server.Serve(x.on); !errors.Is(err, http.ErrServerClosed) {
				p.broken <- err
			}
		})
	}
	return nil
}

// sameSignal is how long another signal counts as the same one: a terminal and some
// supervisors tell the process and its group.
const sameSignal = time.Second

// shutdown ends everything: listeners first, then the calls, the books last. A second
// signal ends it at once; what is in flight is presumed spent then, at the next start.
func (p *program) shutdown(signals <-chan os.Signal) (int, error) {
	begin := time.Now()
	p.log.Info("shutting down", "grace", p.file.Shutdown.String())
	p.reload.drain()
	ctx, cancel := context.WithTimeout(context.Background(), p.file.Shutdown)
	defer cancel()
	finished := make(chan error, 1)
	go func() { finished <- p.end(ctx) }() // it sends in any case
	for {
		select {
		case err := <-finished:
			if err != nil {
				p.log.Error("shutdown", "error", err.Error())
				return failed, nil
			}
			p.log.Info("stopped")
			return done, nil
		case s := <-signals:
			if s != syscall.SIGHUP && time.Since(begin) >= sameSignal {
				p.log.Warn("stopped by a second signal: calls in flight are presumed spent at the next start")
				return failed, nil
			}
		}
	}
}

func (p *program) end(ctx context.Context) error {
	calls := p.servers
	if p.file.Admin.Address != "" {
		calls = calls[:len(calls)-1] // the page and the readiness stay to the end
	}
	var closing sync.WaitGroup
	for _, s := range calls {
		closing.Go(func() { _ = s.Shutdown(ctx) }) // its connections end with their calls
	}
	err := p.gw.Shutdown(ctx)
	closing.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		p.log.Warn("calls were cut off at the end of the grace period: they are presumed spent")
		err = nil
	}
	for _, s := range p.servers {
		_ = s.Close() // idle connections
	}
	p.served.Wait()
	return errors.Join(err, p.stores.close())
}

// notices are what the page says beside what it shows.
func (p *program) notices() []string {
	return append(p.reload.notices(), p.limits.told()...)
}

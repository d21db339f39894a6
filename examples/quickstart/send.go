package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// result is what became of a row.
type result struct {
	end   ending
	calls []transport.CallInfo
	// reason is why the call was refused.
	reason transport.Reason
	// id is the vendor's own of what it did, if the answer told one.
	id string
}

// ending says how the work on a row ended. The zero ending: it was not begun.
type ending int

const (
	notBegun  ending = iota
	done             // the vendor says that it did it
	failed           // the vendor says that it did not, or its answer is broken
	uncertain        // no answer: nobody knows
	refused          // by us: nothing was sent
	endings
)

// workers is how many calls each service makes at once.
const workers = 16

// sendAll does the work of all services side by side and tells how it goes.
func sendAll(ctx context.Context, client *http.Client, services []*service, out io.Writer) {
	for _, s := range services {
		fmt.Fprintf(out, "%s: %d rows, %d a second, %v USD a day\n",
			s.provider.Name, len(s.rows), s.provider.Rates[0].N, s.provider.Budgets[0].Limit)
	}
	var work, reporter sync.WaitGroup
	counts := make([]atomic.Int64, len(services))
	for i, s := range services {
		next := new(atomic.Int64)
		for range workers {
			work.Go(func() {
				for n := next.Add(1) - 1; n < int64(len(s.rows)) && ctx.Err() == nil; n = next.Add(1) - 1 {
					s.results[n] = s.send(ctx, client, s.rows[n])
					counts[i].Add(1)
				}
			})
		}
	}
	finished := make(chan struct{})
	reporter.Go(func() { report(services, counts, finished, out) })
	work.Wait()
	close(finished)
	reporter.Wait()
}

// send makes the call of one row.
func (s *service) send(ctx context.Context, client *http.Client, r row) result {
	ctx, record := transport.Record(ctx)
	res := s.call(ctx, client, r)
	res.calls = record.Calls()
	return res
}

func (s *service) call(ctx context.Context, client *http.Client, r row) result {
	req, err := s.request(ctx, r)
	if err != nil {
		return result{end: failed}
	}
	resp, err := client.Do(req)
	switch {
	case err != nil && transport.ReasonOf(err) != "":
		return result{end: refused, reason: transport.ReasonOf(err)}
	case err != nil && transport.OutcomeUnknown(err):
		return result{end: uncertain}
	case err != nil:
		return result{end: failed}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	id, ok := s.read(resp.StatusCode, body)
	switch {
	case err == nil && ok:
		return result{end: done, id: id}
	case err != nil || resp.StatusCode >= http.StatusInternalServerError:
		return result{end: uncertain}
	}
	return result{end: failed}
}

// report tells how far the services are: on a terminal in one line that is written
// over, else in a new line every two seconds.
func report(services []*service, counts []atomic.Int64, finished <-chan struct{}, out io.Writer) {
	every, begin, end := 2*time.Second, "", "\n"
	if isTerminal(out) {
		every, begin, end = 100*time.Millisecond, "\r\x1b[K", ""
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	line := func() string {
		var parts []string
		for i, s := range services {
			parts = append(parts, fmt.Sprintf("%s %d of %d", s.provider.Name, counts[i].Load(), len(s.rows)))
		}
		return strings.Join(parts, ", ")
	}
	for {
		select {
		case <-tick.C:
			fmt.Fprint(out, begin, line(), end)
		case <-finished:
			fmt.Fprint(out, begin, line(), "\n")
			return
		}
	}
}

// isTerminal reports whether w is a device that a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

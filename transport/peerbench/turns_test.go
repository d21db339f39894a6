package peerbench

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlay-go/outlay/transport"
)

// limiters are the contenders that hand out turns.
var limiters = []contender{
	{"outlay", openOutlay},
	{"x/time (ten lines)", wraps(newXtime)},
	{"uber (ten lines)", wraps(newUber)},
	{"failsafe-go", wraps(newFailsafe)},
	{"resty", func(_ testing.TB, base http.RoundTripper, p pace, _ func(*transport.Provider)) sender {
		return restyAs(restyLimited(base, p))
	}},
}

// contest is one row: what a limiter does with callers.
type contest struct {
	name string
	play func(context.Context, *world, sender) string
	pace pace
}

// slow is a limit whose next turn comes in ten seconds.
var slow = pace{1, 10 * time.Second, 1}

func contests() []contest {
	return []contest{
		{"no turn for 10 s, no deadline", patiently, slow},
		{"no turn for 10 s, the caller's deadline is in 1 s", hurried, slow},
		{"the context has ended before the call; the next call is sent", afterEnded, slow},
		{"three callers, a turn in 10 s; the second leaves after 5 s; the third is sent", movesUp, slow},
		{"100 a second for 2 s; 20 callers, each cancelled after 50 ms: sent of 200", churn, pace{100, time.Second, 1}},
	}
}

func (f contest) observe(t *testing.T, c contender) (cell string) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		w := newWorld(t, l, l.dial, ok)
		cell = f.play(t.Context(), w, c.open(t, w.base, f.pace, nil))
		synctest.Wait()
	})
	return cell
}

func (w *world) get(ctx context.Context, do sender, path string) outcome {
	return w.call(do, w.request(ctx, "GET", path, "", false))
}

// sent says when a request of the path arrived.
func (w *world) sent(path string) string {
	for _, a := range w.arrivals() {
		if a.path == path {
			return after(a.at)
		}
	}
	return "never"
}

func patiently(ctx context.Context, w *world, do sender) string {
	w.get(ctx, do, "/first")
	o := w.get(ctx, do, "/second")
	if o.err != nil {
		return "error " + after(o.took)
	}
	return "sent " + w.sent("/second")
}

func hurried(ctx context.Context, w *world, do sender) string {
	w.get(ctx, do, "/first")
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	o := w.get(ctx, do, "/second")
	if o.err == nil {
		return "sent " + w.sent("/second")
	}
	return "error " + after(o.took)
}

func afterEnded(ctx context.Context, w *world, do sender) string {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	w.get(ended, do, "/ended")
	o := w.get(ctx, do, "/next")
	if o.err != nil {
		return "error " + after(o.took)
	}
	return w.sent("/next")
}

func movesUp(ctx context.Context, w *world, do sender) string {
	var all sync.WaitGroup
	defer all.Wait()
	w.get(ctx, do, "/first")
	second, leave := context.WithCancel(ctx)
	defer leave()
	all.Go(func() { w.get(second, do, "/second") })
	time.Sleep(time.Second)
	var third outcome
	all.Go(func() { third = w.get(ctx, do, "/third") })
	time.Sleep(4 * time.Second)
	leave()
	all.Wait()
	if third.err != nil {
		return "error " + after(third.took)
	}
	return w.sent("/third")
}

// churn has callers that give up without having told a deadline, as the context of a
// server's request ends when its client goes away.
func churn(ctx context.Context, w *world, do sender) string {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 40 {
				each, cancel := context.WithCancel(ctx)
				stop := time.AfterFunc(50*time.Millisecond, cancel)
				began := time.Now()
				w.get(each, do, "/")
				time.Sleep(50*time.Millisecond - time.Since(began))
				stop.Stop()
				cancel()
			}
		})
	}
	all.Wait()
	n := 0
	for _, a := range w.arrivals() {
		if a.at <= 2*time.Second {
			n++
		}
	}
	switch { // who comes first at one instant is chance
	case n < 10:
		return "fewer than 10"
	case n > 180:
		return "more than 180"
	default:
		return fmt.Sprintf("about %d", (n+5)/10*10)
	}
}

package throttle

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load keeps callers waiting until the context ends and counts the turns by name.
type load struct {
	*lab
	ctx    context.Context
	counts map[string]*int
}

// endless starts callers that ask again as soon as they had their turn.
func (o *load) endless(name string, callers int, a Ask) {
	n := new(int)
	o.counts[name] = n
	for range callers {
		go func() {
			for {
				turn, err := o.b.Wait(o.ctx, a)
				if err != nil {
					return
				}
				o.b.mu.Lock()
				*n += a.Legs[0].weight()
				o.b.mu.Unlock()
				turn.Done()
			}
		}()
	}
}

// during runs the load for a time and returns what each name got.
func during(t *testing.T, d time.Duration, start func(*load)) map[string]int {
	got := map[string]int{}
	bubble(t, func(l *lab) {
		ctx, cancel := context.WithCancel(l.t.Context())
		o := &load{lab: l, ctx: ctx, counts: map[string]*int{}}
		start(o)
		time.Sleep(d)
		cancel()
		time.Sleep(time.Second)
		o.b.mu.Lock()
		defer o.b.mu.Unlock()
		for name, n := range o.counts {
			got[name] = *n
		}
	})
	return got
}

func ofTenant(name string, legs ...Leg) Ask {
	a := ask(legs...)
	a.Tenant = name
	return a
}

func TestTenantsGetEqualShares(t *testing.T) {
	p := leg("p", PerSecond(100))
	heavy := p
	heavy.Rates = []Rate{{N: 100, Per: time.Second, Burst: 10}}
	heavy.Weight = 5
	light := heavy
	light.Weight = 1
	for name, start := range map[string]func(*load){
		"equal":       func(o *load) { o.endless("a", 10, ofTenant("a", p)); o.endless("b", 10, ofTenant("b", p)) },
		"many to one": func(o *load) { o.endless("a", 500, ofTenant("a", p)); o.endless("b", 1, ofTenant("b", p)) },
		"weights":     func(o *load) { o.endless("a", 10, ofTenant("a", heavy)); o.endless("b", 10, ofTenant("b", light)) },
		"a scope is scarce": func(o *load) {
			wide := leg("q", PerSecond(10_000))
			o.endless("a", 50, ofTenant("a", wide, p))
			o.endless("b", 3, ofTenant("b", wide, p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := during(t, 10*time.Second, start)
			require.InDelta(t, 1000, got["a"]+got["b"], 12)
			require.InEpsilon(t, got["a"], got["b"], 0.1, "%v", got)
		})
	}
}

func TestStreamOfNewTenantsDoesNotStopTheOthers(t *testing.T) {
	p := leg("p", PerSecond(100))
	got := during(t, 10*time.Second, func(o *load) {
		o.endless("old", 5, ofTenant("old", p))
		go func() {
			for i := 0; o.ctx.Err() == nil; i++ {
				go o.b.Wait(o.ctx, ofTenant(fmt.Sprint("fresh", i), p))
				time.Sleep(8 * time.Millisecond)
			}
		}()
	})
	require.GreaterOrEqual(t, got["old"], 10, "%v", got)
}

func TestClassesGetTheirShareOfAScarceScope(t *testing.T) {
	q, p := leg("q", PerSecond(10_000)), leg("p", PerSecond(100))
	got := during(t, 10*time.Second, func(o *load) {
		for _, class := range []Priority{Critical, Normal, Bulk} {
			a := ask(q, p)
			a.Priority = class
			o.endless(class.String(), 10, a)
		}
	})
	require.GreaterOrEqual(t, got["bulk"], 95, "%v", got)
	require.GreaterOrEqual(t, got["normal"], 95, "%v", got)
	require.Greater(t, got["critical"], 700, "%v", got)
}

func TestCriticalWaitsForTwoTurnsAtMost(t *testing.T) {
	during(t, 10*time.Second, func(o *load) {
		p := leg("p", PerSecond(10))
		for _, class := range []Priority{Normal, Bulk} {
			a := ask(p)
			a.Priority = class
			o.endless(class.String(), 20, a)
		}
		go func() {
			for o.ctx.Err() == nil {
				a := ask(p)
				a.Priority = Critical
				begin := o.at()
				if turn, err := o.b.Wait(o.ctx, a); err == nil {
					require.LessOrEqual(o.t, o.at()-begin, 300*time.Millisecond)
					turn.Done()
				}
				time.Sleep(370 * time.Millisecond)
			}
		}()
	})
}

func TestHeavyCallsAreNotStarved(t *testing.T) {
	r := Rate{N: 100, Per: time.Second, Burst: 60}
	heavy, light := leg("p", r), leg("p", r)
	heavy.Weight = 60
	q := leg("q", PerSecond(10_000))
	for name, start := range map[string]func(*load){
		"in the queue": func(o *load) { o.endless("heavy", 1, ask(heavy)); o.endless("light", 50, ask(light)) },
		"at a scope":   func(o *load) { o.endless("heavy", 1, ask(q, heavy)); o.endless("light", 50, ask(q, light)) },
		"of a lower class at a scope": func(o *load) {
			a, b := ask(q, heavy), ask(q, light)
			a.Priority, b.Priority = Bulk, Critical
			o.endless("heavy", 1, a)
			o.endless("light", 50, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := during(t, 30*time.Second, start)
			require.GreaterOrEqual(t, got["heavy"], 2, "%v", got)
			require.Greater(t, got["light"], 300, "%v", got)
		})
	}
}

func TestCallWithTwoScarceScopesIsNotStarved(t *testing.T) {
	got := during(t, 60*time.Second, func(o *load) {
		p, a, b := leg("p", PerSecond(10_000)), leg("a", PerSecond(1)), leg("b", PerSecond(1))
		o.endless("a", 5, ask(p, a))
		time.Sleep(500 * time.Millisecond) // so that a and b are never ready together
		o.endless("b", 5, ask(p, b))
		o.endless("both", 1, ask(p, a, b))
	})
	require.GreaterOrEqual(t, got["both"], 3, "%v", got)
	require.Greater(t, got["a"], 30, "%v", got)
	require.Greater(t, got["b"], 30, "%v", got)
}

func TestScopeOfTwoProvidersServesBoth(t *testing.T) {
	got := during(t, 20*time.Second, func(o *load) {
		s := leg("s", PerSecond(10))
		o.endless("p", 5, ask(leg("p", PerSecond(1000)), s))
		o.endless("q", 5, ask(leg("q", PerSecond(1000)), s))
	})
	require.InDelta(t, 200, got["p"]+got["q"], 3)
	require.InDelta(t, got["p"], got["q"], 20, "%v", got)
}

func TestProviderInTroubleLeavesTheOtherAlone(t *testing.T) {
	bubble(t, func(l *lab) {
		s := leg("s", Rate{N: 10, Per: time.Second, Burst: 1})
		l.gate("p", 30*time.Minute)
		held := l.calls(5, ask(leg("p", PerSecond(1000)), s))
		require.Equal(t, every(0, 100*time.Millisecond, 5), l.starts(l.calls(5, ask(leg("q", PerSecond(1000)), s))))
		l.cap(Cap{Key: "p", Reopen: true})
		l.starts(held)
	})
}

package throttle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// started is a turn of the stress test: when, and what it took from a scope.
type started struct {
	at     time.Duration
	weight int
}

// stress runs random calls on a few scopes and keeps what started.
type stress struct {
	*lab
	rnd    *rand.Rand
	rates  map[string][]Rate
	mu     sync.Mutex
	starts map[string][]started
	closed map[string]time.Duration // until when, of the gates closed so far
	early  []string
}

func TestRandomCallsNeverBreakALimit(t *testing.T) {
	seeds := uint64(12)
	if os.Getenv("OUTLAY_PROVE") != "" {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(l *lab) {
				s := &stress{
					lab: l, rnd: rand.New(rand.NewPCG(seed, 7)),
					rates: map[string][]Rate{
						"p": {{N: 50, Per: time.Second, Burst: 10}},
						"q": {{N: 40, Per: time.Second, Strict: true}, {N: 300, Per: 10 * time.Second, Burst: 40}},
						"a": {{N: 10, Per: time.Second, Burst: 5}},
						"b": {{N: 5, Per: time.Second, Burst: 4}, {N: 8, Per: 2 * time.Second, Strict: true, Burst: 4}},
						"c": nil,
					},
					starts: map[string][]started{}, closed: map[string]time.Duration{},
				}
				s.run(400)
				s.judge()
			})
		})
	}
}

func (s *stress) run(n int) {
	var wg sync.WaitGroup
	for range n {
		a, ctx, cancel := s.ask()
		hold := time.Duration(s.rnd.IntN(500)) * time.Millisecond
		undo := s.rnd.IntN(8) == 0
		wg.Go(func() {
			defer cancel()
			s.call(ctx, a, hold, undo)
		})
		if s.rnd.IntN(40) == 0 {
			s.closeOne()
		}
		time.Sleep(time.Duration(s.rnd.IntN(30)) * time.Millisecond)
		synctest.Wait()
		s.consistent()
	}
	wg.Wait()
}

func (s *stress) ask() (Ask, context.Context, context.CancelFunc) {
	first := []string{"p", "q"}[s.rnd.IntN(2)]
	keys := []string{first}
	for _, k := range []string{"a", "b", "c"} {
		if s.rnd.IntN(3) == 0 {
			keys = append(keys, k)
		}
	}
	a := Ask{Priority: Priority(s.rnd.IntN(3)), Tenant: fmt.Sprint(s.rnd.IntN(4)), MaxWait: time.Duration(s.rnd.IntN(5000)) * time.Millisecond}
	for _, k := range keys {
		l := leg(k, s.rates[k]...)
		l.Weight = 1 + s.rnd.IntN(4)
		if k == "c" {
			l.Slots = 3
		}
		a.Legs = append(a.Legs, l)
	}
	if s.rnd.IntN(3) == 0 {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(s.rnd.IntN(3000))*time.Millisecond)
		return a, ctx, cancel
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	if s.rnd.IntN(3) == 0 {
		time.AfterFunc(time.Duration(s.rnd.IntN(2000))*time.Millisecond, cancel)
	}
	return a, ctx, cancel
}

func (s *stress) call(ctx context.Context, a Ask, hold time.Duration, undo bool) {
	begin := s.at()
	turn, err := s.b.Wait(ctx, a)
	now := s.at()
	s.mu.Lock()
	if now-begin > a.MaxWait {
		s.early = append(s.early, fmt.Sprintf("waited %v of %v: %v", now-begin, a.MaxWait, err))
	}
	if err != nil {
		s.mu.Unlock()
		return
	}
	for _, l := range a.Legs {
		if now < s.closed[l.Key] {
			s.early = append(s.early, fmt.Sprintf("%s at %v, closed until %v", l.Key, now, s.closed[l.Key]))
		}
		if !undo {
			s.starts[l.Key] = append(s.starts[l.Key], started{now, l.Weight})
		}
	}
	s.mu.Unlock()
	if undo {
		turn.Cancel()
		return
	}
	time.Sleep(hold)
	turn.Done()
}

func (s *stress) closeOne() {
	key := []string{"p", "q", "a", "b", "c"}[s.rnd.IntN(5)]
	c := Cap{Key: key, N: s.rnd.IntN(3), Until: time.Now().Add(time.Duration(s.rnd.IntN(1500)) * time.Millisecond), Slow: s.rnd.IntN(4) == 0}
	s.cap(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.N == 0 {
		s.closed[key] = max(s.closed[key], c.Until.Sub(s.begin))
	}
}

// judge checks what started against every rate.
func (s *stress) judge() {
	require.Empty(s.t, s.early)
	for key, rates := range s.rates {
		got := s.starts[key]
		require.NotEmpty(s.t, got)
		for _, r := range rates {
			for i := range got {
				sum := 0
				for _, g := range got[i:] {
					sum += g.weight
					span := g.at - got[i].at
					if r.Strict && span < r.Per {
						require.LessOrEqual(s.t, sum, r.N, "%s: %v in %v", key, r, span)
					}
					if b := r.burst(); b > 0 {
						earned := float64(r.N) * (span + time.Microsecond).Seconds() / r.Per.Seconds()
						require.LessOrEqual(s.t, float64(sum), float64(b)+earned, "%s: %v in %v", key, r, span)
					}
				}
			}
		}
	}
	require.True(s.t, slices.IsSortedFunc(s.starts["p"], func(a, b started) int { return int(a.at - b.at) }))
}

// consistent recounts what the bucket keeps count of.
func (s *stress) consistent() {
	b, t := s.b, s.t
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.dirty)
	for _, sc := range b.scopes {
		if sc.x == nil {
			continue
		}
		for i, r := range sc.x.flows {
			require.Equal(t, i, r.flow.legs[r.leg].pos)
			require.Same(t, sc, r.flow.legs[r.leg].s)
			require.Positive(t, r.flow.n)
		}
		if g := sc.x.group; g != nil {
			recount(t, g)
		}
		for _, p := range sc.x.parks {
			for c := range p.class {
				awake := 0
				for _, f := range p.g.flows {
					if f.woke > 0 && f.legs[f.woke].park == p && f.key.class == c {
						awake++
					}
				}
				require.Equal(t, awake, p.class[c].awake)
			}
		}
	}
	for i, a := range b.alarms {
		require.Equal(t, i, a.pos)
	}
}

func recount(t *testing.T, g *group) {
	total := 0
	for c := range g.class {
		n, readyN, weight := 0, int64(0), int64(0)
		for _, f := range g.flows {
			if f.key.class != c {
				continue
			}
			sum, k := int64(0), 0
			for w := f.head; w != nil; w = w.next {
				require.Same(t, f, w.f)
				sum, k = sum+int64(w.weight(0)), k+1
			}
			require.Equal(t, sum, f.legs[0].weight)
			require.Equal(t, k, f.n)
			n += k
			if f.parked == 0 {
				readyN, weight = readyN+int64(k), weight+sum
				require.Same(t, f, f.t.ready[f.pos])
			} else {
				require.Same(t, f, f.legs[f.parked].park.class[c].q[f.pos])
			}
		}
		require.Equal(t, n, g.class[c].n)
		require.Equal(t, readyN, g.class[c].readyN)
		require.Equal(t, weight, g.class[c].weight)
		require.Len(t, g.class[c].limits, count(g, c))
		total += n
	}
	require.Equal(t, total, g.n)
}

func count(g *group, class int) int {
	n := 0
	for _, f := range g.flows {
		if f.key.class == class {
			n++
		}
	}
	return n
}

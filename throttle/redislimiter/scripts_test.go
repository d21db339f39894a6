package redislimiter

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// atTime begins a script whose clock stands at an instant of the test's own.
const atTime = `local real = redis
local redis = {call = function(name, ...)
  if name == 'TIME' then return {'%d', '%06d'} end
  return real.call(name, ...)
end}
`

// TestPlainTurnsAreThoseOfTheWholeScript gives one bucket the same turns in both ways.
func TestPlainTurnsAreThoseOfTheWholeScript(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := &Limiter{prefix: "outlay"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	now := time.Now()
	rate := throttle.Rate{N: 10, Per: 1_234_567 * time.Microsecond, Burst: 3}
	gave, weight := 0, 1
	for range rounds(2000, 20_000) {
		now = now.Add(time.Duration(random.IntN(200)) * time.Millisecond)
		if random.IntN(100) == 0 {
			now = now.Add(-time.Duration(random.IntN(10_000)) * time.Millisecond) // the server's clock is set back
		}
		if random.IntN(50) == 0 {
			rate.N, rate.Burst = 1+random.IntN(100), 1+random.IntN(20)
		}
		if random.IntN(3) == 0 {
			weight = 1 + random.IntN(3) // else the legs are described as before
		}
		legs := []throttle.Leg{{Key: "p", Weight: weight, Rates: []throttle.Rate{rate}}}
		keys, what := l.describe("p", legs, nil)
		want, ahead := 1+random.IntN(3), random.IntN(2)*1_000_000
		clock := fmt.Sprintf(atTime, now.Unix(), now.Nanosecond()/1000)
		answers := map[bool][]int64{}
		for short, text := range map[bool]string{true: head + plain + lib + turnText, false: head + lib + turnText} {
			key := fmt.Sprint(keys[0], short)
			got, err := redis.NewScript(clock+text).Eval(t.Context(), client, []string{key}, want, ahead, what).Int64Slice()
			require.NoError(t, err)
			answers[short] = got
		}
		whole, ok := readTurn(answers[false], 1, want)
		require.True(t, ok)
		short, ok := readTurn(answers[true], 1, want)
		require.True(t, ok)
		require.Equal(t, whole, short, "%v at %v", legs, now)
		if whole.state == 0 {
			gave++
		}
	}
	require.Positive(t, gave)
}

// What was left when the server's clock was set back is still there, and not all once more.
func TestClockThatIsSetBackStopsNobody(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := &Limiter{prefix: "outlay"}
	for name, c := range map[string]struct {
		rates []throttle.Rate
		want  string // x: a turn, 300 ms after the one before
	}{
		"bucket":              {[]throttle.Rate{{N: 1, Per: time.Second, Burst: 3}}, "xxx..x..x..x...x..x."},
		"window":              {[]throttle.Rate{{N: 3, Per: 2 * time.Second, Strict: true}}, "xxxx..x..xx..x..xx.."},
		"window that is full": {[]throttle.Rate{{N: 2, Per: time.Second, Strict: true}}, "xx.x.x.x.x.x.x.x.x.x"},
		"window of groups":    {[]throttle.Rate{{N: 2000, Per: 100_000 * time.Second, Strict: true}}, "xxxxxxxxxxxxxxxxxxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			now, got := time.Now().Add(time.Hour), ""
			keys, what := l.describe(name, []throttle.Leg{{Key: name, Rates: c.rates}}, nil)
			for i := range c.want {
				if now = now.Add(300 * time.Millisecond); i == 3 {
					now = now.Add(-time.Hour)
				}
				clock := fmt.Sprintf(atTime, now.Unix(), now.Nanosecond()/1000)
				reply, err := redis.NewScript(clock+head+plain+lib+turnText).Eval(t.Context(), client, keys, 1, 0, what).Int64Slice()
				require.NoError(t, err)
				a, ok := readTurn(reply, 1, 1)
				require.True(t, ok)
				got += map[bool]string{true: "x", false: "."}[a.state == turnGiven]
			}
			require.Equal(t, c.want, got)
		})
	}
}

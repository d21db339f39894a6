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

func TestClockThatIsSetBackStopsNoBucket(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := &Limiter{prefix: "outlay"}
	now := time.Now().Add(time.Hour)
	keys, what := l.describe("p", []throttle.Leg{{Key: "p", Rates: []throttle.Rate{{N: 10, Per: time.Second, Burst: 3}}}}, nil)
	gave := 0
	for i := range 6 {
		if i == 1 {
			now = now.Add(-time.Hour)
		}
		clock := fmt.Sprintf(atTime, now.Unix(), now.Nanosecond()/1000)
		reply, err := redis.NewScript(clock+head+plain+lib+turnText).Eval(t.Context(), client, keys, 1, 0, what).Int64Slice()
		require.NoError(t, err)
		if a, ok := readTurn(reply, 1, 1); ok && a.state == 0 {
			gave++
		}
	}
	require.Equal(t, 3, gave, "what was left, and not a full bucket once more")
}

package throttle

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

func TestRateValidate(t *testing.T) {
	for _, r := range []Rate{
		PerSecond(1), PerMinute(600), PerHour(1), PerDay(1000), {N: 1, Per: 1}, {N: math.MaxInt32, Per: maxPeriod, Burst: math.MaxInt32},
		{N: 1_000_000_000, Per: time.Second}, {N: 5, Per: time.Second, Strict: true},
	} {
		require.NoError(t, r.Validate(), "%+v", r)
	}
	for field, bad := range map[string][]Rate{
		"N:":     {{}, {N: 0, Per: time.Second}, {N: -1, Per: time.Second}, {N: 1_000_000_001, Per: time.Second}, {N: math.MaxInt, Per: maxPeriod}},
		"Per:":   {{N: 1}, {N: 1, Per: -time.Second}, {N: 1, Per: math.MaxInt64}},
		"Burst:": {{N: 1, Per: time.Second, Burst: -1}, {N: 1, Per: time.Second, Burst: math.MaxInt}},
	} {
		for _, r := range bad {
			require.ErrorContains(t, r.Validate(), field, "%+v", r)
		}
	}
}

func TestAskValidate(t *testing.T) {
	good := leg("p", PerSecond(1))
	require.NoError(t, ask(good, leg("q")).Validate())
	for want, a := range map[string]Ask{
		"Legs: empty":                       {},
		"Legs[0].Key: empty":                ask(Leg{}),
		"Legs[1].Key: the same scope twice": ask(good, good),
		"Legs[0].Weight: -1":                ask(Leg{Key: "p", Weight: -1}),
		"Legs[0].Slots: -1":                 ask(Leg{Key: "p", Slots: -1}),
		"Legs[1].Rates[1].Per: 0s":          ask(good, leg("q", PerSecond(1), Rate{N: 1})),
	} {
		require.ErrorContains(t, a.Validate(), want)
		_, err := NewBucket().Wait(t.Context(), a)
		require.ErrorContains(t, err, want)
	}
	_, err := NewBucket().Wait(t.Context(), ask(make([]Leg, maxLegs+1)...))
	require.Error(t, err)
}

// The next tests hold x/time/rate to what the bucket relies on beyond its documentation.

func TestXTimeNegativeAllowGivesTokensBack(t *testing.T) {
	now := time.Now()
	l := rate.NewLimiter(1, 5)
	require.True(t, l.AllowN(now, 4))
	require.True(t, l.AllowN(now, -2))
	require.InDelta(t, 3, l.TokensAt(now), 1e-9)
	require.True(t, l.AllowN(now, -100))
	require.InDelta(t, 5, l.TokensAt(now), 1e-9, "the burst bounds what is given back")
	require.True(t, l.AllowN(now, 5))
	require.False(t, l.AllowN(now, 1))
}

func TestXTimeBurstCutsAndKeepsTokens(t *testing.T) {
	now := time.Now()
	l := rate.NewLimiter(1, 50)
	l.SetBurstAt(now, 1)
	l.SetBurstAt(now, 50)
	require.InDelta(t, 1, l.TokensAt(now), 1e-9)
	l.SetLimitAt(now.Add(2*time.Second), 100)
	require.InDelta(t, 3, l.TokensAt(now.Add(2*time.Second)), 1e-9, "what was earned is kept at the old rate")
	require.InDelta(t, 13, l.TokensAt(now.Add(2100*time.Millisecond)), 1e-9)
}

func TestXTimeZeroLimiterIsEmptyAndRefusalTakesNothing(t *testing.T) {
	now := time.Now()
	var l rate.Limiter
	refill(&l, now, 3)
	l.SetLimitAt(now, 1)
	l.SetBurstAt(now, 10)
	require.InDelta(t, 3, l.TokensAt(now), 1e-9)
	require.False(t, l.AllowN(now, 4))
	require.InDelta(t, 3, l.TokensAt(now), 1e-9)
}

func TestXTimeTakesLessThanANanosecondAsThere(t *testing.T) {
	for _, perSecond := range []float64{1, 3, 7, 0.001, 1e6 / 7, 1.0 / 86400} {
		now := time.Now()
		l := rate.NewLimiter(rate.Limit(perSecond), 1)
		for range 1000 {
			require.True(t, l.AllowN(now, 1))
			now = now.Add(time.Duration(span(1-l.TokensAt(now), perSecond)))
			require.False(t, l.AllowN(now.Add(-time.Microsecond), 1))
		}
	}
}

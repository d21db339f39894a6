package redisledger

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// timed is a ledger whose server's clock a test moves. What expires at an instant, expires
// after a day.
type timed struct {
	*Ledger
	clock *budget.Clock
}

const movedTime = `local real = redis
local function call(name, ...)
  if name == 'TIME' then return {'%d', '%06d'} end
  if name == 'PEXPIREAT' then return real.call('PEXPIRE', (...), 86400000) end
  return real.call(name, ...)
end
local redis = {pcall = call, call = call}
`

func (l *timed) move() {
	at, _ := l.clock.Source()
	l.flush(context.Background())
	l.scripts = newScripts(fmt.Sprintf(movedTime, at.Unix(), at.Nanosecond()/1000))
	l.store.told(at.UnixMilli())
}

func (l *timed) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	l.move()
	return l.Ledger.Hold(ctx, h)
}

func (l *timed) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	l.move()
	defer l.flush(ctx)
	return l.Ledger.Resolve(ctx, id, o)
}

func TestWindowsOfTheServersClock(t *testing.T) {
	client := redistest.Start(t).Client(t)
	ledgertest.RunWindows(t, ledgertest.Subject{Open: func(t testing.TB, o ledgertest.Options) budget.Ledger {
		h := fnv.New64a()
		_, _ = h.Write([]byte(o.Dir))
		return &timed{open1(t, client, Options{Name: strconv.FormatUint(h.Sum64(), 16), beat: time.Hour}), o.Clock}
	}})
}

// book writes what a window has settled, as if it had been spent then.
func book(t testing.TB, client *redis.Client, l *Ledger, name, id, settled string) {
	t.Helper()
	require.NoError(t, client.HSet(t.Context(), l.keys.window(name, id), "s", int64(budget.MustParse(settled))).Err())
}

// steady returns the present window of a period with long buckets, and waits for the next
// if it is about to end.
func steady(t testing.TB, b budget.Budget) budget.Window {
	t.Helper()
	w := b.Window(time.Now())
	if left := time.Until(w.End); left < 10*time.Second {
		<-time.After(left + time.Second)
		w = b.Window(time.Now())
	}
	return w
}

func TestRollingPeriodCountsItsBuckets(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	day := budget.Budget{Name: "rolling", Limit: 10 * budget.Unit, Every: budget.Rolling(24 * time.Hour)}
	w := steady(t, day)
	hour := w.End.Add(-time.Hour).Truncate(time.Hour)
	bucket := func(ago int) string { return hour.Add(-time.Duration(ago) * time.Hour).UTC().Format(time.RFC3339) }
	require.Equal(t, []string{w.ID, w.Oldest}, []string{bucket(0), bucket(24)})
	book(t, client, l, "rolling", bucket(25), "9") // counts no more
	book(t, client, l, "rolling", bucket(24), "1")
	book(t, client, l, "rolling", bucket(5), "3")
	book(t, client, l, "rolling", bucket(1), "2")
	take(t, l, day, "1")
	s, err := totalsOf(l, day)
	require.NoError(t, err)
	require.Equal(t, 7*budget.Unit, s.Used())
	for need, frees := range map[string]int{"3.01": 24, "4.01": 5, "7.01": 1, "9.01": 0} {
		_, err := l.Hold(t.Context(), holdOf(day, need))
		e := refused(t, err)
		require.Equal(t, 7*budget.Unit, e.Used)
		require.Equal(t, hour.Add(time.Duration(25-frees)*time.Hour).UTC(), e.RetryAt.UTC(), "for %s", need)
	}
	take(t, l, day, "3")
}

func TestCurrentWindowGoesBackByNoSmallStep(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for _, b := range []budget.Budget{
		{Name: "rolling", Limit: 10 * budget.Unit, Every: budget.Rolling(24 * time.Hour)},
		{Name: "day", Limit: 10 * budget.Unit, Every: budget.Day},
	} {
		l := open1(t, client, Options{Name: b.Name})
		w := steady(t, b)
		spend(t, l, b, "1")
		next := b.Window(w.End)
		lg := leg{}
		lg.at(next)
		book(t, client, l, b.Name, next.ID, "9.5")
		require.NoError(t, client.HSet(t.Context(), l.keys.account(b.Name),
			"cur", next.ID, "from", millis(lg.from), "till", millis(lg.till)).Err(), "a server whose clock was ahead")
		_, err := l.Hold(t.Context(), holdOf(b, "1"))
		require.Equal(t, next.ID, refused(t, err).Window, b.Name)
	}
}

func TestWindowFarAheadIsLeftAgain(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	spend(t, l, month(), "7")
	far := month().Window(time.Now().AddDate(1, 0, 0))
	book(t, client, l, "month", far.ID, "10")
	require.NoError(t, client.HSet(t.Context(), l.keys.account("month"), "cur", far.ID, "from", millis(far.Start), "till", millis(far.End)).Err())
	_, err := l.Hold(t.Context(), holdOf(month(), "3.01"))
	require.Equal(t, month().Window(time.Now()).ID, refused(t, err).Window)
	spend(t, l, month(), "3")
}

func TestLateCostOfAForgottenWindowIsNotDropped(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	id := take(t, l, month(), "2")
	require.NoError(t, client.Del(t.Context(), l.keys.window("month", month().Window(time.Now()).ID)).Err())
	require.NoError(t, client.HSet(t.Context(), l.keys.account("month"), "cur", "2100-01").Err()) // it was long ago
	_, err := l.Resolve(t.Context(), id, budget.Settled(budget.MustParse("1.5")))
	require.NoError(t, err)
	l.flush(t.Context())
	require.Equal(t, "1500000000", client.HGet(t.Context(), l.keys.unattributed, "s").Val())
}

func TestOutcomeInAVanishedWindowIsReportedWithTheRest(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	spend(t, l, month(), "6")
	id := take(t, l, month(), "2")
	require.NoError(t, client.Del(t.Context(), l.keys.window("month", month().Window(time.Now()).ID)).Err())
	_, err := l.Resolve(t.Context(), id, budget.Settled(budget.MustParse("1.5")))
	require.NoError(t, err)
	_, err = l.Hold(t.Context(), holdOf(month(), "2.51"))
	require.Equal(t, budget.MustParse("7.5"), refused(t, err).Used)
	require.Equal(t, "settled 7.5 presumed 0 held 0", books(t, l, month()))
}

func TestBucketsOfShortPeriodsDoNotPileUp(t *testing.T) {
	short, long := leg{}, leg{}
	now := time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)
	short.at(budget.Rolling(time.Minute).Window(now, nil))
	long.at(budget.Day.Window(now, nil))
	require.Len(t, short.windows(), 25)
	require.Equal(t, short.id, short.windows()[24])
	require.Equal(t, short.oldest, short.windows()[0])
	require.Less(t, short.expires().Sub(now), 2*time.Hour)
	require.Greater(t, long.expires().Sub(now), 400*24*time.Hour)
}

// How far the clocks of a machine and of the server are apart is told, for pages and alerts.
func TestSkewIsThatOfTheServersClock(t *testing.T) {
	l := open1(t, redistest.Start(t).Client(t), Options{Learn: -1})
	require.InDelta(t, 0, l.Skew().Seconds(), 30, "one machine, one clock")
	l.store.told(time.Now().Add(-time.Hour).UnixMilli())
	require.InDelta(t, 3600, l.Skew().Seconds(), 30, "ours is ahead")
	l.store.told(time.Now().Add(time.Hour).UnixMilli())
	require.InDelta(t, -3600, l.Skew().Seconds(), 30)
}

package redisledger

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// The names of tenants are hashed with the secret: with another one they would be funded anew.
func TestSecretSurvivesALossOfTheBooks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	old := open1(t, client, Options{beat: time.Hour})
	secret := string(old.Key())
	spend(t, old, month(), "1")
	require.NoError(t, client.FlushAll(t.Context()).Err())
	spend(t, old, month(), "1")
	require.Equal(t, secret, string(old.Key()))
	require.Equal(t, secret, string(open1(t, client, Options{}).Key()), "who is started later")

	require.NoError(t, client.FlushAll(t.Context()).Err())
	early := open1(t, client, Options{beat: time.Hour}) // before anybody has noticed
	spend(t, old, month(), "1")
	require.Equal(t, secret, string(old.Key()))
	require.Equal(t, secret, string(open1(t, client, Options{}).Key()))
	require.NotEqual(t, secret, string(early.Key()))
	spend(t, early, month(), "1")
	require.Equal(t, secret, string(early.Key()), "the one before the loss is everybody's")
	require.Equal(t, secret, string(open1(t, client, Options{}).Key()))
}

// Books of an earlier life, such as a file of yesterday, are as good as none.
func TestBooksOfAnEarlierLifeGrantNothing(t *testing.T) {
	client := redistest.Start(t).Client(t)
	slow := Options{Learn: 2 * time.Second, beat: time.Hour}
	a, b := open1(t, client, Options{beat: time.Hour}), open1(t, client, slow)
	b.options.Learn, a.options.Learn = -1, -1
	spend(t, a, month(), "1")
	spend(t, b, month(), "1")
	goBack := snapshot(t, client, a, b)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	spend(t, a, month(), "1") // another life has begun
	spend(t, b, month(), "4")
	require.Equal(t, "settled 7 presumed 0 held 0", books(t, a, month()))
	a.options.Learn, b.options.Learn = slow.Learn, slow.Learn
	goBack()
	_, err := a.Hold(t.Context(), holdOf(month(), "5"))
	require.ErrorIs(t, err, budget.ErrUnavailable, "b has not said yet what it spent")
	generation := client.HGet(t.Context(), a.keys.generation, "id").Val()
	require.NoError(t, b.beat(t.Context()))
	require.NoError(t, a.beat(t.Context()))
	require.Equal(t, generation, client.HGet(t.Context(), a.keys.generation, "id").Val(), "one life is enough")
	require.Eventually(t, func() bool { _, err = a.Hold(t.Context(), holdOf(month(), "5")); return refusedOrNil(err) }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 7*budget.Unit, refused(t, err).Used)
}

// A server whose clock was ahead when it began must not stand still until it comes there again.
func TestServersClockSetBackWhileLearning(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{Learn: time.Second, beat: time.Hour})
	day := time.Now().Add(24 * time.Hour).UnixMilli()
	require.NoError(t, client.HSet(t.Context(), l.keys.generation, "learn", day).Err())
	require.NoError(t, client.ZAdd(t.Context(), l.keys.owners, redis.Z{Score: float64(day), Member: "dead"}).Err())
	require.Eventually(t, func() bool { _, err := l.Hold(t.Context(), holdOf(month(), "5")); return err == nil }, 5*time.Second, 10*time.Millisecond)
	require.NoError(t, l.beat(t.Context()))
	require.Less(t, client.ZScore(t.Context(), l.keys.owners, "dead").Val(), float64(time.Now().Add(time.Minute).UnixMilli()))
}

// What people set holds until the configuration changes, not until Redis forgets it.
func TestLimitSetByPeopleSurvivesALoss(t *testing.T) {
	me := budget.By{Who: "me"}
	for name, lose := range map[string]func(*testing.T, *redis.Client, *Ledger){
		"all": func(t *testing.T, c *redis.Client, _ *Ledger) { require.NoError(t, c.FlushAll(t.Context()).Err()) },
		"the account, of a budget that rested": func(t *testing.T, c *redis.Client, l *Ledger) {
			require.NoError(t, c.Del(t.Context(), l.keys.account("month")).Err())
		},
		"all, and a budget that nobody has used since": func(t *testing.T, c *redis.Client, l *Ledger) {
			require.NoError(t, c.FlushAll(t.Context()).Err())
			require.NoError(t, l.beat(t.Context()))
			l.unconfigure("month")
		},
		"all, and somebody was faster": func(t *testing.T, c *redis.Client, _ *Ledger) {
			require.NoError(t, c.FlushAll(t.Context()).Err())
			spend(t, open1(t, c, Options{beat: time.Hour}), month(), "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := redistest.Start(t).Client(t)
			op, l := open1(t, client, Options{beat: time.Hour}), open1(t, client, Options{beat: time.Hour})
			require.NoError(t, op.Configure(t.Context(), month()))
			require.NoError(t, op.SetLimit(t.Context(), "month", 3*budget.Unit, me))
			require.NoError(t, l.beat(t.Context()))
			op.crash(t)
			lose(t, client, l)
			_, err := l.Hold(t.Context(), holdOf(month(), "3.01"))
			require.Equal(t, 3*budget.Unit, refused(t, err).Limit)
			spend(t, l, month(), "3")

			again := open1(t, client, Options{beat: time.Hour})
			changed := month()
			changed.Limit = 4 * budget.Unit
			spend(t, again, changed, "1")
			require.NoError(t, l.beat(t.Context()))
			require.NoError(t, client.FlushAll(t.Context()).Err())
			_, err = again.Hold(t.Context(), holdOf(changed, "3.01"))
			require.Equal(t, 4*budget.Unit, refused(t, err).Limit, "the configuration has changed since")
		})
	}
}

// A bucket of a rolling period that was evicted counts as a window does.
func TestEvictedBucketIsNoFullBudget(t *testing.T) {
	client := redistest.Start(t).Client(t)
	rolling := budget.Budget{Name: "rolling", Limit: 10 * budget.Unit, Every: budget.Rolling(24 * time.Hour)}
	l, set := openAt(t, client, afternoon("12:00:00"))
	other, setOther := openAt(t, client, afternoon("12:00:00"))
	spend(t, l, rolling, "4")
	spend(t, other, rolling, "3")
	bucket := l.keys.window("rolling", rolling.Window(afternoon("12:00:00")).ID)
	later := func(clock string) {
		set(afternoon(clock))
		setOther(afternoon(clock))
	}
	later("14:00:00")
	spend(t, l, rolling, "1")
	require.NoError(t, client.Del(t.Context(), bucket).Err())
	require.Equal(t, 5*budget.Unit, refusedBy(t, l, rolling, "5.01").Used, "it tells what it knows")
	require.NoError(t, other.beat(t.Context()))
	require.Equal(t, 8*budget.Unit, refusedBy(t, l, rolling, "2.01").Used)

	other.crash(t)
	l.mu.Lock()
	clear(l.own) // as if nobody knew
	l.mu.Unlock()
	require.NoError(t, client.Del(t.Context(), bucket).Err())
	for range 2 {
		_, err := l.Hold(t.Context(), holdOf(rolling, "1"))
		require.ErrorIs(t, err, budget.ErrUnavailable)
		require.ErrorContains(t, err, "12:00:00Z has vanished")
	}
	require.NoError(t, l.Release(t.Context(), budget.Target{Budget: "rolling"}, budget.By{Who: "me"}))
	spend(t, l, rolling, "1")
}

// What was reported after a loss can be evicted as well.
func TestEvictedBucketThatWasReportedIsNoFullBudget(t *testing.T) {
	client := redistest.Start(t).Client(t)
	rolling := budget.Budget{Name: "rolling", Limit: 10 * budget.Unit, Every: budget.Rolling(24 * time.Hour)}
	l, set := openAt(t, client, afternoon("12:00:00"))
	spend(t, l, rolling, "4")
	require.NoError(t, client.FlushAll(t.Context()).Err())
	for _, clock := range []string{"14:00:00", "15:00:00", "16:00:00", "17:00:00"} {
		set(afternoon(clock))
		spend(t, l, rolling, "1")
	}
	l.mu.Lock()
	clear(l.own) // as if nobody knew
	l.mu.Unlock()
	require.NoError(t, client.Del(t.Context(), l.keys.window("rolling", rolling.Window(afternoon("12:00:00")).ID)).Err())
	_, err := l.Hold(t.Context(), holdOf(rolling, "1"))
	require.ErrorIs(t, err, budget.ErrUnavailable)
}

// A limit that people put back to the configured one stays there, whatever is lost; so does one
// that the configuration replaced for a while.
func TestLimitPutBackSurvivesALoss(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	changed := month()
	changed.Limit = 4 * budget.Unit
	set := func(limit budget.Amount) error {
		return l.SetLimit(t.Context(), "month", limit, budget.By{Who: "me"})
	}
	for _, back := range []func() error{
		func() error { return set(month().Limit) }, func() error { return l.Configure(t.Context(), changed) },
	} {
		for _, lose := range []func() error{
			func() error { return client.Del(t.Context(), l.keys.account("month")).Err() },
			func() error { return client.FlushAll(t.Context()).Err() },
		} {
			require.NoError(t, l.Configure(t.Context(), month()))
			require.NoError(t, set(30*budget.Unit))
			require.NoError(t, back())
			require.NoError(t, l.Configure(t.Context(), month()))
			require.NoError(t, l.beat(t.Context()))
			require.NoError(t, lose())
			require.Equal(t, month().Limit, refusedBy(t, l, month(), "30").Limit)
		}
	}
}

func refusedBy(t *testing.T, l *Ledger, b budget.Budget, amount string) *budget.ExceededError {
	t.Helper()
	_, err := l.Hold(t.Context(), holdOf(b, amount))
	return refused(t, err)
}

// What one instance gives back of another's hold is not its own: after a loss it would hide as
// much of what it spent.
func TestMoneyGivenBackForAnotherHidesNothing(t *testing.T) {
	client := redistest.Start(t).Client(t)
	dead, l := open1(t, client, Options{beat: time.Hour}), open1(t, client, Options{beat: time.Hour})
	id := take(t, dead, month(), "5")
	dead.crash(t)
	require.NoError(t, l.beat(t.Context()))
	require.Equal(t, "settled 0 presumed 5 held 0", books(t, l, month()))
	_, err := l.Resolve(t.Context(), id, budget.Voided("reconciled"))
	require.NoError(t, err)
	spend(t, l, month(), "7")
	require.Equal(t, "settled 7 presumed 0 held 0", books(t, l, month()))
	require.NoError(t, client.FlushAll(t.Context()).Err())
	require.Equal(t, 7*budget.Unit, refusedBy(t, l, month(), "3.01").Used)
}

// The store may have booked an outcome before a window vanished or after, and its answer be
// still on its way when the instance reports what it spent.
func TestOutcomeWhoseAnswerComesAfterTheReport(t *testing.T) {
	client := redistest.Start(t).Client(t)
	second := month()
	second.Name = "second"
	gone := func(t *testing.T, l *Ledger, b budget.Budget) {
		require.EqualValues(t, 1, client.Del(t.Context(), l.keys.window(b.Name, b.Window(time.Now()).ID)).Val())
	}
	for name, c := range map[string]struct {
		before, after budget.Budget // the budget whose window vanishes
		outcome       budget.Outcome
		want          string
	}{
		"booked, then lost":         {after: month(), outcome: budget.Settled(budget.Unit / 2), want: "settled 0.5 presumed 0 held 1"},
		"lost, then booked":         {before: month(), outcome: budget.Settled(budget.Unit / 2), want: "settled 0.5 presumed 0 held 1"},
		"voided, then lost":         {after: month(), outcome: budget.Voided("dial"), want: "settled 0 presumed 0 held 1"},
		"another budget's was lost": {after: second, outcome: budget.Settled(budget.Unit / 2), want: "settled 0.5 presumed 0 held 1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := open1(t, client, Options{Name: strings.ReplaceAll(name, " ", "_"), beat: time.Hour})
			spend(t, l, second, "1")
			id := take(t, l, month(), "2")
			take(t, l, month(), "1")
			l.flush(t.Context())
			if c.before.Name != "" {
				gone(t, l, c.before)
			}
			l.mu.Lock()
			e := &late{open: l.open[id], outcome: c.outcome}
			e.open.outcome, e.sending = e, true
			l.sending++
			l.mu.Unlock()
			gen, batch := l.generation(), []*late{e}
			answers := l.store.pipe(t.Context(), l.commands(gen, batch))
			if c.after.Name != "" {
				gone(t, l, c.after)
			}
			for _, b := range []budget.Budget{month(), second} {
				_, err := l.Hold(t.Context(), holdOf(b, "9.6")) // notices the loss
				require.Error(t, err)
			}
			require.True(t, l.finish(t.Context(), gen, batch, answers))
			require.Equal(t, c.want, books(t, l, month()))
			require.Equal(t, "settled 1 presumed 0 held 0", books(t, l, second))
		})
	}
}

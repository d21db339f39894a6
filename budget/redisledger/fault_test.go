package redisledger

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// rounds is how often to repeat something: more if OUTLAY_PROVE is set.
func rounds(usual, prove int) int {
	if os.Getenv("OUTLAY_PROVE") != "" {
		return prove
	}
	return usual
}

// month is a budget of 10 dollars whose window no test sees the end of.
func month() budget.Budget {
	return budget.Budget{Name: "month", Limit: 10 * budget.Unit, Every: budget.Month}
}

var ids atomic.Uint64

func newID() budget.HoldID { return budget.HoldID{Boot: 7, Seq: ids.Add(1)} }

func holdOf(b budget.Budget, amount string) budget.Hold {
	return budget.Hold{ID: newID(), Provider: "sms", Legs: []budget.Leg{{Budget: b, Amount: budget.MustParse(amount)}}}
}

func take(t testing.TB, l *Ledger, b budget.Budget, amount string) budget.HoldID {
	t.Helper()
	h := holdOf(b, amount)
	_, err := l.Hold(context.Background(), h)
	require.NoError(t, err)
	return h.ID
}

func spend(t testing.TB, l *Ledger, b budget.Budget, amount string) {
	t.Helper()
	_, err := l.Resolve(context.Background(), take(t, l, b, amount), budget.Settled(budget.MustParse(amount)))
	require.NoError(t, err)
}

func totalsOf(l *Ledger, b budget.Budget) (budget.Totals, error) {
	all, err := l.Totals(context.Background(), time.Now(), b)
	if err != nil {
		return budget.Totals{}, err
	}
	return all[0], nil
}

func books(t testing.TB, l *Ledger, b budget.Budget) string {
	t.Helper()
	s, err := totalsOf(l, b)
	require.NoError(t, err)
	return fmt.Sprintf("settled %v presumed %v held %v", s.Settled, s.Presumed, s.Held)
}

// eventually waits until the books say so.
func eventually(t testing.TB, l *Ledger, b budget.Budget, want string) {
	t.Helper()
	got := ""
	ok := assert.Eventually(t, func() bool {
		s, err := totalsOf(l, b)
		got = fmt.Sprintf("settled %v presumed %v held %v", s.Settled, s.Presumed, s.Held)
		return err == nil && got == want
	}, 15*time.Second, 20*time.Millisecond)
	require.True(t, ok, "got %q, want %q", got, want)
}

// reasons are what the notices about the store say.
func reasons(r budget.Report) string {
	var all []string
	for _, n := range r.Notices {
		if n.Kind == budget.NoticeStore {
			all = append(all, n.Why)
		}
	}
	return strings.Join(all, "; ")
}

func refused(t testing.TB, err error) *budget.ExceededError {
	t.Helper()
	var e *budget.ExceededError
	require.ErrorAs(t, err, &e)
	return e
}

// quick is soon enough for tests, and late enough for a busy machine.
const quick = 500 * time.Millisecond

func TestServerDiesBetweenHoldAndResolve(t *testing.T) {
	s := redistest.Start(t)
	l := open1(t, s.Client(t), Options{Timeout: quick, beat: 50 * time.Millisecond})
	a, b := take(t, l, month(), "1"), take(t, l, month(), "2")
	s.Kill()
	report, err := l.Resolve(t.Context(), a, budget.Settled(budget.MustParse("0.4")))
	require.NoError(t, err, "it waits in memory")
	require.Equal(t, -budget.MustParse("0.6"), report.Delta)
	_, err = l.Resolve(t.Context(), a, budget.Settled(budget.MustParse("0.4")))
	require.NoError(t, err, "the same once more")
	_, err = l.Resolve(t.Context(), a, budget.Voided("no"))
	require.Error(t, err)
	begin := time.Now()
	_, err = l.Hold(t.Context(), holdOf(month(), "1"))
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.Less(t, time.Since(begin), 4*quick)
	_, err = l.Resolve(t.Context(), newID(), budget.Settled(1))
	require.ErrorIs(t, err, budget.ErrUnavailable, "whose hold that is nobody knows")
	s.Restart(t)
	eventually(t, l, month(), "settled 0.4 presumed 0 held 2")
	_, err = l.Resolve(t.Context(), b, budget.Voided("not_sent"))
	require.NoError(t, err)
	require.Equal(t, "settled 0.4 presumed 0 held 0", books(t, l, month()))
}

func TestHoldWhoseAnswerIsLostIsVoid(t *testing.T) {
	s := redistest.Start(t)
	l := open1(t, s.Client(t), Options{Timeout: quick, beat: 50 * time.Millisecond})
	spend(t, l, month(), "1")
	resume := s.Pause(t)
	h := holdOf(month(), "5")
	begin := time.Now()
	report, err := l.Hold(t.Context(), h)
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.Less(t, time.Since(begin), 4*quick)
	require.Contains(t, reasons(report), "does not answer")
	resume() // and carries out what it had read
	eventually(t, l, month(), "settled 1 presumed 0 held 0")
	require.NotContains(t, l.open, h.ID)
	spend(t, l, month(), "9")
}

func TestHoldThatIsAskedForAgainAfterALostAnswerCounts(t *testing.T) {
	s := redistest.Start(t)
	l := open1(t, s.Client(t), Options{Timeout: quick, beat: time.Hour})
	resume := s.Pause(t)
	h := holdOf(month(), "5")
	_, err := l.Hold(t.Context(), h)
	require.ErrorIs(t, err, budget.ErrUnavailable)
	resume()
	require.Eventually(t, func() bool { _, err = l.Hold(t.Context(), h); return err == nil }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, "settled 0 presumed 0 held 5", books(t, l, month()))
}

func TestFlushedBooksAreReportedBeforeAnythingIsGranted(t *testing.T) {
	client := redistest.Start(t).Client(t)
	fast := Options{Learn: time.Second, beat: 50 * time.Millisecond}
	a, b := open1(t, client, fast), open1(t, client, fast)
	require.Eventually(t, func() bool { _, err := a.Hold(t.Context(), holdOf(month(), "0")); return err == nil }, 10*time.Second, 10*time.Millisecond,
		"a store that is new may be one that lost everything")
	spend(t, a, month(), "4")
	inFlight := take(t, a, month(), "2")
	spend(t, b, month(), "1.5")
	presumed := take(t, b, month(), "0.5")
	_, err := b.Resolve(t.Context(), presumed, budget.Presumed(0))
	require.NoError(t, err)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	c := open1(t, client, fast)
	_, err = c.Hold(t.Context(), holdOf(month(), "1"))
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.ErrorContains(t, err, "nothing is granted")
	require.Equal(t, ModeLearning, c.Mode())
	var over error
	require.Eventually(t, func() bool {
		_, over = c.Hold(t.Context(), holdOf(month(), "2.01"))
		return refusedOrNil(over)
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 8*budget.Unit, refused(t, over).Used)
	spend(t, c, month(), "2")
	_, err = a.Resolve(t.Context(), inFlight, budget.Settled(budget.MustParse("1.75")))
	require.NoError(t, err)
	require.Equal(t, "settled 9.75 presumed 0 held 0", books(t, c, month()))
	require.Equal(t, ModeExact, c.Mode())
}

func refusedOrNil(err error) bool {
	if err == nil {
		return true
	}
	_, ok := err.(*budget.ExceededError)
	return ok
}

// snapshot remembers all keys; the result puts them back, as a replica that is behind
// would have them.
func snapshot(t testing.TB, client *redis.Client, ledgers ...*Ledger) (restore func()) {
	ctx := context.Background()
	for _, l := range ledgers {
		l.flush(ctx)
	}
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	dumps := map[string]string{}
	for _, k := range keys {
		dumps[k] = client.Dump(ctx, k).Val()
	}
	return func() {
		pipe := client.TxPipeline()
		pipe.FlushAll(ctx)
		for k, v := range dumps {
			pipe.Restore(ctx, k, time.Hour, v)
		}
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
	}
}

func TestBooksThatWentBackAreCorrected(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	settledLater, lostHold := take(t, l, month(), "2"), budget.HoldID{}
	goBack := snapshot(t, client, l)
	_, err := l.Resolve(t.Context(), settledLater, budget.Settled(budget.MustParse("1.5")))
	require.NoError(t, err)
	spend(t, l, month(), "3")
	lostHold = take(t, l, month(), "1")
	require.Equal(t, "settled 4.5 presumed 0 held 1", books(t, l, month()))
	goBack()
	require.Equal(t, "settled 0 presumed 0 held 2", books(t, l, month()))
	report, err := l.Hold(t.Context(), holdOf(month(), "4.51"))
	require.Equal(t, budget.MustParse("5.5"), refused(t, err).Used)
	require.Contains(t, reasons(report), "acknowledged writes are lost")
	require.Equal(t, "settled 4.5 presumed 0 held 1", books(t, l, month()))
	_, err = l.Resolve(t.Context(), lostHold, budget.Settled(budget.Unit))
	require.NoError(t, err)
	require.Equal(t, "settled 5.5 presumed 0 held 0", books(t, l, month()))
}

func TestLossDoesNotBringOldLimitsBack(t *testing.T) {
	client := redistest.Start(t).Client(t)
	old, young := open1(t, client, Options{beat: time.Hour}), open1(t, client, Options{beat: time.Hour})
	spend(t, old, month(), "1")
	raised := month()
	raised.Limit = 20 * budget.Unit
	spend(t, young, raised, "1")
	goBack := snapshot(t, client, old, young)
	spend(t, old, month(), "1")
	goBack()
	spend(t, old, month(), "1") // it reports what was lost
	old.flush(t.Context())
	s, err := totalsOf(young, raised)
	require.NoError(t, err)
	require.Equal(t, []budget.Amount{4 * budget.Unit, 20 * budget.Unit, 0}, []budget.Amount{s.Settled, s.Limit, s.Held + s.Presumed})
	require.NoError(t, young.SetLimit(t.Context(), "month", 30*budget.Unit, budget.By{Who: "me"}))
	goBack = snapshot(t, client, old, young)
	spend(t, young, raised, "1")
	goBack()
	spend(t, young, raised, "21")
}

func TestEvictedWindowIsNoFullBudget(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open1(t, client, Options{beat: 50 * time.Millisecond}), open1(t, client, Options{beat: 50 * time.Millisecond})
	spend(t, a, month(), "6")
	spend(t, b, month(), "1")
	flying := take(t, b, month(), "1")
	window := a.keys.window("month", month().Window(time.Now()).ID)
	require.NoError(t, client.Del(t.Context(), window).Err())
	_, err := b.Hold(t.Context(), holdOf(month(), "9"))
	require.Error(t, err)
	eventually(t, a, month(), "settled 7 presumed 0 held 1")
	_, err = b.Resolve(t.Context(), flying, budget.Settled(budget.Unit))
	require.NoError(t, err)
	require.Equal(t, "settled 8 presumed 0 held 0", books(t, b, month()))
	_, err = a.Hold(t.Context(), holdOf(month(), "2.01"))
	refused(t, err)
}

func TestVanishedWindowWaitsForAPerson(t *testing.T) {
	client := redistest.Start(t).Client(t)
	first := open1(t, client, Options{})
	spend(t, first, month(), "6")
	first.crash(t)
	l := open1(t, client, Options{})
	require.NoError(t, client.Del(t.Context(), l.keys.window("month", month().Window(time.Now()).ID)).Err())
	for range 3 {
		_, err := l.Hold(t.Context(), holdOf(month(), "1"))
		require.ErrorIs(t, err, budget.ErrUnavailable)
		require.ErrorContains(t, err, "vanished")
	}
	require.NoError(t, l.Release(t.Context(), budget.Target{Budget: "month"}, budget.By{Who: "me", Why: "looked at the invoice"}))
	spend(t, l, month(), "1")
}

func TestDeadInstancesHoldsArePresumed(t *testing.T) {
	client := redistest.Start(t).Client(t)
	dead, l := open1(t, client, Options{beat: time.Hour}), open1(t, client, Options{beat: 20 * time.Millisecond})
	var held []budget.HoldID
	for range 70 {
		held = append(held, take(t, dead, month(), "0.1"))
	}
	require.NoError(t, client.ZAddXX(t.Context(), l.keys.owners, redis.Z{Score: 1, Member: dead.id}).Err())
	eventually(t, l, month(), "settled 0 presumed 7 held 0")
	_, err := l.Hold(t.Context(), holdOf(month(), "4"))
	require.Equal(t, budget.ReasonExhausted, refused(t, err).Reason)
	dead.mu.Lock()
	dead.alive = time.Time{} // as it says after it was stopped for long
	dead.mu.Unlock()
	report, err := dead.Resolve(t.Context(), held[0], budget.Settled(budget.MustParse("0.04")))
	require.NoError(t, err, "it was only stopped, and knows better")
	require.True(t, report.Late)
	require.Equal(t, "settled 0.04 presumed 6.9 held 0", books(t, l, month()))
	take(t, dead, month(), "1")
	require.Equal(t, "settled 0.04 presumed 6.9 held 1", books(t, l, month()))
}

func TestLastMoneyHasOneWinner(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open1(t, client, Options{}), open1(t, client, Options{})
	for i := range rounds(50, 1000) {
		last := month()
		last.Name = fmt.Sprint("last-", i)
		var passed, no atomic.Int64
		var wg sync.WaitGroup
		for _, l := range []*Ledger{a, b} {
			wg.Go(func() {
				_, err := l.Hold(context.Background(), holdOf(last, "10"))
				if err == nil {
					passed.Add(1)
				} else if refusedOrNil(err) {
					no.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, []int64{1, 1}, []int64{passed.Load(), no.Load()})
	}
}

func TestAmountsAreExactBeyondTheNumbersOfLua(t *testing.T) {
	l := open1(t, redistest.Start(t).Client(t), Options{})
	much := month()
	much.Limit = 9_007_199_254_740_994
	_, err := l.Hold(t.Context(), budget.Hold{ID: newID(), Provider: "sms", Legs: []budget.Leg{{Budget: much, Amount: 9_007_199_254_740_993}}})
	require.NoError(t, err)
	_, err = l.Hold(t.Context(), budget.Hold{ID: newID(), Provider: "sms", Legs: []budget.Leg{{Budget: much, Amount: 1}}})
	require.NoError(t, err)
	_, err = l.Hold(t.Context(), budget.Hold{ID: newID(), Provider: "sms", Legs: []budget.Leg{{Budget: much, Amount: 1}}})
	require.Equal(t, much.Limit, refused(t, err).Used)
}

func TestServersClockDecides(t *testing.T) {
	l := open1(t, redistest.Start(t).Client(t), Options{})
	for _, wrong := range []time.Duration{40 * 24 * time.Hour, -40 * 24 * time.Hour} {
		l.store.mu.Lock()
		l.store.offset = wrong // our clock is off, and the server has not told us yet
		l.store.mu.Unlock()
		l.mu.Lock()
		l.accounts["month"] = &account{given: month().Normal()}
		l.mu.Unlock()
		spend(t, l, month(), "1")
	}
	require.Equal(t, "settled 2 presumed 0 held 0", books(t, l, month()))
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	id := take(t, l, month(), "1")
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	_, err := l.Resolve(t.Context(), id, budget.Settled(budget.Unit))
	require.NoError(t, err)
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	take(t, l, month(), "1")
	require.Equal(t, "settled 1 presumed 0 held 1", books(t, l, month()))
}

func TestKeysOfAnotherTypeChangeNothing(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	id := take(t, l, month(), "1")
	window := l.keys.window("month", month().Window(time.Now()).ID)
	for _, key := range []string{window, l.keys.account("month"), l.keys.holds(l.id), l.keys.hold(id)} {
		dump := client.Dump(t.Context(), key).Val()
		require.NoError(t, client.Set(t.Context(), key, "x", 0).Err())
		_, err := l.Hold(t.Context(), budget.Hold{ID: id, Provider: "maps", Legs: holdOf(month(), "1").Legs})
		require.Error(t, err)
		_, err = l.send(t.Context(), &late{open: l.open[id], outcome: budget.Settled(1)})
		require.Error(t, err)
		require.NoError(t, client.Del(t.Context(), key).Err())
		require.NoError(t, client.Restore(t.Context(), key, time.Hour, dump).Err())
		l.mu.Lock()
		l.waiting, l.doubts = nil, map[budget.HoldID]*late{}
		l.mu.Unlock()
	}
	require.Equal(t, "settled 0 presumed 0 held 1", books(t, l, month()))
}

func TestAllowanceIsSpentInAnOutageAndNotMore(t *testing.T) {
	s := redistest.Start(t)
	l := open1(t, s.Client(t), Options{Timeout: quick, beat: 20 * time.Millisecond, Outage: map[string]budget.Amount{"month": budget.MustParse("0.2")}})
	spend(t, l, month(), "1")
	eventually(t, l, month(), "settled 1 presumed 0 held 0.2")
	s.Kill()
	passed, other := 0, month()
	other.Name = "other"
	for range 30 {
		h := holdOf(month(), "0.01")
		if _, err := l.Hold(t.Context(), h); err != nil {
			require.ErrorIs(t, err, budget.ErrUnavailable)
			continue
		}
		passed++
		_, err := l.Resolve(t.Context(), h.ID, budget.Settled(budget.MustParse("0.01")))
		require.NoError(t, err)
	}
	require.Equal(t, 20, passed)
	_, err := l.Hold(t.Context(), holdOf(other, "0.01"))
	require.ErrorIs(t, err, budget.ErrUnavailable, "nothing is held of this one")
	require.Equal(t, ModeAway, l.Mode())
	s.Restart(t)
	eventually(t, l, month(), "settled 1.2 presumed 0 held 0.2")
	require.NoError(t, l.Close())
	again := open1(t, s.Client(t), Options{})
	require.Equal(t, "settled 1.2 presumed 0 held 0", books(t, again, month()), "given back by Close")
}

func TestCloseSignsOff(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	spend(t, l, month(), "1")
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	require.Zero(t, client.ZCard(t.Context(), l.keys.owners).Val())
}

func TestEveryKeyOfACallExpires(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	rolling := budget.Budget{Name: "roll {x}", Limit: budget.Unit, Every: budget.Rolling(time.Hour)}
	early := take(t, l, rolling, "0.1")
	_, err := l.Resolve(t.Context(), early, budget.Settled(budget.Unit/10))
	require.NoError(t, err)
	_, err = l.History(t.Context(), time.Now(), month(), rolling) // from here on what is remembered expires as well
	require.NoError(t, err)
	_, err = l.Correct(t.Context(), early, budget.Unit/20, budget.By{Who: "anna"})
	require.NoError(t, err)
	spend(t, l, month(), "1")
	take(t, l, rolling, "0.5")
	_, err = l.Resolve(t.Context(), take(t, l, rolling, "0.25"), budget.Presumed(0))
	require.NoError(t, err)
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	forever := 0
	for _, k := range keys {
		require.True(t, strings.HasPrefix(k, "outlay:{ledger}:"), k)
		if client.PTTL(t.Context(), k).Val() < 0 {
			forever++
			require.Contains(t, []string{l.keys.generation, l.keys.owners, l.keys.log}, k)
		}
	}
	require.LessOrEqual(t, forever, 3, "what all share for ever")
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t)
	ctx := t.Context()
	require.NoError(t, client.Do(ctx, "ACL", "SETUSER", "weak", "on", ">se-cret", "~*", "&*", "+@all", "-eval", "-evalsha").Err())
	require.NoError(t, client.Set(ctx, "string:{ledger}:generation", "1", 0).Err())
	require.NoError(t, client.HSet(ctx, "hash:{ledger}:generation", "app", "a shop").Err())
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for name, c := range map[string]struct {
		redis redis.Options
		o     Options
		want  string
	}{
		"no scripts":          {redis.Options{Addr: s.Addr, Username: "weak", Password: "se-cret"}, Options{}, "@scripting"},
		"wrong password":      {redis.Options{Addr: s.Addr, Username: "weak", Password: "se-cret-2"}, Options{}, "password of the client"},
		"keys of other types": {redis.Options{Addr: s.Addr}, Options{Prefix: "string"}, "choose another Prefix"},
		"keys of a shop":      {redis.Options{Addr: s.Addr}, Options{Prefix: "hash"}, "belongs to a shop"},
		"TLS to a plain one":  {redis.Options{Addr: s.Addr, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis"}}, Options{}, "TLS on both sides"},
		"nobody there":        {redis.Options{Addr: gone.Addr().String()}, Options{}, "refused"},
		"braces":              {redis.Options{Addr: s.Addr}, Options{Name: "a{b}"}, "braces"},
		"bad time-out":        {redis.Options{Addr: s.Addr}, Options{Timeout: -1}, "Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			c.redis.MaxRetries, c.redis.DialTimeout = -1, time.Second
			client := redis.NewClient(&c.redis)
			defer client.Close()
			_, err := New(client, c.o)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "se-cret")
		})
	}
	_, err = New(nil, Options{})
	require.ErrorContains(t, err, "no client")
}

func TestUnsafeSettingsAreTold(t *testing.T) {
	s := redistest.Start(t, "--maxmemory-policy", "allkeys-lru", "--appendonly", "no")
	_, err := New(s.Client(t), Options{Durable: true})
	require.ErrorIs(t, err, budget.ErrUnavailable)
	l := open1(t, s.Client(t), Options{})
	report, err := l.Hold(t.Context(), holdOf(month(), "1"))
	require.NoError(t, err)
	require.Contains(t, reasons(report), "noeviction")
	require.Contains(t, reasons(report), "nothing on disk")
	report, err = l.Hold(t.Context(), holdOf(month(), "1"))
	require.NoError(t, err)
	require.Empty(t, report.Notices)
	open1(t, redistest.Start(t).Client(t), Options{Durable: true})
}

func TestUnknownClientIsBounded(t *testing.T) {
	s := redistest.Start(t)
	l := open1(t, struct{ redis.UniversalClient }{s.Client(t)}, Options{Timeout: quick})
	resume := s.Pause(t)
	begin := time.Now()
	_, err := l.Hold(t.Context(), holdOf(month(), "1"))
	took := time.Since(begin)
	resume()
	require.ErrorIs(t, err, budget.ErrUnavailable)
	require.Less(t, took, 4*quick)
}

package redisledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

// atTime begins a script whose clock stands at an instant of the test's own.
const atTime = `local real = redis
local redis = {pcall = real.pcall, call = function(name, ...)
  if name == 'TIME' then return {'%d', '%06d'} end
  return real.call(name, ...)
end}
`

// openAt opens a ledger whose server's clock the test sets.
func openAt(t *testing.T, client *redis.Client, at time.Time) (l *Ledger, set func(time.Time)) {
	l = open1(t, client, Options{beat: time.Hour})
	set = func(at time.Time) {
		l.flush(context.Background()) // what is on its way was before
		l.scripts = newScripts(fmt.Sprintf(atTime, at.Unix(), at.Nanosecond()/1000))
		l.store.told(at.UnixMilli())
	}
	set(at)
	return l, set
}

// afternoon is today, or tomorrow, so that what is kept for a while is not over yet.
func afternoon(clock string) time.Time {
	at, err := time.Parse(time.TimeOnly, clock)
	if err != nil {
		panic(err)
	}
	y, m, d := time.Now().UTC().AddDate(0, 0, 1).Date()
	return time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

func points(t testing.TB, l *Ledger, at time.Time, b budget.Budget) (h budget.History, by map[string]string) {
	t.Helper()
	all, err := l.History(t.Context(), at, b)
	require.NoError(t, err)
	by = map[string]string{}
	for _, p := range all[0].Points {
		by[p.At.UTC().Format(time.TimeOnly)] = fmt.Sprintf("%v %v", p.Settled, p.Presumed)
	}
	return all[0], by
}

func TestHistoryHasEveryPartOfItsWindow(t *testing.T) {
	day := budget.Budget{Name: "day", Limit: 10 * budget.Unit, Every: budget.Day}
	l, set := openAt(t, redistest.Start(t).Client(t), afternoon("12:00:00"))
	spend(t, l, day, "4") // before anybody asks
	old := take(t, l, day, "0.5")
	set(afternoon("12:20:00"))
	_, err := l.History(t.Context(), afternoon("12:20:00"), day)
	require.NoError(t, err)
	spend(t, l, day, "1")
	set(afternoon("13:10:00"))
	id := take(t, l, day, "2")
	_, err = l.Resolve(t.Context(), id, budget.Presumed(0))
	require.NoError(t, err)
	_, err = l.Resolve(t.Context(), old, budget.Settled(budget.Unit/4))
	require.NoError(t, err)
	set(afternoon("15:00:00"))
	_, err = l.Resolve(t.Context(), id, budget.Corrected(budget.Unit/2, "invoice"))
	require.NoError(t, err)
	set(afternoon("16:00:01"))
	h, got := points(t, l, afternoon("16:00:01"), day)
	require.WithinDuration(t, afternoon("12:20:00"), h.Since, 0)
	require.Len(t, h.Points, 16)
	for at, want := range map[string]string{
		"12:30:00": "5 0", "13:00:00": "5 0", "13:15:00": "5.25 2", "15:00:00": "5.25 2", "15:15:00": "5.75 0", "16:00:01": "5.75 0",
	} {
		require.Equal(t, want, got[at], at)
	}
	s := spending(t, l, afternoon("16:00:01"), day)
	require.Equal(t, "settled 4.25 presumed 0 held 0, 1 calls", s[""], "what was before belongs to nobody")
	require.Equal(t, "settled 1.5 presumed 0 held 0, 2 calls, floor 0, up 0, down 1.5, 0 open, 0 presumed", s["sms"])

	next := afternoon("00:00:01").AddDate(0, 0, 1)
	set(next)
	spend(t, l, day, "3")
	h, got = points(t, l, next, day)
	require.Equal(t, h.Window.Start, h.Since, "it is known already")
	require.Equal(t, map[string]string{"00:00:01": "3 0"}, got)
	_, got = points(t, l, afternoon("23:59:59"), day)
	require.Equal(t, "5.25 2", got["14:00:00"], "of the day before")
}

func TestHistoryOfARollingPeriodAddsUpItsBuckets(t *testing.T) {
	six := budget.Budget{Name: "six", Limit: 100 * budget.Unit, Every: budget.Rolling(6 * time.Hour)}
	at := afternoon("09:00:00")
	l, set := openAt(t, redistest.Start(t).Client(t), at)
	_, _ = points(t, l, at, six)
	for range 30 {
		spend(t, l, six, "1")
		at = at.Add(20 * time.Minute)
		set(at)
	}
	h, _ := points(t, l, at, six)
	first, last := h.Points[0], h.Points[len(h.Points)-1]
	require.Less(t, first.Settled, 2*budget.Unit, "the oldest part has what was booked first")
	totals, err := l.Totals(t.Context(), at, six)
	require.NoError(t, err)
	require.Equal(t, totals[0].Settled, last.Settled)
	require.Equal(t, fmt.Sprintf("settled %v presumed 0 held 0, %d calls", last.Settled, last.Settled/budget.Unit), spending(t, l, at, six)["sms"])
	windows, err := l.Windows(t.Context(), at.Add(-time.Hour), at)
	require.NoError(t, err)
	require.Len(t, windows, 3, "buckets, each alone")
	require.Equal(t, budget.Unit, windows[0].Settled)
	require.Equal(t, six.Every, windows[0].Budget.Every)
}

// spending is that of a budget by provider.
func spending(t testing.TB, l budget.Historian, at time.Time, b budget.Budget) map[string]string {
	t.Helper()
	all, err := l.Spending(t.Context(), at, b)
	require.NoError(t, err)
	by := map[string]string{}
	for _, s := range all {
		by[s.Provider] = fmt.Sprintf("settled %v presumed %v held %v, %d calls", s.Settled, s.Presumed, s.Held, s.Calls)
		if s.Floor+s.Up+s.Down != 0 || s.Open+s.PresumedCalls != 0 {
			by[s.Provider] += fmt.Sprintf(", floor %v, up %v, down %v, %d open, %d presumed", s.Floor, s.Up, s.Down, s.Open, s.PresumedCalls)
		}
	}
	return by
}

// TestSpendingIsThatOfMemory plays the same calls on both.
func TestSpendingIsThatOfMemory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	l, m := open1(t, redistest.Start(t).Client(t), Options{}), new(budget.Memory)
	count := budget.Budget{Name: "count", Limit: 1_000_000 * budget.Unit, Every: budget.Month, Unit: budget.Calls}
	money := budget.Budget{Name: "money", Limit: 4_000_000_000 * budget.Unit, Every: budget.Month}
	both := []interface {
		budget.Ledger
		budget.Historian
	}{l, m}
	var ids []budget.HoldID
	amounts := []budget.Amount{0, 1, budget.Unit / 3, budget.Unit, 9_007_199_254_740_993}
	for i := range rounds(400, 5000) {
		now := time.Now()
		if i == 0 {
			for _, b := range both {
				_, err := b.History(t.Context(), now, count, money)
				require.NoError(t, err)
			}
		}
		amount := amounts[random.IntN(len(amounts))]
		if len(ids) == 0 || random.IntN(2) == 0 {
			h := budget.Hold{ID: newID(), Provider: []string{"sms", "maps", "s p\n1"}[random.IntN(3)], Legs: []budget.Leg{{Budget: count, Amount: budget.Unit}, {Budget: money, Amount: amount}}}
			_, want := m.Hold(t.Context(), h)
			_, err := l.Hold(t.Context(), h)
			require.Equal(t, want == nil, err == nil, "%v, and %v", want, err)
			if err == nil {
				ids = append(ids, h.ID)
			}
		} else {
			id := ids[max(0, len(ids)-1-random.IntN(6))]
			o := []budget.Outcome{budget.Settled(amount), budget.Voided("x"), budget.Presumed(amount), budget.Corrected(amount, "x")}[random.IntN(4)]
			_, want := m.Resolve(t.Context(), id, o)
			_, err := l.Resolve(t.Context(), id, o)
			require.Equal(t, want == nil, err == nil, "%v: %v, and %v", o, want, err)
		}
		if i%7 != 0 {
			continue
		}
		for _, b := range []budget.Budget{count, money} {
			want, got := spending(t, m, now, b), spending(t, l, now, b)
			require.Equal(t, want, got, b.Name)
		}
	}
}

func TestProvidersOfATallyAreBounded(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	_, err := l.Spending(t.Context(), time.Now(), month())
	require.NoError(t, err)
	for i := range 70 {
		h := holdOf(month(), "0.1")
		h.Provider = fmt.Sprint("p", i)
		for range 2 {
			h.ID = newID()
			_, err := l.Hold(t.Context(), h)
			require.NoError(t, err)
			_, err = l.Resolve(t.Context(), h.ID, budget.Settled(budget.Unit/100))
			require.NoError(t, err)
		}
	}
	s := spending(t, l, time.Now(), month())
	require.Len(t, s, 65)
	require.Equal(t, "settled 0.12 presumed 0 held 0, 12 calls", s[""])
	require.Equal(t, "settled 0.02 presumed 0 held 0, 2 calls", s["p63"])
	size := client.HLen(t.Context(), l.keys.tally("month", month().Window(time.Now()).ID)).Val()
	require.LessOrEqual(t, size, int64(64*4+4))
}

// The books do without a tally, an index and a log that are of no use.
func TestWhatIsRememberedIsNotTheBooks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	_, err := l.History(t.Context(), time.Now(), month())
	require.NoError(t, err)
	for _, key := range []string{l.keys.tally("month", month().Window(time.Now()).ID), l.keys.index, l.keys.log} {
		require.NoError(t, client.Set(t.Context(), key, "x", 0).Err())
	}
	spend(t, l, month(), "1")
	id := take(t, l, month(), "2")
	_, err = l.Resolve(t.Context(), id, budget.Presumed(0))
	require.NoError(t, err)
	_, err = l.Correct(t.Context(), id, budget.Unit, budget.By{Who: "anna"})
	require.NoError(t, err)
	require.Equal(t, "settled 2 presumed 0 held 0", books(t, l, month()))
	_, err = l.Spending(t.Context(), time.Now(), month())
	require.ErrorIs(t, err, budget.ErrUnavailable)
}

func TestHistoryAfterALossOfTheBooks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: 20 * time.Millisecond})
	_, err := l.History(t.Context(), time.Now(), month())
	require.NoError(t, err)
	spend(t, l, month(), "3")
	require.Equal(t, "settled 3 presumed 0 held 0", books(t, l, month()))
	require.NoError(t, client.FlushAll(t.Context()).Err())
	eventually(t, l, month(), "settled 3 presumed 0 held 0")
	h, _ := points(t, l, time.Now(), month())
	require.Equal(t, 3*budget.Unit, h.Points[len(h.Points)-1].Settled)
	require.Equal(t, map[string]string{"": "settled 3 presumed 0 held 0, 0 calls"}, spending(t, l, time.Now(), month()))
	windows, err := l.Windows(t.Context(), time.Time{}, time.Time{})
	require.NoError(t, err)
	require.Len(t, windows, 1, "it is listed again")
}

func TestAuditKeepsTheNewest(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{})
	spend(t, l, month(), "1")
	other := month()
	other.Limit, other.Label = 2*budget.Unit, "Texts"
	require.NoError(t, l.SetLimit(t.Context(), "month", 5*budget.Unit, budget.By{Who: "anna", Why: "more"}))
	require.NoError(t, l.Release(t.Context(), budget.Target{Budget: "month"}, budget.By{Who: "anna"}), "which changes nothing")
	spend(t, open1(t, client, Options{}), other, "0.5")
	note := budget.Audited{Action: "adjust", Target: budget.Target{Budget: "month"}, Hold: newID(), From: "1", To: "2000", By: budget.By{Who: "otto"}}
	require.NoError(t, l.Note(t.Context(), note))
	all, err := l.Audit(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []string{"limit", "Texts", "10", "5"}, []string{all[0].Action, all[0].Target.Budget, all[0].From, all[0].To})
	require.Equal(t, []string{"configured", "Texts", "5", "2"}, []string{all[1].Action, all[1].Target.Budget, all[1].From, all[1].To})
	note.ID, note.At, note.Target.Budget = all[2].ID, all[2].At, "Texts"
	require.Equal(t, note, all[2])
	for _, id := range []string{"1-x", "-1", "(1", "+", "-"} {
		_, err = l.Audit(t.Context(), id, 10)
		require.ErrorContains(t, err, "no entry has the id", id)
	}
	for range 12_000 / 500 {
		p := client.Pipeline()
		for range 500 {
			p.XAdd(t.Context(), &redis.XAddArgs{Stream: l.keys.log, Values: []any{"what", "old"}})
		}
		_, err = p.Exec(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, l.SetLimit(t.Context(), "month", 6*budget.Unit, budget.By{Who: "anna"}))
	require.Less(t, client.XLen(t.Context(), l.keys.log).Val(), int64(maxLog+200))
	all, err = l.Audit(t.Context(), "", 5000)
	require.NoError(t, err)
	require.Len(t, all, 1000)
	require.Equal(t, "limit", all[999].Action)
}

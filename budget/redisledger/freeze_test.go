package redisledger

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestFreezeHoldsWhileAnAllowanceIsSpent(t *testing.T) {
	for name, target := range map[string]budget.Target{"budget": {Budget: "month"}, "provider": {Provider: "sms"}} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			l := open1(t, s.Client(t), Options{Timeout: quick, beat: 20 * time.Millisecond, Outage: map[string]budget.Amount{"month": budget.MustParse("0.2")}})
			other := open1(t, s.Client(t), Options{})
			spend(t, l, month(), "1")
			eventually(t, l, month(), "settled 1 presumed 0 held 0.2")
			require.NoError(t, other.Freeze(t.Context(), target, budget.By{Who: "me"}))
			require.Eventually(t, func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return len(l.frozen) == 1
			}, 10*time.Second, 5*time.Millisecond, "within one sign of life")
			s.Kill()
			for range 3 {
				_, err := l.Hold(t.Context(), holdOf(month(), "0.01"))
				var e *budget.FrozenError
				require.ErrorAs(t, err, &e)
				require.WithinDuration(t, time.Now(), e.Since, time.Minute)
			}
			s.Restart(t)
			require.Eventually(t, func() bool { return other.Release(t.Context(), target, budget.By{Who: "me"}) == nil }, 10*time.Second, 10*time.Millisecond)
			require.Eventually(t, func() bool { _, err := l.Hold(t.Context(), holdOf(month(), "0.01")); return err == nil }, 10*time.Second, 10*time.Millisecond)
		})
	}
}

func TestFreezeSurvivesALossOfTheBooks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open1(t, client, Options{beat: time.Hour})
	spend(t, l, month(), "1")
	require.NoError(t, l.Freeze(t.Context(), budget.Target{Provider: "sms"}, budget.By{Who: "me"}))
	require.NoError(t, client.FlushAll(t.Context()).Err())
	_, err := l.Hold(t.Context(), holdOf(month(), "1"))
	var e *budget.FrozenError
	require.ErrorAs(t, err, &e)
	require.NoError(t, l.Release(t.Context(), budget.Target{Provider: "sms"}, budget.By{Who: "me"}))
	spend(t, l, month(), "1")
}

// swallower is a proxy that carries commands out and loses answers while it is told to.
func swallower(t testing.TB, to string) (addr string, lose *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	lose = new(atomic.Int32)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go carry(out, in, nil)
			go carry(in, out, lose)
		}
	}()
	return l.Addr().String(), lose
}

// carry copies, and ends the connection instead of an answer that is to be lost.
func carry(to, from net.Conn, lose *atomic.Int32) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil || lose != nil && lose.Load() > 0 && lose.Add(-1) >= 0 {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func TestNoticeOfALostAnswerIsTold(t *testing.T) {
	for name, retries := range map[string]int{"the client sends again": 3, "the ledger sends again": -1} {
		t.Run(name, func(t *testing.T) { noticeOfALostAnswer(t, retries) })
	}
}

func noticeOfALostAnswer(t *testing.T, retries int) {
	s := redistest.Start(t)
	addr, lose := swallower(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, MaxRetries: retries})
	t.Cleanup(func() { _ = client.Close() })
	l := open1(t, client, Options{beat: time.Hour, Timeout: quick})
	alert := month()
	alert.Alerts = []int{50, 80}
	spend(t, l, alert, "0") // the server knows the scripts
	l.flush(t.Context())
	h := holdOf(alert, "6")
	_, err := l.Hold(t.Context(), h)
	require.NoError(t, err)
	lose.Store(1)
	report, err := l.Resolve(t.Context(), h.ID, budget.Settled(6*budget.Unit))
	require.NoError(t, err)
	require.LessOrEqual(t, lose.Load(), int32(0), "an answer was lost")
	require.Zero(t, report.Overrun)
	var told []int
	for len(told) == 0 {
		for _, n := range report.Notices {
			if n.Kind == budget.NoticeThreshold {
				told = append(told, n.Percent)
			}
		}
		l.flush(t.Context())
		report, err = l.Hold(t.Context(), holdOf(alert, "0"))
		if err != nil {
			require.ErrorIs(t, err, budget.ErrUnavailable) // for as long as it takes to try again
		}
		require.NoError(t, t.Context().Err())
	}
	require.Equal(t, []int{50}, told)
	require.Equal(t, "settled 6 presumed 0 held 0", books(t, l, alert))
}

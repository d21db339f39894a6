package statuspage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/statuspage"
)

func from(peer string, r *http.Request) *http.Request {
	r.RemoteAddr = peer
	return r
}

type entries struct {
	Entries []struct{ ID, Actor, Action, Target, From, To, Reason, Result string }
	Next    string
}

func (w *world) entries(t *testing.T, h http.Handler, query string) (e entries) {
	t.Helper()
	rec := answerTo(h, ask(http.MethodGet, "/audit"+query, "Authorization", "Bearer maria"))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &e))
	return e
}

func TestFreezeOfABudgetAndTheAuditLog(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"), provider("sms", "10"))
	h := admin(t, w)
	require.NoError(t, w.send(t.Context(), "maps"))
	w.do(t, h, post("/budgets/maps-day/freeze", form, "reason=pumping+of+numbers"))
	_, frozen := errors.AsType[*budget.FrozenError](w.send(t.Context(), "maps"))
	require.True(t, frozen)
	require.NoError(t, w.send(t.Context(), "sms"), "other budgets pay")
	s := w.json(t, "/")
	require.Equal(t, "exhausted", s.Providers[0].State)
	require.Contains(t, s.Providers[0].Say, `maria froze budget maps-day ("pumping of numbers").`)
	require.Equal(t, http.StatusForbidden, answerTo(h, post("/budgets/maps-day/release", form, "reason=let+me+have+it", "Authorization", "Bearer otto")).Code)
	w.do(t, h, post("/budgets/maps-day/release", form, "reason=pumping+has+ended"))
	require.NoError(t, w.send(t.Context(), "maps"))
	w.do(t, h, post("/providers/maps/gate/open", form, "reason=misread+Retry-After"))
	w.do(t, h, post("/budgets/maps-day/limit", form, "reason=more+for+today&amount=12"))
	require.Equal(t, http.StatusForbidden, answerTo(h, post("/holds/7f9c-1a/correct", form, "reason=let+me+have+it&amount=0", "Authorization", "Bearer otto")).Code)

	e := w.entries(t, h, "?after=0")
	var got []string
	for _, x := range e.Entries {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", x.Actor, x.Action, x.Target, x.Reason, x.Result))
	}
	require.Equal(t, []string{
		"maria freeze maps-day pumping of numbers done",
		"otto release maps-day Forbidden, from 127.0.0.1 denied",
		"maria release maps-day pumping has ended done",
		"maria open_gate maps misread Retry-After done",
		"maria limit maps-day more for today done",
		"otto correct " + budget.HoldID{Boot: 0x7f9c, Seq: 0x1a}.String() + " Forbidden, from 127.0.0.1 denied",
	}, got)
	require.Equal(t, []string{"10", "12"}, []string{e.Entries[4].From, e.Entries[4].To})
	require.Equal(t, e.Entries[3:], w.entries(t, h, "?after="+e.Entries[2].ID).Entries)
	require.Equal(t, e.Entries[:2], w.entries(t, h, "?after=0&limit=2").Entries)
	require.Empty(t, w.entries(t, h, "?after="+e.Next).Entries)
	require.Equal(t, e.Next, w.entries(t, h, "?after="+e.Next).Next)

	none := newWorld(t, plain{new(budget.Memory)}, provider("maps", "10"))
	require.Equal(t, http.StatusNotImplemented, answerTo(admin(t, none), ask(http.MethodGet, "/audit", "Authorization", "Bearer maria")).Code)
	require.Equal(t, http.StatusUnauthorized, answerTo(admin(t, none), ask(http.MethodGet, "/audit")).Code)
}

// A peer that fails ten times in a minute is not asked who it is; others are.
func TestFailedAuthorizationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := newWorld(t, new(budget.Memory), provider("maps", "10"))
		h, err := statuspage.Admin(w.Transport, statuspage.AdminOptions{Authorize: func(r *http.Request, a statuspage.Action) (string, error) {
			asked++
			return byToken(r, a)
		}})
		require.NoError(t, err)
		try := func(peer, token string) int {
			rec := answerTo(h, from(peer, ask(http.MethodGet, "/holds", "Authorization", token)))
			if rec.Code == http.StatusTooManyRequests {
				require.Regexp(t, `^([1-9]|[1-5]\d|6[01])$`, rec.Header().Get("Retry-After"))
			}
			return rec.Code
		}
		for i := range 10 {
			require.Equal(t, 401, try(fmt.Sprint("192.0.2.1:", 1000+i), "Bearer guess"))
		}
		require.Equal(t, 429, try("192.0.2.1:2000", "Bearer guess"))
		require.Equal(t, 429, try("[::ffff:192.0.2.1]:2000", "Bearer guess"), "the same peer, mapped")
		require.Equal(t, 429, try("192.0.2.1:2000", "Bearer maria"), "who guesses right at last is not let in")
		require.Equal(t, 10, asked)
		require.Equal(t, 200, try("192.0.2.2:1", "Bearer maria"))
		for i := range 10 { // one subscriber has all of these
			require.Equal(t, 401, try(fmt.Sprintf("[2001:db8:1:1::%x]:1", i+1), "x"))
		}
		require.Equal(t, 429, try("[2001:db8:1:1:ffff::1]:1", "x"))
		require.Equal(t, 401, try("[2001:db8:1:2::1]:1", "x"))
		require.Equal(t, 401, try("no address", "x"))
		time.Sleep(time.Minute)
		require.Equal(t, 200, try("192.0.2.1:2000", "Bearer maria"))
	})
}

// A flood of peers fills neither the memory nor the ledger.
func TestAFloodOfDeniedTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, new(budget.Memory), provider("maps", "10"))
		h := admin(t, w)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		codes := map[int]int{}
		for i := range 20_000 {
			r := post("/providers/%3Cscript%3E%E2%80%AEevil/freeze", form, "reason=none+at+all", "Authorization", "")
			codes[answerTo(h, from(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), r)).Code]++
		}
		require.Equal(t, map[int]int{401: 20_000}, codes)
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20))
		e := w.entries(t, h, "?after=0&limit=1000").Entries // nobody else is kept out
		require.Len(t, e, 60)
		require.Equal(t, "unknown", e[0].Actor)
		require.Equal(t, "<script> evil", e[0].Target)
		page := w.html(t, "/")
		require.NotContains(t, page, "<script")
		require.NotContains(t, page, "\u202e")
		time.Sleep(time.Minute)
		answerTo(h, post("/providers/maps/freeze", form, "reason=none+at+all", "Authorization", ""))
		e = w.entries(t, h, "").Entries
		require.Equal(t, "Unauthorized, from 127.0.0.1; 19940 more tries were not noted", e[len(e)-1].Reason)
	})
}

// A ledger that is away makes nobody wait for a refusal longer than two seconds, and
// lets nobody in.
func TestDeniedWithoutLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(deaf)
		w := newWorld(t, d, provider("maps", "10"))
		d.be(true)
		begin := time.Now()
		require.Equal(t, 401, answerTo(admin(t, w), post("/providers/maps/freeze", form, "reason=none+at+all", "Authorization", "")).Code)
		require.LessOrEqual(t, time.Since(begin), 2*time.Second)
	})
}

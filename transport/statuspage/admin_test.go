package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// byToken knows two people; reading is for both, changing for one.
func byToken(r *http.Request, a statuspage.Action) (string, error) {
	switch r.Header.Get("Authorization") {
	case "Bearer maria":
		return "maria", nil
	case "Bearer otto":
		if a == statuspage.ActionHolds {
			return "otto", nil
		}
		return "otto", statuspage.ErrForbidden
	}
	return "", errors.New("planted: who is that")
}

func admin(t *testing.T, w *world, hosts ...string) http.Handler {
	t.Helper()
	h, err := statuspage.Admin(w.Transport, statuspage.AdminOptions{Authorize: byToken, Hosts: hosts})
	require.NoError(t, err)
	return h
}

const form = "application/x-www-form-urlencoded"

func post(path, kind, body string, header ...string) *http.Request {
	r := ask(http.MethodPost, path, append([]string{"Content-Type", kind, "Authorization", "Bearer maria"}, header...)...)
	r.Body = http.NoBody
	if body != "" {
		r.Body = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).Body
	}
	return r
}

func TestNoAdminWithoutAuthorizer(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	h, err := statuspage.Admin(w.Transport, statuspage.AdminOptions{})
	require.Nil(t, h)
	require.EqualError(t, err, "statuspage: AdminOptions.Authorize is required")
	_, err = statuspage.Admin(nil, statuspage.AdminOptions{Authorize: byToken})
	require.Error(t, err)
}

// What is refused changes nothing and does not say more than it must.
func TestRefusedAdminRequests(t *testing.T) {
	const good = "reason=duplicate+charges"
	tests := []struct {
		name string
		r    *http.Request
		code int
		says string
	}{
		{"nobody", post("/providers/maps/freeze", form, good, "Authorization", ""), 401, ""},
		{"a stranger", post("/providers/maps/freeze", form, good, "Authorization", "Bearer x"), 401, ""},
		{"someone who may only read", post("/providers/maps/freeze", form, good, "Authorization", "Bearer otto"), 403, ""},
		{"another site", post("/providers/maps/freeze", form, good, "Sec-Fetch-Site", "cross-site"), 403, ""},
		{"another site, old browser", post("/providers/maps/freeze", form, good, "Origin", "https://evil.example"), 403, ""},
		{"a rebound name", hosted(post("/providers/maps/freeze", form, good), "evil.example"), 421, "AdminOptions.Hosts"},
		{"reading instead of changing", ask(http.MethodGet, "/providers/maps/freeze", "Authorization", "Bearer maria"), 405, ""},
		{"no reason", post("/providers/maps/freeze", form, ""), 422, "8 to 500"},
		{"a reason too short", post("/providers/maps/freeze", form, "reason=why"), 422, "8 to 500"},
		{"a reason too long", post("/providers/maps/freeze", form, "reason="+strings.Repeat("x", 501)), 422, "8 to 500"},
		{"an endless body", post("/providers/maps/freeze", form, good+strings.Repeat("&x=y", 10_000)), 400, "form"},
		{"plain text, which any site may send", post("/providers/maps/freeze", "text/plain", good), 415, "application/json"},
		{"broken JSON", post("/providers/maps/freeze", "application/json", `{"reason":1}`), 400, "JSON"},
		{"an unknown provider", post("/providers/nobody/freeze", form, good), 404, "no provider"},
		{"an unknown budget", post("/budgets/nobody/limit", form, good+"&amount=5"), 404, "no budget"},
		{"no amount", post("/budgets/maps-day/limit", form, good), 422, "decimal"},
		{"a limit of nothing", post("/budgets/maps-day/limit", form, good+"&amount=0"), 422, "freeze"},
		{"a limit far above the configured one", post("/budgets/maps-day/limit", form, good+"&amount=20.01"), 422, "force=true"},
		{"a budget that does not exist", post("/budgets/nobody/freeze", form, good), 404, "no budget"},
		{"an entry that does not exist", ask(http.MethodGet, "/audit?after=x", "Authorization", "Bearer maria"), 422, "after must be"},
		{"too many entries", ask(http.MethodGet, "/audit?limit=1001", "Authorization", "Bearer maria"), 422, "1 to 1000"},
		{"a negative amount", post("/holds/1-1/correct", form, good+"&amount=-1"), 422, "decimal"},
		{"a field that would be left out", post("/budgets/maps-day/limit", form, good+"&amount=12&until=window_end"), 422, "until"},
		{"a cost with the field of another action", post("/holds/1-1/correct", "application/json", `{"reason":"duplicate charges","amount":"1","force":"true"}`), 422, "force"},
		{"an unknown hold", post("/holds/1-1/correct", form, good+"&amount=1"), 404, "does not know"},
		{"no hold id", post("/holds/x/correct", form, good+"&amount=1"), 404, "as the list"},
		{"too many holds", ask(http.MethodGet, "/holds?limit=5000", "Authorization", "Bearer otto"), 422, "1 to 1000"},
	}
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	require.NoError(t, w.send(t.Context(), "maps"))
	h := admin(t, w)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := answerTo(h, tt.r)
			require.Equal(t, tt.code, rec.Code, rec.Body.String())
			require.Contains(t, rec.Body.String(), tt.says)
			require.NotContains(t, rec.Body.String(), "planted")
			require.Equal(t, "no-store", rec.Header().Get("Cache-Control")+strings.Repeat("no-store", map[bool]int{true: 1}[tt.code == 405]))
		})
	}
	for _, c := range w.json(t, "/").Changes {
		require.Equal(t, "denied", c.Result, "%s of %s", c.Action, c.Actor)
	}
	require.NoError(t, w.send(t.Context(), "maps"))
}

func hosted(r *http.Request, host string) *http.Request {
	r.Host = host
	return r
}

type reply struct {
	Action, Target, Actor string
	Left                  map[string]struct{ Before, After, Unit string }
}

func (w *world) do(t *testing.T, h http.Handler, r *http.Request) (out reply) {
	t.Helper()
	rec := answerTo(h, r)
	require.Equal(t, 200, rec.Code, rec.Body.String())
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &out))
	return out
}

func TestALimitIsLoweredBeforeTheFirstCall(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	r := w.do(t, admin(t, w), post("/budgets/maps-day/limit", form, "reason=less+for+today&amount=4"))
	require.Equal(t, []string{"10", "4"}, []string{r.Left["maps-day"].Before, r.Left["maps-day"].After})
}

func TestFreezeAndRelease(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "10"))
	h := admin(t, w)
	require.NoError(t, w.send(t.Context(), "maps"))
	r := w.do(t, h, post("/providers/maps/freeze", form, "reason=duplicate+charges"))
	require.Equal(t, "maria", r.Actor)
	_, frozen := errors.AsType[*budget.FrozenError](w.send(t.Context(), "maps"))
	require.True(t, frozen)
	require.Equal(t, "frozen", w.json(t, "/").Providers[0].State)
	// A higher limit does not release.
	w.do(t, h, post("/budgets/maps-day/limit", "application/json", `{"reason":"more for today","amount":"20"}`))
	require.Error(t, w.send(t.Context(), "maps"))
	w.do(t, h, post("/providers/maps/release", form, "reason=provider+fixed+it", "Sec-Fetch-Site", "same-origin"))
	require.NoError(t, w.send(t.Context(), "maps"))
	changes := w.json(t, "/").Changes
	require.Len(t, changes, 3)
	require.Equal(t, "release", changes[0].Action)
	require.Equal(t, "maria", changes[2].Actor)
}

func TestLimitGateAndCorrection(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "1"))
	h := admin(t, w, "outlay.example")
	here := func(r *http.Request) *http.Request { return hosted(r, "outlay.example:443") }
	require.Equal(t, 421, answerTo(h, post("/providers/maps/freeze", form, "reason=not+by+that+name")).Code)

	require.NoError(t, w.send(t.Context(), "maps"))
	require.Error(t, w.send(t.Context(), "maps", "Fail", "yes"))
	require.Error(t, w.send(t.Context(), "maps"), "the budget is used up")
	r := w.do(t, h, here(post("/budgets/maps-day/limit", form, "reason=more+for+today&amount=2.50&force=true")))
	require.Equal(t, "0", r.Left["maps-day"].Before)
	require.Equal(t, "1.5", r.Left["maps-day"].After)
	require.NoError(t, w.send(t.Context(), "maps"))

	rec := answerTo(h, here(ask(http.MethodGet, "/holds?provider=maps", "Authorization", "Bearer otto")))
	require.Equal(t, 200, rec.Code)
	var holds []struct {
		ID, Provider, State string
		Legs                []struct{ Budget, Amount string }
	}
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &holds))
	require.Len(t, holds, 1)
	require.Equal(t, "presumed", holds[0].State)
	require.Equal(t, "0.5", holds[0].Legs[0].Amount)
	r = w.do(t, h, here(post("/holds/"+holds[0].ID+"/correct", form, "reason=not+on+the+invoice&amount=0")))
	require.Equal(t, "1", r.Left["maps-day"].Before)
	require.Equal(t, "1.5", r.Left["maps-day"].After)

	require.NoError(t, w.send(t.Context(), "maps", "Pause", "600"))
	require.Equal(t, "gate", w.json(t, "/").Providers[0].State)
	w.do(t, h, here(post("/providers/maps/gate/open", form, "reason=misread+Retry-After")))
	require.Equal(t, "ok", w.json(t, "/").Providers[0].State)
}

// lossy is a ledger whose answer to a freeze is lost.
type lossy struct{ budget.Memory }

func (l *lossy) Freeze(ctx context.Context, x budget.Target, by budget.By) error {
	_ = l.Memory.Freeze(ctx, x, by)
	return budget.ErrUnavailable
}

// Nobody is told that nothing was changed when nobody knows.
func TestAnAdminActionWhoseAnswerIsLost(t *testing.T) {
	w := newWorld(t, new(lossy), provider("maps", "10"))
	rec := answerTo(admin(t, w), post("/providers/maps/freeze", form, "reason=duplicate+charges"))
	require.Equal(t, http.StatusServiceUnavailable, rec.Code)
	require.Contains(t, rec.Body.String(), "tells whether it was done")
	require.NotContains(t, rec.Body.String(), "nothing was changed")
	require.Equal(t, "frozen", w.json(t, "/").Providers[0].State)
}

// Actions on a ledger that does not answer fail, and say so.
func TestAdminWithoutLedger(t *testing.T) {
	w := newWorld(t, nil)
	rec := answerTo(admin(t, w), ask(http.MethodGet, "/holds", "Authorization", "Bearer otto"))
	require.Equal(t, http.StatusNotImplemented, rec.Code)
}

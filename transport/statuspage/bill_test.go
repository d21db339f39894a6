package statuspage_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// bill is what tests read of its JSON.
type bill struct {
	Schema  string
	Budgets []struct {
		Name, Unit string
		Sum        sum
		Stopped    struct {
			Calls  int
			Amount string
		}
		Providers  []sum
		ByProvider bool `json:"by_provider"`
	}
	Windows []struct {
		Budget, Settled string
		Window          struct{ ID string }
	}
}

type sum struct {
	Provider, Settled, Presumed, Held string
	Up                                string `json:"corrected_up"`
	Down                              string `json:"corrected_down"`
	Invoice                           [2]string
	Calls                             int
}

func (w *world) bill(t *testing.T, target string) (b bill) {
	t.Helper()
	rec := answerTo(w.page, ask(http.MethodGet, target, "Accept", "application/json"))
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &b))
	require.Equal(t, "outlay.bill/1", b.Schema)
	require.NotContains(t, rec.Body.String(), "null,")
	return b
}

func (w *world) csv(t *testing.T, target string, header ...string) [][]string {
	t.Helper()
	rec := answerTo(w.page, ask(http.MethodGet, target, header...))
	require.Equal(t, http.StatusOK, rec.Code)
	require.Contains(t, rec.Header().Get("Content-Type"), "text/csv")
	require.Contains(t, rec.Header().Get("Content-Disposition"), "attachment")
	require.Contains(t, rec.Body.String(), "\r\n")
	rows, err := csv.NewReader(rec.Body).ReadAll()
	require.NoError(t, err)
	return rows
}

// shared is two providers that pay from one budget beside their own.
func shared(t *testing.T, ledger budget.Ledger, names ...string) *world {
	all := budget.PerDay(10 * budget.Unit)
	all.Name = "all-day"
	var providers []transport.Provider
	for i, name := range names {
		p := provider(fmt.Sprint("host", i), "1")
		p.Name = name
		p.Budgets = append(p.Budgets, all)
		providers = append(providers, p)
	}
	return newWorld(t, ledger, providers...)
}

func TestTheBillSaysWhereTheMoneyWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := shared(t, new(budget.Memory), "maps", "sms")
		for _, fail := range []string{"", "yes", ""} { // the third finds the budget used up
			_ = w.send(t.Context(), "host0", "Fail", fail)
		}
		require.NoError(t, w.send(t.Context(), "host1"))
		b := w.bill(t, "/?view=bill")
		require.Len(t, b.Budgets, 3)
		var all, own = b.Budgets[1], b.Budgets[0]
		for _, x := range b.Budgets {
			switch x.Name {
			case "all-day":
				all = x
			case "host0-day":
				own = x
			}
		}
		require.Equal(t, sum{Settled: "1", Presumed: "0.5", Held: "0", Up: "0", Down: "0", Invoice: [2]string{"1", "1.5"}, Calls: 3}, all.Sum)
		require.Equal(t, sum{Provider: "maps", Settled: "0.5", Presumed: "0.5", Held: "0", Up: "0", Down: "0", Invoice: [2]string{"0.5", "1"}, Calls: 2}, all.Providers[0])
		require.Equal(t, "sms", all.Providers[1].Provider)
		require.Equal(t, 1, own.Stopped.Calls)
		require.Equal(t, "0.5", own.Stopped.Amount)

		open, err := w.Unresolved(t.Context(), "", 0)
		require.NoError(t, err)
		_, err = w.Correct(t.Context(), open[0].ID, budget.Unit/10, budget.By{Who: "maria", Why: "invoice"})
		require.NoError(t, err)
		b = w.bill(t, "/?view=bill&budget=all-day")
		require.Len(t, b.Budgets, 1)
		require.Equal(t, []string{"1.1", "0", "0.4"}, []string{b.Budgets[0].Sum.Settled, b.Budgets[0].Sum.Up, b.Budgets[0].Sum.Down})
		require.Len(t, w.bill(t, "/?view=bill&provider=sms").Budgets[0].Providers, 0)

		page := w.html(t, "/?view=bill")
		require.Contains(t, page, "Expect the same on the invoice: every cost is known.")
		require.Contains(t, page, "The limit stopped 1 call of 0.50 that this process would have sent.")

		time.Sleep(24 * time.Hour)
		require.NoError(t, w.send(t.Context(), "host1"))
		b = w.bill(t, "/?view=bill")
		require.Len(t, b.Windows, 3, "yesterday's")
		require.Contains(t, w.html(t, "/?view=bill"), "Past windows")
		require.Empty(t, w.bill(t, "/?view=bill").Budgets[0].Stopped.Calls)

		// What is not known of a window that is over is not nought.
		for _, row := range w.csv(t, "/?view=bill&format=csv")[1:] {
			require.Equal(t, row[4] == "", row[10] == "", row)
			require.Equal(t, row[4] == "", row[12] == "", row)
		}

		// What is asked of one provider holds nothing of another.
		require.Empty(t, w.bill(t, "/?view=bill&provider=sms").Windows)
		page = w.html(t, "/?view=bill&provider=sms")
		require.Contains(t, page, "Of sms alone: The books say 0.50 USD.")
		require.Contains(t, page, "Of sms alone: Nothing was spent.", "of the budget of another")
		require.Contains(t, page, "Past windows are known of all providers together only")
		lines := strings.Split(strings.TrimSpace(answerTo(w.page, ask(http.MethodGet, "/?view=bill&format=csv&provider=sms")).Body.String()), "\r\n")
		require.Len(t, lines, 3, "a heading, and a line of each budget that pays for it")
		for _, line := range lines[1:] {
			require.Contains(t, line, ",sms,USD,")
		}
	})
}

// Spreadsheets run what begins like a formula.
func TestNoCellOfTheBillIsAFormula(t *testing.T) {
	names := []string{"=cmd|' /c calc'!A0", "+1", "-1", "@SUM(A1)", "＝1", " =1", `"quoted", and comma`}
	var usable []string
	for _, n := range names {
		if _, err := transport.New(transport.Config{Providers: []transport.Provider{{Name: n, Match: []string{"a.example.com"}}}}); err == nil {
			usable = append(usable, n)
		}
	}
	require.GreaterOrEqual(t, len(usable), 5)
	w := shared(t, new(budget.Memory), usable...)
	for i := range usable {
		_ = w.send(t.Context(), fmt.Sprint("host", i), "Fail", strings.Repeat("y", i%2))
	}
	open, err := w.Unresolved(t.Context(), "", 0)
	require.NoError(t, err)
	_, err = w.Correct(t.Context(), open[0].ID, 0, budget.By{Who: "maria", Why: "invoice"})
	require.NoError(t, err)
	for _, rows := range [][][]string{
		w.csv(t, "/?view=bill&format=csv"), w.csv(t, "/?format=csv"), w.csv(t, "/", "Accept", "text/csv"), w.csv(t, "/", "Accept", "text/csv, text/html;q=0.9"),
	} {
		require.Len(t, rows, 1+2*len(usable))
		for _, row := range rows {
			for _, c := range row {
				require.False(t, c != "" && strings.ContainsAny(c[:1], "=+-@\t\r\n"), "%q", c)
				require.False(t, strings.HasPrefix(strings.TrimSpace(c), "="), "%q", c)
			}
		}
	}
	require.Contains(t, answerTo(w.page, ask(http.MethodGet, "/", "Accept", "text/html, text/csv;q=0.9")).Header().Get("Content-Type"), "text/html")
}

// A ledger that tells no providers apart still has its totals; one that hangs is no bill
// of zero.
func TestTheBillOfOtherLedgers(t *testing.T) {
	w := shared(t, plain{new(budget.Memory)}, "maps", "sms")
	require.NoError(t, w.send(t.Context(), "host0"))
	b := w.bill(t, "/?view=bill&budget=all-day")
	require.False(t, b.Budgets[0].ByProvider)
	require.Equal(t, "0.5", b.Budgets[0].Sum.Settled)
	require.Contains(t, w.html(t, "/?view=bill"), "This ledger does not tell what each provider spent.")
	require.Len(t, w.csv(t, "/?format=csv"), 4)

	require.Contains(t, newWorld(t, nil).html(t, "/?view=bill"), "There is no ledger")
	synctest.Test(t, func(t *testing.T) {
		d := new(deaf)
		w := newWorld(t, d, provider("maps", "10"))
		require.NoError(t, w.send(t.Context(), "maps"))
		d.be(true)
		page := w.html(t, "/?view=bill")
		require.Contains(t, page, "not the same as nothing spent")
		require.NotContains(t, page, "planted")
		require.NotContains(t, page, "0.00")
		for _, form := range []string{"csv", "json"} { // a program would add it up
			rec := answerTo(w.page, ask(http.MethodGet, "/?view=bill&format="+form))
			require.Equal(t, http.StatusServiceUnavailable, rec.Code)
			require.Contains(t, rec.Body.String(), "a bill without it would be wrong")
			require.Empty(t, rec.Header().Get("Content-Disposition"))
		}
	})
}

// What the ledger remembers is shown where this process has seen less.
func TestTheHistoryOfTheLedgerOutlivesThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := new(budget.Memory)
		first := newWorld(t, ledger, provider("maps", "100"))
		for range 20 {
			require.NoError(t, first.send(t.Context(), "maps"))
			time.Sleep(30 * time.Minute)
		}
		second := newWorld(t, ledger, provider("maps", "100"))
		require.NoError(t, second.send(t.Context(), "maps"))
		h := second.json(t, "/").Budgets[0].History
		require.Equal(t, 900.0, h.StepS)
		require.Len(t, h.Points, 40)
		require.Equal(t, "0.5", h.Points[0].Settled)
		require.Equal(t, "10.5", h.Points[39].Settled)
		require.NotContains(t, second.html(t, "/"), "Watched for")
	})
}

// Reasons come from the ledger, and are of all processes.
func TestChangesTellTheReason(t *testing.T) {
	ledger := new(budget.Memory)
	first, second := newWorld(t, ledger, provider("maps", "10")), newWorld(t, ledger, provider("maps", "10"))
	long := "why\u202e <b>" + strings.Repeat("x", 1000)
	require.NoError(t, first.Freeze(t.Context(), "maps", budget.By{Who: "maria", Why: long}))
	require.NoError(t, first.FreezeBudget(t.Context(), "maps-day", budget.By{Who: "otto", Why: "pumping"}))
	rec := answerTo(second.page, ask(http.MethodGet, "/?format=json"))
	var s struct {
		Changes []struct{ ID, Actor, Action, Target, Reason, Result string }
		Budgets []struct{ Say string }
	}
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &s))
	require.Len(t, s.Changes, 2)
	require.Equal(t, "pumping", s.Changes[0].Reason)
	require.Equal(t, "done", s.Changes[0].Result)
	require.Len(t, []rune(s.Changes[1].Reason), 500)
	require.Equal(t, `otto froze budget maps-day ("pumping"). Its calls are refused until someone releases it.`, s.Budgets[0].Say)
	page := second.html(t, "/")
	require.Contains(t, page, "pumping")
	require.False(t, strings.Contains(page, "\u202e"))
	require.False(t, strings.Contains(page, "<b>x"))
}

package sqliteledger

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
)

var by = budget.By{Who: "maria", Why: "invoice 7"}

// used is a ledger with a little of everything in it, at a known time.
func used(t *testing.T) (*Ledger, *ledgertest.Hand) {
	hand := ledgertest.NewHand(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC))
	l := openWith(t, Options{clock: hand.Clock()}, filepath.Join(t.TempDir(), "spend.db"))
	day := budget.PerDay(50 * budget.Unit)
	day.Name = "sms-day"
	calls := budget.Budget{Name: "sms-calls", Limit: 100 * budget.Unit, Unit: budget.Calls, Every: budget.Month}
	for seq, o := range []budget.Outcome{
		{State: budget.StateSettled, Amount: budget.MustParse("0.0083"), Ref: "SM1"},
		{State: budget.StatePresumed, Amount: budget.MustParse("0.1"), Why: "timeout", Ref: "SM2"},
		{State: budget.StateVoided, Why: "not_sent"},
		{State: budget.StateSettled, Amount: budget.MustParse("0.75"), Ref: "SM4"},
	} {
		id := budget.HoldID{Boot: 0xabc, Seq: uint64(seq) + 1}
		_, err := l.Hold(context.Background(), budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{
			{Budget: day, Amount: budget.MustParse("0.5")}, {Budget: calls, Amount: budget.Unit}}})
		require.NoError(t, err)
		_, err = l.Resolve(context.Background(), id, o)
		require.NoError(t, err)
		hand.Pass(time.Second)
	}
	require.NoError(t, l.SetLimit(context.Background(), "sms-day", 60*budget.Unit, by))
	require.NoError(t, l.Freeze(context.Background(), budget.Target{Budget: "sms-calls"}, by))
	return l, hand
}

// shell asks the sqlite3 command, as a bookkeeper would, while the ledger is open.
func shell(t *testing.T, path, sql string) (rows []map[string]any) {
	program, err := exec.LookPath("sqlite3")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("the sqlite3 command is missing")
	}
	if err != nil {
		t.Skip("SKIPPED: the sqlite3 command is missing: the views are not tested")
	}
	cmd := exec.Command(program, "-readonly", "-json", path, sql)
	cmd.Env = append(os.Environ(), "TZ=America/New_York")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, json.Unmarshal(out, &rows), "%s", out)
	return rows
}

func TestViews(t *testing.T) {
	l, _ := used(t)
	require.Equal(t, []map[string]any{
		{
			"name": "sms-calls", "label": "sms-calls", "window": "2026-05", "unit": "calls", "period": "month", "zone": "UTC",
			"from_utc": "2026-05-01 00:00:00", "until_utc": "2026-06-01 00:00:00",
			"from_local": "2026-04-30 20:00:00", "until_local": "2026-05-31 20:00:00",
			"limit": "100", "settled": "2", "presumed": "1", "held": "0", "used": "3", "available": "97", "overrun": "0",
			"presumed_at_least": "0", "open_holds": 0.0, "presumed_holds": 1.0, "is_frozen": 1.0,
		},
		{
			"name": "sms-day", "label": "sms-day", "window": "2026-05-02", "unit": "USD", "period": "day", "zone": "UTC",
			"from_utc": "2026-05-02 00:00:00", "until_utc": "2026-05-03 00:00:00",
			"from_local": "2026-05-01 20:00:00", "until_local": "2026-05-02 20:00:00",
			"limit": "60", "settled": "0.7583", "presumed": "0.5", "held": "0", "used": "1.2583", "available": "58.7417",
			"overrun": "0.25", "presumed_at_least": "0.1", "open_holds": 0.0, "presumed_holds": 1.0, "is_frozen": 0.0,
		},
	}, shell(t, l.path, "SELECT * FROM budgets"))
	require.Equal(t, []map[string]any{
		{"hold": "abc-2", "provider": "sms", "ref": "SM2", "utc": "2026-05-02 12:00:01", "local": "2026-05-02 08:00:01",
			"budget": "sms-day", "window": "2026-05-02", "amount": "0.5", "at_least": "0.1", "unit": "USD"},
		{"hold": "abc-2", "provider": "sms", "ref": "SM2", "utc": "2026-05-02 12:00:01", "local": "2026-05-02 08:00:01",
			"budget": "sms-calls", "window": "2026-05", "amount": "1", "at_least": "0.1", "unit": "calls"},
	}, shell(t, l.path, "SELECT * FROM presumed"))
	require.Equal(t, []map[string]any{
		{"utc": "2026-05-02 12:00:00", "local": "2026-05-02 08:00:00", "kind": "held", "budget": "sms-day", "hold": "abc-1",
			"settled": "0", "held": "0.5", "amount": nil, "who": nil, "why": nil, "ref": nil},
		{"utc": "2026-05-02 12:00:01", "local": "2026-05-02 08:00:01", "kind": "settled", "budget": "sms-day", "hold": "abc-1",
			"settled": "0.0083", "held": "-0.5", "amount": nil, "who": nil, "why": nil, "ref": "SM1"},
		{"utc": "2026-05-02 12:00:04", "local": "2026-05-02 08:00:04", "kind": "limit", "budget": "sms-day", "hold": nil,
			"settled": "0", "held": "0", "amount": "60", "who": "maria", "why": "invoice 7", "ref": nil},
		{"utc": "2026-05-02 12:00:04", "local": "2026-05-02 08:00:04", "kind": "freeze", "budget": "sms-calls", "hold": nil,
			"settled": "0", "held": "0", "amount": nil, "who": "maria", "why": "invoice 7", "ref": nil},
	}, shell(t, l.path, `SELECT utc, local, kind, budget, hold, settled, held, amount, who, why, ref FROM entries
		WHERE hold IS NULL OR (hold='abc-1' AND budget='sms-day')`))
}

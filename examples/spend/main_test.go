package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/sqliteledger"
)

// service is a ledger in use: two settled calls, one presumed and one in flight.
func service(t *testing.T) *sqliteledger.Ledger {
	path := filepath.Join(t.TempDir(), "spend.db")
	t.Setenv("OUTLAY_LEDGER", path)
	l, err := sqliteledger.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	for seq, o := range []budget.Outcome{
		{State: budget.StateSettled, Amount: budget.MustParse("0.0083"), Ref: "SM1"},
		{State: budget.StatePresumed, Amount: budget.MustParse("0.1"), Why: "timeout"},
		{State: budget.StateSettled, Amount: budget.MustParse("0.75"), Ref: "SM3"},
	} {
		_, err := l.Resolve(context.Background(), take(t, l, uint64(seq)+1), o)
		require.NoError(t, err)
	}
	take(t, l, 4)
	require.Eventually(t, func() bool { return strings.Contains(good(t, "report"), "0.7583") }, 5*time.Second, 20*time.Millisecond)
	return l
}

func take(t *testing.T, l *sqliteledger.Ledger, seq uint64) budget.HoldID {
	month := budget.PerMonth(50 * budget.Unit)
	month.Name = "sms-month"
	id := budget.HoldID{Boot: 0xabc, Seq: seq}
	_, err := l.Hold(context.Background(), budget.Hold{ID: id, Provider: "sms", Legs: []budget.Leg{{Budget: month, Amount: budget.Unit / 2}}})
	require.NoError(t, err)
	return id
}

// spend runs the command.
func spend(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), args, &o, &e)
	return code, o.String(), e.String()
}

func good(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := spend(args...)
	require.Equal(t, done, code, "%v: %s", args, errs)
	require.Empty(t, errs)
	return out
}

func bad(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, errs := spend(args...)
	require.Equal(t, want, code, "%v: %s%s", args, out, errs)
	require.NotEmpty(t, errs)
	return out + errs
}

func TestReport(t *testing.T) {
	service(t)
	lines := strings.Split(good(t, "report"), "\n")
	window := time.Now().UTC().Format("2006-01")
	require.Equal(t, strings.Fields("budget window spent presumed held available limit unit forecast"), strings.Fields(lines[0]))
	require.Equal(t, append([]string{"sms-month", window}, strings.Fields("0.7583 0.5 0.5 48.2417 to 49.1417 50 USD lasts")...), strings.Fields(lines[1]))
	require.Contains(t, lines[2], "available A to B: A now; B if no call")

	rows, err := csv.NewReader(strings.NewReader(good(t, "report", "-format", "csv", "-all"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, strings.Fields("0.7583 0.5 0.5 0.8583 1.7583 48.2417 49.1417 50 0.25 1 1"), rows[1][3:14])

	var objects []map[string]any
	require.NoError(t, json.Unmarshal([]byte(good(t, "report", "-format=json", "-since", "2020-01-01")), &objects))
	require.Equal(t, "0.7583", objects[0]["spent"], "a string, so that no digit is lost")
	require.Equal(t, false, objects[0]["frozen"])
	require.Equal(t, "nothing\n", good(t, "report", "-until", "2020-01-01"))
}

// A report must not bring a file up to date: the services, of an older version, would
// refuse it.
func TestReportsChangeNothing(t *testing.T) {
	require.NoError(t, service(t).Close())
	path := os.Getenv("OUTLAY_LEDGER")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, args := range [][]string{{"report"}, {"report", "-all"}, {"presumed"}, {"verify"}, {"backup", filepath.Join(t.TempDir(), "copy.db")}} {
		good(t, args...)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after, "%v", args)
		require.NoFileExists(t, path+"-wal")
		require.NoFileExists(t, path+"-shm")
	}
	good(t, "freeze", "-provider", "sms", "-why", "test")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
}

func TestForecast(t *testing.T) {
	b := budget.Budget{Zone: time.UTC}
	start := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	total := budget.Totals{Budget: b, Limit: 10 * budget.Unit, Window: budget.Day.Window(start, nil)}
	now := start.Add(12 * time.Hour)
	require.Empty(t, forecast(total, now), "nothing was used")
	total.Settled = 5 * budget.Unit
	require.Equal(t, "lasts", forecast(total, now))
	require.Equal(t, "ended", forecast(total, now.AddDate(0, 0, 1)))
	for i := range 20 {
		total.Trend.Add(start.Add(11*time.Hour+time.Duration(i)*3*time.Minute), budget.Unit/4, true)
	}
	require.Equal(t, "ends 2026-05-02 13:00 UTC", forecast(total, now))
	total.Settled = 10 * budget.Unit
	require.Equal(t, "used up", forecast(total, now))
}

func TestPresumed(t *testing.T) {
	service(t)
	out := good(t, "presumed", "-provider", "sms")
	require.Contains(t, out, "abc-2  presumed  sms")
	require.Contains(t, out, "abc-4  held      sms")
	require.Contains(t, out, "id: Calls()[i].Attempts[j].Hold of transport.Record")
	require.NotContains(t, good(t, "presumed", "-format", "csv"), "Attempts", "programs read it")
	require.Equal(t, "nothing\n", good(t, "presumed", "-provider", "maps"))
}

func TestCorrectOne(t *testing.T) {
	l := service(t)
	require.Contains(t, good(t, "correct", "abc-2", "0.2"), "1 of 1 lines would change the books. Nothing was changed: add -apply.")
	require.Contains(t, good(t, "report"), "0.7583")
	require.Contains(t, good(t, "correct", "abc-2", "0.2", "-why", "invoice 7", "-apply"), "1 lines applied, 1 of them changed the books.")
	require.Contains(t, good(t, "report"), "0.9583")
	require.Contains(t, good(t, "correct", "-apply", "-ref", "SM3", "-why", "invoice 7", "0.7"), "-0.05")
	require.Contains(t, good(t, "report"), "0.9083")
	var last sqliteledger.Entry
	for e, err := range l.Entries(context.Background(), 0) {
		require.NoError(t, err)
		last = e
	}
	require.Equal(t, []string{"corrected", me(), "invoice 7"}, []string{last.Kind, last.Who, last.Why})
}

func TestCorrectFile(t *testing.T) {
	service(t)
	invoice := filepath.Join(t.TempDir(), "invoice.csv")
	file := func(content string) string {
		require.NoError(t, os.WriteFile(invoice, []byte(content), 0o600))
		return invoice
	}
	out := bad(t, disagree, "correct", "-file", file("date,Ref,Amount\n1.5.,SM1,0.01\n1.5.,SM99,5\n"), "-why", "x", "-apply")
	require.Contains(t, out, "0 calls have this reference")
	require.Contains(t, out, "1 of 2 lines fit nothing in the books; nothing was changed")
	require.Contains(t, good(t, "report"), "0.7583", "not even the line that fits")
	out = good(t, "correct", "-file", file("\ufeffamount,id\n0.01,abc-1\n0.75,abc-3\n"), "-why", "x", "-apply")
	require.Contains(t, out, "2 lines applied, 1 of them changed the books")
	require.Contains(t, good(t, "report"), "0.76 ")

	for want, content := range map[string]string{
		"has no header": "", "has no lines": "id,amount\n", "must name the columns": "abc-1,0.5\n",
		`line 3: "abc" is no id`: "id,amount\nabc-1,1\nabc,1\n", "line 2:": "ref,amount\nSM1,-4\n",
		"empty reference": "ref,amount\n,4\n", "wrong number of fields": "ref,amount\nSM1,4,5\n",
	} {
		require.Contains(t, bad(t, failed, "correct", "-file", file(content)), want)
	}
	bad(t, failed, "correct", "-file", invoice+".none")
}

func TestCorrectTotal(t *testing.T) {
	service(t)
	window := time.Now().UTC().Format("2006-01")
	args := []string{"correct", "-total", "1", "-provider", "sms", "-window", window}
	out := good(t, args...)
	require.Contains(t, out, "difference  0.2417")
	require.Contains(t, out, "abc-2")
	require.Contains(t, out, "Nothing was changed")
	require.Contains(t, good(t, append(args, "-apply", "-why", "invoice")...), "Applied.")
	require.Contains(t, good(t, "report"), " 1  ")
	require.Contains(t, good(t, "verify"), "sound: 1 windows")
	require.Contains(t, bad(t, failed, "correct", "-total", "1", "-provider", "maps", "-window", window), `provider "maps"`)
}

func TestLimitFreezeRelease(t *testing.T) {
	l := service(t)
	require.Contains(t, good(t, "limit", "sms-month", "1.8", "-why", "test"), "sms-month: limit 1.8 USD, was 50")
	require.Contains(t, good(t, "report"), "1.8")
	require.Contains(t, good(t, "freeze", "-provider", "sms", "-why", "duplicates", "-who", "maria"), "provider sms is frozen")
	require.Contains(t, good(t, "report"), "frozen: provider sms since")
	require.Contains(t, good(t, "report"), "by maria (duplicates)")
	_, err := l.Hold(context.Background(), budget.Hold{ID: budget.HoldID{Boot: 1}, Provider: "sms"})
	require.ErrorAs(t, err, new(*budget.FrozenError), "at once, in the service")
	require.Contains(t, good(t, "release", "-provider", "sms", "-why", "fixed"), "released")
	_, err = l.Hold(context.Background(), budget.Hold{ID: budget.HoldID{Boot: 1}, Provider: "sms"})
	require.NoError(t, err)

	require.Contains(t, bad(t, failed, "release", "-provider", "sms", "-why", "again"), "not frozen; what is: nothing")
	require.Contains(t, bad(t, failed, "freeze", "-provider", "smms", "-why", "typo"), "those that have calls: sms")
	require.NotContains(t, good(t, "report"), "smms")
	require.Contains(t, good(t, "freeze", "-provider", "maps", "-why", "costs nothing", "-unused"), "provider maps is frozen")
	require.Contains(t, bad(t, failed, "freeze", "-budget", "smsmonth", "-why", "typo"), "the ledger has: sms-month")
	require.Contains(t, bad(t, failed, "limit", "smsmonth", "5", "-why", "typo"), "the ledger has: sms-month")
	good(t, "freeze", "-budget", "sms-month", "-why", "ask finance")
	require.Contains(t, good(t, "report"), "frozen: budget sms-month since")
}

func TestVerifyAndBackup(t *testing.T) {
	service(t)
	require.Equal(t, "sound: 1 windows are the sums of their entries\n", good(t, "verify"))
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.Contains(t, good(t, "backup", copied), "is a copy of")
	require.Contains(t, bad(t, failed, "backup", copied), "no backup was made")
	require.Contains(t, good(t, "-ledger", copied, "verify"), "sound")
	require.Contains(t, good(t, "report", "-ledger", copied), "0.7583")

	damaged, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, damaged[:len(damaged)/2], 0o600))
	require.Contains(t, bad(t, failed, "-ledger", copied, "verify"), "put a backup back")
}

func TestUsage(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 3}, []int{done, failed, misused, disagree}, "the exit statuses that the help tells")
	for _, c := range commands {
		out := good(t, c.name, "-h")
		require.Contains(t, out, "Usage: spend "+c.name)
		for _, example := range c.examples {
			require.Contains(t, out, example)
		}
	}
	require.Equal(t, good(t, "-h"), good(t, "help"))
	service(t)
	for want, args := range map[string][]string{
		"which command?":                        {},
		`there is no command "raport"`:          {"raport"},
		"flag provided but not defined: -x":     {"report", "-x"},
		"-format must be":                       {"report", "-format", "xml"},
		"must be a date":                        {"report", "-since", "yesterday"},
		`what is "now"?`:                        {"report", "now"},
		"limit needs a budget and an amount":    {"limit", "sms-month"},
		"to stop all calls freeze":              {"limit", "sms-month", "0", "-why", "x"},
		"more than zero":                        {"limit", "sms-month", "1e3", "-why", "x"},
		`more than zero, not "-5"`:              {"limit", "sms-month", "-5", "-why", "x"},
		`more than zero, not "-.5"`:             {"limit", "-why", "x", "sms-month", "-.5"},
		"say why":                               {"limit", "sms-month", "5"},
		"either a provider":                     {"freeze", "-why", "x"},
		"or a budget":                           {"release", "-provider", "a", "-budget", "b", "-why", "x"},
		"say which call":                        {"correct"},
		"is no id":                              {"correct", "12", "5"},
		"not a decimal":                         {"correct", "a-1", "five"},
		"either -file or one call":              {"correct", "-file", "x", "a-1", "5"},
		"-total needs -provider and -window":    {"correct", "-total", "5"},
		"-total: ":                              {"correct", "-total", "five"},
		"say why with -why":                     {"correct", "a-1", "5", "-apply"},
		"verify has no arguments":               {"verify", "it"},
		"backup needs the name of one new file": {"backup"},
	} {
		require.Contains(t, bad(t, misused, args...), want, "%v", args)
		require.Contains(t, bad(t, misused, args...), "Try: spend", "%v", args)
	}
	t.Setenv("OUTLAY_LEDGER", filepath.Join(t.TempDir(), "none.db"))
	require.Contains(t, bad(t, failed, "report"), "there is no ledger")
	require.NoFileExists(t, os.Getenv("OUTLAY_LEDGER"))
}

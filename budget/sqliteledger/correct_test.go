package sqliteledger

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func dayTotals(t *testing.T, l *Ledger) budget.Totals {
	t.Helper()
	all, err := l.Windows(context.Background(), time.Time{}, time.Time{})
	require.NoError(t, err)
	for _, w := range all {
		if w.Budget.Name == "sms-day" {
			return w
		}
	}
	require.Fail(t, "no such budget")
	return budget.Totals{}
}

func requireSound(t *testing.T, l *Ledger) {
	t.Helper()
	wrong, err := l.Verify(context.Background())
	require.NoError(t, err)
	require.Empty(t, wrong)
}

func usd(s string) budget.Amount { return budget.MustParse(s) }

func TestCorrectLines(t *testing.T) {
	l, hand := used(t)
	ctx := context.Background()
	lines := []Line{
		{Ref: "SM1", Amount: usd("0.0083")},
		{Ref: "SM2", Amount: usd("0.02")},
		{Hold: budget.HoldID{Boot: 0xabc, Seq: 4}, Amount: usd("0.76")},
	}
	want := []Difference{
		{Line: Line{budget.HoldID{Boot: 0xabc, Seq: 1}, "SM1", usd("0.0083")}, Provider: "sms", Unit: "USD", State: budget.StateSettled, Booked: usd("0.0083")},
		{Line: Line{budget.HoldID{Boot: 0xabc, Seq: 2}, "SM2", usd("0.02")}, Provider: "sms", Unit: "USD", State: budget.StatePresumed, Booked: usd("0.5")},
		{Line: lines[2], Provider: "sms", Unit: "USD", State: budget.StateSettled, Booked: usd("0.75")},
	}
	for range 2 {
		found, err := l.CompareLines(ctx, lines)
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
	require.Equal(t, "1.2583", dayTotals(t, l).Used().String(), "comparing changes nothing")

	hand.Pass(20 * time.Minute) // the settled holds are forgotten, their entries are not
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	found, err := l.CorrectLines(ctx, lines, by)
	require.NoError(t, err)
	require.Equal(t, want, found)
	total := dayTotals(t, l)
	require.Equal(t, []budget.Amount{usd("0.7883"), 0, 0, usd("0.26")}, []budget.Amount{total.Settled, total.Presumed, total.Floor, total.Overrun})
	require.Zero(t, total.PresumedHolds)
	requireSound(t, l)

	found, err = l.CorrectLines(ctx, lines, by)
	require.NoError(t, err)
	require.Equal(t, []budget.State{budget.StateCorrected, budget.StateCorrected}, []budget.State{found[1].State, found[2].State})
	require.Equal(t, total.Used(), dayTotals(t, l).Used(), "the same invoice again")
	people := 0
	for e, err := range l.Entries(ctx, 0) {
		require.NoError(t, err)
		if e.Kind == "corrected" {
			people++
			require.Equal(t, []string{"maria", "invoice 7"}, []string{e.Who, e.Why})
		}
	}
	require.NotZero(t, people)
	requireSound(t, l)
}

func TestLinesThatCannotBeApplied(t *testing.T) {
	l, _ := used(t)
	ctx := context.Background()
	day := budget.PerDay(50 * budget.Unit)
	day.Name = "sms-day"
	open, same := budget.HoldID{Boot: 3, Seq: 1}, budget.HoldID{Boot: 3, Seq: 2}
	require.NoError(t, take(l, open, day, "0.1"))
	require.NoError(t, take(l, same, day, "0.1"))
	_, err := l.Resolve(ctx, same, budget.Outcome{State: budget.StateSettled, Amount: 1, Ref: "SM1"})
	require.NoError(t, err)
	good := Line{Ref: "SM4", Amount: usd("0.1")}
	for want, bad := range map[string]Line{
		"0 calls have this reference":             {Ref: "SM99", Amount: 1},
		"2 calls have this reference":             {Ref: "SM1", Amount: 1},
		"the ledger does not know this call":      {Hold: budget.HoldID{Boot: 8, Seq: 8}, Amount: 1},
		"the amount is out of range":              {Ref: "SM2", Amount: -1},
		"the call is still in flight":             {Hold: open, Amount: 1},
		"another line is about the same call":     {Hold: budget.HoldID{Boot: 0xabc, Seq: 4}, Amount: 1},
		"0 calls have this reference\x00no name":  {Amount: 1},
		"the amount is out of range\x00too large": {Ref: "SM2", Amount: 1 << 62},
	} {
		found, err := l.CorrectLines(ctx, []Line{good, bad}, by)
		require.ErrorIs(t, err, ErrProblems)
		require.Empty(t, found[0].Problem)
		require.Contains(t, want, found[1].Problem)
		require.NotEmpty(t, found[1].Problem)
	}
	require.Equal(t, usd("0.7583")+1, dayTotals(t, l).Settled)
	requireSound(t, l)
}

func TestCorrectTotal(t *testing.T) {
	for _, row := range []struct {
		invoice, settled string
		shares           []string
		rest             string
	}{
		{"1.0583", "1.0583", []string{"0.1", "0.2"}, "0"},                 // within what is presumed
		{"1.6583", "1.6583", []string{"0.3", "0.6"}, "0"},                 // exactly all of it
		{"2", "2", []string{"0.3", "0.6"}, "0.3417"},                      // more
		{"0.5", "0.5", []string{"0", "0"}, "-0.2583"},                     // less than what is settled
		{"0.758300001", "0.758300001", []string{"0", "0.000000001"}, "0"}, // a nano
	} {
		l, _ := used(t)
		ctx := context.Background()
		day := budget.PerDay(50 * budget.Unit)
		day.Name = "sms-day"
		_, err := l.Resolve(ctx, budget.HoldID{Boot: 0xabc, Seq: 2}, budget.Voided("reconciled"))
		require.NoError(t, err)
		for seq, amount := range []string{"0.3", "0.6"} {
			id := budget.HoldID{Boot: 4, Seq: uint64(seq)}
			require.NoError(t, take(l, id, day, amount))
			_, err := l.Resolve(ctx, id, budget.Presumed(0))
			require.NoError(t, err)
		}
		total := Total{Provider: "sms", Window: "2026-05-02", Amount: usd(row.invoice)}
		compared, err := l.CompareTotal(ctx, total)
		require.NoError(t, err)
		require.Equal(t, usd("0.9"), dayTotals(t, l).Presumed)
		require.Equal(t, []string{"sms-day", "USD", "0.7583", "0.9"},
			[]string{compared.Budget, compared.Unit, compared.Settled.String(), compared.Presumed.String()})
		d, err := l.CorrectTotal(ctx, total, by)
		require.NoError(t, err)
		require.Equal(t, compared.Shares, d.Shares)
		require.Equal(t, row.rest, d.Rest.String())
		for i, s := range row.shares {
			require.Equal(t, s, d.Shares[i].Now.String())
		}
		after := dayTotals(t, l)
		require.Equal(t, []string{row.settled, "0"}, []string{after.Settled.String(), after.Presumed.String()})
		require.Zero(t, after.PresumedHolds)
		requireSound(t, l)
		again, err := l.CorrectTotal(ctx, total, by)
		require.NoError(t, err)
		require.Zero(t, again.Rest)
		require.Empty(t, again.Shares)
	}
}

// What is presumed for calls that are forgotten is settled with the rest.
func TestCorrectTotalOfForgottenCalls(t *testing.T) {
	l, hand := used(t)
	hand.Pass(80 * 24 * time.Hour)
	l = openWith(t, Options{clock: hand.Clock()}, reclose(t, l))
	d, err := l.CorrectTotal(context.Background(), Total{Provider: "sms", Budget: "sms-day", Window: "2026-05-02", Amount: usd("0.9")}, by)
	require.NoError(t, err)
	require.Empty(t, d.Shares)
	after := dayTotals(t, l)
	require.Equal(t, []string{"0.9", "0"}, []string{after.Settled.String(), after.Presumed.String()})
	requireSound(t, l)
}

func TestTotalsThatFitNothing(t *testing.T) {
	l, _ := used(t)
	ctx := context.Background()
	other := budget.PerDay(50 * budget.Unit)
	other.Name = "all-day"
	require.NoError(t, take(l, budget.HoldID{Boot: 4}, other, "0.1"))
	for want, total := range map[string]Total{
		`no budget with money of provider "maps" has a window "2026-05-02"`: {Provider: "maps", Window: "2026-05-02"},
		`no budget with money of provider "sms" has a window "2026-05-03"`:  {Provider: "sms", Window: "2026-05-03"},
		`no budget with money of provider "sms" has a window "2026-05"`:     {Provider: "sms", Window: "2026-05"}, // in calls
		"name one of them": {Provider: "sms", Window: "2026-05-02"},
		"out of range":     {Provider: "sms", Budget: "sms-day", Window: "2026-05-02", Amount: -1},
	} {
		_, err := l.CorrectTotal(ctx, total, by)
		require.ErrorContains(t, err, want)
	}
}

func TestSpreadLosesNothing(t *testing.T) {
	for range 10_000 {
		shares := make([]Share, 1+rand.IntN(7))
		var all budget.Amount
		for i := range shares {
			shares[i].Was = budget.Amount(rand.Int64N(1 << (1 + rand.IntN(50))))
			all += shares[i].Was
		}
		amount := budget.Amount(rand.Int64N(2*int64(all)+2)) - all/4
		rest := spread(shares, amount)
		sum := rest
		for _, s := range shares {
			require.GreaterOrEqual(t, s.Now, budget.Amount(0))
			require.LessOrEqual(t, s.Now, s.Was)
			sum += s.Now
		}
		require.Equal(t, amount, sum)
	}
}

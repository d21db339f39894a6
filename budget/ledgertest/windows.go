package ledgertest

import (
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

// windows: which day a call belongs to.
var windows = []namedCase{
	{"time alone gives nothing back", timeFreesNothing},
	{"a call belongs to the day of its hold", inFlightOverMidnight},
	{"a day of 25 hours is one day", longDay},
	{"a day of 23 hours ends an hour early", shortDay},
	{"a day without midnight begins when its date does", skippedMidnight},
	{"a date that comes twice is funded once", repeatedDate},
	{"an hour that comes twice is one", repeatedHour},
	{"a date that never was is not funded", missingDate},
	{"days end in the zone of the budget", zoneOfTheBudget},
	{"a day, and then a day, may be spent in two minutes", twoDaysInTwoMinutes},
	{"a rolling period frees whole buckets", rollingBuckets},
	{"a refusal says when it could pass", retryAt},
	{"ended holds are known for a while", closedRemembered},
	{"presumed holds are known for a month after their window", presumedRemembered},
	{"totals are known for a year", totalsRemembered},
}

func timeFreesNothing(r *rig) {
	day := r.day()
	held, presumed := r.take(day, "1"), r.take(day, "1")
	r.resolve(presumed, budget.Presumed(0))
	for _, later := range []time.Duration{15 * time.Minute, 10 * time.Hour} {
		r.hand.Pass(later)
		require.Equal(r, "settled 0 presumed 1 held 1 left 8", r.books(day))
	}
	r.settle(held, "0.37")
	require.True(r, r.settle(presumed, "0.37").Late)
	require.Equal(r, "settled 0.74 presumed 0 held 0 left 9.26", r.books(day))
}

func inFlightOverMidnight(r *rig) {
	day := r.zoned("America/New_York")
	r.at("2026-03-07T23:59:59.9-05:00")
	before := r.hand.Now()
	id := r.take(day, "2")
	lost := r.take(day, "1")
	r.at("2026-03-08T00:00:01-05:00")
	report := r.settle(id, "1.5")
	require.True(r, report.Late, "its window has ended")
	r.resolve(lost, budget.Voided("not_sent"))
	require.Equal(r, "settled 1.5 presumed 0 held 0 left 8.5", books(r.totalsAt(day, before)))
	require.Equal(r, "settled 0 presumed 0 held 0 left 10", r.books(day))
	r.spend(day, "10")
	r.refused(day, "0.01")
	require.Equal(r, "2026-03-07", r.totalsAt(day, before).Window.ID)
	require.Equal(r, "2026-03-08", r.totals(day).Window.ID)
}

// zoned is a budget of 10 dollars per day in a zone.
func (r *rig) zoned(zone string) budget.Budget {
	r.Helper()
	b := r.day()
	var err error
	b.Zone, err = time.LoadLocation(zone)
	require.NoError(r, err)
	return b
}

func longDay(r *rig) {
	day := r.zoned("America/New_York")
	r.at("2026-11-01T05:30:00Z") // 01:30, the first time
	r.spend(day, "10")
	for _, instant := range []string{"2026-11-01T06:30:00Z", "2026-11-02T04:59:59Z"} {
		r.at(instant)
		r.refused(day, "0.01")
	}
	r.at("2026-11-02T05:00:00Z")
	r.spend(day, "10")
}

func shortDay(r *rig) {
	day := r.zoned("Europe/Paris")
	day.Name = "paris"
	r.at("2026-10-24T22:30:00Z") // a day of 25 hours has begun
	r.spend(day, "10")
	r.at("2026-10-25T22:59:59Z")
	r.refused(day, "0.01")
	r.at("2026-10-25T23:00:00Z")
	r.spend(day, "10")
	r.at("2027-03-27T23:30:00Z") // a day of 23 hours has begun
	r.spend(day, "10")
	r.at("2027-03-28T21:59:59Z")
	r.refused(day, "0.01")
	r.at("2027-03-28T22:00:00Z")
	r.spend(day, "10")
}

func skippedMidnight(r *rig) {
	day := r.zoned("America/Santiago")
	r.at("2026-09-05T23:30:00-04:00")
	r.spend(day, "10")
	for range 30 {
		over := r.refused(day, "0.01")
		require.True(r, over.RetryAt.After(r.hand.Now()), "never in the past")
		require.Equal(r, "2026-09-06T04:00:00Z", over.RetryAt.UTC().Format(time.RFC3339))
		r.hand.Pass(time.Minute)
	}
	require.Equal(r, "2026-09-06T04:00:00Z", r.hand.Now().UTC().Format(time.RFC3339))
	r.spend(day, "10")
}

func repeatedDate(r *rig) {
	day := r.zoned("America/St_Johns")
	r.hand.Step(time.Date(2010, 11, 6, 12, 0, 0, 0, time.UTC).Sub(r.hand.Now()))
	funded := 0
	for _, instant := range []string{"2010-11-07T02:29:00Z", "2010-11-07T02:30:30Z", "2010-11-07T02:40:00Z", "2010-11-07T03:29:00Z", "2010-11-07T03:31:00Z"} {
		r.at(instant) // the local date is 11-06, 11-07, 11-06, 11-06, 11-07
		if id, _, err := r.hold(leg(day, "10")); err == nil {
			r.settle(id, "10")
			funded++
		}
	}
	require.Equal(r, 2, funded, "windows")
}

func repeatedHour(r *rig) {
	day := r.zoned("America/Santiago")
	r.hand.Step(time.Date(2026, 4, 4, 12, 0, 0, 0, time.UTC).Sub(r.hand.Now()))
	r.at("2026-04-04T22:00:00-03:00")
	r.spend(day, "10")
	for range 5 { // 22:30, 23:00, 23:30, 23:00, 23:30
		r.hand.Pass(30 * time.Minute)
		r.refused(day, "0.01")
	}
	r.hand.Pass(30 * time.Minute)
	require.Equal(r, "2026-04-05T00:00:00-04:00", r.hand.Now().In(day.Zone).Format(time.RFC3339))
	r.spend(day, "10")
}

func missingDate(r *rig) {
	day := r.zoned("Pacific/Apia")
	r.hand.Step(time.Date(2011, 12, 29, 12, 0, 0, 0, time.UTC).Sub(r.hand.Now()))
	r.at("2011-12-30T09:59:59Z")
	r.spend(day, "10")
	require.Equal(r, "2011-12-29", r.refused(day, "0.01").Window)
	r.at("2011-12-30T10:00:00Z")
	r.spend(day, "10")
	require.Equal(r, "2011-12-31", r.refused(day, "0.01").Window)
}

func zoneOfTheBudget(r *rig) {
	day := r.zoned("Asia/Tokyo")
	r.at("2026-05-03T21:30:00+09:00")
	r.spend(day, "10")
	r.at("2026-05-03T23:59:59+09:00")
	r.refused(day, "0.01")
	r.at("2026-05-04T00:00:00+09:00")
	r.spend(day, "1")
	r.at("2026-05-04T09:00:00+09:00") // midnight in UTC means nothing
	require.Equal(r, "settled 1 presumed 0 held 0 left 9", r.books(day))
}

func twoDaysInTwoMinutes(r *rig) {
	day, rolling := r.day(), r.budget("rolling", budget.Rolling(24*time.Hour), "10")
	r.at("2026-05-02T23:59:00Z")
	r.spend(day, "10")
	r.spend(rolling, "10")
	r.at("2026-05-03T00:01:00Z")
	r.spend(day, "10")
	require.Equal(r, "rolling", r.refusedAll(leg(r.budget("week", budget.Week, "100"), "10"), leg(rolling, "10")).Budget)
	r.at("2026-05-03T23:59:59Z")
	over := r.refused(rolling, "0.01")
	require.Equal(r, "2026-05-04T00:00:00Z", over.RetryAt.UTC().Format(time.RFC3339))
	r.at("2026-05-04T00:00:00Z")
	r.spend(rolling, "10")
}

func rollingBuckets(r *rig) {
	rolling := r.budget("rolling", budget.Rolling(24*time.Hour), "10")
	r.at("2026-05-02T12:59:59Z")
	r.spend(rolling, "4")
	r.at("2026-05-02T15:00:00Z")
	presumed := r.take(rolling, "3")
	r.resolve(presumed, budget.Presumed(0))
	r.at("2026-05-02T16:30:00Z")
	r.take(rolling, "2")
	require.Equal(r, "settled 4 presumed 3 held 2 left 1", r.books(rolling))
	require.Equal(r, "2026-05-03T13:00:00Z", r.refused(rolling, "1.01").RetryAt.UTC().Format(time.RFC3339))
	require.Equal(r, "2026-05-03T16:00:00Z", r.refused(rolling, "6").RetryAt.UTC().Format(time.RFC3339))
	over := r.refused(rolling, "10")
	require.Equal(r, "2026-05-03T17:00:00Z", over.RetryAt.UTC().Format(time.RFC3339))
	require.Equal(r, 9*budget.Unit, over.Used)
	r.at("2026-05-03T12:59:59Z")
	require.Equal(r, "settled 4 presumed 3 held 2 left 1", r.books(rolling))
	r.at("2026-05-03T13:00:00Z")
	require.Equal(r, "settled 0 presumed 3 held 2 left 5", r.books(rolling))
	r.take(rolling, "5")
	r.refused(rolling, "0.01")
	r.at("2026-05-03T16:00:00Z")
	require.True(r, r.resolve(presumed, budget.Voided("reconciled")).Late)
	require.Equal(r, "settled 0 presumed 0 held 7 left 3", r.books(rolling))
}

func retryAt(r *rig) {
	for _, c := range []struct {
		every budget.Period
		at    string
	}{
		{budget.Day, "2026-05-03T00:00:00Z"},
		{budget.Day.At(13 * time.Hour), "2026-05-02T13:00:00Z"},
		{budget.Week, "2026-05-04T00:00:00Z"},
		{budget.Month, "2026-06-01T00:00:00Z"},
		{budget.Month.From(15), "2026-05-15T00:00:00Z"},
	} {
		b := r.budget(c.every.String(), c.every, "1")
		r.spend(b, "1")
		over := r.refused(b, "0.5")
		require.Equal(r, c.at, over.RetryAt.UTC().Format(time.RFC3339), c.every.String())
		require.Equal(r, b.Window(r.hand.Now()).ID, over.Window)
	}
}

func closedRemembered(r *rig) {
	day := r.day()
	id := r.take(day, "1")
	r.settle(id, "0.4")
	voided := r.take(day, "1")
	r.resolve(voided, budget.Voided("not_sent"))
	r.hand.Pass(14 * time.Minute)
	r.settle(id, "0.4")
	r.conflicts(id, budget.Settled(budget.MustParse("0.5")))
	r.conflicts(voided, budget.Settled(1))
	require.Equal(r, "settled 0.4 presumed 0 held 0 left 9.6", r.books(day))
}

func presumedRemembered(r *rig) {
	day := r.day()
	spent := r.hand.Now()
	settled, corrected := r.take(day, "1"), r.take(day, "2")
	r.resolve(settled, budget.Presumed(0))
	r.resolve(corrected, budget.Presumed(0))
	for range 34 {
		r.hand.Pass(24 * time.Hour)
		r.spend(day, "10")
	}
	require.Equal(r, "settled 0 presumed 3 held 0 left 7", books(r.totalsAt(day, spent)))
	require.True(r, r.settle(settled, "0.25").Late)
	r.resolve(corrected, budget.Corrected(budget.MustParse("1.5"), "invoice"))
	require.Equal(r, "settled 1.75 presumed 0 held 0 left 8.25", books(r.totalsAt(day, spent)))
	require.Equal(r, "settled 10 presumed 0 held 0 left 0", r.books(day))
}

func totalsRemembered(r *rig) {
	day := r.day()
	first := r.hand.Now()
	r.spend(day, "7")
	for range 40 {
		r.hand.Pass(240 * time.Hour)
		r.spend(day, "1")
	}
	require.Equal(r, "settled 7 presumed 0 held 0 left 3", books(r.totalsAt(day, first)))
}

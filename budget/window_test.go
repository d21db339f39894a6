package budget_test

import (
	"archive/zip"
	"cmp"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

func TestDaysBeginWhenTheirDateBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, date, start, length string }{
		{"America/New_York", "2026-03-08", "2026-03-08T05:00:00Z", "23h"},
		{"America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", "25h"},
		{"Europe/London", "2026-03-29", "2026-03-29T00:00:00Z", "23h"},
		{"Europe/London", "2026-10-25", "2026-10-24T23:00:00Z", "25h"},
		{"Europe/Paris", "2026-03-29", "2026-03-28T23:00:00Z", "23h"},
		{"Europe/Paris", "2026-10-25", "2026-10-24T22:00:00Z", "25h"},
		{"America/Los_Angeles", "2026-03-08", "2026-03-08T08:00:00Z", "23h"},
		{"America/Los_Angeles", "2026-11-01", "2026-11-01T07:00:00Z", "25h"},
		{"America/Santiago", "2026-09-05", "2026-09-05T04:00:00Z", "24h"},
		{"America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", "23h"},
		{"America/Santiago", "2026-09-07", "2026-09-07T03:00:00Z", "24h"},
		{"America/Santiago", "2026-04-04", "2026-04-04T03:00:00Z", "25h"},
		{"America/Havana", "2026-03-08", "2026-03-08T05:00:00Z", "23h"},
		{"Atlantic/Azores", "2026-03-29", "2026-03-29T01:00:00Z", "23h"},
		{"Atlantic/Azores", "2026-10-25", "2026-10-25T00:00:00Z", "25h"},
		{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "23h"},
		{"Africa/Cairo", "2026-10-29", "2026-10-28T21:00:00Z", "25h"},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", "24h30m"},
		{"Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", "23h30m"},
		{"Asia/Amman", "2001-09-28", "2001-09-27T21:00:00Z", "25h"},
		{"Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z", "24h"},
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", "24h"},
		{"America/St_Johns", "2010-11-07", "2010-11-07T02:30:00Z", "25h"},
		{"Asia/Tokyo", "2026-05-02", "2026-05-01T15:00:00Z", "24h"},
		{"UTC", "2024-02-29", "2024-02-29T00:00:00Z", "24h"},
	} {
		start := instant(t, c.start)
		length, err := time.ParseDuration(c.length)
		require.NoError(t, err)
		want := budget.Window{ID: c.date, Oldest: c.date, Start: start, End: start.Add(length)}
		z := zone(t, c.zone)
		require.Equal(t, want, budget.Day.Window(start, z), "%s %s", c.zone, c.date)
		require.Equal(t, want, budget.Day.Window(start.Add(length-1), z), "%s %s at its end", c.zone, c.date)
		require.Equal(t, start, budget.Day.Window(start.Add(-1), z).End, "the day before %s %s", c.zone, c.date)
		require.Equal(t, start.Add(length), budget.Day.Window(start.Add(length), z).Start, "the day after %s %s", c.zone, c.date)
	}
}

func TestADateThatNeverWasHasNoWindow(t *testing.T) {
	t.Parallel()
	apia := zone(t, "Pacific/Apia")
	require.Equal(t, "2011-12-29", budget.Day.Window(instant(t, "2011-12-30T09:59:59Z"), apia).ID)
	require.Equal(t, "2011-12-31", budget.Day.Window(instant(t, "2011-12-30T10:00:00Z"), apia).ID)
}

func TestADateThatComesTwiceIsOneWindow(t *testing.T) {
	t.Parallel()
	stJohns := zone(t, "America/St_Johns") // 00:01 became 23:01 of the day before
	first := budget.Day.Window(instant(t, "2010-11-07T02:30:30Z"), stJohns)
	again := budget.Day.Window(instant(t, "2010-11-07T02:40:00Z"), stJohns)
	require.Equal(t, "2010-11-07", first.ID)
	require.Equal(t, first, again)
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		period              budget.Period
		zone, at, id        string
		start, end, printed string
		oldest              string // empty: the id
	}{
		{budget.Week, "UTC", "2026-11-01T23:59:59Z", "2026-W44", "2026-10-26T00:00:00Z", "2026-11-02T00:00:00Z", "week", ""},
		{budget.Week, "UTC", "2026-11-02T00:00:00Z", "2026-W45", "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z", "week", ""},
		{budget.Week, "UTC", "2027-01-03T12:00:00Z", "2026-W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z", "week", ""},
		{budget.Week, "America/New_York", "2026-11-01T12:00:00Z", "2026-W44", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z", "week", ""},
		{budget.Week.At(6 * time.Hour), "UTC", "2026-11-02T05:59:59Z", "2026-W44", "2026-10-26T06:00:00Z", "2026-11-02T06:00:00Z", "week@6h0m0s", ""},
		{budget.Month, "UTC", "2026-02-28T23:59:59Z", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "month", ""},
		{budget.Month, "Asia/Tokyo", "2026-01-31T15:00:00Z", "2026-02", "2026-01-31T15:00:00Z", "2026-02-28T15:00:00Z", "month", ""},
		{budget.Month, "UTC", "2026-12-31T23:59:59Z", "2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "month", ""},
		{budget.Month.From(15), "UTC", "2026-01-14T12:00:00Z", "2025-12-15", "2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z", "month from 15", ""},
		{budget.Month.From(15), "UTC", "2026-01-15T00:00:00Z", "2026-01-15", "2026-01-15T00:00:00Z", "2026-02-15T00:00:00Z", "month from 15", ""},
		{budget.Month.From(31), "UTC", "2026-02-28T00:00:00Z", "2026-02-28", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z", "month from 31", ""},
		{budget.Month.From(31), "UTC", "2026-02-27T23:59:59Z", "2026-01-31", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z", "month from 31", ""},
		{budget.Month.From(29), "UTC", "2024-02-29T00:00:00Z", "2024-02-29", "2024-02-29T00:00:00Z", "2024-03-29T00:00:00Z", "month from 29", ""},
		{budget.Month.From(1).At(time.Hour), "UTC", "2026-03-01T00:30:00Z", "2026-02", "2026-02-01T01:00:00Z", "2026-03-01T01:00:00Z", "month from 1@1h0m0s", ""},
		{budget.Day.At(6 * time.Hour), "UTC", "2026-11-01T05:59:59Z", "2026-10-31", "2026-10-31T06:00:00Z", "2026-11-01T06:00:00Z", "day@6h0m0s", ""},
		{budget.Day.At(2*time.Hour + 30*time.Minute), "America/New_York", "2026-03-08T07:00:00Z", "2026-03-08", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z", "day@2h30m0s", ""},
		{budget.Day.At(90 * time.Minute), "America/New_York", "2026-11-01T06:30:00Z", "2026-11-01", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z", "day@1h30m0s", ""},
		{budget.Day, "UTC", "1969-12-31T12:00:00Z", "1969-12-31", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z", "day", ""},
		{budget.Week, "UTC", "1969-12-28T12:00:00Z", "1969-W52", "1969-12-22T00:00:00Z", "1969-12-29T00:00:00Z", "week", ""},
		{budget.Rolling(24 * time.Hour), "Asia/Tokyo", "2026-11-01T23:59:00Z", "2026-11-01T23:00:00Z", "2026-10-31T23:00:00Z", "2026-11-02T00:00:00Z", "rolling 24h0m0s", "2026-10-31T23:00:00Z"},
		{budget.Rolling(time.Minute), "UTC", "1969-12-31T23:59:59Z", "1969-12-31T23:59:57Z", "1969-12-31T23:58:45Z", "1970-01-01T00:00:00Z", "rolling 1m0s", "1969-12-31T23:58:45Z"},
	} {
		want := budget.Window{ID: c.id, Oldest: cmp.Or(c.oldest, c.id), Start: instant(t, c.start), End: instant(t, c.end)}
		b := budget.Budget{Every: c.period, Zone: zone(t, c.zone)}
		require.Equal(t, want, b.Window(instant(t, c.at)), "%v in %s at %s", c.period, c.zone, c.at)
		require.Equal(t, c.printed, c.period.String())
	}
}

func TestWithoutAZoneDaysAreThoseOfUTC(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2026-05-02", budget.PerDay(budget.Unit).Window(instant(t, "2026-05-03T01:00:00+02:00")).ID)
}

func TestAnInvalidPeriodHasNoWindow(t *testing.T) {
	t.Parallel()
	for _, p := range []budget.Period{{}, budget.Day.From(3), budget.Month.From(32), budget.Day.At(-time.Hour), budget.Rolling(0)} {
		require.Equal(t, budget.Window{}, p.Window(time.Now(), nil), p.String())
	}
}

// A ledger stays where it is when its clock is set back a little, and goes back when
// an earlier step forward must have been wrong.
func TestAdvanceGoesBackOnlyByLargeSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		period          budget.Period
		from, to, wants string
	}{
		{budget.Day, "2026-05-02T12:00:00Z", "2026-05-02T01:00:00Z", "2026-05-02"},
		{budget.Day, "2026-05-02T12:00:00Z", "2026-05-01T10:00:00Z", "2026-05-02"},
		{budget.Day, "2026-05-02T12:00:00Z", "2026-04-30T10:00:00Z", "2026-04-30"},
		{budget.Day, "2026-05-02T12:00:00Z", "2026-05-03T00:00:00Z", "2026-05-03"},
		{budget.Month, "2026-05-02T12:00:00Z", "2026-04-01T00:00:00Z", "2026-05"},
		{budget.Month, "2026-05-02T12:00:00Z", "2026-03-31T00:00:00Z", "2026-03"},
		{budget.Rolling(24 * time.Hour), "2026-05-02T12:30:00Z", "2026-05-02T11:00:00Z", "2026-05-02T12:00:00Z"},
		{budget.Rolling(24 * time.Hour), "2026-05-02T12:30:00Z", "2026-05-01T11:00:00Z", "2026-05-02T12:00:00Z"},
		{budget.Rolling(24 * time.Hour), "2026-05-02T12:30:00Z", "2026-05-01T10:59:00Z", "2026-05-01T10:00:00Z"},
		{budget.Rolling(24 * time.Hour), "2026-05-02T12:30:00Z", "2026-05-02T13:00:00Z", "2026-05-02T13:00:00Z"},
	} {
		current := c.period.Window(instant(t, c.from), nil)
		require.Equal(t, c.wants, current.Advance(c.period.Window(instant(t, c.to), nil)).ID, "%v %s to %s", c.period, c.from, c.to)
	}
	first := budget.Day.Window(instant(t, "2026-05-02T12:00:00Z"), nil)
	require.Equal(t, first, budget.Window{}.Advance(first), "a ledger without window takes the first")
}

// Any stretch as long as the period lies inside what some window counts.
func TestARollingWindowCoversItsPeriod(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Minute, 100 * time.Second, time.Hour, 24 * time.Hour, 7*24*time.Hour + time.Nanosecond, 366 * 24 * time.Hour} {
		p := budget.Rolling(d)
		for range 200 {
			at := time.Unix(rand.Int64N(4e9), rand.Int64N(1e9))
			w := p.Window(at, nil)
			require.False(t, w.Start.After(at.Add(-d)), "%v at %v", p, at)
			require.True(t, w.End.After(at), "%v at %v", p, at)
			require.Less(t, w.Oldest, w.ID)
			require.Equal(t, w, p.Window(w.End.Add(-1), nil))
		}
	}
}

// The sweep compares every day of every zone with a search that knows nothing of
// zone rules: it looks at the local date of one instant after the other.
func TestEveryDayOfEveryZone(t *testing.T) {
	t.Parallel()
	first, last := 2026, 2027
	every := 6
	if os.Getenv("OUTLAY_PROVE") != "" {
		first, last, every = 2000, 2037, 1
	}
	names := zoneNames(t)
	require.Greater(t, len(names), 400)
	days := 0
	for i := 0; i < len(names); i += every {
		z, err := time.LoadLocation(names[i])
		require.NoError(t, err)
		days += sweep(t, z, time.Date(first, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(last+1, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	t.Logf("%d days in %d zones", days, (len(names)+every-1)/every)
}

// sweep walks the days of one zone from window to window and returns their number.
func sweep(t *testing.T, z *time.Location, from, to time.Time) int {
	days := 0
	for w := budget.Day.Window(from, z); w.Start.Before(to); w = budget.Day.Window(w.End, z) {
		days++
		begins, ends := w.Start.In(z), w.End.Add(-1).In(z)
		if begins.Format(time.DateOnly) != w.ID {
			t.Fatalf("%v: the window %+v begins on another date", z, w)
		}
		if before := w.Start.Add(-1).In(z).Format(time.DateOnly); before >= w.ID {
			t.Fatalf("%v: an instant before the window %+v is of %s", z, w, before)
		}
		_, offset := begins.Zone()
		if _, later := ends.Zone(); later == offset && w.End.Sub(w.Start) == 24*time.Hour {
			continue
		}
		for at := w.Start.Add(-26 * time.Hour); at.Before(w.Start); at = at.Add(time.Minute) {
			if date := at.In(z).Format(time.DateOnly); date >= w.ID {
				t.Fatalf("%v: %v is of %s, before the window %+v", z, at, date, w)
			}
		}
	}
	return days
}

func zoneNames(t *testing.T) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer r.Close()
	var names []string
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	return names
}

func FuzzWindow(f *testing.F) {
	f.Add(int64(1_790_000_000), uint8(0), uint16(0))
	f.Add(int64(-1), uint8(13), uint16(1439))
	f.Add(int64(1_325_239_200), uint8(2), uint16(0))
	periods := []budget.Period{budget.Day, budget.Week, budget.Month, budget.Month.From(15), budget.Month.From(31), budget.Rolling(24 * time.Hour)}
	var zones []*time.Location
	for _, name := range []string{"UTC", "America/New_York", "Pacific/Apia", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"} {
		zones = append(zones, zone(f, name))
	}
	f.Fuzz(func(t *testing.T, seconds int64, which uint8, minute uint16) {
		at := time.Unix(seconds%8e9, 0)
		p := periods[int(which)%len(periods)]
		if p != periods[len(periods)-1] {
			p = p.At(time.Duration(minute%1440) * time.Minute)
		}
		z := zones[int(which)/len(periods)%len(zones)]
		w := p.Window(at, z)
		require.False(t, at.Before(w.Start), "%v in %v at %v: %+v", p, z, at, w)
		require.True(t, at.Before(w.End), "%v in %v at %v: %+v", p, z, at, w)
		require.Equal(t, w, p.Window(w.End.Add(-1), z), "the same window at its end")
		next := p.Window(w.End, z)
		require.Greater(t, next.ID, w.ID)
		require.Equal(t, next, w.Advance(next))
		require.Equal(t, w, w.Advance(p.Window(at.Add(-1), z)))
	})
}

func BenchmarkWindow(b *testing.B) {
	at, z := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), zone(b, "America/New_York")
	b.ReportAllocs()
	for b.Loop() {
		_ = budget.Day.Window(at, z)
	}
}

func TestPeriodsSurviveAsText(t *testing.T) {
	for _, p := range []budget.Period{
		budget.Day, budget.Week, budget.Month, budget.Day.At(6 * time.Hour), budget.Week.At(90 * time.Minute),
		budget.Month.From(15), budget.Month.From(31).At(time.Second), budget.Rolling(24 * time.Hour), budget.Rolling(time.Minute),
	} {
		require.Equal(t, p, budget.ParsePeriod(p.String()))
	}
	require.Equal(t, budget.Period{}, budget.ParsePeriod("blue moon"))
}

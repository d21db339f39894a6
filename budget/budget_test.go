package budget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/stretchr/testify/require"
)

func TestBudgetsThatAreRight(t *testing.T) {
	t.Parallel()
	for _, b := range []budget.Budget{
		budget.PerDay(1),
		budget.PerWeek(50 * budget.Unit),
		budget.PerMonth(50 * budget.Unit),
		{Name: "größe-日", Limit: 100 * budget.Unit, Unit: budget.Calls, Every: budget.Rolling(time.Hour)},
		{Limit: 5, Unit: "EUR", Every: budget.Month.From(31).At(23 * time.Hour), Zone: zone(t, "America/Santiago"), Keep: 5, Alerts: []int{}},
	} {
		require.NoError(t, b.Validate())
	}
}

func TestValidateNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	right := budget.PerDay(10 * budget.Unit)
	for want, edit := range map[string]func(*budget.Budget){
		"Name must be":                                   func(b *budget.Budget) { b.Name = "a\nb" },
		"Name must":                                      func(b *budget.Budget) { b.Name = strings.Repeat("x", 201) },
		"Label must be":                                  func(b *budget.Budget) { b.Label = "\xff" },
		"Limit must be more than zero, not 0":            func(b *budget.Budget) { b.Limit = 0 },
		"Limit must be more than zero, not -1":           func(b *budget.Budget) { b.Limit = -budget.Unit },
		"Limit must be a whole number of calls":          func(b *budget.Budget) { b.Unit, b.Limit = budget.Calls, 100 },
		`Unit must be a currency code`:                   func(b *budget.Budget) { b.Unit = "usd" },
		`Unit must be a currency code such as USD, or "`: func(b *budget.Budget) { b.Unit = "DOLLAR" },
		"Every must be Day":                              func(b *budget.Budget) { b.Every = budget.Period{} },
		"Every the time of day":                          func(b *budget.Budget) { b.Every = budget.Day.At(24 * time.Hour) },
		"not 500ms":                                      func(b *budget.Budget) { b.Every = budget.Day.At(500 * time.Millisecond) },
		"Every the first day of a month":                 func(b *budget.Budget) { b.Every = budget.Month.From(-1) },
		"Every only a month has a first day":             func(b *budget.Budget) { b.Every = budget.Week.From(2) },
		"Every a rolling period must":                    func(b *budget.Budget) { b.Every = budget.Rolling(time.Second) },
		"Every a rolling period has no time of day":      func(b *budget.Budget) { b.Every = budget.Rolling(time.Hour).At(1) },
		"Zone must have a name":                          func(b *budget.Budget) { b.Zone = time.Local },
		"Keep must be zero to Limit, not 11":             func(b *budget.Budget) { b.Keep = 11 * budget.Unit },
		"Keep must be":                                   func(b *budget.Budget) { b.Keep = -1 },
		"Alerts must be 1 to 1000 percent, not 0":        func(b *budget.Budget) { b.Alerts = []int{50, 0} },
	} {
		b := right
		edit(&b)
		require.ErrorContains(t, b.Validate(), want)
	}

	err := budget.Budget{Keep: -1, Unit: "x"}.Validate()
	many, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, many.Unwrap(), 4, "Limit, Unit, Every and Keep: %v", err)
}

func TestNormalFillsWhatHasADefault(t *testing.T) {
	t.Parallel()
	b := budget.PerDay(budget.Unit)
	b.Name = "sms-day"
	got := b.Normal()
	require.Equal(t, budget.Budget{
		Name: "sms-day", Label: "sms-day", Limit: budget.Unit, Unit: "USD", Every: budget.Day, Zone: time.UTC, Alerts: []int{50, 80, 100},
	}, got)
	require.Equal(t, got, got.Normal())

	b.Alerts = []int{}
	require.Empty(t, b.Normal().Alerts, "no alerts is a choice")
}

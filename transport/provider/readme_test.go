package provider_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// The table of presets in README.md stands between these lines.
const (
	tableBegin = "<!-- presets -->\n"
	tableEnd   = "<!-- /presets -->\n"
)

// TestREADMETable prints the table of presets, and compares it with the README's.
func TestREADMETable(t *testing.T) {
	table := readmeTable()
	fmt.Print(table)
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, begins := strings.Cut(string(text), tableBegin)
	got, _, ends := strings.Cut(rest, tableEnd)
	require.True(t, begins && ends, "no table between %q and %q", tableBegin, tableEnd)
	require.Equal(t, table, got, "copy what the test prints")
}

func readmeTable() string {
	var b strings.Builder
	b.WriteString("| preset | hosts | billed by | default rate | scopes | idempotency |\n|---|---|---|---|---|---|\n")
	for _, p := range presets {
		made := p.make()
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", p.function, hosts(made.Match), p.billed,
			ratesOf(made), scopesOf(made), made.IdempotencyHeader)
	}
	return b.String()
}

// hosts are two patterns, and how many more there are.
func hosts(match []string) string {
	shown := match
	if len(match) > 3 {
		shown = match[:1]
	}
	s := "`" + strings.Join(shown, "` `") + "`"
	if n := len(match) - len(shown); n > 0 {
		s += fmt.Sprintf(" and %d regional", n)
	}
	return s
}

func ratesOf(p transport.Provider) string {
	s := rates(p.Rates)
	for _, scope := range p.Scopes {
		if len(scope.Rates) > 0 {
			s = append(s, strings.Join(rates(scope.Rates), ", ")+" by "+scope.Name)
		}
	}
	if p.MaxInFlight > 0 {
		s = append(s, fmt.Sprintf("%d at once", p.MaxInFlight))
	}
	return strings.Join(s, ", ")
}

// rates reads like "30/s" and "3000/min".
func rates(all []throttle.Rate) []string {
	var s []string
	for _, r := range all {
		per := r.Per.String()
		switch r.Per {
		case time.Second:
			per = "s"
		case time.Minute:
			per = "min"
		case time.Hour:
			per = "h"
		}
		s = append(s, fmt.Sprintf("%d/%s", r.N, per))
	}
	return s
}

func scopesOf(p transport.Provider) string {
	var s []string
	for _, scope := range p.Scopes {
		s = append(s, scope.Name)
	}
	return strings.Join(s, ", ")
}

//go:build race

package promtransport_test

const raceEnabled = true

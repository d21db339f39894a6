//go:build !race

package promtransport_test

const raceEnabled = false

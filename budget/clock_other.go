//go:build !linux

package budget

import "time"

// systemSuspended: elsewhere the standard library does not tell how long the machine
// slept. A step of the clock after a sleep is then confirmed like any other.
func systemSuspended() (time.Duration, bool) { return 0, false }

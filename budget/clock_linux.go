package budget

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2). CLOCK_BOOTTIME runs on while the machine sleeps,
// CLOCK_MONOTONIC does not: their difference is the time slept since boot.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

func systemSuspended() (time.Duration, bool) {
	awake, ok := gettime(clockMonotonic)
	if !ok {
		return 0, false
	}
	all, ok := gettime(clockBoottime)
	return (all - awake).Truncate(time.Millisecond), ok // the two readings are not one instant
}

func gettime(clock uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}

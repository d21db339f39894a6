package sqliteledger

import "syscall"

// asNobody takes this thread's rights to files away, until it ends.
func asNobody() { _, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0) }

package sqliteledger

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// otherPlace says why others may have the file under another name, beside which their log
// would lie: two books of one budget. Empty: nothing speaks for it.
func otherPlace(path string, info os.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return "the file has " + strconv.FormatUint(uint64(st.Nlink), 10) + " names (hard links), and each would have a log of its own"
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if isMount(string(mounts), path) {
		return "the file is mounted alone, and its log would not lie beside it: mount its directory"
	}
	return ""
}

// isMount reports whether path is a place of mountinfo, proc(5).
func isMount(mounts, path string) bool {
	escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == escaped {
			return true
		}
	}
	return false
}
